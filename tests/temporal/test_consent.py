"""Consent to tool calls within calls on workers: as in a process, and no tool is called twice."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from uuid import uuid4

import pytest
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

import asl
from asl.core.values import Json
from asl.executions.store import Store
from asl.temporal.worker import WORKFLOWS
from tests.temporal.servers import run

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An eviction of a workflow drops its coroutines."""

PAUSES = {"ExecutionPaused", "ExecutionResumed"}
POLICY = {"RequireApproval": ["delete"]}
OTHER = {"RequireApproval": ["other"]}


def asking(**fields: Any) -> Json:
    """Return a document whose agent uses tools that need consent."""
    state = {"Type": "Task", "Agent": "A", "Tools": POLICY, "End": True, **fields}
    return {"StartAt": "T", "States": {"T": state}}


class Desk:
    """Tools that remember their calls, and agents that use them."""

    def __init__(self) -> None:
        self.calls: list[Json] = []

    def bindings(self, agent: Any = None) -> Json:
        """Return the bindings of an execution."""
        return {
            "agents": {"A": agent or self.in_turn},
            "tools": {
                "read": lambda given: self._used("read", given),
                "delete": lambda given: self._used("delete", given),
            },
        }

    def _used(self, tool: str, given: Json) -> Json:
        self.calls.append([tool, *given.values()])
        return {"did": tool, "_tokens": 5}

    def in_turn(self, data: Json, call: asl.Call) -> Json:
        """Use one tool after another."""
        self.calls.append("agent")
        found = []
        for tool, path in (("read", "a"), ("delete", "a"), ("delete", "b")):
            try:
                found.append(call.tools.call(tool, {"path": path})["did"])
            except asl.StateError as error:
                found.append(error.name)
        return {"found": found, "_tokens": 10}

    async def together(self, data: Json, call: asl.Call) -> Json:
        """Use all tools at the same time."""
        self.calls.append("agent")
        wanted = (("read", "a"), ("delete", "a"), ("delete", "b"))
        uses = (call.tools.call(tool, {"path": path}) for tool, path in wanted)
        found = await asyncio.gather(*uses, return_exceptions=True)
        return [each["did"] if isinstance(each, dict) else type(each).__name__ for each in found]

    def used(self, tool: str) -> int:
        """Return how often a tool was called."""
        return len([each for each in self.calls if each[0] == tool])


def told(store: Store, name: str) -> list[Json]:
    """Return the events of an execution without times, pauses and ids."""
    found = []
    for each in store.events(name):
        details = {key: value for key, value in each.details.items() if key not in VARYING}
        if each.type not in PAUSES:
            found.append([each.type, details])
    return found


VARYING = ("requestId", "seconds", "digest", "name", "taskToken")


def decide(store: Store, name: str, tool_path: str, option: str) -> None:
    """Answer the request for a call of a tool."""
    (request,) = [
        each for each in store.pending(name) if each["arguments"]["path"].endswith(tool_path)
    ]
    store.answer(request["requestId"], option, by="ann")


def replayed(store: Any, name: str) -> None:
    """Replay the history of an execution."""

    async def replay() -> None:
        history = await store.client.raw.get_workflow_handle(name).fetch_history()
        runner = UnsandboxedWorkflowRunner()
        replayer = Replayer(workflows=[*WORKFLOWS], workflow_runner=runner, debug_mode=True)
        await replayer.replay_workflow(history)

    run(replay())


def within(document: Json, **fields: Any) -> Json:
    """Return a document with a Map over items, each run by another document."""
    state = {"Type": "Map", "ItemProcessor": document, "End": True}
    return {"StartAt": "M", "States": {"M": state}, **fields}


@pytest.mark.parametrize("option", ["approve", "reject"])
def test_calls_one_after_the_other(address: str, option: str) -> None:
    seen, name = [], uuid4().hex
    for target in ("memory:", address):
        desk = Desk()
        with asl.open_store(target, **desk.bindings()) as store:
            result = store.run(asking(Budget={"MaxTokens": 90}), {}, name=name)
            assert (result.status, desk.calls) == ("PAUSED", ["agent", ["read", "a"]])
            (request,) = result.pending
            assert (request["type"], request["tool"], request["agent"]) == ("tool", "delete", "A")
            decide(store, name, "a", "approve")
            assert store.resume(name).status == "PAUSED"
            decide(store, name, "b", option)
            result = store.resume(name)
            assert result.status == "SUCCEEDED"
            seen.append([result.output, result.usage, desk.calls, told(store, name)])
            if target == address:
                replayed(store, name)
    assert seen[0] == seen[1]
    assert desk.used("read") == 1


def test_calls_at_the_same_time_in_two_branches(address: str) -> None:
    seen, name = [], uuid4().hex
    for target in ("memory:", address):
        desk = Desk()
        with asl.open_store(target, **desk.bindings(desk.together)) as store:
            result = store.run(within(asking()), ["x", "y"], name=name)
            assert (result.status, len(result.pending)) == ("PAUSED", 4)
            for each in store.pending(name):
                if each["arguments"]["path"] == "b":
                    store.answer(each["requestId"], "reject")
            assert store.resume(name).status == "PAUSED"
            assert [each["arguments"]["path"] for each in store.pending(name)] == ["a", "a"]
            for each in store.pending(name):
                store.answer(each["requestId"], "approve")
            result = store.resume(name)
            seen.append([result.output, result.usage, sorted(map(str, desk.calls))])
            assert len(told(store, name)) == 32
    assert seen[0] == seen[1]
    assert result.output == [["read", "delete", "RaisedError"]] * 2
    assert (desk.used("read"), desk.used("delete")) == (2, 2)


def test_an_answered_call_goes_on_beside_a_long_one(address: str) -> None:
    desk, deleted = Desk(), threading.Event()

    def long(data: Json) -> str:
        assert deleted.wait(20)
        return "long"

    def delete(given: Json) -> str:
        deleted.set()
        return "deleted"

    bindings = desk.bindings({"use": [{"tool": "delete"}]})
    bindings["agents"]["Long"], bindings["tools"]["delete"] = long, delete
    other = {"StartAt": "L", "States": {"L": {"Type": "Task", "Agent": "Long", "End": True}}}
    state = {"Type": "Parallel", "Branches": [asking(), other], "End": True}
    with asl.open_store(address, **bindings) as store, store.runner():
        handle = store.start({"StartAt": "P", "States": {"P": state}}, {})
        while not (found := store.pending()):
            pass
        handle.answer(found[0]["requestId"], "approve", by="ann")
        assert handle.result(30).output == [["deleted"], "long"]


def test_a_worker_dies_while_the_request_is_open(address: str) -> None:
    """Its call has ended, so that nothing is lost: not even a worker is needed while it waits."""
    desk, name = Desk(), uuid4().hex
    with asl.open_store(address, **desk.bindings()) as store:
        store.run(asking(), {}, name=name)
    with asl.open_store(address) as store:
        length = store.client.describe(name).history_length  # type: ignore[attr-defined]
        decide(store, name, "a", "approve")
        assert store.client.describe(name).history_length > length  # type: ignore[attr-defined]
    with asl.open_store(address, **desk.bindings()) as store:
        assert store.resume(name).status == "PAUSED"
    assert desk.calls == ["agent", ["read", "a"], "agent", ["delete", "a"]]


def test_a_paused_call_moves_from_a_file(address: str) -> None:
    desk, name = Desk(), uuid4().hex
    with asl.open_store("memory:", **desk.bindings()) as source:
        source.run(asking(), {}, name=name)
        (line,) = source.export()
    with asl.open_store(address, **desk.bindings()) as store:
        store.import_execution(line)
        decide(store, name, "a", "approve")
        assert store.resume(name).status == "PAUSED"
    assert desk.calls == ["agent", ["read", "a"], "agent", ["delete", "a"]]


def test_items_of_distributed_maps_ask(address: str) -> None:
    """Also if only the document requires consent: such items are not run in slices."""
    mode = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    desk = Desk()
    document = within({**mode, **asking(Tools={})}, DefaultTools=POLICY)
    del document["States"]["M"]["ItemProcessor"]["States"]["T"]["Tools"]
    bindings = desk.bindings({"use": [{"tool": "delete", "arguments": {"path": "a"}}]})
    with asl.open_store(address, **bindings) as store:
        result = store.run(document, [*range(25)])
        assert (result.status, len(store.pending())) == ("PAUSED", 25)
        del document["DefaultTools"]
    with asl.open_store(address, policy={"Tools": POLICY}, **bindings) as store:
        result = store.run(document, [*range(25)])
    assert (result.status, desk.calls) == ("FAILED", [])
    assert "add RequireApproval to DefaultTools" in str(result.cause)


def test_policy_of_the_operator(address: str) -> None:
    """A worker requires consent of which the workflow knows nothing."""
    desk, name = Desk(), uuid4().hex
    document = asking()
    del document["States"]["T"]["Tools"]
    bindings = desk.bindings({"use": [{"tool": "delete", "arguments": {"path": "a"}}]})
    with asl.open_store(address, policy={"Tools": POLICY}, **bindings) as store:
        assert store.run(document, {}, name=name).status == "PAUSED"
        decide(store, name, "a", "approve")
        assert store.resume(name).status == "SUCCEEDED"
    assert desk.used("delete") == 1


@pytest.mark.parametrize(
    ("policy", "option"), [({}, "approve"), (OTHER, "approve"), (OTHER, "reject")]
)
def test_budget_within_a_call(address: str, policy: Json, option: str) -> None:
    """A hook is an agent, whose call may need a larger budget."""
    seen, name = [], uuid4().hex
    document = asking(Tools={**policy, "Hooks": {"After": {"Agent": "Hook"}}})
    document["Budget"] = {"MaxTokens": 8, "OnExceed": "PauseAndNotify"}
    for target in ("memory:", address):
        desk = Desk()
        uses = [{"tool": tool, "arguments": {"path": tool}} for tool in ("read", "delete")]
        bindings = desk.bindings({"use": uses})
        bindings["agents"]["Hook"] = lambda data: True
        with asl.open_store(target, **bindings) as store:
            result = store.run(document, {}, name=name)
            assert result.status == "PAUSED"
            assert [each["type"] for each in result.pending] == ["budget"]
            store.answer(result.pending[0]["requestId"], option, by="ann")
            result = store.resume(name)
            seen.append([result.status, result.cause, result.output, desk.calls])
            events = [each for each in told(store, name) if each[0] != "BudgetExceeded"]
            seen[-1] += [events, result.usage["tokens"]]
    assert seen[0] == seen[1]


def test_rejected_budget_after_consent(address: str) -> None:
    """The call fails before its agent: the history has its end nevertheless."""
    seen, name = [], uuid4().hex
    document = asking(Budget={"MaxTokens": 5, "OnExceed": "PauseAndNotify"})
    document["Budget"] = document["States"]["T"].pop("Budget")
    for target in ("memory:", address):
        with asl.open_store(target, **Desk().bindings()) as store:
            result = store.run(document, {}, name=name)
            for option, kind in (("approve", "tool"), ("reject", "budget")):
                assert [each["type"] for each in result.pending] == [kind]
                store.answer(result.pending[0]["requestId"], option, by="ann")
                result = store.resume(name)
            seen.append([each[0] for each in told(store, name)])
            assert seen[-1][-2:] == ["TaskFailed", "ExecutionFailed"]
