"""Python handlers with the semantics of AWS Lambda."""

import json
import re
import sys
from base64 import b64encode
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.agents.aws_lambda import function_failure
from asl.agents.file import load_bindings
from asl.agents.function import LambdaSettings, function_agent

pytestmark = pytest.mark.quick

ARN = "arn:aws:lambda:us-east-1:123456789012:function:Charge"
DIRECT = {"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": ARN, "End": True}}}
INVOKE = {
    "StartAt": "A",
    "States": {
        "A": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": {"FunctionName": "Charge", "Payload": {"x": 1}},
            "End": True,
        }
    },
}
ACTIVITY = "arn:aws:states:us-east-1:123456789012:activity:Pack"


class CardDeclined(Exception):
    """An error of a shop."""


def charge(event: Any, context: Any) -> Any:
    raise CardDeclined("no money")


async def charge_later(event: Any, context: Any) -> Any:
    raise CardDeclined("no money")


def run(document: Any, handler: Any, **more: Any) -> Any:
    return asl.run(document, {}, resources={ARN: handler}, clock="virtual", **more)


@pytest.mark.parametrize("handler", [charge, charge_later])
@pytest.mark.parametrize("profile", ["default", "aws", "lenient"])
@pytest.mark.parametrize(("document", "blank"), [(DIRECT, " "), (INVOKE, "")])
def test_exception_is_error_by_its_class(
    handler: Any, profile: str, document: Any, blank: str
) -> None:
    result = run(document, handler, profile=profile)
    assert (result.status, result.error) == ("FAILED", "CardDeclined")
    cause = json.loads(result.cause)
    assert list(cause) == ["errorMessage", "errorType", "requestId", "stackTrace"]
    assert cause["errorMessage"] == "no money"
    assert cause["errorType"] == "CardDeclined"
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", cause["requestId"])
    (line,) = cause["stackTrace"]
    assert re.fullmatch(
        r'  File ".*test_aws_lambda.py", line \d+, in charge\w*\n    raise .*\n', line
    )
    assert f'"errorMessage":{blank}"no money",{blank}"errorType"' in result.cause  # as recorded


def test_catch_and_retry_match_the_class() -> None:
    calls = []

    def handler(event: Any, context: Any) -> Any:
        calls.append(context.aws_request_id)
        raise CardDeclined

    state = {
        **DIRECT["States"]["A"],  # type: ignore[index]
        "Retry": [{"ErrorEquals": ["CardDeclined"], "MaxAttempts": 2}],
        "Catch": [{"ErrorEquals": ["CardDeclined"], "Next": "B"}],
    }
    states = {"A": state, "B": {"Type": "Pass", "End": True}}
    result = run({"StartAt": "A", "States": states}, handler)
    assert result.status == "SUCCEEDED"
    assert len(set(calls)) == 3  # each attempt is a request of its own


def test_functions_of_other_resources_under_profile_aws_only() -> None:
    task = {"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": ACTIVITY, "End": True}}}
    names = [
        asl.run(task, {}, resources={ACTIVITY: charge}, profile=profile).error
        for profile in ("default", "aws")
    ]
    assert names == ["States.TaskFailed", "CardDeclined"]


def test_stack_trace_marks_no_columns() -> None:
    def handler(event: Any, context: Any) -> Any:
        return str(event["missing"])

    (line,) = json.loads(run(DIRECT, handler).cause)["stackTrace"]
    assert line.endswith(', in handler\n    return str(event["missing"])\n')


def test_switch() -> None:
    assert run(DIRECT, function_agent(charge, aws_lambda=False)).error == "States.TaskFailed"
    task = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "A", "End": True}}}
    agents = {"A": function_agent(charge, aws_lambda=True)}
    assert asl.run(task, {}, agents=agents).error == "CardDeclined"
    assert asl.run(task, {}, agents={"A": charge}).error == "States.TaskFailed"


def test_named_error_stays_as_it_is() -> None:
    def handler(event: Any, context: Any) -> Any:
        raise asl.StateError("Card.Declined", "no money")

    result = run(DIRECT, handler)
    assert (result.error, result.cause) == ("Card.Declined", "no money")


def test_context_has_what_lambda_documents() -> None:
    found: dict[str, Any] = {}

    async def handler(event: Any, context: Any) -> None:
        before = context.get_remaining_time_in_millis()
        await context.sleep(2.5)
        found.update(
            {name: getattr(context, name) for name in dir(context) if name[0] != "_"},
            spent=before - context.get_remaining_time_in_millis(),
            left=before,
            state=context.state_name,
        )

    state = {**DIRECT["States"]["A"], "Resource": f"{ARN}:7", "TimeoutSeconds": 20}  # type: ignore[index]
    assert run({"StartAt": "A", "States": {"A": state}}, handler).status == "SUCCEEDED"
    assert found["function_name"] == "Charge"
    assert found["function_version"] == "7"
    assert found["invoked_function_arn"] == f"{ARN}:7"
    assert found["memory_limit_in_mb"] == "128"
    assert found["log_group_name"] == "/aws/lambda/Charge"
    assert re.fullmatch(r"\d{4}/\d\d/\d\d/\[7\][0-9a-f]{32}", found["log_stream_name"])
    assert found["identity"].cognito_identity_id is None
    assert found["client_context"] is None
    assert (found["left"], found["spent"], found["state"]) == (20_000, 2500, "A")


def test_text_of_the_context_is_that_of_lambda() -> None:
    text = run(DIRECT, lambda event, context: repr(context)).output
    assert re.fullmatch(
        r"LambdaContext\(\[aws_request_id=\S{36},log_group_name=/aws/lambda/Charge,"
        r"log_stream_name=\S+,function_name=Charge,memory_limit_in_mb=128,"
        rf"function_version=\$LATEST,invoked_function_arn={ARN},client_context=None,identity=.*\]\)",
        text,
    )


def test_unknown_attribute_of_the_context() -> None:
    result = run(DIRECT, lambda event, context: context.tenant)
    assert result.error == "AttributeError"
    message = json.loads(result.cause)["errorMessage"]
    assert message == "'LambdaContext' object has no attribute 'tenant'"


CONTEXT = {"custom": {"tenant": "acme"}, "env": {"locale": "de"}, "client": {"app_title": "shop"}}


def invoke(handler: Any, **request: Any) -> Any:
    state = {**INVOKE["States"]["A"]}  # type: ignore[index]
    state["Parameters"] = {**state["Parameters"], **request}
    return run({"StartAt": "A", "States": {"A": state}}, handler)


def encoded(value: Any) -> str:
    return b64encode(json.dumps(value).encode()).decode()


def test_client_context_of_an_invocation() -> None:
    found: list[Any] = []

    def handler(event: Any, context: Any) -> Any:
        found.append(context.client_context)
        return context.aws_request_id

    output = invoke(handler, ClientContext=encoded(CONTEXT)).output
    (context,) = found
    assert context.custom == {"tenant": "acme"}
    assert context.env == {"locale": "de"}
    assert (context.client.app_title, context.client.installation_id) == ("shop", None)
    assert output["SdkResponseMetadata"] == {"RequestId": output["Payload"]}
    invoke(handler, ClientContext=encoded({}))
    assert vars(found.pop()) == {"custom": None, "env": None, "client": None}
    invoke(handler)
    assert found.pop() is None
    invoke(handler, ClientContext=encoded(CONTEXT), InvocationType="Event")
    assert found.pop() is None  # for synchronous invocations only


@pytest.mark.parametrize(
    "context", ["{}", "no base64", encoded([1]), encoded("x"), "e30", 7, encoded(CONTEXT)[:-4]]
)
def test_client_context_that_is_refused(context: Any) -> None:
    result = invoke(lambda event: event, ClientContext=context)
    assert result.error == "Lambda.InvalidRequestContentException"


@pytest.mark.parametrize(
    ("request_", "version", "arn"),
    [
        ({}, "$LATEST", ARN),
        ({"Qualifier": "7"}, "7", f"{ARN}:7"),
        ({"FunctionName": "Charge:8"}, "8", f"{ARN}:8"),
        ({"FunctionName": f"{ARN}:9"}, "9", f"{ARN}:9"),
        ({"FunctionName": ARN, "Qualifier": "10"}, "10", f"{ARN}:10"),
        ({"FunctionName": "123456789012:function:Charge:live"}, "$LATEST", f"{ARN}:live"),
        ({"Qualifier": "live"}, "$LATEST", f"{ARN}:live"),
    ],
)
def test_qualifier_of_an_invocation(request_: Any, version: str, arn: str) -> None:
    output = invoke(lambda event, context: context.invoked_function_arn, **request_).output
    assert (output["ExecutedVersion"], output["Payload"]) == (version, arn)
    headers = output["SdkHttpMetadata"]["HttpHeaders"]
    assert headers["X-Amz-Executed-Version"] == version
    assert headers["Content-Length"] == str(len(json.dumps(arn)))


def test_argument_named_context_gets_one_everywhere() -> None:
    task = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "A", "End": True}}}

    def agent(event: Any, context: Any) -> Any:
        return [context.function_name, context.get_remaining_time_in_millis() > 0]

    assert asl.run(task, {}, agents={"A": agent}).output == ["agent", True]


def test_second_argument_with_default_gets_the_context() -> None:
    def handler(event: Any, context: Any = None) -> Any:
        return context is not None

    assert run(DIRECT, handler).output is True
    assert run(DIRECT, lambda event: event).output == {}


def test_result_is_what_its_json_says() -> None:
    value = {"a": (1, Decimal("1.5"), Decimal(10)), 2: None}
    assert run(DIRECT, lambda event, context: value).output == {"a": [1, 1.5, 10], "2": None}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (date(2026, 1, 1), "Object of type date is not JSON serializable"),
        ({1, 2}, "Object of type set is not JSON serializable"),
        ({"a": [b"x"]}, "Object of type bytes is not JSON serializable"),
        ([Decimal("NaN")], "Object of type Decimal is not JSON serializable"),
        (float("nan"), "Out of range float values are not JSON compliant"),
        ("\ud800", "'utf-8' codec can't encode character"),
    ],
)
def test_result_that_is_no_json(value: Any, said: str) -> None:
    result = run(DIRECT, lambda event, context: value)
    assert result.error == "Runtime.MarshalError"
    cause = json.loads(result.cause)
    assert cause["errorMessage"].startswith(f"Unable to marshal response: {said}")
    assert cause["stackTrace"] == []


def test_handler_that_exits() -> None:
    result = run(DIRECT, lambda event, context: sys.exit(3))
    assert result.error == "Runtime.ExitError"
    assert json.loads(result.cause)["errorMessage"].endswith("with error: exit status 3")


class Halt(BaseException):
    """An exception that a runtime does not report."""


@pytest.mark.parametrize("kind", [GeneratorExit, Halt])
def test_handler_that_raises_what_is_no_exception(kind: type[BaseException]) -> None:
    def handler(event: Any, context: Any) -> Any:
        raise kind

    result = run(DIRECT, handler)
    assert result.error == "Runtime.ExitError"
    assert json.loads(result.cause)["errorMessage"].endswith("with error: exit status 1")


@pytest.mark.parametrize("seconds", [None, 3])
@pytest.mark.parametrize("kind", [SystemExit, Halt])
def test_async_handler_that_raises_what_is_no_exception(
    kind: type[BaseException], seconds: float | None
) -> None:
    async def handler(event: Any, context: Any) -> Any:
        raise kind(1)

    result = run(DIRECT, function_agent(handler, settings=LambdaSettings(timeout=seconds)))
    assert result.error == "Runtime.ExitError"
    assert json.loads(result.cause)["errorMessage"].endswith("with error: exit status 1")


def test_interrupt_of_a_handler_ends_the_run() -> None:
    def handler(event: Any, context: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(DIRECT, handler)


def test_timeout_of_the_function() -> None:
    async def handler(event: Any, context: Any) -> Any:
        assert context.get_remaining_time_in_millis() == 3000
        await context.sleep(100)

    result = run(DIRECT, function_agent(handler, settings=LambdaSettings(timeout=3)))
    assert result.error == "Sandbox.Timedout"
    assert "Task timed out after 3.00 seconds" in result.cause


def test_handlers_of_a_sam_project(tmp_path: Path) -> None:
    """Two folders with an `app.py` each, their siblings, and the switch in the agents file."""
    for name in ("ship-order", "charge-card"):
        folder = tmp_path / "functions" / name
        folder.mkdir(parents=True)
        (folder / "app.py").write_text(
            "from helpers import NAME, Problem\n"
            "def lambda_handler(event, context):\n"
            "    if event.get('fail'):\n        raise Problem(NAME)\n"
            "    return [NAME, context.function_name, context.memory_limit_in_mb]\n"
        )
        text = f"NAME = {name!r}\nclass Problem(Exception): pass\n"
        (folder / "helpers.py").write_text(text)
    file = tmp_path / "agents.yaml"
    file.write_text(
        "resources:\n"
        '  "arn:aws:lambda:*:function:Ship": functions/ship-order/app.py:lambda_handler\n'
        f'  "{ARN}":\n'
        "    function: functions/charge-card/app.py:lambda_handler\n"
        "    lambda: {memory: 512}\n"
        '  "arn:aws:lambda:*:function:Plain":\n'
        "    {function: functions/ship-order/app.py:lambda_handler, lambda: false}\n"
    )
    resources = load_bindings(file).resources
    ran = {
        name: asl.run(
            {"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": arn, "End": True}}},
            data,
            resources=resources,
        )
        for name, arn, data in (
            ("charge", ARN, {}),
            ("ship", ARN.replace("Charge", "Ship"), {}),
            ("failed", ARN.replace("Charge", "Ship"), {"fail": 1}),
            ("plain", ARN.replace("Charge", "Plain"), {"fail": 1}),
        )
    }
    assert ran["charge"].output == ["charge-card", "Charge", "512"]
    assert ran["ship"].output == ["ship-order", "Ship", "128"]
    assert ran["failed"].error == "Problem"
    assert ran["plain"].error == "States.TaskFailed"


def test_failure_of_a_function_behind_a_url() -> None:
    body = '{"errorMessage": "no", "errorType": "CardDeclined"}'
    failure = function_failure(body, json.loads(body))
    assert (failure.name, failure.cause) == ("CardDeclined", body)
    unknown = function_failure('{"errorMessage": "killed"}', {"errorMessage": "killed"})
    assert unknown.name == "Lambda.Unknown"
    assert "did not return an error type" in str(unknown.cause)
