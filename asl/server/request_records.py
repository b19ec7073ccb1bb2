"""Middleware that logs and counts the requests of all faces."""

from __future__ import annotations

import os
import re
from time import monotonic
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from asl.core.values import Json
from asl.server.metrics import ProcessMetrics
from asl.telemetry.log_lines import log, log_context

__all__ = ["RequestRecorder"]

HEADER: Final = b"x-request-id"
_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
MONITORING: Final = "monitoring"
"""The face of frequent requests, which are counted and not logged."""
_FACES: Final = {
    "api": "api",
    "ui": "ui",
    "hooks": "hooks",
    "login": "access",
    "logout": "access",
    "links": "access",
    "metrics": MONITORING,
    "healthz": MONITORING,
    "readyz": MONITORING,
}
"""Faces by the first part of a path."""
_SECRET: Final = re.compile(r"(/links/).+")
"""Paths whose rest is a credential."""


class RequestRecorder:
    """Logs each request with an id, which its answer has in the header X-Request-Id.

    Args:
        application: The application behind it.
        metrics: Counts the requests.
    """

    def __init__(self, application: ASGIApp, metrics: ProcessMetrics) -> None:
        self._application = application
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        begun, status = monotonic(), 500
        request_id = _request_id(scope)

        async def identified(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message["headers"], (HEADER, request_id.encode())]
                message = {**message, "headers": headers}
            await send(message)

        fields: dict[str, Json] = {"request": request_id}
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        with log_context(fields):
            try:
                await self._application(scope, receive, identified)
            finally:
                face = _face(scope, method)
                self._metrics.count_request(face, method, status)
                if face != MONITORING:
                    log(
                        "asl.requests",
                        "request",
                        face=face,
                        method=method,
                        path=_SECRET.sub(r"\1...", scope["path"]),
                        status=status,
                        seconds=round(monotonic() - begun, 6),
                    )


def _request_id(scope: Scope) -> str:
    """Return the id that a proxy has given to a request, else a new one."""
    for name, value in scope["headers"]:
        if name == HEADER and _ID.fullmatch(given := value.decode("latin-1")):
            return str(given)
    return os.urandom(8).hex()


def _face(scope: Scope, method: str) -> str:
    """Return the face that a request is for."""
    path = scope["path"].removeprefix(scope.get("app_root_path", ""))
    parts = path.split("/")[1:]
    if parts[0] == "projects":
        parts = parts[2:]
    first = parts[0] if parts else ""
    return _FACES.get(first, "aws" if not first and method == "POST" else "other")
