"""Requests that no client of good will sends, to a real server: each has a clear status."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from threading import Barrier, Thread
from typing import Any
from urllib.parse import urlsplit

import pytest

import asl
import asl.server
from asl.server.access.users import Users
from asl.server.views import request_key
from asl.service.server import serving
from tests.server.access.people import ANN, ASK, BOB, PEOPLE, Clock, asking, bearer, served

TOKEN = f"Authorization: Bearer {ANN}"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asl.Store]:
    with asl.open_store(tmp_path_factory.mktemp("hostile") / "runs.db") as opened:
        opened.run(ASK, {"n": 1}, name="one")
        yield opened


@pytest.fixture(scope="module")
def address(store: asl.Store) -> Iterator[tuple[str, int]]:
    application = asl.server.app(store, users=Users(PEOPLE), concurrency=0)
    with serving(application) as url:
        parts = urlsplit(url)
        yield parts.hostname or "", parts.port or 0


def exchange(address: tuple[str, int], *lines: str, body: bytes = b"") -> tuple[int, str]:
    """Send a request as it is written; return the status and the answer."""
    with closing(socket.create_connection(address, timeout=20)) as line:
        head = "\r\n".join([*lines, "Connection: close", "", ""])
        with suppress(BrokenPipeError, ConnectionResetError):  # it may answer earlier
            line.sendall(head.encode("latin-1") + body)
        parts = []
        with suppress(ConnectionResetError):
            while part := line.recv(65536):
                parts.append(part)
    text = b"".join(parts).decode("utf-8", "replace")
    return (int(text.split(" ", 2)[1]) if text else 0), text


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/executions/%2e%2e",
        "/api/v1/executions/..",
        "/api/v1/executions/%00",
        "/api/v1/executions/one%00",
        "/api/v1/executions/~9999999999999999999999",
        "/api/v1/executions/~-1",
        "/api/v1/executions/%ff%fe",
        "/api/v1/requests/%00",
        "/api/v1/requests/..%2f..%2fetc%2fpasswd",
        "/ui/static/%2e%2e%2f%2e%2e%2fapplication.py",
        "/ui/static/../application.py",
        "/ui/executions/%2e%2e%2f%2e%2e",
        "/ui/../api/v1/none",
        "//evil.example/api/v1/me",
        "/api/v1/../../etc/passwd",
        "/api/v1/documents/%00",
        "/projects/default/api/v1/me",
        "/API/V1/me",
        "/api/v1/me/",
    ],
)
def test_tricks_with_paths(address: tuple[str, int], target: str) -> None:
    status, text = exchange(address, f"GET {target} HTTP/1.1", "Host: x", TOKEN)
    assert status in (303, 307, 400, 404, 405), text
    assert "root:" not in text
    assert "import" not in text


@pytest.mark.parametrize(
    ("line", "headers", "statuses"),
    [
        ("GET http://evil.example/api/v1/me HTTP/1.1", ["Host: x"], (400, 401, 404)),
        ("GET /api/v1/me HTTP/1.1", ["Host: x", "Host: y"], (400,)),
        ("GET /api/v1/me HTTP/1.1", [], (400, 401)),
        ("GET /api/v1/me HTTP/9.9", ["Host: x"], (400, 505)),
        ("GET /api/v1/me HTTP/1.1", ["Host: x", "Authorization : Bearer x"], (400,)),
        ("GET /api/v1/me HTTP/1.1", ["Host: x", TOKEN, "Authorization: Bearer x"], (401,)),
        ("GET /api/v1/me HTTP/1.1", ["Host: x", "X: " + "y" * 60_000], (401,)),
        ("GET /api/v1/me HTTP/1.1", ["Host: x", "X: " + "y" * 66_000], (400, 431)),
        ("GET /api/v1/me HTTP/1.1", ["Host: x", "X: " + "y" * 20_000_000], (400,)),
        ("GET /api/v1/me HTTP/1.1", ["Host: x", *["X: y"] * 30_000], (400, 431)),
        ("GET /" + "y" * 200_000 + " HTTP/1.1", ["Host: x"], (400, 404, 414)),
        ("TRACE /api/v1/me HTTP/1.1", ["Host: x", TOKEN], (405,)),
        ("CONNECT evil.example:80 HTTP/1.1", ["Host: x"], (400, 404, 405)),
        ("POST /api/v1/check HTTP/1.1", ["Host: x", TOKEN, "Content-Length: x"], (400,)),
        (
            "POST /api/v1/check HTTP/1.1",
            ["Host: x", TOKEN, "Content-Length: 3", "Transfer-Encoding: chunked"],
            (400, 422),
        ),
    ],
)
def test_tricks_with_headers(
    address: tuple[str, int], line: str, headers: list[str], statuses: tuple[int, ...]
) -> None:
    status, text = exchange(address, line, *headers)
    assert status in statuses, text[:300]


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize(
    ("path", "kind", "statuses"),
    [
        ("/api/v1/check", "application/json", (413,)),
        ("/login", "application/x-www-form-urlencoded", (400, 413)),
        ("/logout", "application/x-www-form-urlencoded", (400, 413)),
        ("/links/x", "application/x-www-form-urlencoded", (400, 413)),
        ("/login", "multipart/form-data; boundary=x", (413, 415)),
    ],
)
def test_body_of_more_than_10_megabytes(
    address: tuple[str, int], path: str, kind: str, statuses: tuple[int, ...], is_chunked: bool
) -> None:
    body = b"x" * (10 * 1024 * 1024 + 1)
    length = f"Content-Length: {len(body)}"
    if is_chunked:
        length, body = "Transfer-Encoding: chunked", b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    lines = (f"POST {path} HTTP/1.1", "Host: x", TOKEN, f"Content-Type: {kind}", length)
    status, text = exchange(address, *lines, body=body)
    assert status in statuses, text[:300]


def test_server_still_answers(address: tuple[str, int]) -> None:
    status, text = exchange(address, "GET /api/v1/me HTTP/1.1", "Host: x", TOKEN)
    assert (status, '"user":"ann"' in text) == (200, True)


# Answers


def answer_to(client: Any, request: Any, token: str, option: str) -> Any:
    url = f"/api/v1/requests/{request_key(request['requestId'])}/answer"
    return client.post(url, json={"approval": option}, headers=bearer(token))


def give(
    barrier: Barrier, client: Any, request: Any, token: str, option: str, codes: dict[str, int]
) -> None:
    barrier.wait()
    codes[option] = answer_to(client, request, token, option).status_code


def test_two_answers_given_together(tmp_path: Any) -> None:
    with asl.open_store(tmp_path / "runs.db") as store, served(store) as client:
        for index in range(10):
            store.run(ASK, name=f"e{index}")
            (request,) = store.pending(f"e{index}")
            found: dict[str, int] = {}
            barrier = Barrier(2)

            threads = [
                Thread(target=give, args=(barrier, client, request, token, option, found))
                for token, option in ((ANN, "approve"), (BOB, "reject"))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(found.values()) == [200, 409]
            output = store.resume(f"e{index}").output
            assert found[output["approval"]] == 200


def test_answer_after_the_deadline() -> None:
    clock = Clock()
    with asl.open_store("memory:", clock=clock) as store, served(store) as client:
        store.run(asking(Timeout="1h"), name="one")
        (request,) = store.pending("one")
        clock.passed = 3601
        answer = answer_to(client, request, ANN, "approve")
        assert (answer.status_code, "too late" in answer.json()["detail"]) == (409, True)
        assert store.resume("one").error == "States.Timeout"
        assert answer_to(client, request, ANN, "approve").status_code == 409
