"""Executions that states start: those that a state waits for end with it, others do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from temporalio.testing import WorkflowEnvironment

import asl
from asl.core.values import Json
from asl.executions.store import Store
from asl.temporal import claims
from tests.temporal.servers import find_binary, run

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

START = "arn:aws:states:::states:startExecution"
WORKFLOW = {"Type": "Workflow", "WorkflowId": "child", "End": True}
SYNC = {"Type": "Task", "Resource": f"{START}.sync:2", "OutputPath": "$.Output", "End": True}
CALL = {"Type": "Task", "Agent": "same", "End": True}
ASK = {"Type": "Approval", "Prompt": "?", "ResultPath": "$.approval", "Next": "Wait"}


def started(resource: str, **more: Json) -> Json:
    """Return a state that starts the workflow `child`."""
    given = {"StateMachineArn": "child", "Input.$": "$", **more}
    return {"Type": "Task", "Resource": resource, "Parameters": given, "End": True}


def one(state: Json) -> Json:
    """Return a document of one state."""
    return {"StartAt": "Only", "States": {"Only": state}}


WAIT = {"Type": "Wait", "Seconds": 1, "Next": "Call"}
CHILD = {"StartAt": "Ask", "States": {"Ask": ASK, "Wait": WAIT, "Call": CALL}}
"""A workflow that waits for an approval and for time, and calls an agent."""


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    """The host and port of a development server."""
    binary = find_binary("temporal")
    options = {"dev_server_existing_path": binary, "dev_server_log_level": "error"}
    env = run(WorkflowEnvironment.start_local(**options))
    yield env.client.service_client.config.target_host
    run(env.shutdown())


@pytest.fixture
def store(target: str) -> Iterator[Store]:
    address = f"temporal://{target}/default?queue={uuid4().hex[:8]}"
    bindings: Any = {"agents": {"same": lambda data: data}, "workflows": {"child": CHILD}}
    with asl.open_store(address, **bindings) as opened:
        yield opened


@pytest.mark.parametrize("state", [WORKFLOW, started(f"{START}.sync:2")], ids=["state", "sync"])
def test_awaited_child_pauses_and_continues_in_new_runs(
    store: Store, state: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "MAX_EVENTS", 10)
    name = uuid4().hex
    assert store.run(one(state), {"a": 1}, name=name).status == "PAUSED"
    (request,) = store.pending()
    store.answer(request["requestId"], "approve")
    result = store.resume(name)
    assert result.ok, result.cause
    output = result.output.get("Output", result.output)
    assert (output["a"], output["approval"]["approval"]) == (1, "approve")
    (child,) = store.descendants(name)
    assert child.status == "SUCCEEDED"


def test_cancelled_execution_cancels_the_child_that_a_state_waits_for(store: Store) -> None:
    name = uuid4().hex
    store.run(one(WORKFLOW), {}, name=name)
    with store.runner():
        store.handle(name).cancel("enough")
        assert store.handle(name).result(20).status == "ABORTED"
    assert not store.pending()
    assert [each.status for each in store.descendants(name)] == ["ABORTED"]


def test_started_execution_goes_on_after_the_end_of_its_parent(store: Store) -> None:
    name = f"child-{uuid4().hex}"
    parent = store.run(one(started(START, Name=name)), {"a": 1})
    assert parent.ok, parent.cause
    arn = f"arn:aws:states:us-east-1:111111111111:execution:child:{name}"
    assert parent.output["ExecutionArn"] == arn
    again = store.run(one(started(START, Name=name)), {"a": 1})
    assert again.error == "StepFunctions.ExecutionAlreadyExistsException"
    assert store.resume(name).status == "PAUSED"
    (request,) = store.pending(name)
    store.answer(request["requestId"], "approve")
    result = store.resume(name)
    assert (result.status, result.output["a"], result.execution.id) == ("SUCCEEDED", 1, arn)


def test_job_whose_token_is_answered_goes_on_by_itself(store: Store) -> None:
    name = uuid4().hex
    child = f"job-{name}"
    given = {"token.$": "$$.Task.Token"}
    state = started(f"{START}.sync", Name=child)
    state["Parameters"]["Input"] = given
    del state["Parameters"]["Input.$"]
    assert store.run(one(state), {}, name=name).status == "PAUSED"
    (task,) = store.pending_callbacks(name)
    store.tokens.send_task_success(task["taskToken"], '"early"')
    assert store.resume(name).output == "early"
    (request,) = store.pending(child)
    store.answer(request["requestId"], "approve")
    assert store.resume(child).ok
