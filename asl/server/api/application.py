"""The REST interface as an application, with its OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from asl import __version__
from asl.core.errors import AslError
from asl.core.values import Json
from asl.server.access.principal import Principal
from asl.server.api import documents, events, executions, requests, schedules, service, webhooks
from asl.server.problems import problem, problem_of

__all__ = ["rest_application"]

ROUTERS: Final = (
    documents.router,
    executions.router,
    events.router,
    requests.router,
    schedules.router,
    webhooks.router,
    service.router,
)
"""The routes of the REST interface."""


def rest_application(identify: Callable[[HTTPConnection], Principal]) -> FastAPI:
    """Return the REST interface.

    Args:
        identify: Returns the user of a request; raises Unauthorized.
    """
    api = FastAPI(
        title="Agent State Language",
        description="Workflows, their executions, and the people who decide in them.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        generate_unique_id_function=_operation_id,
    )
    api.state.authenticate = identify
    _add_handlers(api)
    for router in ROUTERS:
        api.include_router(router)
    return api


def _operation_id(route: APIRoute) -> str:
    return f"{route.tags[0]}_{route.name}"


def _add_handlers(application: FastAPI) -> None:
    """Make an application answer errors as problems."""
    application.add_exception_handler(AslError, _answer_error)
    application.add_exception_handler(HTTPException, _answer_http)
    application.add_exception_handler(RequestValidationError, _answer_invalid)


def _answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, AslError)
    return problem_of(error)


def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, "HttpError", str(error.detail))


def _answer_invalid(request: Request, error: Exception) -> Response:
    """Describe a body or parameter of a wrong form, without repeating its content."""
    assert isinstance(error, RequestValidationError)
    faults: list[Json] = [
        {"place": ".".join(map(str, each["loc"])), "message": each["msg"]}
        for each in error.errors()[:20]
    ]
    first = f"{faults[0]['place']}: {faults[0]['message']}" if faults else "wrong form"
    return problem(422, "InvalidRequest", first, faults=faults)
