"""Outputs over AWS's limit: which state fails, and what the history has of it."""

import pytest

import asl
from asl.core.values import Json

HALF = "x" * 150_000
DOUBLED: Json = {"a.$": "$.a", "b.$": "$.a"}


def run(states: Json, data: Json) -> tuple[str, list[str]]:
    """Return the cause of a run's failure, and the types of its events."""
    result = asl.run({"StartAt": "A", "States": states}, data, profile="aws")
    assert result.error == "States.DataLimitExceeded"
    history: Json = result.history()
    return result.cause or "", [event["type"] for event in history["events"]]


def test_a_state_with_too_large_an_output_has_not_exited() -> None:
    """The state that makes it fails, not the one after it."""
    states = {
        "A": {"Type": "Pass", "Next": "B"},
        "B": {"Type": "Pass", "Parameters": DOUBLED, "Next": "C"},
        "C": {"Type": "Pass", "Result": 1, "End": True},
    }
    cause, events = run(states, {"a": HALF})
    assert "'B'" in cause
    assert events == [
        "ExecutionStarted", "PassStateEntered", "PassStateExited", "PassStateEntered",
        "ExecutionFailed",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "state",
    [
        {"Type": "Pass", "End": True},
        {"Type": "Succeed"},
        {"Type": "Wait", "Seconds": 1, "End": True},
    ],
    ids=lambda state: str(state["Type"]),
)
def test_too_large_an_input_fails_the_first_state(state: Json) -> None:
    """It has been entered, and does not exit."""
    cause, events = run({"A": state}, {"a": "\u00e9" * 200_000})
    assert "'A'" in cause
    assert events == ["ExecutionStarted", f"{state['Type']}StateEntered", "ExecutionFailed"]


def test_a_merged_result_may_be_too_large() -> None:
    """`ResultPath` adds a result to the input; a catcher sees that this is too much."""
    name = "arn:aws:lambda:us-east-1:123456789012:function:f"
    task = {"Type": "Task", "Resource": name, "ResultPath": "$.r", "End": True}
    catch = [{"ErrorEquals": ["States.DataLimitExceeded"], "ResultPath": None, "Next": "B"}]
    states = {"A": {**task, "Catch": catch}, "B": {"Type": "Pass", "Result": 1, "End": True}}
    result = asl.run(
        {"StartAt": "A", "States": states},
        {"a": HALF},
        profile="aws",
        resources={name: lambda data: HALF},
    )
    assert result.output == 1
