"""The store on Temporal: the methods and the commands of a store in a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

import asl
from asl.core.errors import AslError, StateError
from asl.effects.task_tokens import TaskDoesNotExist, TaskTimedOut
from asl.executions import ExecutionExists, ExecutionNotFound, RequestNotFound
from asl.executions.store import Store
from asl.states.approval_answers import AnswerRefused
from asl.stores.errors import StoreError
from tests.temporal.servers import run

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An eviction of a workflow drops its coroutines."""

ASK = {"Type": "Approval", "Prompt": "ok?", "Next": "B"}
CALL = {"Type": "Task", "Agent": "X", "End": True}
APPROVAL = {
    "StartAt": "A",
    "States": {"A": {**CALL, "End": False, "Next": "P"}, "P": ASK, "B": CALL},
}
del APPROVAL["States"]["A"]["End"]
PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
TOKEN = {
    "StartAt": "T",
    "States": {
        "T": {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
            "Parameters": {"token.$": "$$.Task.Token"},
            "End": True,
        }
    },
}


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with asl.open_store(address, agents={"X": lambda data: data}) as opened:
        yield opened


def test_approval_pauses_and_continues(store: Store) -> None:
    result = store.run(APPROVAL, {"a": 1}, name=uuid4().hex)
    assert (result.status, store.workers()) == ("PAUSED", [])
    (request,) = store.pending()
    with pytest.raises(AnswerRefused):
        store.answer(request["requestId"], "maybe")
    length = store.client.describe(result.name).history_length  # type: ignore[attr-defined]
    record = store.answer(request["requestId"], "approve", by="ann", comment="good")
    assert store.answer(request["requestId"], "approve", by="ann", comment="good") == record
    assert store.client.describe(result.name).history_length > length  # type: ignore[attr-defined]
    assert not store.pending()
    assert store.resume(result.name).output["approver"] == "ann"
    with pytest.raises(RequestNotFound):
        store.answer("nothing", "approve")


def test_answer_reaches_a_worker(store: Store) -> None:
    with store.runner():
        handle = store.start(APPROVAL, {})
        while not (found := handle.pending()):
            pass
        handle.answer(found[0]["requestId"], "approve", by="ann")
        assert handle.result(20).status == "SUCCEEDED"
        assert len(store.workers()) == 1


def test_events_are_followed(store: Store) -> None:
    async def types() -> list[str]:
        async with store.runner():
            handle = await store.astart(PASS, {})
            return [event.type async for event in handle.events()]

    assert run(types())[-1] == "ExecutionSucceeded"


def test_task_tokens(store: Store) -> None:
    sent = list[Any]()
    result = store.run(TOKEN, {}, resources={"arn:aws:states:::sqs:*": sent.append})
    assert result.status == "PAUSED"
    token = sent[0]["token"]
    store.tokens.send_task_heartbeat(token)
    store.tokens.send_task_success(token, '{"b": 1, "a": 2}')
    with pytest.raises(TaskTimedOut):
        store.tokens.send_task_success(token, "1")
    with pytest.raises(TaskDoesNotExist):
        store.tokens.send_task_success("0" * 64, "1")
    assert [*store.resume(result.name).output.items()] == [("b", 1), ("a", 2)]


def test_redrive_fork_and_delete(store: Store) -> None:
    def fail(data: Any) -> Any:
        raise StateError("Bad", "no")

    failed = store.run(APPROVAL, {"a": 1}, agents={"X": fail})
    assert (failed.status, failed.error) == ("FAILED", "Bad")
    assert store.redrive(failed.name).status == "PAUSED"
    forked = store.fork(failed.name, "P", new_name=f"{failed.name}-2")
    assert store.resume(forked.name).status == "PAUSED"
    with pytest.raises(ExecutionExists):
        store.fork(failed.name, "P", new_name=forked.name)
    for name in (failed.name, forked.name):
        with pytest.raises(AslError, match=r"has not ended \(PAUSED\): cancel it first"):
            store.delete(name)
        store.answer(store.pending(name)[0]["requestId"], "approve")
        assert store.resume(name).status == "SUCCEEDED"
        store.delete(name)  # the server deletes it when it has written its lists


def test_list_in_pages(store: Store) -> None:
    names = [store.start(PASS, {}, name=f"{uuid4().hex}-{each}").name for each in range(5)]
    while len(found := store.executions()) < 5:
        pass
    assert [each.name for each in found] == names[::-1]
    page = store.executions(limit=2, before=store.position(names[3]))
    assert [each.name for each in page] == [names[2], names[1]]
    assert store.stuck().keys() == {*names}
    assert store.start(PASS, {}, name=names[0]).name == names[0]
    with pytest.raises(ExecutionExists, match="another input"):
        store.start(PASS, {"other": 1}, name=names[0])


def test_cancel(store: Store) -> None:
    result = store.run(APPROVAL, {})
    with store.runner():
        store.handle(result.name).cancel("enough", error="Stopped")
        ended = store.handle(result.name).result(20)
    assert (ended.status, ended.error, ended.cause) == ("ABORTED", "Stopped", "enough")


def test_import_from_a_file(store: Store) -> None:
    with asl.open_store("memory:", agents={"X": lambda data: data}) as source:
        paused = source.run(APPROVAL, {"a": 1}, name=uuid4().hex)
        (line,) = source.export()
    assert store.import_execution(line) == paused.name
    store.answer(store.pending(paused.name)[0]["requestId"], "approve")
    assert store.resume(paused.name).status == "SUCCEEDED"


def test_refusals(store: Store, target: str) -> None:
    for call in (lambda: store.prune("1d"), lambda: store.backup("b.db"), lambda: store.faults()):
        with pytest.raises(StoreError, match="Temporal"):
            call()
    with pytest.raises(ExecutionNotFound):
        store.get("nothing")
    with pytest.raises(StoreError, match="asl worker"):
        store.run(APPROVAL, {}, agents={})
    with pytest.raises(StoreError, match="asl worker"):
        store.run(APPROVAL, {}, agents={"Nobody": str})
    with pytest.raises(AslError, match="no namespace 'missing'"):
        asl.open_store(f"temporal://{target}/missing")
    with pytest.raises(AslError, match="cannot reach"):
        asl.open_store("temporal://127.0.0.1:1")
    with pytest.raises(AslError, match="must have the form"):
        asl.open_store(f"temporal://{target}/default?quue=x")
    with pytest.raises(StoreError, match="bucket"):
        store.start(PASS, {"large": uuid4().hex * 100_000})


def test_agents_use_the_tools_of_their_worker(store: Store) -> None:
    def write(data: Any, call: asl.Call) -> Any:
        found = call.tools.call("search", {"q": data})
        with pytest.raises(StateError, match="drop"):
            call.tools.call("drop", {})
        return found

    state = {"Type": "Task", "Agent": "Writer", "Tools": {"Allowed": ["search"]}, "End": True}
    document = {"StartAt": "Write", "States": {"Write": state}}
    tools = {"search": lambda arguments: [arguments["q"]], "drop": lambda arguments: None}
    result = store.run(document, "a", name=uuid4().hex, agents={"Writer": write}, tools=tools)
    assert (result.status, result.output) == ("SUCCEEDED", ["a"])
    assert "ToolCalled" in [each.type for each in store.events(result.name)]


def test_prices_reach_the_slices_of_a_map(address: str) -> None:
    each = {"StartAt": "E", "States": {"E": {**CALL, "Agent": "Model"}}}
    mode = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    document = {
        "StartAt": "M",
        "States": {"M": {"Type": "Map", "ItemProcessor": {**mode, **each}, "End": True}},
    }
    answer = {"_usage": {"input": 1, "output": 1}, "model": "m"}
    prices = {"m": {"input": 1, "output": 2}}
    agents = {"Model": lambda data: answer}
    with asl.open_store(address, agents=agents, prices=prices) as store:
        result = store.run(document, [*range(25)])
    assert (result.status, result.usage["tokens"]) == ("SUCCEEDED", 50)
    assert result.usage["cost"] == 25 * (1 + 2)
