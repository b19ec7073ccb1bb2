"""Runners that are stopped: calls end within the grace period, and other runners continue."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

import asl
from asl.effects.clock import VirtualClock
from asl.stores.workers import Workers
from tests.stores.conftest import Place
from tests.stores.test_runner import document, on_loop, task

pytestmark = pytest.mark.quick

TWO = document("A", A=task("Work", Next="B"), B=task("Work", End=True))
BESIDE = document(
    "P",
    P={
        "Type": "Parallel",
        "Branches": [
            document("Slow", Slow=task("Slow", Next="C"), C=task("Work", End=True)),
            document("W", W=task("Quick", Next="D"), D=task("Work", End=True)),
        ],
        "End": True,
    },
)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def store(place: Place, clock: VirtualClock) -> Iterator[asl.Store]:
    with asl.open_store(place, clock=clock) as store:
        yield store


class Agents:
    """Agents that take time, and the keys of their calls."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []

    def taking(self, seconds: float) -> Callable[..., Awaitable[Any]]:
        async def work(data: Any, call: Any) -> Any:
            self.begun.append(call.state_name)
            await asyncio.sleep(seconds)
            self.ended.append(call.state_name)
            return data

        return work

    def bindings(self) -> dict[str, Any]:
        return {"Work": self.taking(10), "Slow": self.taking(10), "Quick": self.taking(5)}


def run_until_stopped(
    store: asl.Store, clock: VirtualClock, agents: Agents, seconds: float, grace: float
) -> float:
    """Run for some seconds and return how long the stop took."""

    async def main() -> float:
        async with store.runner(agents=agents.bindings(), grace=grace):
            await asyncio.sleep(seconds)
            begin = clock.now()
        return clock.now() - begin

    return on_loop(clock, main())


@pytest.mark.parametrize(
    ("workflow", "ended", "rest"),
    [(TWO, ["A"], ["B"]), (BESIDE, ["Slow", "W"], ["C", "D"])],
    ids=["two", "beside"],
)
def test_a_call_ends_and_the_next_is_made_elsewhere(
    store: asl.Store, clock: VirtualClock, workflow: Any, ended: list[str], rest: list[str]
) -> None:
    """Nothing is called twice; the execution is due immediately."""
    handle, agents = store.start(workflow, {}, name="one"), Agents()
    stopped = run_until_stopped(store, clock, agents, 0.4, 60)
    assert 9 < stopped < 10.5
    assert (agents.begun, sorted(agents.ended)) == (ended, ended)
    assert handle.status() == "PAUSED"
    assert handle.needs() == []
    assert [name for _, name in Workers(store.session).ready(clock.now(), 5)] == ["one"]
    on_loop(clock, finish(store, handle, agents))
    assert sorted(agents.begun) == sorted([*ended, *rest])


async def finish(store: asl.Store, handle: asl.Handle, agents: Agents) -> None:
    async with store.runner(agents=agents.bindings()):
        assert (await handle.aresult()).ok


def test_the_grace_period_ends(store: asl.Store, clock: VirtualClock) -> None:
    """A longer call is interrupted, and made again with the same key."""
    handle, agents = store.start(TWO, {}, name="one"), Agents()
    assert 3 <= run_until_stopped(store, clock, agents, 1, 3) < 3.2
    assert (agents.begun, agents.ended) == (["A"], [])
    on_loop(clock, finish(store, handle, agents))
    assert agents.begun == ["A", "A", "B"]


def test_a_stopping_runner_starts_nothing(store: asl.Store, clock: VirtualClock) -> None:
    """What arrives meanwhile is left to others; without work the runner ends immediately."""
    agents = Agents()

    async def main() -> None:
        async with store.runner(agents=agents.bindings(), grace=60) as runner:
            store.start(TWO, {}, name="one")
            await asyncio.sleep(1)
            runner.stop(60)
            late = store.start(TWO, {}, name="late")
            await runner.wait_until_stopped()
            assert late.status() == "RUNNING"

    on_loop(clock, main())
    assert agents.begun == ["A"]
    assert run_until_stopped(store, clock, Agents(), 0, 60) < 11


def test_another_worker_finds_it_before_it_is_handed_over(
    store: asl.Store, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the runner dies between its last commit and that, the need leads others to it."""
    monkeypatch.setattr("asl.executions.runner.Runner._hand_over", lambda self, number: None)
    handle, agents = store.start(TWO, {}, name="one"), Agents()
    run_until_stopped(store, clock, agents, 1, 60)
    assert handle.needs() == ["a worker: the one that ran it was stopped"]
    monkeypatch.undo()
    on_loop(clock, finish(store, handle, agents))
    assert agents.begun == ["A", "B"]
