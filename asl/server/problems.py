"""Errors as responses: `application/problem+json` with a code, a sentence and a hint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import orjson
from starlette.responses import Response

from asl.core.diagnostics import InvalidDocument
from asl.core.errors import AslError, DocumentNotFound, NotJson
from asl.core.render.formats import diagnostic_to_json
from asl.core.values import Json
from asl.effects.task_tokens import TokenError
from asl.executions.errors import (
    ExecutionBusy,
    ExecutionExists,
    ExecutionNotFound,
    ExecutionNotRedrivable,
    RequestNotFound,
    ScheduleNotFound,
)
from asl.server.access.attempts import TooManyAttempts
from asl.server.access.links import LinkRefused
from asl.server.access.principal import Forbidden, Unauthorized
from asl.service.errors import ServiceError
from asl.states.approval_answers import AnswerRefused
from asl.stores.errors import StoreError

__all__ = ["NotFound", "problem", "problem_of", "status_of"]

MEDIA_TYPE: Final = "application/problem+json"


class NotFound(AslError):
    """The path names nothing."""


_STATUSES: Final[Mapping[type[AslError], int]] = {
    Unauthorized: 401,
    Forbidden: 403,
    NotFound: 404,
    DocumentNotFound: 404,
    ExecutionNotFound: 404,
    RequestNotFound: 404,
    ScheduleNotFound: 404,
    ExecutionExists: 409,
    ExecutionBusy: 409,
    ExecutionNotRedrivable: 409,
    NotJson: 422,
    InvalidDocument: 422,
    StoreError: 503,
    TokenError: 409,
    LinkRefused: 410,
    TooManyAttempts: 429,
}
"""HTTP status of each error; 400 for others."""


def status_of(error: AslError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, AnswerRefused):
        return 403 if error.forbidden else 409
    if isinstance(error, ServiceError):
        return _service_status(error.code)
    return next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 400)


def _service_status(code: str) -> int:
    if code.endswith(("DoesNotExist", "NotFound")):
        return 404
    return 409 if code.endswith(("AlreadyExists", "ConflictException")) else 400


def problem(status: int, code: str, detail: str, **more: Json) -> Response:
    """Return a response that describes an error.

    Args:
        status: The HTTP status.
        code: A stable name of the kind of error.
        detail: What is wrong, as a sentence.
        more: Further members.
    """
    body = {"type": "about:blank", "status": status, "code": code, "detail": detail, **more}
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return Response(orjson.dumps(body), status, headers, MEDIA_TYPE)


def problem_of(error: AslError) -> Response:
    """Return the response to a request that an error ended."""
    more: dict[str, Json] = {}
    hints = [*getattr(error, "__notes__", ())]
    if hints:
        more["hint"] = " ".join(hints)
    if isinstance(error, InvalidDocument):
        more["findings"] = [diagnostic_to_json(each) for each in error.report.diagnostics]
    code = error.code if isinstance(error, ServiceError) else type(error).__name__
    found = problem(status_of(error), code, str(error), **more)
    if isinstance(error, TooManyAttempts):
        found.headers["Retry-After"] = str(error.seconds)
    return found
