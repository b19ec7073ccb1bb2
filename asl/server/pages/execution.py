"""The page of one execution: graph, timeline, states, events, data, actions."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from difflib import unified_diff
from typing import Any, Final, NamedTuple

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from asl.core.diagnostics import InvalidDocument
from asl.core.printable import printable, printable_json
from asl.core.values import Json, excerpt
from asl.engine.events import Event
from asl.executions import Store
from asl.executions.execution_reader import REDRIVABLE
from asl.graphs.model import GraphState, MachineGraph
from asl.graphs.svg import Marking, embedded_svg
from asl.server.access.authorization import access_of, while_allowed
from asl.server.access.principal import OPERATOR, VIEWER
from asl.server.actions import (
    cancel_execution,
    delete_execution,
    fork_execution,
    redrive_execution,
    resume_execution,
)
from asl.server.pages.execution_list import number_of
from asl.server.pages.forms import field, go_to, json_field, optional_field, posted_form, reason_in
from asl.server.pages.history import RunHistory, StateVisit, path_text
from asl.server.pages.rendering import NOTES, is_fragment, quoted, render, ui_path
from asl.server.pages.sources import graph_for, place_of_error, readable_document
from asl.server.pages.timeline import timeline_of
from asl.server.problems import NotFound
from asl.server.projects import Access
from asl.server.views import execution_key, find_execution
from asl.states.blocks.streaming import CHUNK
from asl.states.effects import ABSENT
from asl.stores.executions import ENDED, StoredExecution

__all__ = ["ROUTES", "difference_lines", "drawing_of", "history_of"]

ROWS: Final = 100
"""Rows of events that are loaded together."""
SHOWN: Final = 50
"""Children and requests on the page."""
MOST_DRAWN: Final = 1_500
"""States and transitions of a graph that is drawn on a page."""
MOST_COMPARED: Final = 1_500
"""Lines of a value that is compared with another one."""
MOST_VISITS: Final = 200
LARGEST_SUMMARY: Final = 20_000
"""Bytes of the largest details that are written in order to show their beginning."""
LONGEST_SUMMARY: Final = 160
SILENCE: Final = 15.0
"""Seconds without an event after which a comment keeps a stream open."""
DONE: Final = {
    "started": "The execution was started.",
    "stopped": "The execution is being stopped.",
    "redriven": "The execution continues from the states that failed.",
    "resumed": "The execution continues from its checkpoint.",
    "forked": "This is the new execution.",
}
"""What the page says after an action."""


def history_of(request: Request, access: Access, stored: StoredExecution) -> RunHistory:
    """Return the history of an execution up to now."""
    found: RunHistory = request.app.state.histories.get(access.project, stored, graph_for)
    return found


def drawing_of(
    graph: MachineGraph, link: Callable[[str], str], statuses: Mapping[str, str]
) -> str | None:
    """Return a graph as SVG; None for one that is too large.

    Args:
        graph: The graph.
        link: Returns the address of what is shown about a state, by its JSON Pointer.
        statuses: Status of each state by its JSON Pointer.
    """
    if graph.size > MOST_DRAWN:
        return None

    def mark(state: GraphState) -> Marking:
        status = statuses.get(state.pointer, "")
        return Marking(link(state.pointer), status, NOTES.get(status, ""))

    return embedded_svg(graph, mark)


def difference_lines(before: Json, after: Json) -> list[tuple[str, str]] | None:
    """Return the lines of the comparison of two values: their mark and text.

    None for values that are equal or too long to compare.
    """
    one, other = (
        printable_json(orjson.dumps(each, option=orjson.OPT_INDENT_2).decode()).split("\n")
        for each in (before, after)
    )
    if one == other or max(len(one), len(other)) > MOST_COMPARED:
        return None
    lines = [*unified_diff(one, other, lineterm="", n=2)][2:]
    return [(line[:1], line[1:]) for line in lines]


class EventRow(NamedTuple):
    """An event in the table."""

    event: Event
    elapsed: float
    place: str
    summary: str


def _row(event: Event, started: float) -> EventRow:
    return EventRow(event, event.timestamp - started, path_text(event.path), _summary(event))


def _summary(event: Event) -> str:
    """Return what is worth reading of the details of an event, in one line."""
    details = event.details
    if "error" in details:
        text = f"{details['error']}: {details.get('cause') or ''}"
    else:
        shown = {key: each for key, each in details.items() if key != "name"}
        value = next(iter(shown.values())) if len(shown) == 1 else shown
        text = excerpt(value, LARGEST_SUMMARY) if shown else ""
    return printable(text[:LONGEST_SUMMARY])


def show_execution(request: Request) -> Response:
    """Show an execution; a script asks for what is shown of one of its states."""
    access = access_of(request, VIEWER)
    stored = find_execution(access.store, request.path_params["key"])
    history = history_of(request, access, stored)
    chosen = _chosen(request, access, stored, history)
    if is_fragment(request):
        template = "state.html" if chosen["visit"] is not None else "execution_data.html"
        return render(request, access, template, **_frame(request, access, stored), **chosen)
    statuses = {pointer: each.status for pointer, each in history.totals.items()}
    here = f"{ui_path(request)}/executions/{quoted(execution_key(stored))}"
    return render(
        request,
        access,
        "execution.html",
        **_frame(request, access, stored),
        **chosen,
        **_live(access, stored, history),
        drawing=drawing_of(
            history.graph, lambda pointer: f"{here}?state={quoted(pointer)}#state", statuses
        ),
        size=history.graph.size,
        rows=[_row(each, stored.started) for each in history.events[:ROWS]],
        first=0,
        chunks=range(ROWS, len(history.events), ROWS),
        is_truncated=history.is_truncated,
        last=history.events[-1].id if history.events else 0,
        chunk=ROWS,
        done=DONE.get(request.query_params.get("done", "")),
    )


def show_live(request: Request) -> Response:
    """Show the part of the page that changes while the execution runs."""
    access = access_of(request, VIEWER)
    stored = find_execution(access.store, request.path_params["key"])
    history = history_of(request, access, stored)
    return render(
        request,
        access,
        "execution_live.html",
        **_frame(request, access, stored),
        **_live(access, stored, history),
    )


def show_answer(request: Request) -> Response:
    """Show what the agent of a state has answered so far."""
    access = access_of(request, VIEWER)
    stored = find_execution(access.store, request.path_params["key"])
    chosen = _chosen(request, access, stored, history_of(request, access, stored))
    return render(request, access, "answer.html", answer=chosen.get("answer", ""))


def _frame(request: Request, access: Access, stored: StoredExecution) -> dict[str, Any]:
    """Return what every part of the page needs."""
    return {
        "stored": stored,
        "key": execution_key(stored),
        "here": f"{ui_path(request)}/executions/{quoted(execution_key(stored))}",
        "is_over": stored.status in ENDED,
    }


def _live(access: Access, stored: StoredExecution, history: RunHistory) -> dict[str, Any]:
    """Return what changes while the execution runs."""
    store, now = access.store, access.store.clock.now()
    end = now if stored.ended is None else stored.ended
    usage = store.result(stored.name, with_history=False).usage
    failure = history.failed if stored.status in REDRIVABLE else None
    return {
        "now": now,
        "usage": usage,
        "failure": failure,
        "excerpt": _excerpt(access, stored, failure),
        "pending": store.pending(stored.name, limit=SHOWN),
        "callbacks": store.pending_callbacks(stored.name, limit=SHOWN),
        "needs": store.needs(stored.name),
        "is_interrupted": _is_interrupted(store, stored),
        "children": store.descendants(stored.name)[:SHOWN],
        "checkpoints": store.checkpoints(stored.name),
        "parent": store.root(stored.name) if stored.parent is not None else None,
        "totals": history.totals,
        "timeline": timeline_of(history.visits, stored.started, end),
        "can_redrive": stored.status in REDRIVABLE and stored.parent is None,
        "can_stop": stored.status not in ENDED and stored.parent is None,
        "forks": _fork_points(history),
        "count": len(history.events),
    }


def _is_interrupted(store: Store, stored: StoredExecution) -> bool:
    return stored.status == "RUNNING" and store.is_interrupted(stored.name)


def _excerpt(access: Access, stored: StoredExecution, failure: StateVisit | None) -> Any:
    if failure is None:
        return None
    try:
        return place_of_error(readable_document(access.project, stored), failure)
    except InvalidDocument:
        return None


def _fork_points(history: RunHistory) -> list[str]:
    """Return the visited states at which a copy can start, the last one first."""
    names = (str(each.path[0]) for each in reversed(history.visits) if len(each.path) == 1)
    return [*dict.fromkeys(names)]


def _chosen(
    request: Request, access: Access, stored: StoredExecution, history: RunHistory
) -> dict[str, Any]:
    """Return what is shown of the chosen state, or of the execution as a whole."""
    pointer = request.query_params.get("state")
    if pointer is None:
        first = history.events[0].details.get("input") if history.events else None
        last = history.events[-1].details if history.events else {}
        data = _data(first, last.get("output", ABSENT))
        return {"visit": None, "pointer": None, "overall": stored.status, **data}
    visits = history.visits_of(pointer)
    if not visits:
        name = next(
            (each.name for each in history.graph.all_states() if each.pointer == pointer), None
        )
        if name is None:
            raise NotFound(f"the document has no state at {pointer!r}")
        data = _data(None, ABSENT)
        return {"visit": None, "pointer": pointer, "overall": "", "unvisited": name, **data}
    number = number_of(request.query_params.get("visit"), "visit") or len(visits)
    visit = visits[min(max(number, 1), len(visits)) - 1]
    events = history.events_of(visit)
    details: dict[str, Any] = {}
    for event in events:
        details |= {
            name: event.details[name]
            for name in ("input", "parameters", "assignedVariables")
            if name in event.details
        }
        if event.type.endswith("StateExited"):
            details["output"] = event.details.get("output")
        elif "output" in event.details:
            details["result"] = event.details["output"]
    usage = access.store.result(stored.name, with_history=False).usage.get("byState", {})
    return {
        "visit": visit,
        "pointer": pointer,
        "overall": history.totals[pointer].status,
        "number": visits.index(visit) + 1,
        "visits": len(visits),
        "answer": history.answers.get(visit.path, ""),
        "attempts": [*_attempts(events)],
        "spent": usage.get(str(visit.path[-1])),
        "variables": history.variables_before(visit),
        "visit_rows": [_row(each, stored.started) for each in events[:ROWS]],
        "details": details,
        **_data(details.get("input"), details.get("output", ABSENT)),
    }


def _data(before: Json, after: Json) -> dict[str, Any]:
    has_output = after is not ABSENT
    return {
        "input": before,
        "output": after if has_output else None,
        "has_output": has_output,
        "difference": difference_lines(before, after) if has_output else None,
    }


class AttemptRow(NamedTuple):
    """One attempt of a task."""

    number: int
    started: float
    ended: float | None
    outcome: str
    error: str | None
    cause: str | None
    delay: float | None


def _attempts(events: Sequence[Event]) -> list[AttemptRow]:
    """Return the attempts of a task from the events of its visit."""
    found: list[AttemptRow] = []
    for event in events:
        details = event.details
        if event.type == "RetryScheduled":
            if found:
                found[-1] = found[-1]._replace(delay=details.get("delay"))
        elif event.type.endswith("Scheduled"):
            row = AttemptRow(len(found) + 1, event.timestamp, None, "RUNNING", None, None, None)
            found.append(row)
        elif found and found[-1].ended is None and event.type.endswith(_OUTCOMES):
            outcome = next(each for suffix, each in _STATUSES if event.type.endswith(suffix))
            found[-1] = found[-1]._replace(
                ended=event.timestamp,
                outcome=outcome,
                error=details.get("error"),
                cause=details.get("cause"),
            )
    return found


_STATUSES: Final = (("Succeeded", "SUCCEEDED"), ("TimedOut", "TIMED_OUT"), ("Failed", "FAILED"))
_OUTCOMES: Final = tuple(suffix for suffix, _ in _STATUSES)


def show_events(request: Request) -> Response:
    """Show rows of events: as a page, or the rows alone for a script."""
    access = access_of(request, VIEWER)
    stored = find_execution(access.store, request.path_params["key"])
    history = history_of(request, access, stored)
    first = number_of(request.query_params.get("from"), "from") or 0
    first -= first % ROWS
    template = "event_rows.html" if is_fragment(request) else "events.html"
    return render(
        request,
        access,
        template,
        **_frame(request, access, stored),
        rows=[_row(each, stored.started) for each in history.events[first : first + ROWS]],
        first=first,
        count=len(history.events),
        chunk=ROWS,
        is_truncated=history.is_truncated,
    )


def show_event(request: Request) -> Response:
    """Show one event with its details.

    Raises:
        NotFound: There is no such event.
    """
    access = access_of(request, VIEWER)
    stored = find_execution(access.store, request.path_params["key"])
    history = history_of(request, access, stored)
    number = request.path_params["id"]
    event = next((each for each in history.events[number - 1 : number] if each.id == number), None)
    event = event or next((each for each in history.events if each.id == number), None)
    if event is None:
        raise NotFound(f"the execution has no event {number}")
    template = "event_part.html" if is_fragment(request) else "event.html"
    return render(
        request,
        access,
        template,
        **_frame(request, access, stored),
        event=event,
        place=path_text(event.path),
    )


_IDS: Final = re.compile(rb"^id: (\d+)$", re.MULTILINE)
_LIVE: Final = f"event: {CHUNK}\n".encode()


async def stream(request: Request) -> Response:
    """Stream that there are new events or words of agents, until the end.

    The page fetches what it shows of the events, so that they are interpreted in one place.
    """
    access = access_of(request, VIEWER)
    stored = find_execution(access.store, request.path_params["key"])
    given = request.headers.get("last-event-id") or request.query_params.get("after")
    after = number_of(given, "after") or 0

    async def lines() -> AsyncGenerator[bytes, None]:
        yield b": events of an execution\n\n"
        hub = access.project.hub
        async for text in hub.watch(stored.name, after, SILENCE):
            yield _news(text)
        if not hub.is_closed:
            yield b"event: end\ndata: end\n\n"

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    allowed = while_allowed(request, VIEWER, lines())
    return StreamingResponse(allowed, media_type="text/event-stream", headers=headers)


def _news(text: bytes) -> bytes:
    """Return what a page needs of server-sent events: that there are some, and their kind."""
    if text.startswith(b":"):
        return text
    ids = _IDS.findall(text)
    words = b"event: words\ndata: news\n\n" if _LIVE in text else b""
    return words + (b"id: %s\ndata: news\n\n" % ids[-1] if ids else b"")


# Actions


async def stop(request: Request) -> Response:
    """Stop an execution."""
    async with posted_form(request, OPERATOR) as (access, form):
        key = request.path_params["key"]
        await run_in_threadpool(cancel_execution, access, key, reason_in(form))
        return go_to(request, f"executions/{quoted(key)}?done=stopped")


async def redrive(request: Request) -> Response:
    """Continue a failed execution from the states that failed."""
    async with posted_form(request, OPERATOR) as (access, form):
        key = request.path_params["key"]
        await run_in_threadpool(redrive_execution, access, key, reason_in(form))
        return go_to(request, f"executions/{quoted(key)}?done=redriven")


async def resume(request: Request) -> Response:
    """Continue an execution from a checkpoint."""
    async with posted_form(request, OPERATOR) as (access, form):
        key, checkpoint = request.path_params["key"], field(form, "checkpoint")
        await run_in_threadpool(resume_execution, access, key, checkpoint, reason_in(form))
        return go_to(request, f"executions/{quoted(key)}?done=resumed")


async def fork(request: Request) -> Response:
    """Start a copy of an execution at one of its states."""
    async with posted_form(request, OPERATOR) as (access, form):
        key = request.path_params["key"]
        new = await run_in_threadpool(_fork, access, key, form)
        return go_to(request, f"executions/{quoted(execution_key(new))}?done=forked")


def _fork(access: Access, key: str, form: FormData) -> StoredExecution:
    given = optional_field(form, "input")
    data = ABSENT if given is None else json_field(given, "input")
    name = optional_field(form, "name")
    return fork_execution(access, key, field(form, "at"), reason_in(form), data=data, name=name)


async def delete(request: Request) -> Response:
    """Delete an ended execution."""
    async with posted_form(request, OPERATOR) as (access, form):
        key = request.path_params["key"]
        await run_in_threadpool(delete_execution, access, key, reason_in(form))
        return go_to(request, "executions")


ROUTES: Final = (
    Route("/executions/{key}", show_execution),
    Route("/executions/{key}/live", show_live),
    Route("/executions/{key}/answer", show_answer),
    Route("/executions/{key}/events", show_events),
    Route("/executions/{key}/events/{id:int}", show_event),
    Route("/executions/{key}/stream", stream),
    Route("/executions/{key}/stop", stop, methods=["POST"]),
    Route("/executions/{key}/redrive", redrive, methods=["POST"]),
    Route("/executions/{key}/resume", resume, methods=["POST"]),
    Route("/executions/{key}/fork", fork, methods=["POST"]),
    Route("/executions/{key}/delete", delete, methods=["POST"]),
)
"""The routes of the page, its parts and its actions."""
