"""Calls are off by default, bounded, and end with their Task."""

import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import asl
import asl.aws
from asl.cli.main import cli
from asl.core.values import compact
from tests.aws.endpoint_server import Answer, Received, endpoint_server
from tests.aws.tasks import failure, task

QUEUE = {"QueueUrl": "http://127.0.0.1/1/q", "MessageBody": "x"}
RESOURCES = ("sqs:sendMessage", "aws-sdk:s3:listBuckets", "lambda:invoke", "http:invoke")
SENT = {"MessageId": "m-1", "MD5OfMessageBody": "d"}


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any connection fails the test."""

    def connect(*arguments: Any) -> None:
        pytest.fail(f"a connection to {arguments[1:]}")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket.socket, "connect_ex", connect)


@pytest.mark.parametrize("resource", RESOURCES)
def test_off_by_default(no_network: None, resource: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the switch no connection is made, whatever the environment has."""
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
    ):
        monkeypatch.setenv(name, value)
    result = asl.run(task(resource, QUEUE))
    assert result.error == "States.AgentNotFound"
    reader = {
        "Resource": "arn:aws:states:::s3:getObject",
        "Parameters": {"Bucket": "b", "Key": "k"},
    }
    each = {"StartAt": "P", "States": {"P": {"Type": "Succeed"}}}
    processor = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"}, **each}
    state = {"Type": "Map", "ItemReader": reader, "ItemProcessor": processor, "End": True}
    result = asl.run({"StartAt": "M", "States": {"M": state}})
    assert result.error == "States.ItemReaderFailed"


def test_services_that_are_not_named(no_network: None) -> None:
    aws = asl.aws.integrations(endpoint_url="http://127.0.0.1:1", services=["dynamodb"])
    for resource in RESOURCES:
        assert asl.run(task(resource, QUEUE), aws=aws).error == "States.AgentNotFound"


def test_http_needs_its_name_beside_an_endpoint(no_network: None) -> None:
    aws = asl.aws.integrations(endpoint_url="http://127.0.0.1:1")
    parameters = {"ApiEndpoint": "https://example.com/", "Method": "GET"}
    assert asl.run(task("http:invoke", parameters), aws=aws).error == "States.AgentNotFound"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"services": ["sqsx"]}, "there is no service 'sqsx' of AWS (did you mean 'sqs'?)"),
        ({"services": "sqs"}, "'services' must be a list of names, got 'sqs'"),
        ({}, "services of AWS cannot be called without a region: "),
    ],
)
def test_wrong_settings(
    settings: Any, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(asl.AslError) as refused:
        asl.aws.integrations(**settings)
    assert message in str(refused.value)


def test_a_binding_of_another_type() -> None:
    with pytest.raises(asl.AslError, match=r"'aws' must be an asl\.aws\.integrations"):
        asl.run(task("sqs:sendMessage", QUEUE), aws=True)  # type: ignore[arg-type]


def test_credentials_of_a_local_endpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without credentials a key that means nothing is used, at an endpoint of the user only."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with endpoint_server(lambda request: Answer(SENT)) as (url, received):
        result = asl.run(task("sqs:sendMessage", QUEUE), aws=asl.aws.integrations(endpoint_url=url))
    assert result.output["MessageId"] == "m-1"
    assert "Credential=test/" in received[0].headers["Authorization"]
    aws = asl.aws.integrations(region="us-east-1")
    name, cause = failure(aws, "sqs:sendMessage", QUEUE)
    assert (name, "credentials" in cause) == ("SQS.SdkClientException", True)


@pytest.mark.parametrize("options", ["option", "file"])
def test_command_line(options: str, tmp_path: Path) -> None:
    (tmp_path / "send.asl.json").write_text(compact(task("sqs:sendMessage", QUEUE)))
    with endpoint_server(lambda request: Answer(SENT)) as (url, received):
        file = {"aws": {"endpoint": url, "region": "eu-west-1", "services": ["sqs"]}}
        (tmp_path / "agents.json").write_text(compact(file))
        given = {
            "option": ["--aws-endpoint", url],
            "file": ["--agents", str(tmp_path / "agents.json")],
        }
        command = ["run", str(tmp_path / "send.asl.json"), *given[options]]
        done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    assert '"MessageId":"m-1"' in done.stdout
    assert "V-TASK-03" not in done.output
    region = {"option": "us-east-1", "file": "eu-west-1"}[options]
    assert f"/{region}/sqs/" in received[0].headers["Authorization"]


def test_unreachable_endpoint() -> None:
    aws = asl.aws.integrations(endpoint_url="http://127.0.0.1:1")
    name, cause = failure(aws, "sqs:sendMessage", QUEUE)
    assert name == "SQS.SdkClientException"
    assert cause.startswith("Unable to execute HTTP request: ")


@pytest.mark.parametrize("body", [b"no json", b"[1]", b'{"MessageId":' + b"[" * 100_000, b"\xff"])
def test_broken_answers(body: bytes) -> None:
    """An answer that is not that of a service fails the Task and nothing else."""
    with endpoint_server(lambda request: Answer(body)) as (url, _):
        aws = asl.aws.integrations(endpoint_url=url)
        result = asl.run(task("sqs:sendMessage", QUEUE), aws=aws)
    assert result.status in ("SUCCEEDED", "FAILED")
    assert result.error in (None, "SQS.SdkClientException")


def test_large_answer() -> None:
    with endpoint_server(lambda request: Answer(b" " * (16 * 1024 * 1024 + 1))) as (url, _):
        aws = asl.aws.integrations(endpoint_url=url)
        for resource, sent in (
            ("sqs:sendMessage", QUEUE),
            ("aws-sdk:s3:getObject", {"Bucket": "b", "Key": "k"}),
        ):
            name, cause = failure(aws, resource, sent)
            assert name == "States.DataLimitExceeded"
            assert "16777216 bytes" in cause


def test_timeout_of_a_call() -> None:
    """The Task ends at its timeout, whatever the service does."""
    release = threading.Event()

    def hang(request: Received) -> Answer:
        release.wait(60)
        return Answer(SENT)

    with endpoint_server(hang) as (url, _):
        aws = asl.aws.integrations(endpoint_url=url)
        result = asl.run(task("sqs:sendMessage", QUEUE, TimeoutSeconds=1), aws=aws)
        release.set()
    assert result.error == "States.Timeout"
    assert result.elapsed < 10


@pytest.mark.parametrize(
    ("resource", "endpoint"),
    [
        ("http:invoke", "http://127.0.0.1/"),
        ("http:invoke", "file:///etc/passwd"),
        ("apigateway:invoke", "example.com"),
        ("apigateway:invoke", "a.execute-api.us-east-1.amazonaws.com@example.com"),
    ],
)
def test_hosts_of_documents(no_network: None, resource: str, endpoint: str) -> None:
    """Without an endpoint HTTP Tasks need HTTPS, and signed requests go to API Gateway only."""
    aws = asl.aws.integrations(region="us-east-1")
    parameters = {"ApiEndpoint": endpoint, "Method": "GET", "AuthType": "IAM_ROLE"}
    name, cause = failure(aws, resource, parameters)
    assert (name, "'ApiEndpoint' is no " in cause) == ("States.Runtime", True)
