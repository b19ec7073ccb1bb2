"""Locks of executions: one process runs an execution at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from asl.executions.errors import ExecutionBusy
from asl.stores.errors import StoreDamaged
from asl.stores.executions import StoredExecution, find_execution, top_of
from asl.stores.session import Session
from asl.stores.statements import Select
from asl.stores.tables import EXECUTION
from asl.stores.workers import Workers, lock_of

__all__ = ["hold_lock", "interrupted_executions", "is_interrupted"]

RUNNING = Select(EXECUTION, ("name",), {"status": "RUNNING", "parent": None}, order=("number",))


@contextmanager
def hold_lock(session: Session, name: str) -> Iterator[None]:
    """Hold the lock of an execution; it ends with this process.

    A new execution is locked before its name is looked up and until it is stored.

    Raises:
        ExecutionBusy: Another process or thread runs it.
        StoreError: Nothing can be recorded.
    """
    place = lock_of(name)
    session.insist_writable()
    if place in session.running_locks or not session.connection.lock(place):
        if not _takes_over(session, name, place):
            raise _busy(name)
    elif not _acquires(session, name):
        session.connection.unlock(place)
        raise _busy(name)
    session.running_locks.add(place)
    try:
        yield
    finally:
        try:
            session.settle(name)
        finally:
            session.running_locks.discard(place)
            session.connection.unlock(place)


def _is_held(session: Session, name: str) -> bool:
    """Return whether any process runs an execution."""
    place = lock_of(name)
    if place in session.running_locks or session.connection.is_locked(place):
        return True
    known = find_execution(session, name)  # a worker may have taken it over without its lock
    return known is not None and Workers(session).is_owned(known.number)


def is_interrupted(session: Session, stored: StoredExecution) -> bool:
    """Return whether the process of a running execution has died."""
    if stored.status != "RUNNING" or _is_held(session, top_of(session, stored.name)):
        return False
    known = find_execution(session, stored.name)  # it may have ended meanwhile
    return known is not None and known.status == "RUNNING"


def interrupted_executions(session: Session) -> list[str]:
    """Return the names of the executions whose process has died, oldest first."""
    found = []
    for (name,) in session.select(RUNNING):
        with suppress(StoreDamaged):  # a damaged one must not stop others; `executions` shows it
            known = find_execution(session, name)
            if known is not None and is_interrupted(session, known):
                found.append(name)
    return found


def _takes_over(session: Session, name: str, place: int) -> bool:
    """Claim an execution whose lock a fenced worker holds; return whether that succeeded."""
    if session.worker is None or place in session.running_locks:
        return False
    known = find_execution(session, name)
    return known is not None and Workers(session).take_over(known.number)


def _acquires(session: Session, name: str) -> bool:
    """Claim an execution whose lock is held here; return whether that succeeded."""
    known = find_execution(session, name)
    return known is None or Workers(session).acquire(known.number)


def _busy(name: str) -> ExecutionBusy:
    return ExecutionBusy(f"another process runs the execution {name!r}: wait, or end that process")
