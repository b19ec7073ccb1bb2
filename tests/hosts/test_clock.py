"""The virtual clock and what does not follow it."""

import asyncio
from itertools import count
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

import asl
from asl.engine.agent import Agent
from asl.hosts import clock


class Threaded(Agent):
    """An agent whose library works in the event loop's own threads."""

    needs_loop = real = True

    async def answer(self, payload: Any, call: Any) -> Any:
        return await asyncio.to_thread(sum, payload)


def test_the_threads_of_a_library_end_on_the_virtual_clock() -> None:
    """No timer ends them: the end of the event loop waits for them as it does in real time."""
    state = {"Type": "Task", "Agent": "A", "End": True}
    document = {"StartAt": "T", "States": {"T": state}}
    for _ in range(20):
        result = asl.run(document, [1, 2], agents={"A": Threaded()}, clock="virtual")
        assert result.output == 3


def test_what_is_real_takes_no_virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
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
