"""Blocks of an included document, in a store and next to those of the outer documents."""

from pathlib import Path
from typing import Any

import pytest

import asl

pytestmark = pytest.mark.quick

Json = Any


def including(part: Json, **fields: Json) -> Json:
    """Return a document that includes another one and goes on behind it."""
    states = {
        "I": {"Type": "Include", "Template": {"StartAt": "P", **part}, "Next": "Z"},
        "Z": {"Type": "Pass", "End": True},
    }
    return {"StartAt": "I", "States": states, **fields}


TWICE = {
    "P": {"Type": "Task", "Agent": "A", "ResultPath": None, "Next": "W"},
    "W": {"Type": "Approval", "Prompt": "On?", "ResultPath": None, "Next": "Q"},
    "Q": {"Type": "Task", "Agent": "A", "End": True},
}


def test_a_budget_is_known_again_in_another_process(tmp_path: Path) -> None:
    """What was spent before the pause counts after it."""
    document = including({"Budget": {"MaxCost": 0.5}, "States": TWICE})
    agents = {"A": {"return": {"_cost": 0.4}}}
    with asl.open_store(tmp_path / "runs.db", agents=agents) as store:
        assert store.run(document, {}, name="x").status == "PAUSED"
    with asl.open_store(tmp_path / "runs.db", agents=agents) as store:
        (request,) = store.pending()
        store.answer(request["requestId"], "approve", by="ann")
        result = store.resume("x")
        assert (result.status, result.error) == ("FAILED", "States.BudgetExceeded")
        assert result.usage["cost"] == 0.8


def test_stored_history_has_the_progress(tmp_path: Path) -> None:
    """Whoever reads the history later comes to the same."""
    waits = {
        "P": {"Type": "Task", "Agent": "A", "Next": "Q"},
        "Q": {"Type": "Task", "Agent": "A", "End": True},
    }
    document = including({"Progress": {}, "States": waits})
    agents = {"A": {"return": 1}}
    direct = asl.run(document, {}, agents=agents)
    with asl.open_store(tmp_path / "runs.db", agents=agents) as store:
        store.run(document, {}, name="x")
    with asl.open_store(tmp_path / "runs.db", agents=agents) as store:
        kept = store.result("x")
    for result in (direct, kept):
        told = [each for each in result.events if each.type == "ProgressUpdated"]
        assert [(each.path, each.details["percentage"]) for each in told] == [
            (("I",), 0),
            (("I",), 50),
            (("I",), 100),
        ]


def test_channel_without_a_sink_is_refused() -> None:
    """Before anything runs, where it is known by then."""
    events = {"Channels": {"out": {"Type": "pigeon"}}}
    document = including({"Events": events, "States": {"P": {"Type": "Pass", "End": True}}})
    with pytest.raises(asl.AslError, match="no sink is bound for the channel 'out'"):
        asl.run(document, {}, sinks={"raven": print})


def test_computed_channel_without_a_sink_fails_the_include() -> None:
    """The rest of the document does not fail of it."""
    events = {"Channels": {"out": {"Type.$": "$.kind"}}}
    document = including({"Events": events, "States": {"P": {"Type": "Pass", "End": True}}})
    result = asl.run(document, {"kind": "pigeon"})
    assert (result.status, result.error, result.visited) == ("FAILED", "States.Runtime", ["I"])
    assert "no sink is bound for the channel 'out'" in str(result.cause)


def test_deliveries_are_reported_by_the_place_of_the_include() -> None:
    """So channels of several documents may have one name."""
    events = {"Channels": {"out": {"Type": "pigeon"}}, "OnStateChange": {"Channel": "out"}}
    document = including(
        {"Events": events, "States": {"P": {"Type": "Pass", "End": True}}}, Events=events
    )
    given: list[Json] = []
    result = asl.run(document, {}, sinks={"pigeon": lambda event, channel: given.append(event)})
    delivered = {name: each["delivered"] for name, each in result.deliveries.items()}
    assert delivered == {"out": 6, "I/out": 2}
