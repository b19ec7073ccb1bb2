"""`asl.StepFunctions`: the form of AWS's client, whose answers are those of `asl.test_state`."""

import json
from typing import Any

import pytest

import asl

pytestmark = pytest.mark.quick

PASS = {"Type": "Pass", "Result": {"a": 1}, "ResultPath": "$.b", "Next": "Then"}
TASK = {"Type": "Task", "Resource": "arn:aws:states:::sns:publish", "End": True}
MACHINE = {"StartAt": "One", "States": {"One": {"Type": "Wait", "Seconds": "soon", "End": True}}}
client = asl.StepFunctions()


def answer_to(state: Any, **request: Any) -> Any:
    return client.test_state(definition=json.dumps(state), **request)


def test_data_are_texts_of_json() -> None:
    """Input, output and the stages; numbers and the details of an error are values."""
    answer = answer_to(PASS, input='{"x": 1}', inspectionLevel="DEBUG")
    assert answer["status"] == "SUCCEEDED"
    assert answer["nextState"] == "Then"
    assert answer["output"] == '{"x":1,"b":{"a":1}}'
    assert answer["inspectionData"]["input"] == '{"x":1}'


def test_an_input_may_be_left_out() -> None:
    assert answer_to(PASS)["output"] == '{"b":{"a":1}}'


def test_a_result_is_mocked_by_its_text() -> None:
    answer = answer_to(TASK, mock={"result": '{"MessageId": "1"}'})
    assert answer == {"status": "SUCCEEDED", "output": '{"MessageId":"1"}'}


def test_errors_variables_context_and_configuration_are_taken() -> None:
    state = {
        "QueryLanguage": "JSONata",
        **TASK,
        "Arguments": {"Message": "{% $word & $states.context.Execution.Name %}"},
        "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 2}],
    }
    answer = answer_to(
        state,
        mock={"errorOutput": {"error": "Busy", "cause": "full"}},
        variables='{"word": "by "}',
        context='{"Execution": {"Name": "me"}}',
        stateConfiguration={"retrierRetryCount": 1},
        inspectionLevel="TRACE",
    )
    assert answer["status"] == "RETRIABLE"
    assert answer["inspectionData"]["afterArguments"] == '{"Message":"by me"}'
    details = {"retryIndex": 0, "retryBackoffIntervalSeconds": 4}
    assert answer["inspectionData"]["errorDetails"] == details


def test_one_state_of_a_definition_is_named() -> None:
    machine = {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}
    assert answer_to(machine, stateName="A", input='"x"')["output"] == '"x"'


def test_items_are_shown_as_stored_in_the_bucket() -> None:
    state = {
        "Type": "Map",
        "ItemReader": {
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "JSON"},
            "Parameters": {"Bucket": "b", "Key": "k"},
        },
        "ItemSelector": {"of.$": "$$.Map.Item.Value"},
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            "StartAt": "P",
            "States": {"P": {"Type": "Pass", "End": True}},
        },
        "End": True,
    }
    answer = answer_to(
        state,
        mock={"result": "[1]"},
        inspectionLevel="DEBUG",
        stateConfiguration={"mapItemReaderData": "[7]"},
    )
    assert answer["inspectionData"]["afterItemSelector"] == '[{"of":7}]'
    assert answer["inspectionData"]["maxConcurrency"] == 0


def test_a_named_task_needs_a_role_as_well() -> None:
    machine = {"StartAt": "A", "States": {"A": TASK}}
    with pytest.raises(asl.ServiceError, match="RoleArn must be specified"):
        answer_to(machine, stateName="A")


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({}, "RoleArn must be specified when testing a Task state"),
        ({"mock": {"result": "not JSON string"}}, "Mocked result must be valid JSON"),
        (
            {"mock": {"result": "{}", "errorOutput": {"error": "E", "cause": "C"}}},
            "A test mock should have only one of the following fields: [result, errorOutput].",
        ),
    ],
)
def test_a_request_is_refused_in_the_words_of_aws(request_: Any, words: str) -> None:
    """Those that only a request in this form can meet (AWS, recorded)."""
    with pytest.raises(asl.ServiceError) as refusal:
        answer_to(TASK, **request_)
    assert (refusal.value.code, str(refusal.value)) == ("ValidationException", words)


def test_an_input_that_is_no_json_is_refused() -> None:
    with pytest.raises(client.exceptions.InvalidExecutionInput) as refusal:
        answer_to(PASS, input="{")
    assert refusal.value.code == "InvalidExecutionInput"


def test_values_in_place_of_texts_are_refused() -> None:
    with pytest.raises(asl.AslError, match="at 'input'"):
        answer_to(PASS, input={})
    with pytest.raises(asl.AslError, match="at 'definition'"):
        client.test_state(definition=PASS)


def test_a_task_without_a_mock_asks_whoever_is_registered() -> None:
    asked = asl.StepFunctions(resources={TASK["Resource"]: lambda parameters: parameters["n"]})
    definition = json.dumps({**TASK, "Parameters": {"n": 5, "Message": "m"}})
    answer = asked.test_state(definition=definition, roleArn="arn:aws:iam::123456789012:role/r")
    assert answer["output"] == "5"


def test_a_definition_is_validated() -> None:
    answer = client.validate_state_machine_definition(definition=json.dumps(MACHINE))
    assert (answer["result"], answer["truncated"]) == ("FAIL", False)
    (found,) = answer["diagnostics"]
    assert (found["severity"], found["code"]) == ("ERROR", "SCHEMA_VALIDATION_FAILED")
    assert found["location"] == "/States/One/Seconds"


@pytest.mark.parametrize(
    "given",
    [{"type": "express"}, {"severity": "INFO"}, {"maxResults": 101}]
    + [{"maxResults": each} for each in (-1, "5")],
)
def test_parameters_that_aws_does_not_take_are_refused(given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(asl.AslError, match=name):
        client.validate_state_machine_definition(definition=json.dumps(MACHINE), **given)


def test_two_faults_of_a_value_are_one_diagnostic() -> None:
    wait = {"Type": "Wait", "Seconds": -1.5, "End": True}
    definition = json.dumps({"StartAt": "W", "States": {"W": wait}})
    answer = client.validate_state_machine_definition(definition=definition)
    (found,) = answer["diagnostics"]
    assert found["message"] == "Expected value of type Integer"


@pytest.mark.parametrize("text", ["{", "StartAt: A", "[]"])
def test_what_is_no_json_object_is_a_finding(text: str) -> None:
    answer = client.validate_state_machine_definition(definition=text)
    assert answer["result"] == "FAIL"
    assert [each["code"] for each in answer["diagnostics"]] == ["INVALID_JSON_DESCRIPTION"]


def test_severity_and_maximum_of_diagnostics() -> None:
    state = {**TASK, "Parameters": {"Message": "$.word", "Subject": "$.name"}}
    definition = json.dumps({"StartAt": "A", "States": {"A": state}})
    said = client.validate_state_machine_definition(definition=definition, severity="WARNING")
    quiet = client.validate_state_machine_definition(definition=definition)
    first = client.validate_state_machine_definition(
        definition=definition, severity="WARNING", maxResults=1
    )
    assert quiet == {"result": "OK", "diagnostics": [], "truncated": False}
    assert len(said["diagnostics"]) > 1
    assert first["diagnostics"] == said["diagnostics"][:1]
    assert first["truncated"] is True
