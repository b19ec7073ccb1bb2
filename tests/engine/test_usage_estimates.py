"""Estimates of a call's usage from earlier calls."""

from decimal import Decimal

from asl.engine.usage import PastUsage

SIZES = {"MaxTokens": 9}
"""The document bounds the tokens of a call; its model has no price."""


def cost(past: PastUsage) -> object:
    own, _ = past.expect("tiny", SIZES)
    return own.get("MaxCost")


def test_cost_of_a_token_bounds_the_cost_of_a_call() -> None:
    past = PastUsage()
    past.learn("tiny", {"MaxTokens": 2, "MaxCost": Decimal("0.002")}, sizes=SIZES)
    assert cost(past) == Decimal("0.009")


def test_highest_cost_of_a_token_counts() -> None:
    past = PastUsage()
    past.learn("tiny", {"MaxTokens": 1, "MaxCost": Decimal("0.004")}, sizes=SIZES)
    past.learn("tiny", {"MaxTokens": 8, "MaxCost": Decimal("0.008")}, sizes=SIZES)
    assert cost(past) == Decimal("0.036")


def test_calls_without_tokens_say_nothing_of_the_cost() -> None:
    past = PastUsage()
    past.learn("tiny", {"MaxTokens": 0, "MaxCost": Decimal(0)}, sizes=SIZES)
    assert cost(past) is None


def test_cost_of_a_token_outlives_the_process() -> None:
    past, later = PastUsage(), PastUsage()
    past.learn("tiny", {"MaxTokens": 1, "MaxCost": Decimal("0.004")}, sizes=SIZES)
    past.learn("tiny", {"MaxTokens": 8, "MaxCost": Decimal("0.008")}, sizes=SIZES)
    later.restore(past.to_json())
    assert cost(later) == Decimal("0.036")
