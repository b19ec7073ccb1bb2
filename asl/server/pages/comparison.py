"""The comparison of two executions: their paths, data, and the first event that differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from asl.core.values import Json
from asl.engine.events import Event
from asl.server.access.authorization import access_of
from asl.server.access.principal import VIEWER
from asl.server.pages.execution import difference_lines, drawing_of, history_of
from asl.server.pages.history import RunHistory, StateTotals, path_text
from asl.server.pages.rendering import quoted, render, ui_path
from asl.server.projects import Access
from asl.server.views import execution_key, find_execution
from asl.stores.executions import ExecutionFilter, StoredExecution

__all__ = ["ROUTES"]

OFFERED: Final = 20
"""Executions that are offered for a comparison."""
SHOWN_BEFORE: Final = 3
"""Common events before the first difference."""


class ComparedState(NamedTuple):
    """A state in two executions; None for one that has not visited it."""

    pointer: str
    name: str
    one: StateTotals | None
    other: StateTotals | None

    @property
    def differs(self) -> bool:
        """Whether the executions have treated it differently."""
        if self.one is None or self.other is None:
            return True
        return (self.one.status, self.one.visits) != (self.other.status, self.other.visits)


class FirstDifference(NamedTuple):
    """The first events that differ, and the last common ones."""

    common: list[Event]
    one: Event | None
    other: Event | None
    lines: list[tuple[str, str]] | None


def compare(request: Request) -> Response:
    """Compare two executions, or offer executions to compare one with."""
    access = access_of(request, VIEWER)
    keys = [request.query_params.get(name, "").strip() for name in ("one", "other")]
    stored = [find_execution(access.store, key) if key else None for key in keys]
    one, other = stored
    values: dict[str, Any] = {"one": one, "other": other, "offered": [], "has_both": False}
    if one is not None and other is not None:
        values |= {"has_both": True, **_compared(request, access, one, other)}
    elif one is not None:
        wanted = ExecutionFilter(workflow=one.workflow)
        rows, _ = access.store.search(wanted, limit=OFFERED + 1)
        values["offered"] = [each for each in rows if each.number != one.number][:OFFERED]
    values["now"] = access.store.clock.now()
    return render(request, access, "compare.html", **values)


def _compared(
    request: Request, access: Access, one: StoredExecution, other: StoredExecution
) -> dict[str, Any]:
    histories = [history_of(request, access, each) for each in (one, other)]
    sides = [
        _side(request, access, stored, history)
        for stored, history in zip((one, other), histories, strict=True)
    ]
    before, after = (_data(each) for each in histories)
    return {
        "sides": sides,
        "states": _states(*(each.totals for each in histories)),
        "step": _first_difference(*(each.events for each in histories), of=_step),
        "first": _first_difference(*(each.events for each in histories), of=_content),
        "same_document": one.document == other.document,
        "inputs": difference_lines(before["input"], after["input"]),
        "outputs": difference_lines(before["output"], after["output"]),
    }


def _side(
    request: Request, access: Access, stored: StoredExecution, history: RunHistory
) -> dict[str, Any]:
    """Return what is shown of one of the executions."""
    here = f"{ui_path(request)}/executions/{quoted(execution_key(stored))}"
    statuses = {pointer: each.status for pointer, each in history.totals.items()}

    def link(pointer: str) -> str:
        return f"{here}?state={quoted(pointer)}#state"

    return {
        "stored": stored,
        "here": here,
        "drawing": drawing_of(history.graph, link, statuses),
        "usage": access.store.result(stored.name, with_history=False).usage,
    }


def _data(history: RunHistory) -> dict[str, Json]:
    first = history.events[0].details if history.events else {}
    last = history.events[-1].details if history.events else {}
    return {"input": first.get("input"), "output": last.get("output")}


def _states(
    one: Mapping[str, StateTotals], other: Mapping[str, StateTotals]
) -> list[ComparedState]:
    return [
        ComparedState(
            pointer,
            (one.get(pointer) or other[pointer]).name,
            one.get(pointer),
            other.get(pointer),
        )
        for pointer in dict.fromkeys((*one, *other))
    ]


def _first_difference(
    one: list[Event], other: list[Event], *, of: Callable[[Event], object]
) -> FirstDifference | None:
    """Return the first events that differ in a part; None if it is the same in all."""
    for index in range(max(len(one), len(other))):
        left = one[index] if index < len(one) else None
        right = other[index] if index < len(other) else None
        if left is None or right is None or of(left) != of(right):
            lines = difference_lines(_shown(left), _shown(right))
            return FirstDifference(one[max(0, index - SHOWN_BEFORE) : index], left, right, lines)
    return None


def _step(event: Event) -> object:
    return event.type, event.path


def _content(event: Event) -> object:
    """Return everything but the time."""
    return event.type, event.path, event.details


def _shown(event: Event | None) -> Json:
    if event is None:
        return None
    return {"type": event.type, "state": path_text(event.path), **event.details}


ROUTES: Final = (Route("/compare", compare),)
"""The route of the comparison."""
