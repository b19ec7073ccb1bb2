"""Amounts: of money and tokens, by the fields of a budget that limit them (8.11)."""

from collections.abc import Mapping
from decimal import Decimal
from math import ceil
from typing import Final

from asl.engine.execution import ZERO, Used
from asl.states.blocks.budget import Amounts

__all__ = [
    "NOTHING",
    "UNKNOWN",
    "amounts",
    "beyond",
    "kept",
    "larger",
    "read_back",
    "spending",
    "summed",
    "told",
]


def amounts(used: Used) -> dict[str, Decimal | int]:
    """Return what was used by the fields that limit it."""
    return {
        "MaxCost": used.cost,
        "MaxTokens": used.tokens,
        "MaxInputTokens": used.input,
        "MaxOutputTokens": used.output,
    }


def spending(used: Used) -> Amounts:
    """Return the same without what is nothing."""
    found: dict[str, Decimal | int] = {}
    cost, tokens, given, made, *_ = used
    if cost:
        found["MaxCost"] = cost
    if tokens:
        found["MaxTokens"] = tokens
    if given:
        found["MaxInputTokens"] = given
    if made:
        found["MaxOutputTokens"] = made
    return found


NOTHING: Final = amounts(Used(ZERO, 0, 0, 0, None))
UNKNOWN: Final[Amounts] = {}
"""The amounts of a call of which nothing is known."""


def kept(amounts: Amounts) -> dict[str, str]:
    """Return amounts as JSON keeps them."""
    return {name: str(each) for name, each in amounts.items()}


def told(name: str, amount: Decimal | int) -> float | int:
    """Return an amount as it is reported: of money any number, of tokens a whole one."""
    return float(amount) if name == "MaxCost" else ceil(amount)


def read_back(written: Mapping[str, str]) -> dict[str, Decimal | int]:
    """Return amounts that were kept."""
    return {name: Decimal(each) for name, each in written.items()}


def beyond(sizes: Amounts, counted: Amounts) -> dict[str, Decimal | int]:
    """Return how much more than was *counted* a call can have used that was held to its sizes."""
    found: dict[str, Decimal | int] = {}
    for name, size in sizes.items():
        rest = size - counted.get(name, 0)
        if rest > 0:
            found[name] = rest if name == "MaxCost" else ceil(rest)
    return found


def larger(one: Amounts, other: Amounts) -> Amounts:
    """Return the larger of two amounts of each kind."""
    return {**one, **{name: max(each, one.get(name, 0)) for name, each in other.items()}}


def summed(one: Amounts, other: Amounts) -> Amounts:
    """Return what one comes to with another, of what the other has."""
    return {name: one.get(name, 0) + each for name, each in other.items()}
