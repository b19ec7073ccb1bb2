"""The pages as an application."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from asl.core.errors import AslError
from asl.server.access.principal import Principal
from asl.server.pages import audit, comparison, costs, documents, execution, execution_list, inbox
from asl.server.pages.history import HistoryCache
from asl.server.pages.rendering import render_error
from asl.server.pages.static_files import serve_file
from asl.server.problems import status_of

__all__ = ["pages_application"]

ROUTES: Final[tuple[BaseRoute, ...]] = (
    *execution_list.ROUTES,
    *execution.ROUTES,
    *inbox.ROUTES,
    *documents.ROUTES,
    *costs.ROUTES,
    *comparison.ROUTES,
    *audit.ROUTES,
    serve_file,
)
"""The routes of the pages."""
POLICY: Final = "; ".join((
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
))  # fmt: skip
"""What a page may load: files of this server, nothing that is written in the page."""
HEADERS: Final = (
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"same-origin"),  # without a referrer, forms are sent from nowhere
)


def pages_application(identify: Callable[[HTTPConnection], Principal]) -> Starlette:
    """Return the pages.

    Args:
        identify: Returns the user of a request; raises Unauthorized.
    """
    pages = Starlette(
        routes=ROUTES,
        exception_handlers={AslError: _answer_error, HTTPException: _answer_http},
        middleware=[Middleware(_PageHeaders)],
    )
    pages.state.authenticate = identify
    pages.state.histories = HistoryCache()
    return pages


def _answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, AslError)
    return render_error(request, status_of(error), error)


def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return render_error(request, error.status_code, AslError(str(error.detail)))


class _PageHeaders:
    """Adds the headers of pages to every response."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, partial(_send_with_headers, send))


async def _send_with_headers(send: Send, message: Message) -> None:
    if message["type"] == "http.response.start":
        message = {**message, "headers": [*message["headers"], *HEADERS]}
    await send(message)
