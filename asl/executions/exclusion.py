"""One at a time: who is at work on an execution, by its lock and by the claims of workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from asl.executions.errors import ExecutionBusy
from asl.stores.executions import find_execution
from asl.stores.session import Session
from asl.stores.workers import Workers, lock_of

__all__ = ["hold", "is_held"]


@contextmanager
def hold(session: Session, name: str) -> Iterator[None]:
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


def is_held(session: Session, name: str) -> bool:
    """Whether somebody is at work on an execution."""
    place = lock_of(name)
    if place in session.at_work or session.connection.is_locked(place):
        return True
    known = find_execution(session, name)  # a worker may have taken it over without its lock
    return known is not None and Workers(session).is_owned(known.number)


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
