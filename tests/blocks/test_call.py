"""What blocks hand to an agent by its call."""

from typing import Any

import pytest

import asl

pytestmark = pytest.mark.quick

Json = Any


def seen(
    fields: Json, data: Json | None = None, document: Json | None = None, **more: Json
) -> Json:
    """Run a Task with these fields; returns what its agent finds in each call."""
    calls: list[Json] = []

    def agent(parameters: Json, call: asl.Call) -> Json:
        calls.append(
            {
                "model": call.model,
                "generation": call.generation,
                "reasoning": call.reasoning,
                "metadata": call.metadata,
                "quality": call.quality,
                "budget": call.budget,
                "key": call.idempotency_key,
                "attempt": call.attempt,
            }
        )
        if len(calls) <= more.get("failures", 0):
            raise asl.StateError("E")
        return {"_tokens": 10, "_cost": 0}

    task = {"Type": "Task", "Agent": "A", "End": True, **fields}
    whole = {"StartAt": "A", "States": {"A": task}, **(document or {})}
    result = asl.run(whole, data or {}, agents={"A": agent}, clock="virtual", name="e")
    assert result.ok, result.cause
    return calls


def test_call_without_blocks_has_empty_settings() -> None:
    """A plain Task tells of no model and no limit."""
    (call,) = seen({})
    assert call == {
        "model": None,
        "generation": {},
        "reasoning": {},
        "metadata": None,
        "quality": None,
        "budget": {"workflow": {}, "state": {}},
        "key": call["key"],
        "attempt": 1,
    }


def test_call_has_the_blocks_of_its_state() -> None:
    """Each block reaches the agent under its name."""
    (call,) = seen(
        {
            "Model": {"Preferred": "m1"},
            "Generation": {"Temperature": 0.2, "TopP": 0.9, "MaxTokens": 9, "StopSequences": ["."]},
            "Reasoning": {"Format": "reflection", "MinSteps": 1},
            "Metadata": {"team.$": "$.team"},
            "Budget": {"MaxTokens": 50},
        },
        {"team": "red"},
        {"Budget": {"MaxCost": 2}},
    )
    assert call["model"] == "m1"
    assert call["generation"] == {
        "temperature": 0.2,
        "top_p": 0.9,
        "max_tokens": 9,
        "stop_sequences": ["."],
    }
    assert call["reasoning"] == {"Format": "reflection", "MinSteps": 1}
    assert call["metadata"] == {"team": "red"}
    assert call["budget"] == {"workflow": {"MaxCost": 2.0}, "state": {"MaxTokens": 50.0}}


def test_fallback_models_follow_the_preferred_one() -> None:
    """A fallback is told instead of the preferred model, in the same attempt."""
    calls = seen(
        {"Model": {"Preferred": "m1", "Fallback": ["m2", "m3"], "FallbackOn": ["E"]}}, failures=2
    )
    assert [call["model"] for call in calls] == ["m1", "m2", "m3"]
    assert {call["attempt"] for call in calls} == {1}


@pytest.mark.parametrize(("priority", "model"), [("normal", "cheap"), ("critical", "m1")])
def test_the_fallback_of_a_budget_wins(priority: str, model: str) -> None:
    """It overrides the preferred model, except in a critical state."""
    (call,) = seen(
        {"Model": {"Preferred": "m1"}, "Budget": {"Priority": priority}},
        document={"Budget": {"MaxTokens": 99, "Fallback": {"When": "Always", "UseModel": "cheap"}}},
    )
    assert call["model"] == model


def test_call_has_the_reduced_quality() -> None:
    """The action ReduceQuality reaches the agent."""
    cascade = {"Cascade": [{"When": "Always", "Action": "ReduceQuality"}]}
    (call,) = seen({}, document={"Budget": {"MaxTokens": 99, "Fallback": cascade}})
    assert call["quality"] == "reduced"


def test_a_key_is_the_same_for_all_attempts() -> None:
    """Specification 8.4: that of the visit, unless the document gives a key."""
    retry = {"Retry": [{"ErrorEquals": ["E"]}]}
    calls = seen({"Idempotent": True, **retry}, failures=1)
    assert [call["attempt"] for call in calls] == [1, 2]
    (key,) = {call["key"] for call in calls}
    assert key.endswith(":e:/A@0")
    (call,) = seen({"IdempotencyKey.$": "$.n"}, {"n": 7})
    assert call["key"] == "7"
    (call,) = seen({"Idempotent": False, "IdempotencyKey": "k"})
    assert call["key"] != "k"


def test_a_bound_for_the_answer_is_reserved() -> None:
    """With a price and MaxTokens it is known before a call what it may cost."""
    document = {
        "StartAt": "M",
        "Budget": {"MaxCost": 10},
        "States": {
            "M": {
                "Type": "Map",
                "ItemProcessor": {
                    "StartAt": "T",
                    "States": {
                        "T": {
                            "Type": "Task",
                            "Agent": "A",
                            "Model": {"Preferred": "m"},
                            "Generation": {"MaxTokens": 3},
                            "End": True,
                        }
                    },
                },
                "End": True,
            }
        },
    }
    agents = {"A": {"return": {"_cost": 3}, "delay": 1}}
    prices = {"m": {"input": 0, "output": 1}}
    result = asl.run(document, [1, 2, 3, 4], agents=agents, prices=prices, clock="virtual")
    assert result.error == "States.BudgetExceeded"
    assert (result.usage["reserved"]["cost"], result.usage["cost"]) == (9, 12)
