"""One at a time: who is at work on an execution, by its lock and by the claims of workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from asl.executions.errors import ExecutionBusy
from asl.stores.errors import StoreDamaged
from asl.stores.executions import Stored, find_execution, top_of
from asl.stores.session import Session
from asl.stores.statements import Select
from asl.stores.tables import EXECUTION
from asl.stores.workers import Workers, lock_of

__all__ = ["hold_lock", "interrupted_executions", "is_interrupted"]

RUNNING = Select(EXECUTION, ("name",), {"status": "RUNNING", "parent": None}, order=("number",))


@contextmanager
def hold_lock(session: Session, name: str) -> Iterator[None]:
    """Keep other processes and threads from an execution; its lock ends with this process.

    Whoever takes a name holds its lock before he looks whether it is free, and until the execution
    is in the store.

    Raises:
        ExecutionBusy: Somebody else is at work on it.
        StoreError: Nothing can be recorded.
    """
    place = lock_of(name)
    session.insist_writable()
    if place in session.at_work or not session.connection.lock(place):
        if not _takes_over(session, name, place):
            raise _busy(name)
    elif not _acquires(session, name):
        session.connection.unlock(place)
        raise _busy(name)
    session.at_work.add(place)
    try:
        yield
    finally:
        try:
            session.settle(name)
        finally:
            session.at_work.discard(place)
            session.connection.unlock(place)


def _is_held(session: Session, name: str) -> bool:
    """Whether somebody is at work on an execution."""
    place = lock_of(name)
    if place in session.at_work or session.connection.is_locked(place):
        return True
    known = find_execution(session, name)  # a worker may have taken it over without its lock
    return known is not None and Workers(session).is_owned(known.number)


def is_interrupted(session: Session, stored: Stored) -> bool:
    """Whether an execution has not ended or paused, and nobody is at work on it any more."""
    if stored.status != "RUNNING" or _is_held(session, top_of(session, stored.name)):
        return False
    known = find_execution(session, stored.name)  # it may have ended just now
    return known is not None and known.status == "RUNNING"


def interrupted_executions(session: Session) -> list[str]:
    """Return the names of those whose process has died, the oldest first."""
    found = []
    for (name,) in session.select(RUNNING):
        with suppress(StoreDamaged):  # a damaged one holds up no others; `executions` shows it
            known = find_execution(session, name)
            if known is not None and is_interrupted(session, known):
                found.append(name)
    return found


def _takes_over(session: Session, name: str, place: int) -> bool:
    """Whether this worker now has an execution whose lock a fenced worker holds."""
    if session.worker is None or place in session.at_work:
        return False
    known = find_execution(session, name)
    return known is not None and Workers(session).take_over(known.number)


def _acquires(session: Session, name: str) -> bool:
    """Whether an execution whose lock is held here is nobody else's from now on."""
    known = find_execution(session, name)
    return known is None or Workers(session).acquire(known.number)


def _busy(name: str) -> ExecutionBusy:
    return ExecutionBusy(
        f"somebody else is at work on the execution {name!r}: wait, or end that process"
    )
