"""The list of executions, with filters."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from asl.core.errors import AslError
from asl.server.access.authorization import access_of
from asl.server.access.principal import VIEWER
from asl.server.documents import list_documents
from asl.server.pages.rendering import is_fragment, render, ui_path
from asl.stores.executions import STATUSES, ExecutionFilter

__all__ = ["ROUTES"]

PAGE: Final = 50
"""Executions on a page."""
LONGEST_TEXT: Final = 200


def _to_list(request: Request) -> Response:
    return RedirectResponse(f"{ui_path(request)}/executions", 303)


def list_executions(request: Request) -> Response:
    """Show a page of executions, the newest first.

    Raises:
        AslError: A filter is wrong.
    """
    access = access_of(request, VIEWER)
    given = request.query_params
    status, workflow, text = (
        given.get(name, "").strip()[:LONGEST_TEXT] or None for name in ("status", "workflow", "q")
    )
    wanted = ExecutionFilter(status, workflow, text)
    before = number_of(given.get("before"), "before")
    rows, following = access.store.search(wanted, before=before, limit=PAGE)
    now = access.store.clock.now()
    template = "execution_rows.html" if is_fragment(request) else "executions.html"
    return render(
        request,
        access,
        template,
        rows=rows,
        following=following,
        statuses=STATUSES,
        chosen={"status": status, "workflow": workflow, "q": text},
        is_first=before is None,
        now=now,
        documents=[each.name for each in list_documents(access.project)],
    )


def number_of(text: str | None, name: str) -> int | None:
    """Return the number in a parameter of an address, None for an absent one.

    Raises:
        AslError: It is no number.
    """
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise AslError(f"the parameter {name!r} must be a whole number")
    return int(text)


ROUTES: Final = (
    Route("/", _to_list),
    Route("/executions", list_executions),
)
"""The routes of the list."""
