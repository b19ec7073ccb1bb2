"""AWS's Runtime API, by which one process of a function gets its events and answers them.

Source: "Using the Lambda runtime API" in the Lambda documentation. The server listens on a port of
its own on the loopback interface, so that the runtime libraries of AWS work unchanged.
"""

from __future__ import annotations

import json
import select
import time
from asyncio import (
    CancelledError,
    Event,
    Future,
    StreamReader,
    StreamWriter,
    Task,
    current_task,
    gather,
    get_running_loop,
    start_server,
)
from asyncio.exceptions import IncompleteReadError, LimitOverrunError
from typing import Final, NamedTuple

from asl.core.values import Json, encode

__all__ = ["MAX_ANSWER", "Answer", "FunctionEvent", "RuntimeApi"]

MAX_ANSWER: Final = 6_291_556
"""Bytes of the largest answer of a function (AWS, quotas)."""
MAX_HEAD: Final = 65_536
"""Bytes of the head of a request."""
PREFIX: Final = "/2018-06-01/runtime/"
REASONS: Final = {200: "OK", 202: "Accepted", 400: "Bad Request", 404: "Not Found"}


class FunctionEvent(NamedTuple):
    """One event for a function."""

    request_id: str
    event: bytes
    """JSON text."""
    arn: str
    """The ARN that is invoked."""
    timeout: float
    """Seconds that the function may take."""
    client_context: Json = None


class Answer(NamedTuple):
    """The answer to an event: JSON text of a result or of an error."""

    ok: bool
    body: bytes
    reusable: bool = True
    """Whether its process may answer another event."""


class _Request(NamedTuple):
    method: str
    path: str
    body: bytes | None
    """None if it is too large."""


class RuntimeApi:
    """The Runtime API of one process."""

    def __init__(self) -> None:
        self.answer: Future[Answer] = get_running_loop().create_future()
        """The answer to the current event."""
        self.is_fetched = Event()
        """Set when the process has read the current event."""
        self._invocation: FunctionEvent | None = None
        self._init_error: Answer | None = None
        self._has_event = Event()
        self._connections: set[Task[None]] = set()

    async def start(self) -> str:
        """Listen; return the address for `AWS_LAMBDA_RUNTIME_API`."""
        self.server = await start_server(self._connected, "127.0.0.1", 0, limit=MAX_HEAD)
        host, port = self.server.sockets[0].getsockname()
        return f"{host}:{port}"

    async def close(self) -> None:
        """End all connections and stop listening."""
        self.server.close()
        for each in self._connections:
            each.cancel()
        await gather(*self._connections)

    def offer(self, invocation: FunctionEvent) -> None:
        """Offer the next event to the process."""
        self._invocation = invocation
        self.is_fetched.clear()
        self.answer = get_running_loop().create_future()
        if self._init_error is not None:
            self.answer.set_result(self._init_error)
        self._has_event.set()

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while True:
                request = await _read_request(reader)
                writer.write(await self._respond(request, writer))
                await writer.drain()
                if request.body is None:
                    break
        except (CancelledError, OSError, IncompleteReadError, LimitOverrunError, ValueError):
            pass  # the process has ended or will be, or it does not speak HTTP
        finally:
            self._connections.discard(task)
            writer.close()

    async def _respond(self, request: _Request, writer: StreamWriter) -> bytes:
        path = request.path.removeprefix(PREFIX)
        if request.method == "GET" and path == "invocation/next":
            return await self._next(writer)
        match path.split("/"):
            case ["invocation", request_id, "response" | "error" as kind]:
                current = self._invocation
                if current is None or current.request_id != request_id:
                    return _response(400, _error("InvalidRequestID", "Invalid request ID"))
                return self._take(_answer(kind == "response", request.body))
            case ["init", "error"]:
                self._init_error = _answer(False, request.body)
                return self._take(self._init_error)
        return _response(404, _error("NotFound", f"There is no {request.path}"))

    async def _next(self, writer: StreamWriter) -> bytes:
        """Wait for the next event and return the response with it."""
        await self._has_event.wait()
        if _is_closed(writer):
            raise ConnectionResetError
        self._has_event.clear()
        current = self._invocation
        assert current is not None
        self.is_fetched.set()
        headers = {
            "Lambda-Runtime-Aws-Request-Id": current.request_id,
            "Lambda-Runtime-Deadline-Ms": str(int((time.time() + current.timeout) * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": current.arn,
        }
        if current.client_context is not None:
            headers["Lambda-Runtime-Client-Context"] = json.dumps(current.client_context)
        return _response(200, current.event, headers)

    def _take(self, answer: Answer) -> bytes:
        """Record an answer; the first one counts."""
        if not self.answer.done():
            self.answer.set_result(answer)
        return _response(202, b'{"status":"OK"}\n')


def _is_closed(writer: StreamWriter) -> bool:
    """Return whether the process has ended while it waited, or sends what it should not."""
    waiting = select.poll()  # what has arrived since the event loop has looked last
    waiting.register(writer.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(waiting.poll(0))


def _answer(ok: bool, body: bytes | None) -> Answer:
    """Return the answer with this body; None is one that is too large."""
    if body is not None:
        return Answer(ok, body)
    text = f"Response payload size exceeded maximum allowed payload size ({MAX_ANSWER} bytes)."
    return Answer(False, _error("Function.ResponseSizeTooLarge", text), reusable=False)


def _error(name: str, message: str) -> bytes:
    return encode({"errorType": name, "errorMessage": message})


def _response(status: int, body: bytes, headers: dict[str, str] | None = None) -> bytes:
    head = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **(headers or {}),
    }
    lines = [f"HTTP/1.1 {status} {REASONS[status]}", *(f"{key}: {head[key]}" for key in head)]
    return "\r\n".join((*lines, "", "")).encode() + body


async def _read_request(reader: StreamReader) -> _Request:
    """Read one request; raises IncompleteReadError at the end of a connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    method, path, _ = first.split(" ")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return _Request(method, path, await _read_chunks(reader))
    size = int(headers.get("content-length", "0"))
    body = await reader.readexactly(size) if size <= MAX_ANSWER else None
    return _Request(method, path, body)


async def _read_chunks(reader: StreamReader) -> bytes | None:
    """Read a body in chunks; return None if it is too large."""
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        if len(body) + size > MAX_ANSWER:
            return None
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers
    return bytes(body)
