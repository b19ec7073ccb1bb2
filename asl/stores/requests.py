"""Rows of approval requests and of task tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import islice
from math import inf
from typing import Any, Final, TypeVar

from asl.core.values import Json, encode
from asl.engine.pending_callback import PendingCallback
from asl.states.approval_request import ApprovalRequest
from asl.stores.errors import StoreDamaged
from asl.stores.session import Session
from asl.stores.statements import (
    PARAMETER,
    Delete,
    Insert,
    Row,
    Select,
    Update,
    Values,
    Where,
    begins_with,
    is_set,
    length_of,
    none_of,
    one_of,
)
from asl.stores.tables import REQUEST

__all__ = [
    "ALL",
    "ANSWERED_OF",
    "BY_ID",
    "FOR",
    "OF_EXECUTION",
    "OPEN",
    "OPEN_OF",
    "TASKS",
    "RequestQuery",
    "answer_of",
    "answered_ids",
    "close_requests",
    "damaged_requests",
    "drop_request",
    "drop_vain_requests",
    "find_decisions",
    "find_requests",
    "find_tasks",
    "owner_of",
    "put_decision",
    "put_heartbeat",
    "put_outcome",
    "put_received",
    "put_request",
    "put_task",
    "resource_digest",
    "scan_tasks",
    "take_answer",
]

_COLUMNS = (
    "id", "execution", "key", "kind", "status", "created", "wake", "body", "received", "digest",
    "notified",
)  # fmt: skip
_CHANGED = ("status", "wake", "notified")
_WHILE_OPEN = {"status": "open"}
PUT = Insert(REQUEST, _COLUMNS, "update", _CHANGED, _WHILE_OPEN)
PUT_WITH_ANSWERS = Insert(REQUEST, _COLUMNS, "update", (*_CHANGED, "received"), _WHILE_OPEN)
ADD_TASK = Insert(REQUEST, _COLUMNS)
SETTLE = Update(
    REQUEST,
    {"status": PARAMETER, "wake": PARAMETER, "answer": PARAMETER},
    {"id": PARAMETER, "status": "open"},
)
SIGN = Update(
    REQUEST,
    {"received": PARAMETER, "wake": PARAMETER, "notified": 1},
    {"id": PARAMETER, "status": "open"},
)
"""Updates worker and heartbeat of a task; from then on it is offered to no other worker."""
RECEIVE = Update(REQUEST, {"received": PARAMETER}, {"id": PARAMETER})
DECIDE = Update(
    REQUEST,
    {"status": "answered", "wake": 0.0, "received": PARAMETER, "answer": PARAMETER},
    {"id": PARAMETER},
)
TAKE_UP = Update(REQUEST, {"wake": None}, {"id": PARAMETER, "status": "answered"})
"""Marks an answer as used."""
CLOSE = Update(
    REQUEST,
    {"status": "closed", "wake": None},
    {"execution": PARAMETER, "status": "open", "key": begins_with()},
)
DROP_CLOSED = Delete(REQUEST, {"execution": PARAMETER, "status": "closed"})
DROP = Delete(REQUEST, {"id": PARAMETER})

TASKS: Final = ("token", "activity")
"""Kinds of requests that are answered by task token, not by approvers."""


@dataclass(frozen=True, eq=False, slots=True)
class RequestQuery:
    """Queries for approval requests, task tokens and decisions with the same conditions.

    The first two are paged.
    """

    people: Select
    tasks: Select
    decisions: Select


def _query(where: Where) -> RequestQuery:
    people = {**where, "kind": none_of(*TASKS)}
    shown = ("id", "key", "kind", "status", "created", "body", "received")
    return RequestQuery(
        _pages((*shown, "notified"), people),
        _pages((*shown, "answer"), {**where, "kind": one_of(*TASKS)}),
        Select(REQUEST, ("id", "key", "answer"), {"status": "answered", "wake": 0, **people}),
    )


def _pages(columns: tuple[str, ...], where: Where) -> Select:
    order = ("created", "#key", "key", "id")
    return Select(REQUEST, columns, where, order, after=True, limited=True, checked=True)


ALL: Final = _query({})
BY_ID: Final = _query({"id": PARAMETER})
OPEN: Final = _query({"status": "open"})
OF_EXECUTION: Final = _query({"execution": PARAMETER})
OPEN_OF: Final = _query({"execution": one_of(), "status": "open"})
ANSWERED_OF: Final = _query({"execution": one_of(), "status": "answered", "wake": is_set()})
"""Answered and not used."""
FOR: Final = _query({"status": "open", "digest": PARAMETER, "notified": 0})
"""Open task tokens for a resource that no worker has taken."""
POSITION = Select(REQUEST, ("created", "key", "id"), {"id": PARAMETER})
START: Final = (-inf, 0, "", "")
"""The position before all requests."""
PAGE: Final = 1000
"""Number of rows that are read together."""
OWNER = Select(REQUEST, ("execution",), {"id": PARAMETER})
ANSWER = Select(REQUEST, ("answer",), {"id": PARAMETER})
ANSWERED = Select(REQUEST, ("id",), {"status": "answered", "wake": 0})

Item = TypeVar("Item")


# Reading


def find_requests(
    session: Session,
    query: RequestQuery,
    *values: Any,
    limit: int | None = None,
    after: str | None = None,
    damaged: list[str] | None = None,
) -> list[ApprovalRequest]:
    """Return the approval requests of a query, oldest first.

    Args:
        session: The store.
        query: The query.
        values: The values of the query.
        limit: Maximum number; None for all.
        after: The id of the last request of the previous page; None for the first page.
        damaged: Receives a sentence about each damaged row; None raises StoreDamaged instead.
    """
    rows = _rows(session, query.people, values, limit, after)
    return [*islice(_whole(rows, partial(_read_request, session), damaged), limit)]


def find_tasks(
    session: Session,
    query: RequestQuery,
    *values: Any,
    limit: int | None = None,
    after: str | None = None,
    damaged: list[str] | None = None,
) -> list[PendingCallback]:
    """Return the task tokens of a query, oldest first.

    See `find_requests` for the arguments.
    """
    rows = _rows(session, query.tasks, values, limit, after)
    return [*islice(_whole(rows, partial(_read_task, session), damaged), limit)]


def scan_tasks(session: Session, query: RequestQuery, *values: Any) -> Iterator[PendingCallback]:
    """Yield the task tokens of a query."""
    rows = _rows(session, query.tasks, values, None, None)
    return _whole(rows, partial(_read_task, session), None)


def damaged_requests(session: Session, query: RequestQuery, *values: Any) -> list[str]:
    """Return a sentence about each damaged request or token of a query."""
    damaged: list[str] = []
    people = _rows(session, query.people, values, None, None)
    tasks = _rows(session, query.tasks, values, None, None)
    for _ in _whole(people, partial(_read_request, session), damaged):
        pass
    for _ in _whole(tasks, partial(_read_task, session), damaged):
        pass
    return damaged


def _rows(
    session: Session, statement: Select, values: Values, limit: int | None, after: str | None
) -> Iterator[Row]:
    """Yield rows of requests by pages; they may be more than *limit* if some are damaged."""
    position: Values = START
    if after is not None:
        position = next((_position(*row) for row in session.select(POSITION, after)), START)
    size = PAGE if limit is None else min(limit, PAGE)
    while True:
        rows = session.select(statement, *values, *position, size)
        yield from rows
        if len(rows) < size:
            return
        id, key, _, _, created, *_ = rows[-1]
        position = _position(created, key, id)


def _position(created: float, key: str, id: str) -> Values:
    """Return the values of a request's sort columns."""
    return created, length_of(key), key, id


def _whole(
    rows: Iterable[Row], read: Callable[[Row], Item], damaged: list[str] | None
) -> Iterator[Item]:
    """Yield the decoded rows, without damaged ones if *damaged* is given."""
    for row in rows:
        try:
            yield read(row)
        except StoreDamaged as damage:
            if damaged is None:
                raise
            damaged.append(f"the request {row[0]} is damaged: {damage.what}")


def _read_request(session: Session, row: Row) -> ApprovalRequest:
    id, key, kind, status, created, body, received, notified, whole = row
    session.check(whole == 1, f"the request {id}")
    with session.damage_reports(f"the request {id}"):
        shown, plan = session.values.unpack(body)
        asked = ApprovalRequest(id, key, kind, shown, plan, created)
        asked.status, asked.notices_sent = status, notified
        asked.received = session.values.unpack(received)
        session.check(asked.is_well_formed, f"what the request {id} asks")
    return asked


def _read_task(session: Session, row: Row) -> PendingCallback:
    id, key, kind, status, created, body, received, answer, whole = row
    session.check(whole == 1, f"the request {id}")
    with session.damage_reports(f"the request {id}"):
        target, state, payload, timeout, heartbeat = session.values.unpack(body)
        task = PendingCallback(id, key, kind, target, state, payload, created, timeout, heartbeat)
        task.status = status
        task.taken_at, task.worker, task.last_heartbeat = session.values.unpack(received)
        task.outcome = None if answer is None else session.values.unpack(answer)
        session.check(task.is_well_formed, f"the request {id}")
    return task


def find_decisions(
    session: Session, query: RequestQuery, *values: Any
) -> dict[str, tuple[str, Json]]:
    """Return the unused decisions of a query.

    Returns:
        The key of the effect and its answer, by the id of the request.
    """
    found = session.select(query.decisions, *values)
    with session.damage_reports("a decision"):
        return {id: (key, session.values.unpack(answer)[2]) for id, key, answer in found}


def owner_of(session: Session, id: str) -> int | None:
    """Return the number of the execution of a request, None if there is no such request."""
    found = session.select(OWNER, id)
    return found[0][0] if found else None


def answer_of(session: Session, id: str) -> Json:
    """Return the deciding answer to a request, its record and the effect's answer, or None."""
    ((answer,),) = session.select(ANSWER, id)
    return None if answer is None else session.values.unpack(answer)


def answered_ids(session: Session) -> list[str]:
    """Return the ids of requests and tokens with unused answers."""
    return [id for (id,) in session.select(ANSWERED)]


# Writing


def put_request(session: Session, number: int, request: ApprovalRequest, received: bool) -> None:
    """Store an approval request or the new status of an open one.

    Other processes may add approvals at any time; *received* stores those of this one.
    """
    body = encode([request.body, request.plan])
    answers = session.values.pack(encode(request.received))
    session.write(
        PUT_WITH_ANSWERS if received else PUT,
        request.id,
        number,
        request.key,
        request.kind,
        request.status,
        request.created,
        request.wake,
        session.values.pack(body),
        answers,
        request.digest,
        request.notices_sent,
    )


def put_task(session: Session, number: int, task: PendingCallback) -> None:
    """Store a new task token of an execution."""
    body = [task.target, task.state, task.payload, task.timeout, task.heartbeat]
    session.write(
        ADD_TASK,
        task.token,
        number,
        task.key,
        task.kind,
        "open",
        task.created,
        task.due,
        session.values.pack(encode(body)),
        session.values.pack(encode(_signs(task))),
        resource_digest(task.target),
        0,
    )


def resource_digest(target: str) -> str:
    """Return the digest by which the task tokens for a resource are found."""
    return sha256(target.encode()).hexdigest()


def put_heartbeat(session: Session, task: PendingCallback) -> None:
    """Store the worker and the heartbeat of a task."""
    session.write(SIGN, session.values.pack(encode(_signs(task))), task.due, task.token)


def put_outcome(session: Session, task: PendingCallback) -> None:
    """Store the outcome of an open task."""
    if task.outcome is None:
        session.write(SETTLE, task.status, None, None, task.token)
    else:
        outcome = session.values.pack(encode(task.outcome))
        session.write(SETTLE, task.status, 0.0, outcome, task.token)


def _signs(task: PendingCallback) -> Json:
    return [task.taken_at, task.worker, task.last_heartbeat]


def put_received(session: Session, id: str, received: Json) -> None:
    """Store the approvals collected for a request."""
    session.write(RECEIVE, session.values.pack(encode(received)), id)


def put_decision(session: Session, id: str, received: Json, answer: bytes) -> None:
    """Store a decision for the execution to use.

    Args:
        session: The store.
        id: Id of the request.
        received: Approvals that led to it.
        answer: JSON text of the deciding answer, its record, and the answer of the effect.
    """
    pack = session.values.pack
    session.write(DECIDE, pack(encode(received)), pack(answer), id)


def take_answer(session: Session, id: str) -> None:
    """Mark the answer to a request as used."""
    session.write(TAKE_UP, id)


def close_requests(session: Session, number: int, within: str = "") -> None:
    """Close the open requests of the machines below a path."""
    session.write(CLOSE, number, within)


def drop_request(session: Session, id: str) -> None:
    """Delete a request."""
    session.write(DROP, id)


def drop_vain_requests(session: Session, number: int) -> None:
    """Delete the requests without a usable answer; a redrive creates them again.

    They are closed without a decision, or their failure was not used.
    """
    for task in find_tasks(session, ANSWERED_OF, [number]):
        if task.outcome is not None and task.outcome[2] is not None:
            session.write(DROP, task.token)
    session.write(DROP_CLOSED, number)
