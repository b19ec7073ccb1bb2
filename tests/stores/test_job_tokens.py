"""The task token of `startExecution.sync`, and those of its child, answered by other processes."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import asl
from asl.executions import Store
from tests.deaths import lived

SYNC = "arn:aws:states:::states:startExecution.sync:2"
ARN = "arn:aws:states:us-east-1:123456789012:stateMachine:Child"
SEND = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"
WORK = {"Type": "Task", "Agent": "Work", "ResultPath": "$.work", "End": True}
ASKS = {
    "Type": "Approval",
    "Prompt": "Go?",
    "Options": ["approve", "reject"],
    "ResultPath": "$.answer",
    "Next": "Work",
}
SENDS = {
    "Type": "Task",
    "Resource": SEND,
    "Parameters": {"token.$": "$$.Task.Token"},
    "ResultPath": "$.answer",
    "Next": "Work",
}
WAITS = {"Type": "Wait", "Seconds": 60, "Next": "Work"}


def child(first: dict[str, Any]) -> dict[str, Any]:
    return {"StartAt": "First", "States": {"First": first, "Work": WORK}}


def parent(**fields: Any) -> dict[str, Any]:
    """A workflow that starts the child and gives it the token of the state."""
    parameters = {
        "StateMachineArn": ARN,
        "Name": "kid",
        "Input": {"token.$": "$$.Task.Token"},
        **fields.pop("Parameters", {}),
    }
    start = {"Type": "Task", "Resource": SYNC, "Parameters": parameters, **fields}
    start |= {"ResultPath": "$.child", "Next": "Last"}
    last = {**WORK, "ResultPath": "$.last"}
    return {"StartAt": "Start", "States": {"Start": start, "Last": last}}


def beside(branch: dict[str, Any]) -> dict[str, Any]:
    """A workflow with a branch beside the slow work of another one."""
    slow = {"StartAt": "Slow", "States": {"Slow": {**WORK, "Agent": "Slow"}}}
    both = {"Type": "Parallel", "Branches": [branch, slow], "End": True}
    return {"StartAt": "Both", "States": {"Both": both}}


class World:
    """Stores of one file, as different processes have them, on one clock."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "runs.db"
        self.clock = asl.VirtualClock()
        self.calls = 0

    def work(self, data: Any) -> int:
        self.calls += 1
        return self.calls

    async def slow(self, data: Any) -> float:
        await asyncio.sleep(50)
        return self.clock.elapsed

    def store(self, workflow: dict[str, Any]) -> Store:
        return Store(
            self.path,
            clock=self.clock,
            synchronous="OFF",
            agents={"Work": self.work, "Slow": self.slow},
            resources={"arn:aws:states:::sqs:*": lambda message: None},
            workflows={"Child": workflow},
            tokens=asl.TaskTokens(patience=0),
        )

    def other(self) -> Store:
        return Store(self.path, clock=self.clock, synchronous="OFF")

    def until(self, work: Any) -> None:
        with asyncio.Runner(loop_factory=self.clock.new_event_loop) as runner:
            runner.run(work)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def answer_child(store: Store) -> None:
    """Answer what the child waits for."""
    for request in store.pending():
        assert store.execution_of(request["requestId"]) == "kid"
        store.answer(request["requestId"], "approve", by="ann")
    for task in store.pending_callbacks():
        if task["execution"] == "kid":
            store.tokens.send_task_success(task["taskToken"], {"by": "ann"})


def answer_parent(store: Store) -> None:
    """Answer the token of the state that has started the child."""
    (task,) = (each for each in store.pending_callbacks() if each["execution"] == "top")
    assert (task["state"], task["resource"]) == ("Start", SYNC)
    store.tokens.send_task_success(task["taskToken"], {"by": "ann"})


@pytest.mark.parametrize("first", [ASKS, SENDS], ids=["approval", "token"])
@pytest.mark.parametrize("is_live", [False, True], ids=["left", "live"])
def test_child_is_answered_by_another_process(
    world: World, first: dict[str, Any], is_live: bool
) -> None:
    """Its runner goes on with child and parent, whether it has left them or not."""
    with world.store(child(first)) as store, world.other() as other:
        handle = store.start(beside(parent()) if is_live else parent(), {}, name="top")

        async def main() -> None:
            async with store.runner() as runner:
                await asyncio.sleep(5)
                assert runner.busy == is_live
                answer_child(other)
                runner.wake()
                await asyncio.sleep(5)
                assert other.get("kid").status == "SUCCEEDED"
                assert (await handle.aresult()).ok

        world.until(main())
        assert world.calls == 2
        assert (other.pending_callbacks(), other.pending(), [*other.faults()]) == ([], [], [])


@pytest.mark.parametrize("answer", [answer_child, answer_parent])
def test_paused_parent_is_resumed_behind_an_answer(
    world: World, answer: Callable[[Store], None]
) -> None:
    """To the child, or to the token of the parent."""
    with world.store(child(ASKS)) as store:
        result = store.run(parent(), {}, name="top")
        assert [each["state"] for each in result.pending_callbacks] == ["Start"]
    with world.other() as other:
        answer(other)
        assert other.due() == ["top"]
    with world.store(child(ASKS)) as store:
        result = store.resume("top")
    is_answered = answer is answer_parent
    assert (result.output["child"] == {"by": "ann"}) == is_answered
    assert world.calls == (1 if is_answered else 2)


@pytest.mark.parametrize("first", [ASKS, SENDS, WAITS], ids=["approval", "token", "wait"])
def test_child_goes_on_by_itself_behind_an_answer_to_its_parent(
    world: World, first: dict[str, Any]
) -> None:
    """It is an execution of its own from then on, with the bindings of its parent."""
    with world.store(child(first)) as store, world.other() as other:
        handle = store.start(parent(), {}, name="top")

        async def main() -> None:
            async with store.runner() as runner:
                await asyncio.sleep(5)
                assert not runner.busy
                answer_parent(other)
                runner.wake()
                assert (await handle.aresult()).output["child"] == {"by": "ann"}
                assert [each.name for each in other.executions()] == ["kid", "top"]
                answer_child(other)
                runner.wake()
                assert (await store.handle("kid").aresult()).ok

        world.until(main())
        assert [*other.faults()] == []


def test_token_of_a_job_is_answered_while_its_process_waits(world: World) -> None:
    """A process that runs no worker looks for it each second."""

    async def main() -> None:
        with world.store(child(WAITS)) as store, world.other() as other:
            running = asyncio.create_task(store.arun(parent(), {}, name="top"))
            await asyncio.sleep(10)
            answer_parent(other)
            assert (await running).output["child"] == {"by": "ann"}
            assert other.get("kid").status == "SUCCEEDED"

    world.until(main())


def test_failure_of_a_job_from_another_process(world: World) -> None:
    """It is the error of the state, which may be caught."""
    catch = [{"ErrorEquals": ["Refused"], "ResultPath": "$.child", "Next": "Last"}]
    with world.store(child(ASKS)) as store, world.other() as other:
        store.run(parent(Catch=catch), {}, name="top")
        (task,) = other.pending_callbacks()
        other.tokens.send_task_failure(task["taskToken"], "Refused", "no")
        result = store.resume("top")
    assert result.output["child"] == {"Error": "Refused", "Cause": "no"}


@pytest.mark.parametrize(
    ("fields", "signs", "cause"),
    [
        ({"TimeoutSeconds": 30}, [], "no answer within 30 s"),
        ({"HeartbeatSeconds": 10}, [], None),
        ({"HeartbeatSeconds": 10}, [5], "no sign of life within 10 s"),
        ({"HeartbeatSeconds": 25}, [10, 30, 50], None),
    ],
)
@pytest.mark.parametrize("is_live", [False, True], ids=["left", "live"])
def test_limits_of_a_job(
    world: World, fields: dict[str, Any], signs: list[int], cause: str | None, is_live: bool
) -> None:
    """Signs of life come from other processes, too; before the first one none is due."""
    workflow = {"StartAt": "Start", "States": {"Start": parent(**fields)["States"]["Start"]}}
    del workflow["States"]["Start"]["Next"]
    workflow["States"]["Start"]["End"] = True
    slow = {**beside(workflow), "TimeoutSeconds": 5000}
    with world.store(child(WAITS)) as store, world.other() as other:
        handle = store.start(slow if is_live else workflow, {}, name="top")

        async def main() -> None:
            async with store.runner() as runner:
                await asyncio.sleep(1)
                (task,) = other.pending_callbacks()
                for when in signs:
                    await asyncio.sleep(when - world.clock.elapsed)
                    other.tokens.send_task_heartbeat(task["taskToken"])
                    runner.wake()
                failure = (await handle.aresult()).cause
                assert failure == (None if cause is None else f"state 'Start': {cause}")

        world.until(main())
        assert other.get("kid").status == ("SUCCEEDED" if cause is None else "ABORTED")
        assert other.pending_callbacks() == []


def test_token_as_the_name_of_a_job(world: World) -> None:
    """The child knows it by `$$.Execution.Name`."""
    given = {"Name": None, "Input": {}, "Name.$": "$$.Task.Token"}
    document = parent(Parameters=given)
    del document["States"]["Start"]["Parameters"]["Name"]
    with world.store(child(ASKS)) as store, world.other() as other:
        store.run(document, {}, name="top")
        (task,) = other.pending_callbacks()
        other.tokens.send_task_success(task["taskToken"], 1)
        assert store.resume("top").output["child"] == 1


@pytest.mark.parametrize("answer", [answer_child, answer_parent])
def test_an_answer_survives_the_death_of_its_process(
    world: World, tmp_path: Path, answer: Callable[[Store], None]
) -> None:
    """At whichever commit it dies, behind or before the answer."""
    for times in range(1, 30):
        world.path = tmp_path / f"{times}.db"
        with world.store(child(ASKS)) as store:
            store.run(parent(), {}, name="top")
        with world.other() as other:
            answer(other)
        store = world.store(child(ASKS))
        died = lived(store, lambda store=store: store.resume("top"), times, "commit.done") is None
        with world.store(child(ASKS)) as store:
            result = store.resume("top")
            assert (result.output["child"] == {"by": "ann"}) == (answer is answer_parent)
            if store.get("kid").status == "RUNNING":
                store.resume("kid")
            if answer is answer_parent:
                answer_child(store)
            assert store.resume("kid").ok
            assert [*store.faults()] == []
        if not died:
            return
    pytest.fail("it does not come to its end")


ANSWERS = """
import sys
import asl

with asl.open_store(sys.argv[1]) as store:
    (request,) = store.pending()
    store.answer(request["requestId"], "approve", by="ann")
"""


def test_two_processes(tmp_path: Path) -> None:
    """One runs parent and child, the other one answers."""
    path, paused = tmp_path / "runs.db", Event()
    given = {"agents": {"Work": lambda data: 1}, "workflows": {"Child": child(ASKS)}}
    with (
        asl.open_store(path, **given) as store,
        store.runner(report=lambda name, result: paused.set()),
    ):
        handle = store.start(parent(), {}, name="top")
        assert paused.wait(60)
        subprocess.run([sys.executable, "-c", ANSWERS, str(path)], check=True)
        output = handle.result(timeout=60).output
    assert output["child"]["Output"]["answer"]["approver"] == "ann"
