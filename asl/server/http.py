"""Middleware of all faces: bounds of bodies and headers that browsers obey."""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from asl.server.problems import problem

__all__ = ["RequestLimits", "SecurityHeaders"]

LARGEST_BODY: Final = 10 * 1024 * 1024
"""Bytes of the largest request."""
LARGEST_HEAD: Final = 64 * 1024
"""Bytes of all headers."""
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class _TooLarge(HTTPException):
    """A body has more bytes than allowed."""


class RequestLimits:
    """Refuses requests with large headers, several hosts, or a large body, also one without a size.

    Args:
        application: The application behind it.
        largest: The largest number of bytes.
    """

    def __init__(self, application: ASGIApp, largest: int = LARGEST_BODY) -> None:
        self._application = application
        self._largest = largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        headers = scope["headers"]
        if sum(len(name) + len(value) for name, value in headers) > LARGEST_HEAD:
            detail = f"the headers have at most {LARGEST_HEAD} bytes"
            await problem(431, "HttpError", detail)(scope, receive, send)
            return
        if sum(name == b"host" for name, _ in headers) > 1:
            detail = "the header Host must be there once"
            await problem(400, "HttpError", detail)(scope, receive, send)
            return
        size, is_answered = 0, False

        async def bounded() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._largest:
                raise _TooLarge(413, f"a body has at most {self._largest} bytes")
            return message

        async def watched(message: Message) -> None:
            nonlocal is_answered
            is_answered = True
            await send(message)

        try:
            await self._application(scope, bounded, watched)
        except _TooLarge as refusal:
            if not is_answered:
                await problem(413, "HttpError", refusal.detail)(scope, receive, send)


class SecurityHeaders:
    """Adds the headers that keep browsers from guessing types, framing and leaking addresses."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                added = [each for each in _HEADERS if each[0] not in present]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await self._application(scope, receive, secured)
