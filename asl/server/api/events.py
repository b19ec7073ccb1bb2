"""Routes of histories and costs: pages of events, live streams, reports."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from itertools import islice
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query
from starlette.requests import Request
from starlette.responses import StreamingResponse

from asl.core.errors import AslError
from asl.server.access.authorization import while_allowed
from asl.server.access.principal import VIEWER
from asl.server.api.access import Viewer
from asl.server.api.models import (
    BudgetModel,
    CostOverview,
    CostReport,
    CostRowModel,
    EventModel,
    EventPage,
)
from asl.server.costs import CostRow, budgets_of, costs_since
from asl.server.projects import Access
from asl.server.views import find_execution

__all__ = ["router"]

router = APIRouter(tags=["events"])
SILENCE: Final = 15.0
"""Seconds without an event after which a comment keeps the connection open."""


@router.get("/executions/{key}/events")
def list_page(
    key: str,
    access: Viewer,
    after: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=5000)] = 500,
) -> EventPage:
    """List the events of an execution, the oldest first."""
    events = access.store.events(find_execution(access.store, key).name)
    found = [*islice((each for each in events if each.id > after), limit + 1)]
    page = [EventModel.model_validate(each.to_json()) for each in found[:limit]]
    return EventPage(events=page, next=page[-1].id if len(found) > limit else None)


@router.get(
    "/executions/{key}/stream",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def stream(
    key: str,
    access: Viewer,
    request: Request,
    after: Annotated[int, Query(ge=0)] = 0,
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    """Stream the events of an execution until its end, live, as server-sent events.

    A client that connects again sends the id of the last event that it has seen in the header
    Last-Event-ID. Chunks of an agent's answer come as they are produced and have no id.

    \f
    Raises:
        AslError: The header Last-Event-ID is not a number.
    """
    if last_event_id is not None:
        if not (last_event_id.isascii() and last_event_id.isdecimal()):
            raise AslError("the header Last-Event-ID must be a number")
        after = min(int(last_event_id[:18]), 2**53)
    name = find_execution(access.store, key).name
    return StreamingResponse(
        while_allowed(request, VIEWER, _stream(access, name, after)),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream(access: Access, name: str, after: int) -> AsyncGenerator[bytes, None]:
    yield b": events of an execution\n\n"
    hub = access.project.hub
    async for text in hub.watch(name, after, SILENCE):
        yield text
    if not hub.is_closed:
        yield b"event: end\ndata: {}\n\n"


@router.get("/costs")
def cost_overview(access: Viewer, days: Annotated[int, Query(ge=1, le=366)] = 7) -> CostOverview:
    """Show the costs of the last days by workflow and model, and the shared budgets."""
    now = access.store.clock.now()
    table = costs_since(access.project, now - days * 86400)
    budgets = [
        BudgetModel(
            name=each.name,
            spent=float(each.spent),
            reserved=float(each.reserved),
            limit=None if each.most is None else float(each.most),
        )
        for each in budgets_of(access.project, now)
    ]
    return CostOverview(
        total=_row(table.total),
        workflows=[_row(each) for each in table.workflows.values()],
        models=[_row(each) for each in table.models.values()],
        budgets=budgets,
        complete=table.is_complete,
    )


def _row(row: CostRow) -> CostRowModel:
    return CostRowModel(
        name=row.name, executions=row.executions, cost=float(row.cost), tokens=row.tokens
    )


@router.get("/executions/{key}/costs")
def costs(key: str, access: Viewer) -> CostReport:
    """Show the cost and the tokens of an execution."""
    name = find_execution(access.store, key).name
    return CostReport(report=access.store.result(name, with_history=False).usage)
