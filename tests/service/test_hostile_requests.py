"""Malformed requests: refused with a named error, and the server goes on."""

import json
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from socket import create_connection
from typing import Any

import pytest

import asl
from asl.executions import Store

pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    from asl.service.http import AwsEndpoint, aws_application
    from asl.service.server import serving
    from asl.service.service import StatesService

    with (
        Store("memory:", tokens=asl.TaskTokens()) as store,
        serving(aws_application(AwsEndpoint(StatesService(store)))) as found,
    ):
        yield found


def post(url: str, body: bytes, target: str | None = "AWSStepFunctions.ListStateMachines") -> Any:
    headers = {} if target is None else {"X-Amz-Target": target}
    with closing(HTTPConnection(url.removeprefix("http://"))) as connection:
        connection.request("POST", "/", body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


@pytest.mark.parametrize(
    ("body", "target", "status", "code"),
    [
        (b"{", "AWSStepFunctions.ListStateMachines", 400, "SerializationException"),
        (b"[]", "AWSStepFunctions.ListStateMachines", 400, "SerializationException"),
        (b"\xff\xfe", "AWSStepFunctions.ListStateMachines", 400, "SerializationException"),
        (b"[" * 100_000, "AWSStepFunctions.ListStateMachines", 400, "SerializationException"),
        (b"{}", "AWSStepFunctions.MakeCoffee", 400, "UnknownOperationException"),
        (b"{}", "DynamoDB_20120810.ListTables", 400, "UnknownOperationException"),
        (b"{}", None, 400, "UnknownOperationException"),
        (
            b'{"maxResults": 1e400}',
            "AWSStepFunctions.ListActivities",
            400,
            "SerializationException",
        ),
        (b'{"maxResults": true}', "AWSStepFunctions.ListActivities", 400, "SerializationException"),
        (b'{"nextToken": "!"}', "AWSStepFunctions.ListActivities", 400, "InvalidToken"),
        (b'{"nextToken": "WzFd"}', "AWSStepFunctions.ListActivities", 400, "InvalidToken"),
        (b'{"activityArn": "arn"}', "AWSStepFunctions.DescribeActivity", 400, "InvalidArn"),
        (b'{"name": "a\\u0000b"}', "AWSStepFunctions.CreateActivity", 400, "InvalidName"),
        (b'{"taskToken": "x"}', "AWSStepFunctions.SendTaskHeartbeat", 400, "InvalidToken"),
    ],
)
def test_a_malformed_request_is_refused(
    body: bytes, target: str | None, status: int, code: str, url: str
) -> None:
    found, answer = post(url, body, target)
    assert (found, answer["__type"]) == (status, code)
    assert post(url, b"{}") == (200, {"stateMachines": []})


def test_a_large_request_is_refused(url: str) -> None:
    found, answer = post(url, b"x" * (9 * 1024 * 1024))
    assert (found, answer["__type"]) == (413, "RequestEntityTooLargeException")


def test_a_client_that_disconnects_leaves_the_server_up(url: str) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    with create_connection((host, int(port))) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    assert post(url, b"{}") == (200, {"stateMachines": []})


def test_a_poll_that_waits_does_not_hold_others(url: str) -> None:
    _, activity = post(url, b'{"name": "slow"}', "AWSStepFunctions.CreateActivity")
    body = json.dumps({"activityArn": activity["activityArn"]}).encode()
    with closing(HTTPConnection(url.removeprefix("http://"))) as connection:
        headers = {"X-Amz-Target": "AWSStepFunctions.GetActivityTask"}
        connection.request("POST", "/", body, headers)
        assert post(url, b"{}") == (200, {"stateMachines": []})
