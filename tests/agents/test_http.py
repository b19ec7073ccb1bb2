"""Agents that are HTTP endpoints, against a real server."""

import asyncio
import gzip
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.agents.file import InvalidAgents, load_bindings
from asl.agents.http import HttpAgent

from .servers import Exchange, serving
from .workflows import for_each, retried, task


def error_of(answer: Callable[[Exchange], None], **options: Any) -> tuple[str, str]:
    """Return name and cause of the error that an answer leads to."""
    with serving(answer) as server:
        agent = HttpAgent(f"{server.url}/ask", **options)
        result = asl.run(task(), {"q": 1}, agents={"A": agent})
    assert result.error is not None
    assert result.cause is not None
    return result.error, result.cause.replace(server.url, "")


def test_an_endpoint_answers() -> None:
    """Parameters are the body, the answer is the result; the key is the same for each attempt."""
    with serving(lambda exchange: exchange.answer(200, {"got": exchange.json})) as server:
        agent = HttpAgent(f"{server.url}/ask", headers={"X-Kind": "test"})
        result = asl.run(task(), {"q": ["ü", 1]}, agents={"A": agent}, name="pr-17")
    (request,) = server.requests
    assert result.output == {"got": {"q": ["ü", 1]}}
    assert (request.method, request.path) == ("POST", "/ask")
    assert request.headers["x-kind"] == "test"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["idempotency-key"].startswith(result.execution.id)


def test_an_empty_answer_is_null() -> None:
    """204 and an empty body say that there is nothing to say."""
    with serving(lambda exchange: exchange.answer(204)) as server:
        assert asl.run(task(), agents={"A": HttpAgent(server.url)}).output is None


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_request_without_a_body_has_a_query(method: str) -> None:
    """Texts as they are, other values as JSON, null not at all."""
    with serving(lambda exchange: exchange.answer(200, exchange.path)) as server:
        agent = HttpAgent(f"{server.url}/find?v=1", method=method)
        data = {"q": "a b&c", "n": 3, "l": [1], "none": None}
        result = asl.run(task(), data, agents={"A": agent})
        wrong = asl.run(task(), [1], agents={"A": agent})
    assert result.output == "/find?v=1&q=a+b%26c&n=3&l=%5B1%5D"
    assert server.requests[0].body == b""
    assert wrong.error == "Agent.InvalidInput"


STATUSES = [
    (400, "Agent.APIError"),
    (401, "States.Permissions"),
    (403, "States.Permissions"),
    (404, "Agent.APIError"),
    (408, "States.Timeout"),
    (429, "States.RateLimitExceeded"),
    (500, "Agent.APIError"),
    (503, "Agent.APIError"),
    (504, "States.Timeout"),
]


@pytest.mark.parametrize(("status", "name"), STATUSES)
def test_a_status_is_an_error(status: int, name: str) -> None:
    """The name follows from the status; the cause has the endpoint, the status and the answer."""
    found, cause = error_of(lambda exchange: exchange.answer(status, b"no\n", Retry_After="7"))
    assert found == name
    assert cause.startswith(f"POST /ask: {status} ")
    assert cause.endswith(", retry after 7: no")


def test_a_request_is_sent_once() -> None:
    """Repeating it is the business of Retry, which sends the same key again."""
    with serving(lambda exchange: exchange.answer(503)) as server:
        agent = HttpAgent(server.url)
        asl.run(task(), agents={"A": agent})
        assert len(server.requests) == 1
        result = asl.run(retried("Agent.APIError"), agents={"A": agent}, clock="virtual")
    assert (result.status, len(server.requests)) == ("FAILED", 4)
    assert len({each.headers["idempotency-key"] for each in server.requests[1:]}) == 1


def test_an_endpoint_may_name_its_error() -> None:
    """`{"error", "cause"}` is an error of the endpoint's own; anything else is not."""
    own = {"error": "Quota.Exceeded", "cause": "try tomorrow"}
    assert error_of(lambda exchange: exchange.answer(400, own)) == ("Quota.Exceeded", own["cause"])
    for other in ({"error": ""}, {"error": {"code": 1}}, {"error": "x", "message": "y"}, [1]):
        found, cause = error_of(lambda exchange, other=other: exchange.answer(400, other))
        assert found == "Agent.APIError"
        assert cause.endswith(json.dumps(other))
    with serving(lambda exchange: exchange.answer(200, own)) as server:
        assert asl.run(task(), agents={"A": HttpAgent(server.url)}).output == own


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"errorMessage": "no", "errorType": "CardDeclined"}', "CardDeclined"),
        (b'{"errorMessage": "Task timed out"}', "Lambda.Unknown"),
        (b"killed", "Lambda.Unknown"),
        (b"", "Lambda.Unknown"),
    ],
)
def test_function_error_header_fails_the_call(body: bytes, name: str) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.answer(200, body, **{"X-Amz-Function-Error": "Unhandled"})

    assert error_of(answer)[0] == name


def test_garbage_is_no_result() -> None:
    """An answer that is no JSON is Agent.ParseError and shows its beginning."""
    found, cause = error_of(lambda exchange: exchange.answer(200, b"<html>" + b"x" * 5000))
    assert found == "Agent.ParseError"
    assert "<html>xxx" in cause
    assert len(cause) < 700
    found, _ = error_of(lambda exchange: exchange.answer(200, b'{"a": NaN}'))
    assert found == "Agent.ParseError"


def test_a_compressed_answer_is_refused() -> None:
    """None was asked for, and it may be larger than it looks."""
    bomb = gzip.compress(b"0" * 1_000_000)
    found, cause = error_of(lambda exchange: exchange.answer(200, bomb, Content_Encoding="gzip"))
    assert (found, cause) == ("Agent.ParseError", "POST /ask: the answer is compressed")


def test_an_answer_is_bounded() -> None:
    """Reading stops at the limit, however much is announced or sent."""

    def endless(exchange: Exchange) -> None:
        exchange.begin(200, Transfer_Encoding="chunked")
        while True:
            exchange.write(b"3e8\r\n" + b"1" * 1000 + b"\r\n")

    found, cause = error_of(endless, max_bytes=10_000)
    assert (found, cause) == (
        "States.DataLimitExceeded",
        "POST /ask: an answer of more than 10000 bytes",
    )
    with serving(lambda exchange: exchange.answer(200, b"1" * 100)) as server:
        agent = HttpAgent(server.url, max_bytes=100)
        assert asl.run(task(), agents={"A": agent}).output == int("1" * 100)


def test_the_values_of_an_answer_are_bounded() -> None:
    """An answer of few bytes may stand for more values than memory should hold."""
    found, cause = error_of(lambda exchange: exchange.answer(200, b"[" + b"1," * 100_000 + b"1]"))
    assert (found, cause) == (
        "States.DataLimitExceeded",
        "POST /ask: an answer of more than 100000 values",
    )


def cut(exchange: Exchange) -> None:
    exchange.begin(200, Content_Length="100")
    exchange.write(b'{"half": ')
    exchange.cut()


def test_a_connection_that_breaks_is_an_error() -> None:
    """Cut half-way, refused, or a name that leads nowhere: Agent.NetworkError."""
    assert error_of(cut)[0] == "Agent.NetworkError"
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        for url in (f"http://127.0.0.1:{port}/", "http://no-such-host.invalid/"):
            result = asl.run(task(), agents={"A": HttpAgent(url)})
            assert result.error == "Agent.NetworkError"
            assert url in (result.cause or "")


@pytest.mark.parametrize("url", ["ftp://x/", "http://x\x00/", "nonsense"])
def test_what_is_no_address_is_an_error(url: str) -> None:
    """An address that cannot be asked is the agent's own mistake."""
    assert asl.run(task(), agents={"A": HttpAgent(url)}).error == "Agent.InvalidInput"


def test_silence_times_out() -> None:
    """The agent's own timeout is an error; that of the state cancels the request."""
    with serving(lambda exchange: server.stopping.wait(60) and None) as server:
        result = asl.run(task(), agents={"A": HttpAgent(server.url, timeout=0.05)})
        assert (result.error, result.cause) == (
            "States.Timeout",
            f"POST {server.url}: nothing came for 0.05 s",
        )
        result = asl.run(task(TimeoutSeconds=1), agents={"A": HttpAgent(server.url)})
        assert (result.error, result.cause) == ("States.Timeout", "state 'T': no answer within 1 s")


def redirecting(status: int, location: str) -> Callable[[Exchange], None]:
    def answer(exchange: Exchange) -> None:
        if exchange.path == "/ask":
            exchange.answer(status, Location=location)
        else:
            exchange.answer(200, [exchange.method, exchange.path, exchange.body.decode()])

    return answer


def test_redirections_are_errors_unless_they_are_allowed() -> None:
    """By default nothing is followed."""
    assert error_of(redirecting(307, "/new")) == (
        "Agent.APIError",
        "POST /ask: redirects to /new",
    )


def test_allowed_redirections_repeat_the_request() -> None:
    """307 and 308 repeat it as it is, within the limit."""
    with serving(redirecting(308, "/new")) as server:
        agent = HttpAgent(f"{server.url}/ask", redirects=1)
        assert asl.run(task(), {"q": 1}, agents={"A": agent}).output == ["POST", "/new", '{"q":1}']
        agent = HttpAgent(f"{server.url}/ask", redirects=1, method="GET")
        assert asl.run(task(), {}, agents={"A": agent}).output == ["GET", "/new", ""]
    found, cause = error_of(lambda exchange: exchange.answer(307, Location="/ask"), redirects=3)
    assert (found, cause) == ("Agent.APIError", "POST /ask: too many redirections")


@pytest.mark.parametrize(
    ("status", "location", "cause"),
    [
        (302, "/new", "redirects with 302, which drops the request"),
        (307, "http://127.0.0.2:1/", "redirects to another origin, http://127.0.0.2:1/"),
        (307, "https://127.0.0.1/", "redirects to another origin"),
    ],
)
def test_no_redirection_changes_the_request_or_leaves_the_origin(
    status: int, location: str, cause: str
) -> None:
    """Headers may hold secrets, and a request that loses its body is another one."""
    found, said = error_of(redirecting(status, location), redirects=5)
    assert found == "Agent.APIError"
    assert cause in said


def test_calls_at_once_share_a_client_and_runs_do_not() -> None:
    """Each run closes its own connections."""
    with serving(lambda exchange: exchange.answer(200, exchange.json)) as server:
        agent = HttpAgent(server.url)

        async def main() -> list[asl.Result]:
            runs = (asl.arun(for_each(20), list(range(20)), agents={"A": agent}) for _ in range(3))
            return await asyncio.gather(*runs)

        for result in asyncio.run(main()):
            assert result.output == list(range(20))


def test_a_secret_header_is_sent_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither results nor errors nor logs have it, even where the endpoint sends it back."""
    monkeypatch.setenv("HTTP_KEY", "s3cr3t/+ key")
    caplog.set_level("DEBUG")

    def echo(exchange: Exchange) -> None:
        status = exchange.json["status"]
        exchange.answer(status, {"said": exchange.headers["authorization"]})

    with serving(echo) as server:
        (tmp_path / "agents.yaml").write_text(
            f"A:\n  url: {server.url}\n  headers: {{Authorization: 'Bearer ${{env:HTTP_KEY}}'}}\n"
        )
        agents = load_bindings(tmp_path / "agents.yaml").agents
        good = asl.run(task(), {"status": 200}, agents=agents)
        bad = asl.run(task(), {"status": 401}, agents=agents)
    assert server.requests[0].headers["authorization"] == "Bearer s3cr3t/+ key"
    assert good.output == {"said": "Bearer ***"}
    assert bad.error == "States.Permissions"
    assert bad.cause is not None
    assert bad.cause.endswith('{"said": "Bearer ***"}')
    assert "s3cr3t" not in repr([good.to_json(), bad.to_json(), agents]) + caplog.text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A: {url: 'ftp://x'}", "1:10: error AGENTS-01: 'url' must be a URL of http or https"),
        ("A: {url: 'http://x', method: HEAD}", "error AGENTS-01: 'method' must be POST, PUT"),
        ("A: {url: 'http://x', timeout: 0}", "error AGENTS-01: 'timeout' must be greater than 0"),
        ("A: {url: 'http://x', redirects: 21}", "error AGENTS-01: 'redirects' must be at most 20"),
        ("A: {url: 'http://x', max_bytes: 0}", "error AGENTS-01: 'max_bytes' must be at least 1"),
        ("A: {url: 'http://${env:K}'}", "AGENTS-05: a secret is not allowed here"),
        ("A: {url: 'http://x', header: {}}", "(did you mean 'headers'?)"),
    ],
)
def test_a_fault_in_the_file_has_its_place(text: str, found: str, tmp_path: Path) -> None:
    """What an endpoint cannot be is said by the check of the file."""
    (tmp_path / "agents.yaml").write_text(text)
    with pytest.raises(InvalidAgents) as refusal:
        load_bindings(tmp_path / "agents.yaml")
    assert found in str(refusal.value)


def test_a_missing_library_is_named_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the file is loaded or the agent is made: before anything runs."""
    monkeypatch.setitem(sys.modules, "httpx2", None)
    line = "an HTTP agent needs 'httpx2': pip install '.[http]'"
    (tmp_path / "agents.yaml").write_text("A: {url: 'http://x'}")
    with pytest.raises(InvalidAgents) as refusal:
        load_bindings(tmp_path / "agents.yaml")
    assert line in str(refusal.value)
    with pytest.raises(asl.AslError) as missing:
        HttpAgent("http://x")
    assert str(missing.value) == line


def test_nothing_is_imported_early() -> None:
    """Only a call needs the library."""
    code = "import asl.agents.http, sys; assert 'httpx2' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
