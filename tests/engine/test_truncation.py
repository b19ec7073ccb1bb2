"""The bound on the history and the results that an execution holds in memory."""

from typing import Any

import pytest

import asl
from asl.core.profile import DEFAULT
from asl.effects import local
from asl.engine import truncation
from asl.engine.events import Event

TEXT = "x" * 10_000
PASS = {"Type": "Pass", "End": True}
LOOP: dict[str, Any] = {
    "StartAt": "Build",
    "States": {
        "Build": {
            "Type": "Pass",
            "Parameters": {
                "i.$": "States.MathAdd($.i, 1)",
                "text.$": "$.text",
                "built.$": "States.Format('{}{}', $.text, $.i)",
            },
            "Next": "Pause",
        },
        "Pause": {"Type": "Wait", "Seconds": 0, "Next": "More"},
        "More": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.i", "NumericLessThan": 100, "Next": "Build"}],
            "Default": "End",
        },
        "End": {"Type": "Pass", "OutputPath": "$.i", "End": True},
    },
}


def map_over(items: str, states: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a Map as the only state of a machine."""
    processor = {"StartAt": next(iter(states)), "States": states}
    state = {"Type": "Map", "ItemsPath": items, "ItemProcessor": processor, "End": True, **fields}
    return {"StartAt": "Each", "States": {"Each": state}}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower all bounds."""
    for module in ("engine.execution", "engine.interpreter", "engine.map_run", "effects.fork"):
        monkeypatch.setattr(f"asl.{module}.FAIR", 4_000)
    monkeypatch.setattr(truncation, "MAX_RECORDED", 3_000)
    monkeypatch.setattr(truncation, "MAX_HELD", 200_000)
    monkeypatch.setattr(local, "MAX_HELD", 200_000)
    monkeypatch.setattr(local, "MAX_BUILT", 200_000)


def check_ids(events: list[Event]) -> None:
    """Each event follows an earlier one of the same history."""
    assert [event.id for event in events] == [*range(1, len(events) + 1)]
    assert all(event.previous < event.id for event in events)


@pytest.mark.usefixtures("small")
def test_history_of_finished_items_is_dropped() -> None:
    """A Map within a Map keeps no records of items that ended long before."""
    inner = map_over("$$.Execution.Input", {"One": PASS})["States"]["Each"]
    result = asl.run(map_over("$", {"Inner": inner}), [0] * 40)
    assert result.value == [[0] * 40] * 40
    assert result.visited == ["Each"]
    events = result.events
    assert [event.type for event in events[:2]] == ["ExecutionStarted", "HistoryTruncated"]
    assert events[1].details["states"] > 1_000
    assert events[-1].type == "ExecutionSucceeded"
    entered = sum(event.type == "PassStateEntered" for event in events)
    assert entered < 600
    check_ids(events)


@pytest.mark.usefixtures("small")
def test_history_of_large_values_is_dropped() -> None:
    """A loop that builds new values keeps the latest ones; listeners get all events."""
    heard: list[Event] = []
    result = asl.run(LOOP, {"i": 0, "text": TEXT}, listener=heard.append)
    assert result.output == 100
    events = result.events
    assert events[1].type == "HistoryTruncated"
    assert 50 < events[1].details["states"] < 300
    sizes = truncation.ValueSizes(10**9)
    sizes.add(event.details for event in events)
    assert sizes.total < 900_000
    check_ids(events)
    check_ids(heard)
    assert sum(event.type == "WaitStateEntered" for event in heard) == 100


@pytest.mark.usefixtures("small")
def test_answers_count_as_held_values() -> None:
    """Large answers of an agent are dropped from the history as well."""
    ask = {"Type": "Task", "Agent": "writer", "ResultPath": "$.text", "Next": "Build"}
    more = {**LOOP["States"]["More"], "Default": "End"}
    more["Choices"] = [{**more["Choices"][0], "Next": "Ask"}]
    count = {**LOOP["States"]["Build"], "Parameters": {"i.$": "States.MathAdd($.i, 1)"}}
    states = {**LOOP["States"], "Ask": ask, "Build": count, "More": more}
    agents = {"writer": lambda given: TEXT}
    result = asl.run({"StartAt": "Ask", "States": states}, {"i": 0}, agents=agents)
    assert result.events[1].type == "HistoryTruncated"


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("mode", ["INLINE", "DISTRIBUTED"])
def test_results_of_items_are_bounded(mode: str) -> None:
    """Results that do not fit into memory are an error of the workflow."""
    states = {
        "Build": {**LOOP["States"]["Build"], "Next": "Pause"},
        "Pause": {"Type": "Wait", "Seconds": 0, "End": True},
    }
    document = map_over("$.items", states, ItemSelector={"i": 0, "text.$": "$.text"})
    processor = document["States"]["Each"]["ItemProcessor"]
    if mode == "DISTRIBUTED":
        processor["ProcessorConfig"] = {"Mode": mode, "ExecutionType": "STANDARD"}
    profile = DEFAULT.with_limits(max_payload=150_000)
    result = asl.run(document, {"items": [0] * 100, "text": TEXT}, profile=profile)
    assert result.status == "FAILED"
    assert "States.DataLimitExceeded" in f"{result.error} {result.cause}"


def test_short_history_is_whole() -> None:
    """Nothing is dropped from an ordinary execution."""
    result = asl.run(LOOP, {"i": 90, "text": "x"})
    assert "HistoryTruncated" not in {event.type for event in result.events}
