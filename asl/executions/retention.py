"""Deletion of executions that have ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import NamedTuple, Self

from asl.core.errors import AslError, ExpressionFault
from asl.engine.checkpoints import Storage
from asl.engine.exception_mapping import map_exceptions
from asl.executions.errors import ExecutionBusy, ExecutionNotFound
from asl.executions.executor import Executor
from asl.executions.locking import hold_lock
from asl.expr.times import parse_duration
from asl.stores.checkpoints import read_checkpoints
from asl.stores.deletion import (
    delete_executions,
    delete_unused_values,
    ended_before,
    ended_beyond,
)
from asl.stores.errors import StoreDamaged
from asl.stores.executions import ENDED, StoredExecution, numbers_below, top_of
from asl.stores.session import Session

__all__ = ["Retention", "delete", "not_ended", "prune"]

TOGETHER = 1000
"""Number of executions deleted in one transaction, during which others wait to write."""


def delete(executor: Executor, name: str, storages: Mapping[str, Storage]) -> None:
    """Delete an ended execution and its descendants (`Store.delete`).

    Raises:
        AslError: It has not ended, or another execution started it.
    """
    reader, session = executor.reader, executor.session
    name = reader.get(name).name
    with hold_lock(executor.session, name):
        stored = reader.get(name)
        if stored.parent is not None:
            top = top_of(session, name)
            raise AslError(f"the execution {name!r} is a part of {top!r}: delete that one")
        if stored.status not in ENDED:
            raise not_ended(stored)
        _delete(executor, [stored], storages)
    delete_unused_values(session)


def not_ended(stored: StoredExecution) -> AslError:
    """Return the error of deleting an execution that has not ended."""
    return AslError(
        f"the execution {stored.name!r} has not ended ({stored.status}): cancel it first "
        "('asl stop', or 'store.cancel(...)')"
    )


class Retention(NamedTuple):
    """The ended executions that a store retains; None for no limit.

    Attributes:
        age: Seconds since their end.
        latest: Number of the latest ones.
        express: Seconds since the end of express executions.
    """

    age: float | None = None
    latest: int | None = None
    express: float | None = None

    @classmethod
    def read(
        cls, keep: str | float | None, latest: int | None, express: str | float | None = None
    ) -> Self:
        """Return a retention of durations such as `"30d"`.

        Raises:
            AslError: A value is not a duration, or not a number of executions.
        """
        if latest is not None and (type(latest) is not int or latest < 0):
            raise AslError(f"'latest' must be 0 or more, got {latest!r}")
        age, fast = (None if each is None else _seconds(each) for each in (keep, express))
        return cls(age, latest, fast)

    def expired(self, session: Session, now: float) -> Iterator[str]:
        """Yield the names of the executions to delete, by each limit oldest first."""
        if self.age is not None:
            yield from ended_before(session, now - self.age)
        if self.express is not None:
            yield from ended_before(session, now - self.express, express=True)
        if self.latest is not None:
            yield from ended_beyond(session, self.latest)


def prune(
    executor: Executor,
    retention: Retention,
    now: float,
    storages: Mapping[str, Storage],
    dry_run: bool = False,
) -> list[str]:
    """Delete the ended executions that are not retained (`Store.prune`)."""
    session, deleted, large = executor.session, list[str](), False
    names = [*dict.fromkeys(retention.expired(session, now))]
    for begin in range(0, len(names), TOGETHER):
        with ExitStack() as locks:
            chosen = []
            for name in names[begin : begin + TOGETHER]:
                # Another process may redrive or delete it now; 'asl doctor' reports a damaged one.
                with suppress(ExecutionBusy, ExecutionNotFound, StoreDamaged):
                    locks.enter_context(hold_lock(session, name))
                    stored = executor.reader.get(name)
                    chosen += [stored] if stored.status in ENDED else []
            if not dry_run:
                large |= _delete(executor, chosen, storages)
            deleted += [each.name for each in chosen]
    if large:
        delete_unused_values(session)
    return deleted


def _delete(
    executor: Executor, chosen: list[StoredExecution], storages: Mapping[str, Storage]
) -> bool:
    """Delete executions, their descendants, and their checkpoints in other storages.

    Returns:
        Whether large values may be unused now.
    """
    session = executor.session
    numbers = [
        number for each in chosen for number in (each.number, *numbers_below(session, each.number))
    ]
    elsewhere = [place for number in numbers for place in _elsewhere(executor, number)]
    large = delete_executions(session, numbers)
    failures = [
        f"{id!r} in the storage {storage!r}: {why}"
        for storage, id in elsewhere
        if (why := _remove(storages.get(storage), id)) is not None
    ]
    if failures:
        more = f", and {len(failures) - 1} more" if failures[1:] else ""
        raise AslError(f"the executions are deleted, but not the checkpoint {failures[0]}{more}")
    return large


def _remove(storage: Storage | None, id: str) -> str | None:
    """Delete a checkpoint from a storage that can delete; return why that failed, or None."""
    remove = getattr(storage, "__delitem__", None)
    try:
        if remove is not None:
            with map_exceptions(AslError, lambda error: isinstance(error, KeyError)):
                remove(id)
    except KeyError:  # it has no such checkpoint
        return None
    except AslError as failure:
        return str(failure)
    return None


def _elsewhere(executor: Executor, number: int) -> Iterator[tuple[str, str]]:
    """Yield storage and id of an execution's checkpoints in other storages."""
    for each in read_checkpoints(executor.session, number):
        if each.storage != "default":
            yield each.storage, each.id


def _seconds(keep: str | float) -> float:
    """Return the seconds of a duration.

    Raises:
        AslError: The value is not a duration.
    """
    try:
        return parse_duration(keep)
    except ExpressionFault as fault:
        raise AslError(f"{fault}: {fault.hint}") from None
