"""Answers to approval requests."""

from __future__ import annotations

from asl.core.values import Json, compact, copy_foreign
from asl.executions.errors import RequestNotFound
from asl.states.approval_answers import AnswerRefused, ApprovalOutcome
from asl.states.approval_request import ApprovalRequest
from asl.stores.executions import MAKE_DUE, name_of, top_of
from asl.stores.log import Log
from asl.stores.requests import (
    BY_ID,
    answer_of,
    find_requests,
    owner_of,
    put_decision,
    put_received,
)
from asl.stores.session import Session

__all__ = ["execution_of", "find_request", "record_answer"]


def find_request(session: Session, id: str) -> ApprovalRequest:
    """Return a request by its id.

    Raises:
        RequestNotFound: The store has no such request.
    """
    found = find_requests(session, BY_ID, id)
    if not found:
        raise RequestNotFound(f"there is no request {id!r} in {session.place}")
    return found[0]


def execution_of(session: Session, id: str) -> str:
    """Return the name of the execution that made a request or waits for a task token.

    Raises:
        RequestNotFound: The store has no such request or token.
    """
    number = owner_of(session, id)
    name = None if number is None else name_of(session, number)
    if name is None:
        raise RequestNotFound(f"there is no request {id!r} in {session.place}")
    return name


def record_answer(session: Session, id: str, given: dict[str, Json], now: float) -> Json:
    """Record an answer to a request (`Store.answer`).

    Args:
        session: The store.
        id: The request.
        given: The answer.
        now: Time of the answer, seconds since the epoch.

    Returns:
        The record of the decision, None while more approvals are needed.

    Raises:
        AnswerRefused: The rules do not allow the answer, or it is too late.
        RequestNotFound: The store has no such request.
        StoreDamaged: The request differs from the recorded one.
    """
    text = compact(copy_foreign(given))
    with session.transaction():
        asked = find_request(session, id)
        if asked.status != "open":
            return _repeated(session, asked, given, text, now)
        for notice in asked.notices():
            if asked.created + notice.after > now:
                break
            if notice.final:
                name = top_of(session, execution_of(session, id))
                raise AnswerRefused(
                    f"the answer is too late: resume the execution {name!r}", late=True
                )
        _check_unchanged(session, asked)
        verdict = asked.judge(given, now, "user")
        _put_verdict(session, asked, verdict, text, now)
    return None if verdict.decision is None else verdict.decision["record"]


def _check_unchanged(session: Session, request: ApprovalRequest) -> None:
    """Raise StoreDamaged for a request that differs from the recorded one."""
    number = owner_of(session, request.id)
    assert number is not None
    recorded = Log(session, number).digest_of(request.id)
    session.check(recorded in (None, request.content_digest), f"what the request {request.id} asks")


def _repeated(
    session: Session, request: ApprovalRequest, given: dict[str, Json], text: str, now: float
) -> Json:
    """Return the record of the decision if the answer repeats the one that led to it."""
    recorded = answer_of(session, request.id)
    if recorded is not None:
        decisive, record, *_ = recorded
        if compact(decisive) == text or request.is_repetition(given, now, "user"):
            return record
    raise AnswerRefused(f"the request was {_became(request, recorded)}")


def _became(request: ApprovalRequest, recorded: Json) -> str:
    """Describe how a closed request was closed, and by whom."""
    if request.status == "timeout":
        return "decided by its timeout already"
    if recorded is None:
        return "closed already"
    record = recorded[1]
    return f"answered already: {record['approval']!r} by {record['approver']!r}"


def _put_verdict(
    session: Session, request: ApprovalRequest, verdict: ApprovalOutcome, text: str, now: float
) -> None:
    """Store the decision in the request, or the approvals collected so far without one."""
    if verdict.decision is None:
        put_received(session, request.id, verdict.received)
        return
    decided = compact([request.kind, now, verdict.decision, None])
    recorded = f"[{text},{compact(verdict.decision['record'])},{decided}]"
    put_decision(session, request.id, verdict.received, recorded.encode())
    session.write(MAKE_DUE, owner_of(session, request.id))
