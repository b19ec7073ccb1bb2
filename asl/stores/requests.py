"""Requests as rows: what people and the holders of task tokens are asked, and what became of it."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from asl.core.values import Json, encoded

if TYPE_CHECKING:
    from asl.engine.awaited import Awaited
    from asl.states.decisions import Asked
    from asl.stores.sqlite import SqliteStore

__all__ = [
    "addressed",
    "close_requests",
    "drop_request",
    "drop_vain_requests",
    "put_outcome",
    "put_request",
    "put_sign",
    "put_task",
    "take_up",
]

REQUEST = (
    "INSERT INTO request (id, execution, key, kind, status, created, wake, body, received, digest, "
    "told) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE "
    "SET status = excluded.status, wake = excluded.wake, told = excluded.told"
)
TASK = (
    "INSERT INTO request (id, execution, key, kind, status, created, wake, body, received, digest, "
    "told) VALUES (?, ?, ?, ?, 'open', ?, ?, ?, ?, ?, 0)"
)
SETTLED = "UPDATE request SET status = ?, wake = ?, answer = ? WHERE id = ? AND status = 'open'"
SIGN = "UPDATE request SET received = ?, wake = ? WHERE id = ? AND status = 'open'"
"""What becomes of a request by task token."""
TAKEN_UP = "UPDATE request SET wake = NULL WHERE id = ? AND status = 'answered'"
"""Its answer has been gone on with."""
WHILE_OPEN = " WHERE request.status = 'open'"
CLOSED = (
    "UPDATE request SET status = 'closed', wake = NULL "
    "WHERE execution = ? AND status = 'open' AND substr(key, 1, ?) = ?"
)
DROPPED = "DELETE FROM request WHERE execution = ? AND status = 'closed'"
FORGOTTEN = "DELETE FROM request WHERE id = ?"
UNHEARD = "execution = ? AND status = 'answered' AND wake IS NOT NULL"
"""Answered, and not gone on with."""


def put_request(store: SqliteStore, number: int, asked: Asked, received: bool) -> None:
    """Keep a request of an execution to people, or what became of an open one.

    Approvals may come meanwhile by another process; *received* puts those that came here.
    """
    body = encoded([asked.body, asked.plan])
    answers = store.packed(encoded(asked.received))
    store.write(
        REQUEST + (", received = excluded.received" if received else "") + WHILE_OPEN,
        asked.id,
        number,
        asked.key,
        asked.kind,
        asked.status,
        asked.created,
        asked.wake,
        store.packed(body),
        answers,
        asked.digest,
        asked.told,
    )


def put_task(store: SqliteStore, number: int, task: Awaited) -> None:
    """Keep a new request of an execution that is answered by its token."""
    body = [task.target, task.state, task.payload, task.timeout, task.heartbeat]
    store.write(
        TASK,
        task.token,
        number,
        task.key,
        task.kind,
        task.created,
        task.due,
        store.packed(encoded(body)),
        store.packed(encoded(_signs(task))),
        addressed(task.target),
    )


def addressed(target: str) -> str:
    """Return that by which the requests for a resource are found."""
    return sha256(target.encode()).hexdigest()


def put_sign(store: SqliteStore, task: Awaited) -> None:
    """Keep that somebody has taken a task, or is at work on it."""
    store.write(SIGN, store.packed(encoded(_signs(task))), task.due, task.token)


def put_outcome(store: SqliteStore, task: Awaited) -> None:
    """Keep what became of a task that was open."""
    if task.outcome is None:
        store.write(SETTLED, task.status, None, None, task.token)
    else:
        store.write(SETTLED, task.status, 0.0, store.packed(encoded(task.outcome)), task.token)


def _signs(task: Awaited) -> Json:
    return [task.taken, task.worker, task.beat]


def take_up(store: SqliteStore, id: str) -> None:
    """Say that the answer to a request has been gone on with."""
    store.write(TAKEN_UP, id)


def close_requests(store: SqliteStore, number: int, within: str = "") -> None:
    """Let nobody decide any more on what is open, of machines whose paths begin so."""
    store.write(CLOSED, number, len(within), within)


def drop_request(store: SqliteStore, id: str) -> None:
    """Forget a request."""
    store.write(FORGOTTEN, id)


def drop_vain_requests(store: SqliteStore, number: int) -> None:
    """Forget the requests that came to nothing: they are made again.

    Nobody has decided on them, or they have failed and no state has gone on with that.
    """
    for task in store.tasks(UNHEARD, number):
        if task.outcome is not None and task.outcome[2] is not None:
            store.write(FORGOTTEN, task.token)
    store.write(DROPPED, number)
