"""Functions of other runtimes, by commands that use AWS's Runtime API."""

import sys

import pytest

from asl.functions import LocalFunctions
from asl.functions.runtime_api import MAX_ANSWER
from tests.functions.conftest import Start, cause_of, run

RUNTIME = """\
import http.client, json, os
connection = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
BASE = "/2018-06-01/runtime/"
def send(path, body):
    connection.request("POST", BASE + path, body, encode_chunked=not isinstance(body, bytes),
                       headers={} if isinstance(body, bytes) else {"Transfer-Encoding": "chunked"})
    response = connection.getresponse()
    response.read()
    return response.status
while True:
    connection.request("GET", BASE + "invocation/next")
    response = connection.getresponse()
    event = json.loads(response.read())
    request = "invocation/" + response.headers["Lambda-Runtime-Aws-Request-Id"]
    CODE
"""


def program(code: str) -> str:
    return RUNTIME.replace("CODE", code)


def start_program(start: Start, code: str) -> LocalFunctions:
    return start(
        code, runtime="provided.al2023", commands={"provided.al2023": [sys.executable, "app.py"]}
    )


@pytest.mark.parametrize("body", ["b'[1, 2]'", "iter([b'[1,', b' 2]'])"])
def test_answer(start: Start, body: str) -> None:
    functions = start_program(start, program(f"send(request + '/response', {body})"))
    assert run(functions).output == [1, 2]


def test_error(start: Start) -> None:
    code = """send(request + '/error', b'{"errorType": "Lost", "errorMessage": "no"}')"""
    result = run(start_program(start, program(code)))
    assert (result.error, result.cause) == ("Lost", '{"errorType": "Lost", "errorMessage": "no"}')


def test_error_of_the_start(start: Start) -> None:
    code = program("").replace(
        "while True:", "send('init/error', b'{\"errorType\": \"Cold\"}'); 1/0\nwhile True:"
    )
    assert run(start_program(start, code)).error == "Cold"


def test_answer_to_another_event(start: Start) -> None:
    code = "send(request + '/response', str(send('invocation/other/response', b'1')).encode())"
    assert run(start_program(start, program(code))).output == 400


def test_unknown_path(start: Start) -> None:
    code = "send(request + '/response', str(send('other', b'1')).encode())"
    assert run(start_program(start, program(code))).output == 404


def test_answer_that_is_no_json(start: Start) -> None:
    result = run(start_program(start, program("send(request + '/response', b'{')")))
    assert result.error == "Runtime.InvalidResponse"


@pytest.mark.parametrize("body", ["b'x' * {}", "iter([b'x' * 65536] * ({} // 65536 + 1))"])
def test_answer_of_more_than_6_megabytes(start: Start, body: str) -> None:
    code = f"send(request + '/response', {body.format(MAX_ANSWER + 1)})"
    assert run(start_program(start, program(code))).error == "Function.ResponseSizeTooLarge"


def test_bytes_that_are_no_http(start: Start) -> None:
    code = (
        "connection.sock.send(b'\\x00\\r\\n\\r\\n'); connection.sock.recv(1); raise SystemExit(7)"
    )
    cause = cause_of(run(start_program(start, program(code))))
    assert cause["errorMessage"].endswith("exit status 7")


def test_program_that_does_not_exist(start: Start) -> None:
    functions = start("", runtime="go1.x", commands={"go1.x": ["./missing"]})
    result = run(functions)
    assert result.error == "States.TaskFailed"
    assert result.cause == "F: cannot start './missing': No such file or directory"


def test_runtime_without_a_command(start: Start) -> None:
    functions = start("", runtime="go1.x")
    assert functions.lines() == [
        "F is not bound: no command is known for the runtime go1.x: "
        "give one with --runtime go1.x=COMMAND"
    ]


def test_interpreter_of_the_user(start: Start) -> None:
    code = "import sys\ndef handler(event, context):\n    return sys.flags.optimize\n"
    functions = start(code, commands={"python3.11": [sys.executable, "-O"]})
    assert run(functions).output == 1
