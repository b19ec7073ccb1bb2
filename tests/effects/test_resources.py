"""Resources as their handlers see them, and which handler is asked."""

from typing import Any

import pytest

import asl
from asl.states.calls import Target

pytestmark = pytest.mark.quick

FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:F"
SEND = "arn:aws:states:::sqs:sendMessage"
ACTIVITY = "arn:aws:states:us-east-1:123456789012:activity:A"


def calling(resource: str, **fields: Any) -> dict[str, Any]:
    state = {"Type": "Task", "Resource": resource, "End": True, **fields}
    return {"StartAt": "T", "States": {"T": state}}


@pytest.mark.parametrize(
    ("name", "base", "pattern", "is_activity"),
    [
        (FUNCTION, FUNCTION, "", False),
        (f"{FUNCTION}:live", FUNCTION, "", False),
        (f"{FUNCTION}:$LATEST", FUNCTION, "", False),
        ("arn:aws-us-gov:lambda:us-gov-west-1:1:function:F:7", None, "", False),
        (SEND, SEND, "", False),
        (f"{SEND}.waitForTaskToken", SEND, ".waitForTaskToken", False),
        (
            "arn:aws:states:::batch:submitJob.sync",
            "arn:aws:states:::batch:submitJob",
            ".sync",
            False,
        ),
        (
            "arn:aws-cn:states:::states:startExecution.sync:2",
            "arn:aws-cn:states:::states:startExecution",
            ".sync:2",
            False,
        ),
        (
            "arn:aws:states:::aws-sdk:s3:getObject",
            "arn:aws:states:::aws-sdk:s3:getObject",
            "",
            False,
        ),
        (ACTIVITY, ACTIVITY, "", True),
        ("anything", "anything", "", False),
    ],
)
def test_a_resource_has_a_base_and_a_pattern(
    name: str, base: str | None, pattern: str, is_activity: bool
) -> None:
    """What is left when pattern and alias are gone is what handlers are bound to."""
    target = Target("resource", name, "T")
    base = base or name.rpartition(":")[0]
    assert (target.base, target.pattern, target.is_activity) == (base, pattern, is_activity)


@pytest.mark.parametrize("resource", [FUNCTION, f"{FUNCTION}:live", SEND, f"{SEND}.sync", ACTIVITY])
def test_a_handler_sees_which_form_is_asked(resource: str) -> None:
    """`call.resource` is the name as it stands in the document."""
    result = asl.run(calling(resource), resources={"*": lambda parameters, call: call.resource})
    assert result.output == resource


def test_an_agent_has_no_resource() -> None:
    """Nor credentials."""
    document = {"StartAt": "T", "States": {"T": {"Type": "Task", "Agent": "A", "End": True}}}
    result = asl.run(
        document, agents={"A": lambda parameters, call: [call.resource, call.credentials]}
    )
    assert result.output == [None, None]


@pytest.mark.parametrize(
    ("fields", "data", "credentials"),
    [
        ({"Credentials": {"RoleArn": "r"}}, {}, {"RoleArn": "r"}),
        ({"Credentials": {"RoleArn.$": "$.role"}}, {"role": "mine"}, {"RoleArn": "mine"}),
        (
            {"InputPath": "$.in", "Credentials": {"RoleArn.$": "$.r"}},
            {"in": {"r": 1}},
            {"RoleArn": 1},
        ),
        ({"Credentials": {"RoleArn": "r"}, "TimeoutSeconds": 9}, {}, {"RoleArn": "r"}),
        ({}, {}, None),
    ],
)
@pytest.mark.parametrize(
    "resource", [FUNCTION, SEND, ACTIVITY, "arn:aws:states:::ecs:runTask.sync"]
)
def test_a_handler_sees_the_credentials(
    resource: str, fields: dict[str, Any], data: Any, credentials: Any
) -> None:
    """They are evaluated for each call, and no part of the parameters."""
    seen = asl.run(
        calling(resource, Parameters={}, **fields),
        data,
        resources={"*": lambda parameters, call: [parameters, call.credentials]},
    )
    assert seen.output == [{}, credentials]


def test_credentials_of_an_agent_have_no_effect() -> None:
    """They are not even evaluated: the check has warned about them (V-TASK-06)."""
    state = {"Type": "Task", "Agent": "A", "Credentials": {"RoleArn.$": "$.no"}, "End": True}
    document = {"StartAt": "T", "States": {"T": state}}
    assert asl.run(document, agents={"A": {"return": 1}}).output == 1


@pytest.mark.parametrize(
    ("resource", "known", "warned"),
    [
        (f"{SEND}.waitForTaskToken", SEND, False),
        (f"{SEND}.waitForTaskToken", "arn:aws:states:::sqs:*", False),
        (f"{SEND}.waitForTaskToken", "*:sendMessage", False),
        (f"{FUNCTION}:live", FUNCTION, False),
        (FUNCTION, f"{FUNCTION}:live", True),
        (SEND, f"{SEND}.waitForTaskToken", True),
    ],
)
def test_a_check_knows_the_same_forms(resource: str, known: str, warned: bool) -> None:
    """A name draws V-TASK-03 exactly if a run would not find a handler."""
    report = asl.check(calling(resource), resources=[known])
    assert any(each.code == "V-TASK-03" for each in report) is warned
    result = asl.run(calling(resource), resources={known: {"return": 1}}, mocks=None)
    assert (result.error == "States.AgentNotFound") is warned
