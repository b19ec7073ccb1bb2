"""What AWS's models say of a mocked result."""

import json
from pathlib import Path

import pytest

from asl import test_state as tested
from asl.checks import state_test_request
from asl.checks.state_test_request import check_answer
from asl.core.errors import AslError, InvalidTest
from asl.core.values import Json

SDK = "arn:aws:states:::aws-sdk:"


def fault(resource: str, result: Json, mode: str = "STRICT") -> str | None:
    """Return what is wrong with a result, None for nothing."""
    try:
        check_answer(resource, result, mode)
    except InvalidTest as refusal:
        return str(refusal).removeprefix("Mock result schema validation error: ")
    return None


@pytest.mark.parametrize(
    ("resource", "result", "expected"),
    [
        ("arn:aws:states:::sns:publish", {"MessageId": "1"}, None),
        ("arn:aws:states:::sns:publish", {}, None),
        ("arn:aws:states:::sns:publish", {"MessageId": None}, None),
        ("arn:aws:states:::sns:publish", {"MessageId": 1}, "Field 'MessageId' must be a string"),
        ("arn:aws:states:::sns:publish", {"messageId": 1}, None),
        ("arn:aws-cn:states:::sns:publish", {"MessageId": 1}, "Field 'MessageId' must be a string"),
        ("arn:aws:states:::sns:publish.waitForTaskToken", {"MessageId": 1}, None),
        ("arn:aws:states:::nobody:calls", {"MessageId": 1}, None),
        ("arn:aws:states:::sns:never", {"MessageId": 1}, None),
        (
            SDK + "dynamodb:getItem",
            {"Item": {"id": {"S": 5}}},
            "Field 'S' must be a string",
        ),
        (SDK + "dynamodb:getItem", {"Item": {"id": "5"}}, "Field 'id' must be an object"),
        (SDK + "dynamodb:getItem", {"Item": []}, "Field 'Item' must be an object"),
        (
            SDK + "dynamodb:query",
            {"Items": [{"id": {"BOOL": 1}}]},
            "Field 'BOOL' must be a boolean",
        ),
        (
            SDK + "eventbridge:putEvents",
            {"FailedEntryCount": True},
            "Field 'FailedEntryCount' must be a number",
        ),
        (
            SDK + "sfn:startExecution",
            {"StartDate": "2030-01-01T00:00:00Z"},
            "Required field 'ExecutionArn' is missing",
        ),
        ("arn:aws:states:::lambda:invoke", {"Payload": {"any": [1]}, "StatusCode": 200}, None),
        (SDK + "lambda:invoke", {"Payload": {}}, "Field 'Payload' must be a string"),
        (
            "arn:aws:states:::bedrock:invokeModel",
            {"Body": {"content": []}, "ContentType": "application/json"},
            None,
        ),
        (
            "arn:aws:states:::bedrock:invokeModel",
            {"Body": {}},
            "Required field 'ContentType' is missing",
        ),
        (
            SDK + "bedrockruntime:invokeModel",
            {"Body": {}, "ContentType": "application/json"},
            "Field 'Body' must be a string",
        ),
        (SDK + "bedrock:invokeModel", {"Body": 5}, None),
        (SDK + "ssm:getParameter", {"Parameter": "x"}, "Field 'Parameter' must be an object"),
        ("arn:aws:states:::glue:startJobRun", {"JobRunId": 5}, "Field 'JobRunId' must be a string"),
        ("arn:aws:states:::glue:startJobRun.sync", {"JobRunState": 5}, None),
        (
            SDK + "lambda:getFunction",
            {"Configuration": {"Runtime": "cobol"}},
            "Field 'Runtime' is not an expected value",
        ),
        (
            SDK + "lambda:getFunction",
            {"Configuration": {"MemorySize": 10**9}},
            "Field 'MemorySize' exceeds the maximum value",
        ),
    ],
)
def test_a_result_is_one_of_the_action(resource: str, result: Json, expected: str | None) -> None:
    """Fields that the model does not have are allowed, null is no field."""
    assert fault(resource, result) == expected


def test_the_mode_says_how_far_a_result_is_looked_at() -> None:
    """PRESENT misses no field, NONE sees none."""
    resource, wrong = SDK + "sfn:startExecution", {"StartDate": 5}
    assert fault(resource, wrong) == "Required field 'ExecutionArn' is missing"
    assert fault(resource, wrong, "PRESENT") == "Field 'StartDate' must be a string"
    assert fault(resource, {}, "PRESENT") is None
    assert fault(resource, wrong, "NONE") is None


def test_an_unknown_mode_is_refused() -> None:
    """The modes are named."""
    task = {"Type": "Task", "Resource": "arn:aws:states:::sns:publish", "End": True}
    with pytest.raises(AslError, match="STRICT, PRESENT, NONE"):
        tested(task, mock={"result": {}, "fieldValidationMode": "LOOSE"})


@pytest.mark.parametrize(
    "file",
    sorted((Path(state_test_request.__file__).parent / "services").glob("*.json")),
    ids=lambda each: each.stem,
)
def test_every_shape_of_a_model_is_there(file: Path) -> None:
    """An action or a field leads to a shape of the model, or to a type of JSON."""
    model = json.loads(file.read_bytes())
    known = {*model["shapes"], "string", "text", "number", "boolean", "any"}
    used = set(model["actions"].values())
    for shape in model["shapes"].values():
        used |= {
            *shape.get("fields", {}).values(),
            *(shape[k] for k in ("items", "values") if k in shape),
        }
        assert set(shape.get("required", ())) <= shape.get("fields", {}).keys()
    assert model["actions"]
    assert used <= known


def test_text_of_at_least_one_character_is_not_empty() -> None:
    """The model of kms:encrypt wants one byte at least."""
    resource = "arn:aws:states:::aws-sdk:kms:encrypt"
    check_answer(resource, {"CiphertextBlob": "x"}, "PRESENT")
    with pytest.raises(InvalidTest, match="Field 'CiphertextBlob' is smaller than the minimum"):
        check_answer(resource, {"CiphertextBlob": ""}, "PRESENT")
