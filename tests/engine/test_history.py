"""History is lazy: what is expanded afterwards is what happened, state by state."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl
from asl.engine import interpreter

pytestmark = pytest.mark.quick

LOOP = {
    "StartAt": "More",
    "States": {
        "More": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.i", "NumericLessThan": 5, "Next": "Add"}],
            "Default": "Each",
        },
        "Add": {
            "Type": "Pass",
            "Parameters": {"i.$": "States.MathAdd($.i, 1)", "id.$": "States.UUID()"},
            "Assign": {"last.$": "$.i"},
            "Next": "More",
        },
        "Each": {
            "Type": "Map",
            "ItemSelector": {"n.$": "$$.Map.Item.Value", "id.$": "States.UUID()"},
            "ItemsPath.$": "States.ArrayRange(1, $.i, 1)",
            "ItemProcessor": {
                "StartAt": "Ask",
                "States": {
                    "Ask": {
                        "Type": "Task",
                        "Agent": "A",
                        "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 3}],
                        "Catch": [{"ErrorEquals": ["Bad"], "ResultPath": "$.e", "Next": "Note"}],
                        "End": True,
                    },
                    "Note": {"Type": "Pass", "OutputPath": "$.e.Error", "End": True},
                },
            },
            "Next": "Stop",
        },
        "Stop": {"Type": "Fail", "Error": "Enough"},
    },
}
ANSWERS = {
    "table": [
        {
            "when": {"$partial": {"n": 2}},
            "then": {"sequence": [{"raise": {"Error": "Busy"}}, {"return": "two", "delay": 1}]},
        },
        {"when": {"$partial": {"n": 3}}, "then": {"raise": {"Error": "Bad", "Cause": "three"}}},
        {"then": {"echo": True, "delay": 2}},
    ]
}


def run(**more: Any) -> asl.Result:
    return asl.run(LOOP, {"i": 0}, agents={"A": ANSWERS}, clock="virtual", name="n", **more)


def test_events_read_afterwards_are_those_a_listener_got() -> None:
    """One expander serves both."""
    heard: list[asl.Event] = []
    result = run(listener=heard.append)
    assert heard == result.events
    assert [event.id for event in heard] == list(range(1, len(heard) + 1))


def test_a_stretch_expands_to_what_single_steps_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one state a stretch, the history is the same: replaying finds the same ids and values.

    Only the identifiers drawn in a pure state depend on where its stretch began.
    """
    whole = run()
    monkeypatch.setattr(interpreter, "TICK", 1)
    monkeypatch.setattr(interpreter, "_TICK", range(1, 2))
    single = run()
    assert [(e.type, e.path) for e in whole.events] == [(e.type, e.path) for e in single.events]
    assert whole.visited == single.visited


def test_reading_twice_gives_the_same_history() -> None:
    """Random identifiers are derived, so replaying a stretch draws them again."""
    first, second = run(), run()
    assert first.events == second.events
    assert first.events == first.events


def test_output_event_equals_input_event_of_next_state() -> None:
    """Exit and entry agree along the top machine."""
    events = [event for event in run().events if len(event.path) == 1]
    exits = [e.details["output"] for e in events if e.type.endswith("Exited")]
    entries = [e.details["input"] for e in events if e.type.endswith("Entered")]
    assert exits == entries[1:]


def test_every_iteration_has_a_beginning_and_an_end() -> None:
    """Each index starts once and ends once."""
    events = run().events
    started = [e.details["index"] for e in events if e.type == "MapIterationStarted"]
    ended = [e.details["index"] for e in events if e.type == "MapIterationSucceeded"]
    assert sorted(started) == sorted(ended) == [0, 1, 2, 3, 4]


def test_retry_and_catch_are_in_the_history() -> None:
    """The delay, the attempt and the catcher's target are told."""
    events = {e.type: e.details for e in run().events}
    assert events["RetryScheduled"]["delay"] == 3
    assert events["ErrorCaught"] == {"next": "Note", "error": "Bad", "cause": "three"}
    assert events["ExecutionFailed"] == {"error": "Enough"}


@given(st.integers(0, 25_000))
def test_visited_counts_every_entry_across_ticks(rounds: int) -> None:
    """A loop of any length is remembered state by state."""
    document = {
        "StartAt": "More",
        "States": {
            "More": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.i", "NumericLessThan": rounds, "Next": "Add"}],
                "Default": "Done",
            },
            "Add": {
                "Type": "Pass",
                "Parameters": {"i.$": "States.MathAdd($.i, 1)"},
                "Next": "More",
            },
            "Done": {"Type": "Succeed"},
        },
    }
    result = asl.run(document, {"i": 0})
    assert result.output == {"i": rounds}
    assert result.visited == ["More", "Add"] * rounds + ["More", "Done"]


def test_assigned_variables_only_in_exit_of_assigning_state() -> None:
    """An effect after a pure state that assigns does not claim the assignment."""
    document = {
        "StartAt": "Set",
        "States": {
            "Set": {"Type": "Pass", "Assign": {"x": 1}, "Next": "Nap"},
            "Nap": {"Type": "Wait", "Seconds": 1, "Assign": {"y": 2}, "End": True},
        },
    }
    events = asl.run(document, clock="virtual").events
    assigned = {e.path: e.details.get("assignedVariables") for e in events if "Exited" in e.type}
    assert assigned == {("Set",): {"x": 1}, ("Nap",): {"y": 2}}


def test_a_variable_that_keeps_its_value_is_assigned_as_well() -> None:
    """What is told is what the state assigned, not what became different by it."""
    state = {"Type": "Pass", "Assign": {"x": 1, "y.$": "$"}}
    document = {
        "StartAt": "A",
        "States": {
            "A": {**state, "Next": "B"},
            "B": {**state, "Next": "C"},
            "C": {"Type": "Succeed"},
        },
    }
    events = asl.run(document, 5).events
    assigned = [e.details.get("assignedVariables") for e in events if "Exited" in e.type]
    assert assigned == [{"x": 1, "y": 5}, {"x": 1, "y": 5}, None]


def test_context_map_item_in_history_of_nested_maps() -> None:
    """The path of an event names the state that forked, also after the machine has gone on."""

    def each(inner: str) -> dict[str, Any]:
        states = {inner: {"Type": "Pass", "End": True}}
        return {
            "Type": "Map",
            "ItemsPath": "$",
            "ItemProcessor": {"StartAt": inner, "States": states},
        }

    states = {"A": {**each("I"), "Next": "B"}, "B": {**each("J"), "End": True}}
    events = asl.run({"StartAt": "A", "States": states}, [1]).events
    paths = [event.path for event in events if event.type == "PassStateEntered"]
    assert paths == [("A", 0, "I"), ("B", 0, "J")]


def test_caught_fork_has_no_further_events() -> None:
    branch = {"StartAt": "No", "States": {"No": {"Type": "Fail", "Error": "First"}}}
    states = {
        "Both": {
            "Type": "Parallel",
            "Branches": [branch],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Stop"}],
            "End": True,
        },
        "Stop": {"Type": "Fail", "Error": "Second"},
    }
    result = asl.run({"StartAt": "Both", "States": states}, {}, profile="aws")
    told = [event.type for event in result.events]
    assert told[-3:] == ["ParallelStateExited", "FailStateEntered", "ExecutionFailed"]
