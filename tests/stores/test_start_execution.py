"""Executions started by `startExecution` in a store."""

import asyncio
from typing import Any

import pytest

import asl
from asl.executions import BindingsMissing, Store
from asl.executions.locking import hold_lock
from tests.deaths import lived
from tests.stores.conftest import Place, another

ARN = "arn:aws:states:us-east-1:123456789012:stateMachine:Child"
ASKS = {
    "StartAt": "Work",
    "States": {
        "Work": {"Type": "Task", "Agent": "Work", "ResultPath": "$.work", "Next": "Ask"},
        "Ask": {"Type": "Approval", "Prompt": "Go?", "ResultPath": "$.ask", "End": True},
    },
}


def starting(resource: str, name: str | None = None, **fields: Any) -> dict[str, Any]:
    parameters = {"StateMachineArn": ARN, "Input": {"n": 1}}
    if name is not None:
        parameters["Name"] = name
    start = {"Type": "Task", "Resource": resource, "Parameters": parameters, **fields}
    return {
        "StartAt": "Start",
        "States": {
            "Start": {**start, "ResultPath": "$.child", "Next": "Last"},
            "Last": {"Type": "Task", "Agent": "Work", "ResultPath": "$.last", "End": True},
        },
    }


SYNC = "arn:aws:states:::states:startExecution.sync:2"
LEAVE = "arn:aws:states:::states:startExecution"


class World:
    """An agent that counts its calls, and dies where it is told to."""

    def __init__(self, place: Place) -> None:
        self.path = place
        self.clock = asl.VirtualClock()
        self.calls: list[str] = []

    def work(self, data: Any, call: asl.Call) -> Any:
        self.calls.append(call.state_name)
        return len(self.calls)

    def store(self) -> Store:
        return Store(
            self.path,
            clock=self.clock,
            synchronous="OFF",
            agents={"Work": self.work},
            workflows={"Child": ASKS},
        )

    def dies(self, point: str, times: int, document: Any, name: str) -> bool:
        """Start an execution in a process that dies at an instant; whether it came to that."""
        store = self.store()
        result = lived(store, lambda: store.run(document, {}, name=name), times, point)
        return result is None


@pytest.fixture
def world(place: Place) -> World:
    return World(place)


def test_a_child_that_is_awaited_waits_with_its_parent(world: World) -> None:
    """It is kept under its own name, asks, and is gone on with together with its parent."""
    with world.store() as store:
        result = store.run(starting(SYNC, "kid"), {}, name="top")
        assert result.status == "PAUSED"
        assert [each.name for each in store.descendants("top")] == ["kid"]
        assert [each.name for each in store.executions()] == ["top"]
        (request,) = store.pending()
        assert store.root(store.execution_of(request["requestId"])) == "top"
        store.answer(request["requestId"], "approve")
    with world.store() as store:
        assert store.due() == ["top"]
        result = store.resume("top")
    assert result.output["child"]["Output"]["ask"]["approval"] == "approve"
    assert result.output["child"]["Name"] == "kid"
    assert world.calls == ["Work", "Last"]


def test_a_child_that_is_left_is_an_execution_of_its_own(world: World) -> None:
    """Its parent ends; it waits for people by itself."""
    with world.store() as store:
        assert store.run(starting(LEAVE, "kid"), {}, name="top").ok
        assert {each.name: each.status for each in store.executions()} == {
            "top": "SUCCEEDED",
            "kid": "PAUSED",
        }
        (request,) = store.pending()
        store.answer(request["requestId"], "approve")
        assert store.resume("kid").output["ask"]["approval"] == "approve"


@pytest.mark.parametrize("resource", [SYNC, LEAVE])
def test_a_name_is_taken_once(world: World, resource: str) -> None:
    """By whichever execution of the store has it."""
    with world.store() as store:
        store.run(ASKS, {}, name="kid")
        result = store.run(starting(resource, "kid"), {}, name="top")
    assert result.error == "StepFunctions.ExecutionAlreadyExistsException"


@pytest.mark.parametrize("resource", [SYNC, LEAVE])
def test_of_those_that_start_one_name_at_once_one_does(world: World, resource: str) -> None:
    """Whether they share a store or not; the state of the other one fails, as any state does."""
    caught = {"ErrorEquals": ["StepFunctions.ExecutionAlreadyExistsException"], "Next": "Last"}
    document = starting(resource, "kid", Catch=[caught])
    document["States"]["Last"] = {"Type": "Pass", "End": True}
    child = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}

    async def both(*stores: Store) -> list[Any]:
        each = (
            store.arun(document, {}, name=f"top{number}", workflows={"Child": child})
            for number, store in enumerate(stores)
        )
        return await asyncio.gather(*each)

    for number, shared in enumerate((True, False)):
        world.path = another(world.path, number)
        with world.store() as one, world.store() as other:
            results = asyncio.run(both(one, one if shared else other))
            assert [result.output.keys() for result in results] == [{"child"}, {"Error", "Cause"}]
            assert one.get("kid").status == "SUCCEEDED"
            assert one.run(child, {}).ok
            assert other.run(child, {}).ok


@pytest.mark.parametrize("resource", [SYNC, LEAVE])
def test_a_name_that_somebody_is_about_to_take_is_taken(world: World, resource: str) -> None:
    """His lock says so before the execution is in the file."""
    with world.store() as store, world.store() as other, hold_lock(other.session, "kid"):
        result = store.run(starting(resource, "kid"), {}, name="top")
    assert result.error == "StepFunctions.ExecutionAlreadyExistsException"


def test_who_goes_on_with_what_was_left_is_not_disturbed(world: World) -> None:
    """The execution that has started it goes on without it."""
    document = starting(LEAVE, "kid")
    times = 1
    while world.dies("answer.put", times, document, "top"):
        with world.store() as store, world.store() as other:
            if "kid" in [each.name for each in store.executions()]:
                with hold_lock(other.session, "kid"):
                    assert store.run(document, {}, name="top").ok
                assert other.resume("kid").status == "PAUSED"
        world.path, times = another(world.path, times), times + 1
    assert world.calls.count("Last") > 1


def test_a_part_of_another_execution_is_not_started_by_itself(world: World) -> None:
    """Whoever is at work on the whole is at work on it."""
    with world.store() as store:
        assert store.run(starting(SYNC, "kid"), {}, name="top").pending
        with pytest.raises(asl.ExecutionExists, match="'kid' is a part of 'top'"):
            store.run(ASKS, {"n": 1}, name="kid")


@pytest.mark.parametrize("resource", [SYNC, LEAVE])
@pytest.mark.parametrize("name", ["kid", None])
def test_it_is_started_once_whenever_the_process_dies(
    world: World, resource: str, name: str | None
) -> None:
    """At any commit; nothing that was answered is done again."""
    document = starting(resource, name)
    for times in range(1, 40):
        world.path, world.calls = another(world.path, times), []
        died = world.dies("commit.done", times, document, "top")
        with world.store() as store:
            store.run(document, {}, name="top")
            left = store.interrupted()
            for each in left:
                store.resume(each)
            (request,) = store.pending()
            store.answer(request["requestId"], "approve")
            store.resume(store.root(store.execution_of(request["requestId"])))
            assert [each.status for each in store.executions()] == ["SUCCEEDED"] * (
                2 if resource == LEAVE else 1
            )
            assert list(store.faults()) == []
        assert len(world.calls) <= 3
        if not died:
            return
    pytest.fail("it does not come to its end")


def test_task_timeout_counts_without_a_process(world: World) -> None:
    """The execution that it has started ends with it."""
    document = starting(SYNC, "kid", TimeoutSeconds=100)
    with world.store() as store:
        assert store.run(document, {}, name="top").status == "PAUSED"
        assert store.get("kid").wake == world.clock.now() + 100
        world.clock.elapsed += 200
        assert store.due() == ["top"]
        result = store.resume("top")
        assert result.error == "States.Timeout"
        assert store.get("kid").status == "ABORTED"
        assert store.pending() == []


def test_a_cut_branch_gives_up_what_it_has_started(world: World) -> None:
    """The execution that waits is aborted, and asks nobody any more."""
    start = starting(SYNC, "kid")["States"]["Start"]
    starts = {"StartAt": "S", "States": {"S": {**start, "Next": None, "End": True}}}
    del starts["States"]["S"]["Next"]
    child = {"Type": "Workflow", "WorkflowId": "Child", "End": True}
    failing = {
        "StartAt": "Nap",
        "States": {"Nap": {"Type": "Wait", "Seconds": 1, "Next": "No"}, "No": {"Type": "Fail"}},
    }
    document = {
        "StartAt": "Both",
        "States": {
            "Both": {
                "Type": "Parallel",
                "Branches": [starts, {"StartAt": "C", "States": {"C": child}}, failing],
                "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Last"}],
                "End": True,
            },
            "Last": {"Type": "Approval", "Prompt": "After?", "End": True},
        },
    }
    with world.store() as store:
        assert store.run(document, {}, name="top").status == "PAUSED"
        assert [each.status for each in store.descendants("top")] == ["ABORTED"] * 2
        assert [each["state"] for each in store.pending()] == ["Last"]


@pytest.mark.parametrize("resource", [SYNC, LEAVE])
def test_the_requestor_is_that_of_the_whole(world: World, resource: str) -> None:
    """Also of an execution that goes on by itself."""
    policy = {"ExcludeRequestor": True}
    child = {
        **ASKS,
        "States": {**ASKS["States"], "Ask": {**ASKS["States"]["Ask"], "Policy": policy}},
    }
    with world.store() as store:
        store.run(
            starting(resource, "kid"), {}, name="top", requestor="ann", workflows={"Child": child}
        )
        (request,) = store.pending()
        with pytest.raises(asl.AnswerRefused, match="'ann' asked"):
            store.answer(request["requestId"], "approve", by="ann")
        assert store.get("kid").requestor == "ann"


FAILS = {
    "StartAt": "Work",
    "States": {
        "Work": {"Type": "Task", "Agent": "Work", "ResultPath": "$.work", "Next": "Flaky"},
        "Flaky": {"Type": "Task", "Agent": "Flaky", "ResultPath": "$.flaky", "End": True},
    },
}


@pytest.mark.parametrize("name", [None, "kid"])
def test_a_redrive_starts_the_task_again(world: World, name: str | None) -> None:
    """So another execution is started (AWS: "schedules and starts the Task state again").

    The one that has failed stays as it is; its name, where the task gives one, is taken.
    """
    broken = ["yes"]

    def flaky(data: Any) -> int:
        if broken:
            raise asl.StateError("Closed", "no")
        return 1

    agents = {"Work": world.work, "Flaky": flaky}
    with world.store() as store:
        document, workflows = starting(SYNC, name), {"Child": FAILS}
        result = store.run(document, {}, name="top", workflows=workflows, agents=agents)
        assert result.error == "States.TaskFailed"
        (first,) = store.descendants("top")
        broken.clear()
        world.clock.elapsed += 60
        result = store.redrive("top", workflows=workflows, agents=agents)
        if name is not None:
            assert result.error == "StepFunctions.ExecutionAlreadyExistsException"
            return
        assert result.ok
        assert world.calls == ["Work", "Work", "Last"]
        old, new = store.descendants("top")
        assert (old.name, old.status, old.redrives) == (first.name, "FAILED", 0)
        assert (new.status, result.output["child"]["Name"]) == ("SUCCEEDED", new.name)
        assert list(store.faults()) == []


def test_a_part_of_another_execution_keeps_its_document(world: World) -> None:
    """A corrected one is refused, and held against no other execution."""
    with world.store() as store:
        assert store.run(starting(SYNC, "kid"), {}, name="top").pending
        store.cancel("top")
        with pytest.raises(asl.ExecutionNotRedrivable, match="'kid' is a part of 'top'"):
            store.redrive("kid", document=ASKS)


def test_a_redrive_gives_all_items_their_time(world: World) -> None:
    """The time of those that did not fail begins anew with it."""
    start = {**starting(SYNC, TimeoutSeconds=60)["States"]["Start"], "End": True}
    del start["Next"]
    inner = {"StartAt": "Start", "States": {"Start": start}}
    each = {"Type": "Map", "ItemProcessor": inner, "End": True}
    with world.store() as store:
        store.run({"StartAt": "Each", "States": {"Each": each}}, [{}, {}, {}], name="top")
        world.clock.elapsed += 60
        assert store.resume("top").error == "States.Timeout"
        world.clock.elapsed += 60
        for request in store.redrive("top").pending:
            store.answer(request["requestId"], "approve")
        assert store.resume("top").ok


def test_a_workflow_that_has_ended_is_not_started_again(world: World) -> None:
    """It must be bound all the same where the document names it."""
    document = starting(SYNC, "kid")
    document["States"]["Last"] = {"Type": "Approval", "Prompt": "Good?", "End": True}
    child = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    with world.store() as store:
        assert store.run(document, {}, name="top", workflows={"Child": child}).pending
    with Store(world.path, clock=world.clock) as store:
        (request,) = store.pending()
        store.answer(request["requestId"], "approve")
        with pytest.raises(BindingsMissing, match="Child"):
            store.resume("top")
    with world.store() as store:
        assert store.resume("top", workflows={"Child": child}).ok
