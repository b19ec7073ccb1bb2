"""An execution goes on after its process has died, at whatever instant that was."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from asl.executions import Store
from tests.deaths import instants, lived

TASK = {"Type": "Task", "Agent": "Work"}
INNER = {
    "StartAt": "One",
    "States": {
        "One": {
            **TASK,
            "Parameters": {"at": "One", "n.$": "$"},
            "ResultPath": None,
            "Next": "Nap",
        },
        "Nap": {"Type": "Wait", "Seconds": 5, "Next": "Two"},
        "Two": {**TASK, "Parameters": {"at": "Two", "n.$": "$"}, "End": True},
    },
}
BRANCH = {
    "StartAt": "Left",
    "States": {"Left": {**TASK, "Parameters": {"at": "Left", "n": 0}, "End": True}},
}
OTHER = {
    "StartAt": "Right",
    "States": {
        "Right": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "MaxConcurrency": 1,
            "ItemProcessor": {
                "StartAt": "Deep",
                "States": {"Deep": {**TASK, "Parameters": {"at": "Deep", "n.$": "$"}, "End": True}},
            },
            "End": True,
        }
    },
}
DOCUMENT = {
    "StartAt": "First",
    "States": {
        "First": {
            **TASK,
            "Parameters": {"at": "First", "n": 0},
            "ResultPath": "$.first",
            "Assign": {"seen.$": "$.at"},
            "Next": "Each",
        },
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": INNER,
            "ResultPath": "$.each",
            "Next": "Both",
        },
        "Both": {
            "Type": "Parallel",
            "Branches": [BRANCH, OTHER],
            "ResultPath": "$.both",
            "Next": "Again",
        },
        "Again": {
            **TASK,
            "Parameters": {"at": "Again", "n": 0},
            "Retry": [{"ErrorEquals": ["Flaky"], "IntervalSeconds": 30, "MaxAttempts": 3}],
            "ResultPath": "$.again",
            "Next": "Gate",
        },
        "Gate": {
            "Type": "Approval",
            "Prompt": "Go on?",
            "Escalation": {"After": "1h"},
            "ResultPath": "$.gate",
            "Next": "Last",
        },
        "Last": {"Type": "Pass", "Parameters": {"all.$": "$", "seen.$": "$seen"}, "End": True},
    },
}
INPUT = {"items": [1, 2, 3]}


class World:
    """Agents that remember whom they have answered, over the deaths of processes."""

    def __init__(self) -> None:
        self.answered: list[str] = []
        self.attempts: dict[str, int] = {}

    def work(self, parameters: dict[str, Any], call: Any) -> Any:
        key = call.idempotency_key
        if parameters["at"] == "Again" and call.attempt < 3:
            self.answered.append(f"{key}#{call.attempt}")
            from asl import StateError

            raise StateError("Flaky", "again")
        self.answered.append(f"{key}#{call.attempt}")
        return {**parameters, "_tokens": 1}

    def decide(self, request: dict[str, Any]) -> dict[str, Any]:
        self.answered.append(request["requestId"])
        return {"approval": "approve", "timestamp": "2030-01-01T00:00:00Z"}

    def hear(self, kind: str, request: Any, details: Any) -> None:
        raise OSError("deaf")


def run(path: Path, world: World, die_at: int | None) -> Any:
    """Run until the end or the *die_at*-th instant; returns the result, None for a death."""
    store = Store(
        path,
        clock="virtual",
        synchronous="OFF",
        agents={"Work": world.work},
        approvals=world.decide,
        notify=world.hear,
    )

    def live() -> Any:
        result = store.run(DOCUMENT, INPUT, name="it")
        _ = result.events  # they are read from the file
        return result

    return lived(store, live, die_at)


def expected(folder: Path) -> Any:
    result = run(folder / "whole.db", World(), None)
    assert result.status == "SUCCEEDED"
    return result


def of_people(result: Any) -> list[str]:
    """What the history tells of the Approval; its notifier fails, which is told once, too."""
    types = [event.type for event in result.events]
    return [each for each in types if each.startswith(("Approval", "Notification"))]


@pytest.mark.parametrize("die_at", instants(range(1, 150, 2), 6))
def test_it_goes_on_where_it_was(die_at: int, tmp_path: Path) -> None:
    """Wherever it dies, the result is the same, and no answer that was kept is asked for again."""
    whole, world = expected(tmp_path), World()
    first = run(tmp_path / "it.db", world, die_at)
    result = run(tmp_path / "it.db", world, None) if first is None else first
    assert result.output == whole.output
    assert result.usage["tokens"] == whole.usage["tokens"]
    assert result.visited == whole.visited
    repeated = len(world.answered) - len(set(world.answered))
    assert repeated <= 3, "only what was in flight may be asked a second time"
    store = Store(tmp_path / "it.db")
    kept = store.result("it")
    assert [event.type for event in kept.events] == [event.type for event in result.events]
    assert of_people(kept) == of_people(whole)
    store.close()


EACH = ("MapIterationStarted", "TaskSucceeded", "MapIterationSucceeded")
RUN = ("MapRunStarted", "MapRunSucceeded")


@pytest.mark.parametrize(
    ("config", "once", "thrice"), [({}, (), EACH), ({"Mode": "DISTRIBUTED"}, RUN, ())]
)
def test_an_interrupt_gives_up_nothing(
    config: Any, once: tuple[str, ...], thrice: tuple[str, ...], tmp_path: Path
) -> None:
    """Whoever stops the process does not fail the Map: its history tells of no end that is none."""
    naps: Any = {"StartAt": "Nap", "States": {"Nap": {**TASK, "End": True}}}
    if config:
        naps["ProcessorConfig"] = {**config, "ExecutionType": "STANDARD"}
    each = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": naps, "End": True}
    document = {"StartAt": "Each", "States": {"Each": each}}
    interrupts = iter([True])

    async def work(item: int, call: Any) -> int:
        await call.sleep(item)
        if item == 2 and next(interrupts, False):
            raise KeyboardInterrupt
        return item

    def start() -> Any:
        with Store(tmp_path / "it.db", clock="virtual", agents={"Work": work}) as store:
            result = store.run(document, INPUT, name="it")
            return [event.type for event in result.events]

    with pytest.raises(KeyboardInterrupt):
        start()
    told = start()
    assert [event for event in told if "Aborted" in event] == []
    assert [told.count(event) for event in once] == [1] * len(once)
    assert [told.count(event) for event in thrice] == [3] * len(thrice)


def test_a_late_position_keeps_what_its_visit_has_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A position that a second process puts at a Map drops no item that the first one ended."""
    called: list[str] = []
    each = {"Type": "Map", "ItemsPath": "$.items", "MaxConcurrency": 1, "ItemProcessor": BRANCH}
    document = {
        "StartAt": "First",
        "States": {
            "First": {**TASK, "Parameters": {"at": "First"}, "ResultPath": None, "Next": "Each"},
            "Each": {**each, "End": True},
        },
    }

    def work(parameters: Any, call: Any) -> Any:
        called.append(call.idempotency_key)
        return parameters

    def run(worth: int, die_at: int | None = None) -> Any:
        monkeypatch.setattr("asl.effects.journaled.log.MIN_WEIGHT", worth)
        store = Store(tmp_path / "it.db", synchronous="OFF", agents={"Work": work})
        live = partial(store.run, document, INPUT, name="it")
        return lived(store, live, die_at, "effect.done")

    assert run(10**9, die_at=3) is None  # the first item has ended, and no position is put
    assert run(0, die_at=1) is None  # a position is put
    assert run(0).status == "SUCCEEDED"
    assert called.count(called[1]) == 1
