"""Laws of executions that hold on every store: recovery, approvals, tokens, budgets, redrive."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.testing import WorkflowEnvironment

import asl
from asl.core.errors import StateError
from asl.effects.task_tokens import TaskTimedOut
from asl.executions.store import Store
from asl.states.approval_answers import AnswerRefused
from tests.temporal.servers import find_binary, run

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An eviction of a workflow drops its coroutines."""

PAUSES = {"ExecutionPaused", "ExecutionResumed"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The host and port of a development server."""
    options = {
        "dev_server_existing_path": find_binary("temporal"),
        "dev_server_log_level": "error",
    }
    env = run(WorkflowEnvironment.start_local(**options))
    yield env.client.service_client.config.target_host
    run(env.shutdown())


@pytest.fixture(params=["memory", "sqlite", "temporal"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store of each kind."""
    place = {"memory": lambda: "memory:", "sqlite": lambda: str(tmp_path / "runs.db")}
    target = place.get(request.param)
    if target is None:
        server = request.getfixturevalue("server")
        opened = asl.open_store(f"temporal://{server}/default?queue={uuid4().hex[:8]}")
    else:
        opened = asl.open_store(target())
    with opened:
        yield opened


def task(agent: str, **fields: Any) -> dict[str, Any]:
    """Return a state that calls an agent."""
    return {"Type": "Task", "Agent": agent, **fields}


def chain(**states: dict[str, Any]) -> dict[str, Any]:
    """Return a document of states one after the other."""
    names = [*states]
    for name, after in pairwise(names):
        states[name]["Next"] = after
    states[names[-1]]["End"] = True
    return {"StartAt": names[0], "States": states}


def event_types(store: Store, name: str) -> list[str]:
    """Return the types of the events of an execution, without its pauses."""
    return [each.type for each in store.events(name) if each.type not in PAUSES]


def test_a_recorded_call_is_not_repeated(store: Store) -> None:
    calls = list[str]()
    agents = {"A": lambda data: calls.append("A") or {"n": 1}, "B": lambda data: calls.append("B")}
    approval = {"Type": "Approval", "Prompt": "?", "ResultPath": "$.ok"}
    document = chain(One=task("A"), Ask=approval, Two=task("B"))
    result = store.run(document, {}, name=uuid4().hex, agents=agents)
    assert (result.status, calls) == ("PAUSED", ["A"])
    store.answer(store.pending(result.name)[0]["requestId"], "approve")
    assert store.resume(result.name, agents=agents).status == "SUCCEEDED"
    assert calls == ["A", "B"]


def test_an_approval_needs_its_quorum(store: Store) -> None:
    document = chain(Ask={"Type": "Approval", "Prompt": "?", "Policy": {"RequiredApprovals": 2}})
    name = store.run(document, {}, name=uuid4().hex, agents={"X": len}).name
    (request,) = store.pending(name)
    store.answer(request["requestId"], "approve", by="ann")
    assert len(store.pending(name)) == 1
    with pytest.raises(AnswerRefused):
        store.answer(request["requestId"], "maybe", by="bo")
    store.answer(request["requestId"], "approve", by="bo")
    assert store.resume(name, agents={"X": len}).status == "SUCCEEDED"
    types = event_types(store, name)
    assert types.count("ApprovalDecided") == 1
    assert (types[0], types[-1]) == ("ExecutionStarted", "ExecutionSucceeded")


def test_a_token_is_answered_once(store: Store) -> None:
    sent = list[Any]()
    resource = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"
    wait = {"Type": "Task", "Resource": resource, "Parameters": {"token.$": "$$.Task.Token"}}
    resources = {"arn:aws:states:::sqs:*": sent.append}
    name = store.run(chain(T=wait), {}, name=uuid4().hex, resources=resources).name
    store.tokens.send_task_failure(sent[0]["token"], "No", "because")
    with pytest.raises(TaskTimedOut):
        store.tokens.send_task_success(sent[0]["token"], "1")
    result = store.resume(name, resources=resources)
    assert (result.status, result.error, result.cause) == ("FAILED", "No", "because")
    assert len(sent) == 1


def test_a_budget_ends_calls_and_tools(store: Store) -> None:
    def use(data: Any, call: asl.Call) -> Any:
        return [call.tools.call("search", {}) for _ in range(9)]

    document = chain(One=task("Dear"), Two=task("Uses", Tools={"Allowed": ["search"]}))
    document["Budget"] = {"MaxTokens": 100}
    result = store.run(
        document,
        {},
        name=uuid4().hex,
        agents={"Dear": lambda data: {"_tokens": 30}, "Uses": use},
        tools={"search": lambda arguments: {"_tokens": 30}},
    )
    assert (result.status, result.error) == ("FAILED", "States.BudgetExceeded")
    assert result.usage["tokens"] == 120
    assert event_types(store, result.name).count("ToolCalled") == 3


@pytest.mark.parametrize("limit", [{"Pool": "p"}, {"MaxCostPerDay": 1}], ids=["pool", "day"])
def test_executions_share_a_budget(store: Store, limit: dict[str, Any]) -> None:
    document = chain(Pay=task("Pay")) | {"Budget": limit}
    given: Any = {"agents": {"Pay": lambda data: {"_cost": 0.5}}, "pools": {"p": 1}}
    results = [store.run(document, {}, name=uuid4().hex, **given) for _ in range(3)]
    assert [each.status for each in results] == ["SUCCEEDED", "SUCCEEDED", "FAILED"]
    assert results[-1].error == "States.BudgetExceeded"
    (budget,) = store.shared_budgets()
    assert (sum(budget.spent.values()), budget.reserved) == (1, 0)


def test_a_redrive_continues_at_the_failed_state(store: Store) -> None:
    calls = list[str]()

    def fail(data: Any) -> Any:
        raise StateError("Bad", "no")

    document = chain(One=task("A"), Two=task("B"))
    agents = {"A": lambda data: calls.append("A") or 1, "B": fail}
    failed = store.run(document, {}, name=uuid4().hex, agents=agents)
    assert (failed.status, failed.error) == ("FAILED", "Bad")
    agents["B"] = lambda data: data + 1
    result = store.redrive(failed.name, agents=agents)
    assert (result.status, result.output, calls) == ("SUCCEEDED", 2, ["A"])


def test_a_synchronous_execution_may_wait_for_an_answer(store: Store) -> None:
    start = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:sfn:startSyncExecution",
        "Parameters": {
            "StateMachineArn": "arn:aws:states:us-east-1:111111111111:stateMachine:Child",
            "Name": "one",
        },
    }
    child = chain(Ask={"Type": "Approval", "Prompt": "?"})
    bindings: Any = {"workflows": {"Child": child}, "agents": {"X": len}}
    name = store.run(chain(S=start), {}, name=uuid4().hex, **bindings).name
    (request,) = store.pending(name)
    store.answer(request["requestId"], "approve")
    result = store.resume(name, **bindings)
    assert (result.status, result.output["Status"]) == ("SUCCEEDED", "SUCCEEDED")
