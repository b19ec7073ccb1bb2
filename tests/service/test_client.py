"""`asl.StepFunctions`: the methods of AWS's client in process."""

import inspect
import json
from datetime import UTC, datetime

import pytest

import asl
from asl.service.client import method_name
from asl.service.model import operation_names
from asl.service.operations import OPERATIONS

ROLE = "arn:aws:iam::123456789012:role/runs"
PASS = json.dumps({"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})


def test_there_is_a_method_for_each_operation_of_the_service_model() -> None:
    assert sorted(OPERATIONS) == operation_names()
    for operation in OPERATIONS:
        method = getattr(asl.StepFunctions, method_name(operation))
        assert inspect.getdoc(method)


def test_an_execution_runs_in_the_background() -> None:
    with asl.StepFunctions() as client:
        machine = client.create_state_machine(name="m", definition=PASS, roleArn=ROLE)
        started = client.start_execution(
            stateMachineArn=machine["stateMachineArn"], input='{"n": 1}'
        )
        assert isinstance(started["startDate"], datetime)
        assert started["startDate"].tzinfo is UTC
        found = {"status": "RUNNING"}
        while found["status"] == "RUNNING":
            found = client.describe_execution(executionArn=started["executionArn"])
        assert found["output"] == '{"n":1}'
        events = client.get_execution_history(executionArn=started["executionArn"])["events"]
        assert [each["type"] for each in events][-1] == "ExecutionSucceeded"


def test_errors_are_classes_by_name() -> None:
    with asl.StepFunctions() as client:
        arn = "arn:aws:states:us-east-1:111111111111:stateMachine:none"
        with pytest.raises(client.exceptions.StateMachineDoesNotExist) as refusal:
            client.describe_state_machine(stateMachineArn=arn)
        assert refusal.value.response["Error"]["Code"] == "StateMachineDoesNotExist"


def test_a_paginator_sends_the_requests_of_all_pages() -> None:
    with asl.StepFunctions() as client:
        for number in range(3):
            client.create_activity(name=f"a{number}")
        pages = client.get_paginator("list_activities").paginate(PaginationConfig={"PageSize": 2})
        assert [len(page["activities"]) for page in pages] == [2, 1]


def test_an_unknown_parameter_is_named() -> None:
    with pytest.raises(TypeError, match="describe_activity"):
        asl.StepFunctions().describe_activity(arn="x")
