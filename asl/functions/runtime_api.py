"""AWS's Runtime API, by which one process of a function gets its events and answers them.

Source: "Using the Lambda runtime API" in the Lambda documentation. The server listens on a port of
its own on the loopback interface, so that the runtime libraries of AWS work unchanged.
"""

from __future__ import annotations

import json
import time
from asyncio import Event, Future, StreamReader, StreamWriter, get_running_loop, start_server
from asyncio.exceptions import IncompleteReadError, LimitOverrunError
from contextlib import suppress
from typing import Final, NamedTuple

from asl.core.values import Json, encode

__all__ = ["MAX_ANSWER", "Answer", "Invocation", "RuntimeApi"]

MAX_ANSWER: Final = 6_291_556
"""Bytes of the largest answer of a function (AWS, quotas)."""
MAX_HEAD: Final = 65_536
"""Bytes of the head of a request."""
PREFIX: Final = "/2018-06-01/runtime/"
REASONS: Final = {200: "OK", 202: "Accepted", 400: "Bad Request", 404: "Not Found"}


class Invocation(NamedTuple):
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
    too_large: bool = False


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
        self.fetched = Event()
        """Set when the process has read the current event."""
        self._invocation: Invocation | None = None
        self._offered = Event()
        self._writers: set[StreamWriter] = set()

    async def start(self) -> str:
        """Listen; return the address for `AWS_LAMBDA_RUNTIME_API`."""
        self.server = await start_server(self._connected, "127.0.0.1", 0, limit=MAX_HEAD)
        host, port = self.server.sockets[0].getsockname()
        return f"{host}:{port}"

    def close(self) -> None:
        """End all connections and stop listening."""
        self.server.close()
        for writer in self._writers:
            writer.transport.abort()

    def offer(self, invocation: Invocation) -> None:
        """Offer the next event to the process."""
        self._invocation = invocation
        self.fetched.clear()
        self.answer = get_running_loop().create_future()
        self._offered.set()

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with suppress(OSError, IncompleteReadError, LimitOverrunError, ValueError):
                while True:
                    request = await _read_request(reader)
                    writer.write(await self._respond(request))
                    await writer.drain()
                    if request.body is None:
                        break
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _respond(self, request: _Request) -> bytes:
        path = request.path.removeprefix(PREFIX)
        if request.method == "GET" and path == "invocation/next":
            return await self._next()
        match path.split("/"):
            case ["invocation", request_id, "response" | "error" as kind]:
                current = self._invocation
                if current is None or current.request_id != request_id:
                    return _response(400, _error("InvalidRequestID", "Invalid request ID"))
                return self._take(kind == "response", request.body)
            case ["init", "error"]:
                return self._take(False, request.body)
        return _response(404, _error("NotFound", f"There is no {request.path}"))

    async def _next(self) -> bytes:
        """Wait for the next event and return the response with it."""
        await self._offered.wait()
        self._offered.clear()
        current = self._invocation
        assert current is not None
        self.fetched.set()
        headers = {
            "Lambda-Runtime-Aws-Request-Id": current.request_id,
            "Lambda-Runtime-Deadline-Ms": str(int((time.time() + current.timeout) * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": current.arn,
        }
        if current.client_context is not None:
            headers["Lambda-Runtime-Client-Context"] = json.dumps(current.client_context)
        return _response(200, current.event, headers)

    def _take(self, ok: bool, body: bytes | None) -> bytes:
        """Record an answer; the first one counts."""
        if body is None:
            text = f"exceeded maximum allowed payload size ({MAX_ANSWER} bytes)."
            body = _error("Function.ResponseSizeTooLarge", f"Response payload size {text}")
            answer = Answer(False, body, too_large=True)
        else:
            answer = Answer(ok, body)
        if not self.answer.done():
            self.answer.set_result(answer)
        return _response(202, b'{"status":"OK"}\n')


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
