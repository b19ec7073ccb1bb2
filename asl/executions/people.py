"""Answers of people: to which request, whether it may be given, and what it decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asl.core.values import Json, compact, detached, encoded
from asl.executions.errors import RequestNotFound

if TYPE_CHECKING:
    from asl.states.decisions import Asked, Verdict
    from asl.stores.sqlite import SqliteStore

__all__ = ["answer", "asking", "request", "requester"]


def request(file: SqliteStore, id: str) -> Asked:
    """Return a request by its id; raises RequestNotFound."""
    found = file.requests("id = ?", id)
    if not found:
        raise RequestNotFound(f"there is no request {id!r} in {file.path}")
    return found[0]


def requester(file: SqliteStore, id: str) -> str:
    """Return the name of the execution that has made a request, or waits for a task token."""
    found = file.rows(
        "SELECT name FROM execution JOIN request ON execution = number WHERE id = ?", id
    )
    if not found:
        raise RequestNotFound(f"there is no request {id!r} in {file.path}")
    return str(found[0][0])


def asking(file: SqliteStore, id: str) -> str:
    """Return the name of the topmost execution that a request is to be answered for."""
    return file.top(requester(file, id))


def answer(file: SqliteStore, id: str, given: dict[str, Json], now: float) -> Json:
    """Take an answer at the time *now*; returns the record of the decision (`Store.answer`)."""
    from asl.states.decisions import AnswerRefused

    text = compact(detached(given))
    with file.transaction():
        asked = request(file, id)
        if asked.status != "open":
            return _repeated(file, asked, given, text, now)
        for notice in asked.notices():
            if asked.created + notice.after > now:
                break
            if notice.final:
                name = asking(file, id)
                raise AnswerRefused(
                    f"the answer comes too late: resume the execution {name!r}", late=True
                )
        _check_unchanged(file, asked)
        verdict = asked.judged(given, now, "user")
        _put_verdict(file, asked, verdict, text, now)
    return None if verdict.decision is None else verdict.decision["record"]


def _check_unchanged(file: SqliteStore, asked: Asked) -> None:
    """Raise StoreDamaged for a request that asks something else than the history says."""
    from asl.stores.log import Log

    ((number,),) = file.rows("SELECT execution FROM request WHERE id = ?", asked.id)
    recorded = Log(file, number).digest_of(asked.id)
    file.check(recorded in (None, asked.content_digest), f"what the request {asked.id} asks")


def _repeated(
    file: SqliteStore, asked: Asked, given: dict[str, Json], text: str, now: float
) -> Json:
    """Return the record of the decision to somebody who says again what led to it."""
    from asl.states.decisions import AnswerRefused

    ((kept,),) = file.rows("SELECT answer FROM request WHERE id = ?", asked.id)
    if kept is not None:
        decisive, record, *_ = file.unpacked(kept)
        if compact(decisive) == text or asked.repeated(given, now, "user"):
            return record
    raise AnswerRefused(f"the request was {_became(file, asked, kept)}")


def _became(file: SqliteStore, asked: Asked, kept: bytes | None) -> str:
    """Say what became of a request that is not open any more, and by whom."""
    if asked.status == "timeout":
        return "decided by its timeout already"
    if kept is None:
        return "closed already"
    record = file.unpacked(kept)[1]
    return f"answered already: {record['approval']!r} by {record['approver']!r}"


def _put_verdict(file: SqliteStore, asked: Asked, verdict: Verdict, text: str, now: float) -> None:
    """Keep the decision in the request, where the execution takes it up.

    Where approvals are still collected, only those.
    """
    write, received = file.write, file.packed(encoded(verdict.received))
    if verdict.decision is None:
        write("UPDATE request SET received = ? WHERE id = ?", received, asked.id)
        return
    ((number,),) = file.rows("SELECT execution FROM request WHERE id = ?", asked.id)
    decided = compact([asked.kind, now, verdict.decision, None])
    kept = f"[{text},{compact(verdict.decision['record'])},{decided}]"
    write(
        "UPDATE request SET status = 'answered', wake = 0, received = ?, answer = ? WHERE id = ?",
        received,
        file.packed(kept.encode()),
        asked.id,
    )
    write("UPDATE execution SET wake = 0 WHERE number = ? AND status = 'PAUSED'", number)
