"""Progress: from any thread, bounded, live, and the same however a history is read."""

import threading
from pathlib import Path
from typing import Any

import pytest

import asl
from tests.deaths import Died

Json = Any


def task(**block: Json) -> Json:
    """A workflow of one Task that reports."""
    only = {"Type": "Task", "Agent": "A", "Progress": block, "End": True}
    return {"StartAt": "A", "States": {"A": only}}


def updates(result: asl.Result, *path: str | int) -> list[float]:
    """The percentages that were told of a place."""
    return [
        event.details["percentage"]
        for event in result.events
        if event.type == "ProgressUpdated" and event.path == path
    ]


def test_an_agent_may_report_from_any_thread() -> None:
    """Reports come in order, before the answer."""

    def work(parameters: Json, call: asl.Call) -> Json:
        for percent in range(0, 100, 10):
            helper = threading.Thread(target=call.report_progress, args=(percent, "busy"))
            helper.start()
            helper.join()
        return 1

    result = asl.run(task(), agents={"A": work}, clock="virtual")
    assert updates(result, "A") == [*range(0, 100, 10), 100]


@pytest.mark.parametrize(
    "percent", ["half", None, float("nan"), float("inf"), True, "\ud800", object()]
)
def test_what_is_no_percentage_is_a_warning(percent: Json) -> None:
    """It changes nothing."""
    agents = {"A": lambda parameters, call: call.report_progress(percent)}
    result = asl.run(task(Path="$.p"), {}, agents=agents)
    assert result.ok
    assert updates(result, "A") == []
    assert [event.type for event in result.events].count("ProgressWarning") == 1
    assert [event.to_json() for event in result.events]


def test_a_percentage_beyond_all_measure_is_all_of_it() -> None:
    """No double holds it."""
    agents = {"A": lambda parameters, call: call.report_progress(10**400)}
    assert updates(asl.run(task(), agents=agents), "A") == [100, 100]  # and at the end


@pytest.mark.parametrize("message", [None, 1, b"x"])
def test_a_message_is_text(message: Json) -> None:
    """Anything else is the agent's fault."""
    agents = {"A": lambda parameters, call: call.report_progress(1, message)}
    result = asl.run(task(), agents=agents)
    assert (result.error, result.cause) == (
        "States.TaskFailed",
        f"TypeError: 'message' must be text, got {type(message).__name__}",
    )


def test_half_a_character_in_a_message_is_replaced() -> None:
    """A lone surrogate could not be kept."""
    agents = {"A": lambda parameters, call: call.report_progress(1, "a\ud800b")}
    result = asl.run(task(), agents=agents)
    told = next(each.details for each in result.events if each.type == "ProgressUpdated")
    assert told["message"] == "a?b"


def test_reports_are_bounded() -> None:
    """An agent that reports without end fills no history."""

    async def work(parameters: Json, call: asl.Call) -> Json:
        for _ in range(20_000):
            call.report_progress(1)
        return 1

    assert len(updates(asl.run(task(), agents={"A": work}), "A")) == 10_001


def test_progress_costs_nothing_without_the_block() -> None:
    """A report is a sign of life, as ever; no event tells of it."""

    def work(parameters: Json, call: asl.Call) -> Json:
        assert call.on_progress is None
        call.report_progress(50, "half")
        assert call.progress == (50, "half")
        return 1

    document = task()
    del document["States"]["A"]["Progress"]
    result = asl.run(document, agents={"A": work})
    assert updates(result, "A") == []
    assert not result.execution.program.tracks_progress


def test_a_result_says_how_far_it_is() -> None:
    """The workflow, and each state by its path."""
    document = task()
    document["Progress"] = {"TotalStates": 2}
    result = asl.run(document, agents={"A": {"return": 1, "reports": [{"progress": 5}]}})
    assert result.progress["percentage"] == 50
    assert result.progress["states"]["A"]["percentage"] == 100


EACH = {
    "StartAt": "Each",
    "Progress": {},
    "States": {
        "Each": {
            "Type": "Map",
            "MaxConcurrency": 1,
            "Progress": {"PerItem": True, "Path": "$.p"},
            "ResultPath": "$.r",
            "ItemsPath": "$.items",
            "ItemProcessor": {
                "StartAt": "A",
                "States": {"A": {"Type": "Task", "Agent": "A", "End": True}},
            },
            "Next": "B",
        },
        "B": {"Type": "Task", "Agent": "B", "End": True},
    },
}


def test_the_progress_of_a_map_goes_on_after_a_crash(tmp_path: Path) -> None:
    """A listener of the second life hears of what is new, counted from what was before."""
    calls = 0

    def work(parameters: Json) -> Json:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise Died
        return calls

    heard: list[Json] = []

    def listen(event: asl.Event) -> None:
        if event.type == "ProgressUpdated" and len(event.path) < 2:
            heard.append((event.path, event.details["percentage"]))

    path, agents = tmp_path / "runs.db", {"A": work, "B": {"echo": True}}
    with asl.open_store(path, agents=agents) as store, pytest.raises(Died):
        store.run(EACH, {"items": [1, 2, 3, 4]}, name="x")
    with asl.open_store(path, agents=agents) as store:
        assert store.result("x").progress["states"]["Each"]["percentage"] == 50
    with asl.open_store(path, agents=agents, listener=listen) as store:
        result = store.resume("x")
        assert result.ok
        assert updates(result, "Each") == [0, 25, 50, 75, 100]
        assert store.result("x").progress == result.progress
    assert heard == [(("Each",), 75), (("Each",), 100), ((), 50), ((), 100)]
    assert result.output["p"] == {
        "total": 4, "completed": 4, "inProgress": 0, "pending": 0, "failed": 0, "percentage": 100,
    }  # fmt: skip


def test_the_progress_of_a_task_survives_with_its_answer(tmp_path: Path) -> None:
    """What is written to Path, and which milestones are told, is known after a crash."""

    def die(parameters: Json) -> Json:
        raise Died

    only = {
        "Type": "Task",
        "Agent": "A",
        "ResultPath": "$.r",
        "Progress": {"Path": "$.p", "Emit": False, "Milestones": [{"At": 40}, {"At": 100}]},
        "Guardrails": {"Output": {"Validator": "V"}},
        "End": True,
    }
    document = {"StartAt": "A", "States": {"A": only}}
    script = {"return": 1, "reports": [{"progress": 50, "message": "half"}]}
    path = tmp_path / "runs.db"
    with asl.open_store(path, agents={"A": script, "V": die}) as store, pytest.raises(Died):
        store.run(document, {}, name="x")
    with asl.open_store(path, agents={"A": {"raise": {}}, "V": {"return": True}}) as store:
        store.resume("x")
    with asl.open_store(path, agents={"A": {"raise": {}}, "V": {"return": {}}}) as store:
        result = store.run(document, {}, name="x")
        told = [event.details["at"] for event in result.events if event.type == "MilestoneReached"]
    assert told == [40]
    assert result.error == "Agent.GuardrailViolation"


def test_a_parallel_in_a_map_counts_for_it() -> None:
    """Progress goes up through all that is tracked."""
    inner = {
        "StartAt": "P",
        "States": {
            "P": {
                "Type": "Parallel",
                "Progress": {},
                "Branches": [
                    {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 1, "End": True}}},
                    {"StartAt": "X", "States": {"X": {"Type": "Wait", "Seconds": 2, "End": True}}},
                ],
                "End": True,
            }
        },
    }
    document = {
        "StartAt": "M",
        "States": {
            "M": {"Type": "Map", "Progress": {"AggregateBy": "progress"}, "ItemProcessor": inner,
                  "End": True}
        },
    }  # fmt: skip
    result = asl.run(document, [1], clock="virtual")
    assert updates(result, "M", 0, "P") == [0, 50, 100]
    assert updates(result, "M") == [0, 50, 100]


@pytest.mark.parametrize(
    ("state", "pointer"),
    [
        (
            {"Type": "Task", "Agent": "A", "Progress": {"Milestones.$": "$.p"}},
            "/Progress/Milestones.$",
        ),
        (
            {"Type": "Map", "Progress": {"Milestones.$": "$.p"}, "ItemProcessor": EACH},
            "/Progress/Milestones.$",
        ),
    ],
)
def test_what_is_not_executed_is_refused(state: Json, pointer: str) -> None:
    """At its place, before anything runs."""
    if "ItemProcessor" in state:
        inner = {key: part for key, part in state["ItemProcessor"].items() if key != "Progress"}
        state = {**state, "ItemProcessor": inner}
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.compile({"StartAt": "S", "States": {"S": {**state, "End": True}}})
    found = {(each.code, each.pointer) for each in refusal.value.report.errors}
    assert found == {("EXEC-02", f"/States/S{pointer}")}


@pytest.mark.parametrize("mode", ["INLINE", "DISTRIBUTED"])
def test_a_map_that_is_redriven_counts_what_was_done(mode: str, tmp_path: Path) -> None:
    """Its progress goes on from the items that have succeeded, and comes to an end."""
    config = {"Mode": mode, "ExecutionType": "STANDARD"}
    each = {
        "ProcessorConfig": config if mode == "DISTRIBUTED" else {},
        "StartAt": "A",
        "States": {"A": {"Type": "Task", "Agent": "A", "End": True}},
    }
    state = {"Type": "Map", "MaxConcurrency": 1, "Progress": {}, "ItemProcessor": each, "End": True}
    document = {"StartAt": "M", "States": {"M": state}}

    def fail_at_three(item: int) -> int:
        if item == 3:
            raise asl.StateError("Bad", "three")
        return item

    with asl.open_store(tmp_path / "s.db", clock="virtual") as store:
        store.run(document, [1, 2, 3, 4], name="it", agents={"A": fail_at_three})
        result = store.redrive("it", agents={"A": lambda item: item})
        events = list(result.events)
    assert result.output == [1, 2, 3, 4]
    (redriven,) = (n for n, event in enumerate(events) if event.type == "ExecutionRedriven")
    told = [each.details for each in events[redriven:] if each.type == "ProgressUpdated"]
    assert [each["completed"] for each in told][-2:] == [3, 4]
    assert (told[-1]["percentage"], told[-1]["failed"], told[-1]["pending"]) == (100, 0, 0)
