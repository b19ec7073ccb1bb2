"""The check of every request: who sends it, in which project, with which role, from which site."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from time import monotonic
from typing import Final

from starlette.requests import Request

from asl.core.values import Json
from asl.server.access.attempts import TooManyAttempts
from asl.server.access.cross_site import SAFE_METHODS, refuse_cross_site
from asl.server.access.principal import Forbidden, Principal, Unauthorized
from asl.server.audit import record_action
from asl.server.projects import Access, ServerProject

__all__ = ["access_of", "while_allowed"]

RECHECK: Final = 10.0
"""Seconds after which a stream looks again whether its user may see it."""


def access_of(request: Request, role: str) -> Access:
    """Return the project and the user of a request.

    Raises:
        Unauthorized: The request has no valid credentials.
        Forbidden: The user lacks the role or the project, or the request comes from another site.
    """
    project: ServerProject = request.scope["asl.project"]
    principal: Principal = request.app.state.authenticate(request)
    principal.require_project(project.name)
    access = Access(project, principal)
    try:
        principal.require(role)
        if principal.ambient and request.method not in SAFE_METHODS:
            refuse_cross_site(request)
    except Forbidden as refusal:
        if request.method not in SAFE_METHODS:
            details: dict[str, Json] = {"method": request.method}
            place = request.url.path[:200]
            record_action(access, "access.refused", place, details, reason=str(refusal))
        raise
    return access


async def while_allowed(
    request: Request, role: str, parts: AsyncGenerator[bytes, None]
) -> AsyncIterator[bytes]:
    """Yield the parts of a stream until they end, or the user may not see them any more.

    Args:
        request: The request, with its credentials.
        role: The role that the stream needs.
        parts: The parts.
    """
    checked = monotonic()
    async with aclosing(parts):
        async for part in parts:
            if monotonic() >= checked + RECHECK:
                checked = monotonic()
                try:
                    access_of(request, role)
                except (Unauthorized, Forbidden, TooManyAttempts):
                    return
            yield part
