"""Runners: they take up what is due in a store, many executions at a time."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest

import asl
from asl.effects.clock import VirtualClock
from asl.executions.locking import hold_lock
from asl.executions.runner import Runner
from asl.stores.statements import Select
from asl.stores.tables import LIVE
from asl.stores.workers import LEASE, Workers
from tests.sql import execute, rows
from tests.stores.conftest import Place

T = TypeVar("T")
Json = Any


def task(agent: str, **fields: Json) -> dict[str, Json]:
    return {"Type": "Task", "Agent": agent, **fields}


def document(start: str, **states: Json) -> dict[str, Json]:
    return {"StartAt": start, "States": states}


ONE = document("A", A=task("Work", End=True))
LATER = document(
    "A",
    A=task("Work", Next="W"),
    W={"Type": "Wait", "Seconds": 60, "Next": "B"},
    B=task("Work", End=True),
)
ASK = {
    "Type": "Approval",
    "Prompt": "Ship?",
    "Options": ["approve", "reject"],
    "ResultPath": "$.ok",
}
APPROVE = document("Ask", Ask={**ASK, "Next": "A"}, A=task("Work", End=True))
BESIDE = document(
    "P",
    P={
        "Type": "Parallel",
        "Branches": [
            document("Ask", Ask={**ASK, "Next": "A"}, A=task("Work", End=True)),
            document("Slow", Slow=task("Slow", End=True)),
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


def on_loop(clock: VirtualClock, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on an event loop of the clock."""
    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        return runner.run(work)


class Calls:
    """An agent that knows when it was called with what."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.calls: list[tuple[float, Json]] = []

    def __call__(self, data: Json) -> Json:
        self.calls.append((self.clock.elapsed, data))
        return data


def test_starting_does_not_wait(store: asl.Store, clock: VirtualClock) -> None:
    """Nothing runs until a runner is there."""
    work = Calls(clock)
    handle = store.start(ONE, {"n": 1}, name="one")
    assert (handle.name, handle.status(), work.calls) == ("one", "RUNNING", [])

    async def main() -> None:
        async with store.runner(agents={"Work": work}):
            assert (await handle.aresult()).output == {"n": 1}

    on_loop(clock, main())
    assert handle.status() == "SUCCEEDED"
    assert work.calls == [(0.0, {"n": 1})]


def test_the_same_start_is_one_execution(store: asl.Store) -> None:
    """Another input under the name is refused."""
    assert store.start(ONE, 1, name="one").id == store.start(ONE, 1, name="one").id
    with pytest.raises(asl.ExecutionExists):
        store.start(ONE, 2, name="one")


def test_many_executions_run_at_the_same_time(store: asl.Store, clock: VirtualClock) -> None:
    """As many as the concurrency says."""
    at_work: list[int] = []
    most = 0

    async def work(data: Json) -> Json:
        nonlocal most
        at_work.append(data)
        most = max(most, len(at_work))
        await asyncio.sleep(10)
        at_work.remove(data)
        return data

    handles = [store.start(ONE, number) for number in range(10)]

    async def main() -> None:
        async with store.runner(agents={"Work": work}, concurrency=4):
            for handle in handles:
                await handle.aresult()

    on_loop(clock, main())
    assert most == 4
    assert 30 <= clock.elapsed < 31
    assert [handle.result().output for handle in handles] == list(range(10))


def test_a_wait_needs_no_process(store: asl.Store, clock: VirtualClock) -> None:
    """It is over at its time, in another runner as well."""
    work = Calls(clock)
    handle = store.start(LATER, {}, name="one")

    async def until(status: str) -> None:
        async with store.runner(agents={"Work": work}):
            while handle.status() != status:
                await asyncio.sleep(1)

    on_loop(clock, until("PAUSED"))
    assert [time for time, _ in work.calls] == [0.0]
    on_loop(clock, until("SUCCEEDED"))
    assert [time for time, _ in work.calls] == [0.0, 60.0]


def test_a_delay_before_a_retry_needs_no_process(store: asl.Store, clock: VirtualClock) -> None:
    """It is a wait like others, and counts the attempts before it."""
    retry = {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 600, "MaxAttempts": 2}
    times: list[float] = []

    def work(data: Json) -> Json:
        times.append(clock.elapsed)
        if len(times) < 3:
            raise ValueError("not yet")
        return data

    handle = store.start(document("A", A=task("Work", Retry=[retry], End=True)), {})

    async def main() -> None:
        for status in ("PAUSED", "SUCCEEDED"):
            async with store.runner(agents={"Work": work}):
                while handle.status() != status:
                    await asyncio.sleep(1)

    on_loop(clock, main())
    assert times == [0.0, 600.0, 1800.0]


def test_an_answer_is_taken_up(store: asl.Store, clock: VirtualClock) -> None:
    """Nobody calls `resume`."""
    work = Calls(clock)
    handle = store.start(APPROVE, {}, name="one")

    async def main() -> None:
        async with store.runner(agents={"Work": work}):
            while not handle.pending():
                await asyncio.sleep(1)
            await asyncio.sleep(100)
            assert handle.status() == "PAUSED"
            handle.answer(str(handle.pending()[0]["requestId"]), "approve", by="ann")
            await handle.aresult()

    on_loop(clock, main())
    ((time, data),) = work.calls
    assert 100 <= time < 103
    assert data["ok"]["approval"] == "approve"


def test_a_decided_branch_does_not_wait_for_its_siblings(
    store: asl.Store, clock: VirtualClock
) -> None:
    """It goes on while another branch is at work."""
    work = Calls(clock)

    async def slow(data: Json) -> Json:
        await asyncio.sleep(8)
        return clock.elapsed

    handle = store.start(BESIDE, {}, name="one")

    async def main() -> None:
        async with store.runner(agents={"Work": work, "Slow": slow}):
            while not handle.pending():
                await asyncio.sleep(0.1)
            handle.answer(str(handle.pending()[0]["requestId"]), "approve", by="ann")
            assert (await handle.aresult()).output[1] == 8.0

    on_loop(clock, main())
    assert work.calls[0][0] < 1


def test_branches_that_all_wait_leave_the_process(store: asl.Store, clock: VirtualClock) -> None:
    """However they wait: the execution is due at the first time that comes."""
    waits = {"Type": "Wait", "End": True}
    parallel = document(
        "P",
        P={
            "Type": "Parallel",
            "Branches": [
                document("W1", W1={**waits, "Seconds": 300}),
                document("W2", W2={**waits, "Seconds": 100}),
                document("Ask", Ask={**ASK, "End": True}),
            ],
            "Next": "M",
        },
        M={
            "Type": "Map",
            "MaxConcurrency": 1,
            "ItemProcessor": document("W3", W3={**waits, "Seconds": 50}),
            "End": True,
        },
    )
    handle = store.start(parallel, {}, name="one")

    async def main() -> None:
        runner = store.runner()
        async with runner as live:
            while handle.status() != "PAUSED":
                await asyncio.sleep(1)
            assert not live.busy
            await asyncio.sleep(200)
            handle.answer(str(handle.pending()[0]["requestId"]), "approve", by="ann")
            assert (await handle.aresult()).ok

    on_loop(clock, main())
    assert 450 <= clock.elapsed < 453


def test_a_missing_binding_fails_nothing(store: asl.Store, clock: VirtualClock) -> None:
    """The execution is listed with what it needs, and goes on where that is bound."""
    both = document("A", A=task("One", Next="B"), B=task("Two", Next="C"), C=task("One", End=True))
    handle = store.start(both, {}, name="one")
    one, two = Calls(clock), Calls(clock)

    async def with_agents(**agents: Json) -> None:
        async with store.runner(agents=agents) as runner:
            await runner.drain()

    on_loop(clock, with_agents(One=one))
    assert handle.status() == "PAUSED"
    assert store.stuck() == {"one": ["state 'B': no agent 'Two' is registered"]}
    with pytest.raises(TimeoutError, match="no agent 'Two' is registered"):
        handle.result(timeout=0)
    on_loop(clock, with_agents(Two=two))
    assert "no agent 'One'" in store.stuck()["one"][0]
    on_loop(clock, with_agents(One=one))
    assert handle.result().ok
    assert (len(one.calls), len(two.calls), store.stuck()) == (2, 1, {})


def test_runners_with_different_bindings_share_an_execution(place: Place) -> None:
    """Each performs the states that it can."""
    both = document("A", A=task("One", Next="B"), B=task("Two", Next="C"), C=task("One", End=True))
    one: list[Json] = []
    two: list[Json] = []
    with (
        asl.open_store(place) as store,
        store.runner(agents={"One": one.append}),
        store.runner(agents={"Two": two.append}),
    ):
        assert store.start(both, {}).result(timeout=30).ok
    assert (len(one), len(two)) == (2, 1)


def test_an_execution_is_cancelled_while_it_runs(store: asl.Store, clock: VirtualClock) -> None:
    """What it does is cut off."""
    ended: list[str] = []

    async def work(data: Json) -> Json:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ended.append("cut off")
            raise

    handle = store.start(ONE, {}, name="one")

    async def main() -> None:
        async with store.runner(agents={"Work": work}):
            await asyncio.sleep(10)
            handle.cancel("no longer wanted")
            result = await handle.aresult()
            assert (result.status, result.cause) == ("ABORTED", "no longer wanted")

    on_loop(clock, main())
    assert ended == ["cut off"]
    assert clock.elapsed < 11


@pytest.mark.parametrize("workflow", [LATER, APPROVE], ids=["waiting", "asking"])
def test_an_execution_is_cancelled_while_it_waits(
    store: asl.Store, clock: VirtualClock, workflow: Json
) -> None:
    """Nobody runs it then."""
    handle = store.start(workflow, {}, name="one")

    async def main() -> None:
        async with store.runner(agents={"Work": Calls(clock)}):
            while handle.status() != "PAUSED":
                await asyncio.sleep(1)
            handle.cancel()

    on_loop(clock, main())
    assert (handle.status(), handle.pending()) == ("ABORTED", [])
    with pytest.raises(asl.AslError, match="ended already"):
        handle.cancel()


def test_a_runner_goes_on_with_what_a_dead_one_ran(place: Place, clock: VirtualClock) -> None:
    """It dies without a word: its lock ends with it."""
    path, work = place, Calls(clock)
    with asl.open_store(path, clock=clock) as store:
        handle = store.start(LATER, {}, name="one")
        with asl.open_store(path, clock=clock) as dead:
            on_loop(clock, _dying(dead, dead.runner(agents={"Work": _hanging})._make()))
        assert handle.status() == "RUNNING"

        async def main() -> None:
            async with store.runner(agents={"Work": work}):
                await handle.aresult()

        on_loop(clock, main())
        assert len(work.calls) == 2
        assert store.workers() == []


async def _hanging(data: Json) -> Json:
    await asyncio.sleep(10**6)


async def _dying(store: asl.Store, runner: Runner) -> None:
    running = asyncio.create_task(runner.run())
    await asyncio.sleep(1)
    store.session.crash()
    running.cancel()
    await asyncio.wait([running])


def test_a_fenced_runner_is_refused_at_its_next_commit(place: Place, clock: VirtualClock) -> None:
    """It was silent for longer than its lease; another has gone on, and nothing is done twice."""
    path, late, work = place, Calls(clock), Calls(clock)
    answers: list[Callable[[], object]] = []

    async def stalled(data: Json) -> Json:
        answer = asyncio.get_running_loop().create_future()
        answers.append(lambda: answer.set_result("late"))
        return await answer

    steps = document("A", A=task("Work", Next="B"), B=task("Late", End=True))
    with asl.open_store(path, clock=clock) as first, asl.open_store(path, clock=clock) as second:
        handle = first.start(steps, {}, name="one")

        async def main() -> None:
            stalling = first.runner(agents={"Work": stalled, "Late": late})._make()
            running = asyncio.create_task(stalling.run())
            await asyncio.sleep(1)
            Workers(first.session).renew(clock.now() - LEASE - 1)  # as if it had hung since
            first.session.flush()
            async with second.runner(agents={"Work": work, "Late": work}):
                await second.handle("one").aresult()
                answers[0]()
                with pytest.raises(asl.StoreError, match="others have taken over"):
                    await running

        on_loop(clock, main())
        assert (len(work.calls), late.calls) == (2, [])
        assert handle.status() == "SUCCEEDED"


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_full_disk_ends_the_runner_and_loses_nothing(
    store: asl.Store, clock: VirtualClock
) -> None:
    """What was acknowledged is there; another runner goes on when there is room."""
    work = Calls(clock)
    handle = store.start(LATER, {"text": "x" * 20_000}, name="one")

    async def main() -> None:
        async with store.runner(agents={"Work": work}) as runner:
            await runner.wait_until_stopped()

    (pages,) = rows(store, "PRAGMA page_count")[0]
    execute(store, f"PRAGMA max_page_count = {pages}")
    with pytest.raises(asl.StoreError, match="the disk is full"):
        on_loop(clock, main())
    assert handle.status() == "RUNNING"
    execute(store, "PRAGMA max_page_count = 100000")

    async def again() -> None:
        async with store.runner(agents={"Work": work}):
            assert (await handle.aresult()).ok

    on_loop(clock, again())
    assert [*store.faults()] == []


def test_events_are_followed_as_they_happen(store: asl.Store, clock: VirtualClock) -> None:
    """From the first to the last, whenever the reader comes."""
    handle = store.start(LATER, {}, name="one")

    async def main() -> list[str]:
        async with store.runner(agents={"Work": Calls(clock)}):
            return [event.type async for event in handle.events()]

    told = on_loop(clock, main())
    assert told[0] == "ExecutionStarted"
    assert told[-1] == "ExecutionSucceeded"
    assert told == [event.type for event in store.events("one")]


def test_tokens_are_followed_while_an_agent_says_them(
    store: asl.Store, clock: VirtualClock
) -> None:
    """Each once, in their order, before the answer is there."""
    said: list[tuple[float, Json]] = []

    async def writer(data: Json, call: Any) -> Json:
        for word in ("one ", "two ", "three"):
            call.report_chunk(word)
            await asyncio.sleep(10)
        return {"response": "one two three"}

    streaming = {"Enabled": True, "Mode": "token"}
    handle = store.start(document("A", A=task("Writer", Streaming=streaming, End=True)), {})

    async def main() -> None:
        async with store.runner(agents={"Writer": writer}):
            async for event in handle.events():
                if event.type == "StreamChunk":
                    said.append((clock.elapsed, event.details["chunk"]))

    on_loop(clock, main())
    assert "".join(chunk for _, chunk in said) == "one two three"
    assert said[0][0] < 1
    assert 10 <= said[1][0] < 11
    recorded = [event for event in store.events(handle.name) if event.type == "StreamChunk"]
    assert [event.details["chunk"] for event in recorded] == [chunk for _, chunk in said]
    assert all(event.id for event in recorded)
    assert store.session.select(Select(LIVE, ("id",))) == []


def test_a_runner_may_run_in_a_thread(place: Place) -> None:
    """With the wall clock, as in a program of one's own."""
    with asl.open_store(place) as store:
        with store.runner(agents={"Work": lambda data: data}):
            assert store.start(ONE, 1).result(timeout=30).output == 1
        assert store.workers() == []


def test_wrong_bindings_of_a_runner_are_refused(store: asl.Store) -> None:
    """Before it begins."""
    with pytest.raises(asl.AslError, match="'agents' must be a mapping"):
        store.runner(agents=["Work"])
    with pytest.raises(asl.AslError, match="concurrency"):
        store.runner(concurrency=0)


def test_doctor_knows_for_what_executions_wait(store: asl.Store, clock: VirtualClock) -> None:
    """For a time, or for what nobody has bound."""
    store.start(LATER, {}, name="wait")
    store.start(ONE, {}, name="needs")
    store.start(APPROVE, {}, name="ask")

    async def main() -> None:
        async with store.runner() as runner:
            await runner.drain()
        async with store.runner(agents={"Work": Calls(clock)}) as runner:
            await runner.drain()

    on_loop(clock, main())
    assert [*store.faults()] == []


def test_what_a_dead_worker_ran_is_taken_by_one(place: Place, clock: VirtualClock) -> None:
    """By the one that has its lock, though it has recorded nothing else yet."""
    with (
        asl.open_store(place, clock=clock) as dead,
        asl.open_store(place, clock=clock) as one,
        asl.open_store(place, clock=clock) as other,
    ):
        number = dead.get(dead.start(ONE, 1, name="it").name).number
        for store, id in ((dead, "dead"), (one, "one"), (other, "other")):
            Workers(store.session).register(id, {}, 0)
        Workers(dead.session).claim(number)
        dead.session.flush()
        dead.session.crash()
        assert Workers(one.session).fence(0) == ["dead"]
        with (
            hold_lock(one.session, "it"),
            pytest.raises(asl.ExecutionBusy),
            hold_lock(other.session, "it"),
        ):
            pass
