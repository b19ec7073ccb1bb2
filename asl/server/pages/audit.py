"""The page of the audit log."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from asl.server.access.authorization import access_of
from asl.server.access.principal import OPERATOR
from asl.server.pages.execution_list import number_of
from asl.server.pages.rendering import render
from asl.stores.audit import list_entries

__all__ = ["ROUTES"]

PAGE: Final = 100
"""Entries on a page."""


def show_audit(request: Request) -> Response:
    """List the actions of users, the newest first."""
    access = access_of(request, OPERATOR)
    before = number_of(request.query_params.get("before"), "before")
    entries = list_entries(access.store.session, before=before, limit=PAGE)
    following = entries[-1].id if len(entries) == PAGE else None
    return render(
        request,
        access,
        "audit.html",
        entries=entries,
        following=following,
        is_first=before is None,
    )


ROUTES: Final = (Route("/audit", show_audit),)
"""The route of the audit log."""
