"""States that answer task tokens of other workflows."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

import asl

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An eviction of a workflow drops its coroutines."""

ARN = "arn:aws:states:us-east-1:123456789012:stateMachine:Answer"
ANSWER = {
    "StartAt": "Answer",
    "States": {
        "Answer": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:sfn:sendTaskSuccess",
            "Parameters": {"TaskToken.$": "$.token", "Output": {"from": "other"}},
            "End": True,
        }
    },
}
SEND = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"
START = "arn:aws:states:::states:startExecution.waitForTaskToken"


def waiting(resource: str, **parameters: Any) -> dict[str, Any]:
    """Return a document that waits for the answer to its token."""
    state = {"Type": "Task", "Resource": resource, "Parameters": parameters, "End": True}
    return {"StartAt": "Ask", "States": {"Ask": state}}


def test_a_state_answers_the_token_of_another_execution(address: str) -> None:
    sent = list[Any]()
    with asl.open_store(address, resources={"arn:aws:states:::sqs:*": sent.append}) as store:
        waits = store.run(waiting(SEND, **{"token.$": "$$.Task.Token"}), {}, name=uuid4().hex)
        assert waits.status == "PAUSED"
        with store.runner():
            assert store.start(ANSWER, sent[0]).result(20).status == "SUCCEEDED"
            assert store.handle(waits.name).result(20).output == {"from": "other"}
            unknown = store.start(ANSWER, {"token": "0" * 64}).result(20)
            assert unknown.error == "Sfn.TaskDoesNotExistException"


def test_a_started_execution_answers_the_token_of_its_starter(address: str) -> None:
    document = waiting(START, StateMachineArn=ARN, Input={"token.$": "$$.Task.Token"})
    with asl.open_store(address, workflows={ARN: ANSWER}) as store, store.runner():
        assert store.start(document, {}).result(20).output == {"from": "other"}
