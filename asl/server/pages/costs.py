"""The page of costs and budgets."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from asl.server.access.authorization import access_of
from asl.server.access.principal import VIEWER
from asl.server.costs import CostRow, budgets_of, costs_since
from asl.server.pages.rendering import render

__all__ = ["ROUTES"]

PERIODS: Final = {"1": "24 hours", "7": "7 days", "30": "30 days", "365": "1 year"}
"""The offered periods by their days."""


def show_costs(request: Request) -> Response:
    """Show the costs of a period by workflow and model, and the shared budgets."""
    access = access_of(request, VIEWER)
    days = request.query_params.get("days", "7")
    days = days if days in PERIODS else "7"
    now = access.store.clock.now()
    table = costs_since(access.project, now - int(days) * 86400)
    return render(
        request,
        access,
        "costs.html",
        table=table,
        workflows=_by_cost([*table.workflows.values()]),
        models=_by_cost([*table.models.values()]),
        budgets=budgets_of(access.project, now),
        periods=PERIODS,
        days=days,
    )


def _by_cost(rows: list[CostRow]) -> list[CostRow]:
    return sorted(rows, key=lambda each: (-each.cost, -each.tokens, each.name))


ROUTES: Final = (Route("/costs", show_costs),)
"""The route of the costs."""
