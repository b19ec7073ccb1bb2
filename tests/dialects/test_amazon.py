"""The writer of Amazon's language: error names that only this interpreter raises."""

from typing import Any

import pytest

import asl
from asl import Severity

pytestmark = pytest.mark.quick


def converted(**fields: Any) -> tuple[dict[str, Any], list[tuple[str, Severity]]]:
    """Return the first state of a converted machine, and its losses but for the function."""
    task = {"Type": "Task", "Agent": "a", **fields, "Next": "B"}
    document = {"StartAt": "A", "States": {"A": task, "B": {"Type": "Succeed"}}}
    conversion = asl.convert(document, "amazon")
    losses = [(each.code, each.severity) for each in conversion.losses if each.code != "L-RESOURCE"]
    return conversion.document["States"]["A"], losses


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (["Agent.NetworkError"], ["States.TaskFailed"]),
        (
            ["CM.Timeout", "Agent.APIError", "States.Timeout"],
            ["States.TaskFailed", "States.Timeout"],
        ),
        (["States.RateLimitExceeded"], ["Lambda.TooManyRequestsException"]),
        (["States.RateLimitExceeded", "Agent.ToolError"], ["States.TaskFailed"]),
    ],
)
def test_errors_of_agents_are_failures_of_the_function(
    given: list[str], written: list[str]
) -> None:
    state, losses = converted(Retry=[{"ErrorEquals": given, "IntervalSeconds": 1}])
    assert state["Retry"] == [{"ErrorEquals": written, "IntervalSeconds": 1}]
    assert losses == [("L-ERRORS", Severity.ERROR)]
    state, losses = converted(Catch=[{"ErrorEquals": given, "Next": "B"}])
    assert state["Catch"] == [{"ErrorEquals": written, "Next": "B"}]
    assert losses == [("L-ERRORS", Severity.ERROR)]


@pytest.mark.parametrize("given", [["States.ALL"], ["Order.Refused"], ["States.TaskFailed"]])
def test_error_names_of_aws_are_unchanged(given: list[str]) -> None:
    state, losses = converted(Retry=[{"ErrorEquals": given, "IntervalSeconds": 1}])
    assert state["Retry"] == [{"ErrorEquals": given, "IntervalSeconds": 1}]
    assert losses == []


def test_handler_of_an_error_that_cannot_happen_is_left_out() -> None:
    state, losses = converted(Catch=[{"ErrorEquals": ["States.BudgetExceeded"], "Next": "B"}])
    assert "Catch" not in state
    assert losses == [("L-ERRORS", Severity.ERROR)]
