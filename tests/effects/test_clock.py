"""The virtual clock and what does not follow it."""

import asyncio
import time
from itertools import count
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

import asl
from asl.effects import clock
from asl.engine.agent import Agent

pytestmark = pytest.mark.quick


class Threaded(Agent):
    """An agent whose library works in the event loop's own threads."""

    needs_loop = waits_outside = True

    async def answer(self, payload: Any, call: Any) -> Any:
        return await asyncio.to_thread(sum, payload)


def test_the_threads_of_a_library_end_on_the_virtual_clock() -> None:
    """No timer ends them: the end of the event loop waits for them as it does in real time."""
    state = {"Type": "Task", "Agent": "A", "End": True}
    document = {"StartAt": "T", "States": {"T": state}}
    for _ in range(20):
        result = asl.run(document, [1, 2], agents={"A": Threaded()}, clock="virtual")
        assert result.output == 3


def test_real_work_takes_no_virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that is awaited for ten real seconds leaves the time as it was."""
    seconds, awaited = count(step=10), Event()

    def real() -> float:
        awaited.set()
        return next(seconds)

    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=real))
    work = {"Type": "Task", "Agent": "A", "TimeoutSeconds": 15, "Next": "Pause"}
    pause = {"Type": "Wait", "Seconds": 3600, "End": True}
    document = {"StartAt": "Work", "States": {"Work": work, "Pause": pause}}

    result = asl.run(document, agents={"A": lambda payload: awaited.wait(60)}, clock="virtual")
    assert (result.output, result.elapsed) == (True, 3600)


def test_wall_clock_ignores_changes_of_the_system_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is set after a clock was made moves none of its times."""
    system, steady = [1_000_000.0], [50.0]
    monkeypatch.setattr(clock.time, "time", lambda: system[0])
    monkeypatch.setattr(clock, "steady_seconds", lambda: steady[0])
    wall = clock.WallClock()
    assert wall.now() == 1_000_000
    for change in (-86_400.0, -8.0, 8.0, 86_400.0):
        system[0] += change
        steady[0] += 6
        assert wall.now() == 1_000_000 + steady[0] - 50


@pytest.mark.parametrize("change", [-86_400.0, 86_400.0])
def test_workflow_ignores_changes_of_the_system_time(
    change: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system time is set while the first agent works: no limit is reached by that."""
    system, moved = time.time, [0.0]
    monkeypatch.setattr(clock.time, "time", lambda: system() + moved[0])

    def set_time(payload: Any) -> Any:
        moved[0] = change
        return payload

    task = {"Type": "Task", "TimeoutSeconds": 600}
    first = {**task, "Agent": "Set", "Next": "Second"}
    second = {**task, "Agent": "Work", "End": True}
    document = {
        "StartAt": "First",
        "TimeoutSeconds": 600,
        "States": {"First": first, "Second": second},
    }
    result = asl.run(document, agents={"Set": set_time, "Work": lambda payload: 1})
    times = [event.timestamp for event in result.events]
    assert (result.status, result.output) == ("SUCCEEDED", 1)
    assert times == sorted(times)
    assert result.elapsed < 600
