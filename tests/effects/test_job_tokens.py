"""The token of a task that runs a job: `startExecution.sync` and its child."""

from typing import Any

import pytest

import asl

CHILD = "arn:aws:states:us-east-1:111111111111:stateMachine:Child"
PARENT = {
    "QueryLanguage": "JSONata",
    "StartAt": "Job",
    "States": {
        "Job": {
            "Type": "Task",
            "Resource": "arn:aws:states:::states:startExecution.sync:2",
            "Arguments": {
                "StateMachineArn": CHILD,
                "Input": {"token": "{% $states.context.Task.Token %}", "answer": {"a": 1}},
            },
            "TimeoutSeconds": 100,
            "End": True,
        }
    },
}


def child(action: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """A workflow that answers its token and runs on for a minute."""
    answer = {
        "Type": "Task",
        "Resource": f"arn:aws:states:::aws-sdk:sfn:{action}",
        "Parameters": {"TaskToken.$": "$.token", **parameters},
        "Next": "Rest",
    }
    rest = {"Type": "Wait", "Seconds": 60, "End": True}
    return {"StartAt": "Answer", "States": {"Answer": answer, "Rest": rest}}


SUCCESS = child("sendTaskSuccess", {"Output.$": "States.JsonToString($.answer)"})
FAILURE = child("sendTaskFailure", {"Error": "Refused", "Cause": "because"})


def test_answered_token_of_a_job_is_the_result_of_its_state() -> None:
    """The state does not wait for the end of the job."""
    result = asl.run(PARENT, {}, workflows={"Child": SUCCESS}, clock="virtual", profile="aws")
    assert (result.output, result.elapsed) == ({"a": 1}, 0)


def test_failed_token_of_a_job_fails_its_state() -> None:
    """Error and cause are those that the job has sent."""
    result = asl.run(PARENT, {}, workflows={"Child": FAILURE}, clock="virtual", profile="aws")
    assert (result.error, result.cause) == ("Refused", "because")


@pytest.mark.parametrize("timeout", [None, 5])
def test_unanswered_token_of_a_job_changes_nothing(timeout: int | None) -> None:
    """The job ends the state; a limit of the state ends the job."""
    job = {**PARENT["States"]["Job"], "TimeoutSeconds": timeout or 100}  # type: ignore[index]
    slow = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 60, "End": True}}}
    result = asl.run(
        {**PARENT, "States": {"Job": job}},
        {},
        workflows={"Child": slow},
        clock="virtual",
        profile="aws",
    )
    assert (result.error, result.elapsed) == (
        (None, 60) if timeout is None else ("States.Timeout", 5)
    )
