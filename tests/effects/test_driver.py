"""Driving a run: what the process is told meanwhile."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import asl

TASK = {"StartAt": "T", "States": {"T": {"Type": "Task", "Agent": "A", "End": True}}}


def wakes_at() -> int:
    """Return what a signal writes to, -1 for nothing: then one may come while nobody listens."""
    found = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(found)
    return found


@pytest.mark.parametrize("clock", ["wall", "virtual"])
def test_signals_wake_the_event_loop_of_a_run(clock: str) -> None:
    async def agent(parameters: Any) -> bool:
        await asyncio.sleep(0)
        return wakes_at() != -1

    before = wakes_at()
    assert asl.run(TASK, agents={"A": agent}, clock=clock).output is True
    assert wakes_at() == before


@pytest.fixture
def heeding() -> Iterator[None]:
    """An interrupt is heeded, whatever the process was told when it began."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeding")
def test_an_interrupt_reaches_an_agent_that_waits() -> None:
    async def agent(parameters: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        asl.run(TASK, agents={"A": agent})


def test_a_run_in_another_thread_leaves_signals_alone() -> None:
    async def agent(parameters: Any) -> str:
        await asyncio.sleep(0)
        return "done"

    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(asl.run(TASK, agents={"A": agent})))
    thread.start()
    thread.join()
    assert found[0].output == "done"


def test_a_store_keeps_its_event_loop_unless_anything_is_left_on_it(tmp_path: Path) -> None:
    """What an agent has begun and not ended ends with the run, as ever."""
    loops: list[Any] = []
    left: list[Any] = []

    async def agent(leaves: Any) -> None:
        loops.append(asyncio.get_running_loop())
        if leaves == "a task":
            left.append(asyncio.create_task(asyncio.sleep(3600)))
        if leaves == "a thread":
            await asyncio.to_thread(int)

    with asl.open_store(tmp_path / "runs.db", agents={"A": agent}) as store:
        for leaves in ("nothing", "nothing", "a task", "a thread", "nothing"):
            threads = threading.active_count()
            store.run(TASK, leaves)
            assert threading.active_count() == threads
    first, second, third, fourth, fifth = loops
    assert first is second is third
    assert left[0].cancelled()
    assert len({first, fourth, fifth}) == 3
    assert all(loop.is_closed() for loop in loops)


def test_an_agent_may_start_an_execution_of_the_same_store(tmp_path: Path) -> None:
    """It runs in a thread of its own, on an event loop of its own."""

    async def inner(parameters: Any) -> str:
        await asyncio.sleep(0)
        return "done"

    def outer(parameters: Any) -> Any:
        return store.run(TASK, agents={"A": inner}).output

    with asl.open_store(tmp_path / "runs.db", agents={"A": outer}) as store:
        assert [store.run(TASK).output for _ in range(2)] == ["done", "done"]
