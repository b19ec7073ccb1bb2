"""Sessions of a store, one for each thread of each process.

A session gathers the changes of all executions of its thread and commits them in one transaction
(group commit). A connection to SQLite must not cross a fork, and threads must not share
transactions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import local
from typing import TYPE_CHECKING, Any, Final

from asl.core.values import excerpt
from asl.stores.backend import Computed, StoreBackend, StoreConnection, Write
from asl.stores.errors import (
    CLOSED,
    CONTRADICTED,
    UNREADABLE,
    LeaseLost,
    StoreContradicted,
    StoreDamaged,
    StoreError,
)
from asl.stores.statements import PARAMETER, Change, Row, Select
from asl.stores.tables import WORKER
from asl.stores.values import StoredValues

if TYPE_CHECKING:
    from asl.stores.group_commit import GroupCommit

__all__ = ["Session", "ThreadSessions"]

INTERRUPTED: Final = "it was interrupted while it wrote, and takes nothing more: open it again"
FENCED: Final = (
    "this worker was silent for so long that others have taken over its executions: it takes "
    "nothing more"
)
LEASE = Select(WORKER, ("id",), {"id": PARAMETER, "fenced": 0})


class Session:
    """A store as one thread uses it.

    Args:
        connection: The connection of this thread.
        place: The path of the file, or the name of the store in messages.
    """

    def __init__(self, connection: StoreConnection, place: str | os.PathLike[str]) -> None:
        self.connection = connection
        self.place = place
        self.values = StoredValues(self)
        self.worker: str | None = None
        """Id of the worker of this session (`asl.stores.workers`), None for none."""
        self.running_locks: set[int] = set()
        """Locks of the executions that this thread runs."""
        self._writes: list[Write] = []
        self._final_writes: list[Callable[[], Iterable[Write]]] = []
        self._flushing: GroupCommit | None = None
        self._reads_written = False
        self._end_reason: str | None = None
        """Why the session accepts no more writes (the last ones may be lost); None while it
        does."""
        self._new_names: set[str] = set()
        """Names of the new executions among the pending changes."""

    # Life cycle

    @property
    def on_fail_point(self) -> Callable[[str], object]:
        """The function called at each of `asl.stores.backend.FAIL_POINTS`."""
        return self.connection.on_fail_point

    @on_fail_point.setter
    def on_fail_point(self, call: Callable[[str], object]) -> None:
        self.connection.on_fail_point = call

    def close(self) -> None:
        """Write pending changes and close the store, if it is open.

        It is closed even if the changes cannot be written.
        """
        if self.connection.is_closed:
            return
        try:
            if self._end_reason is None:
                self.flush()
        finally:
            self.connection.close()

    def crash(self) -> None:
        """Close the store as the death of the process does: pending changes are lost."""
        self._gathered()
        self.connection.close()

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self.connection.is_closed

    @property
    def refusal(self) -> str | None:
        """Why the store is read-only; None if it can be written."""
        return self.connection.refusal

    def insist_writable(self) -> None:
        """Check that the store can be written.

        Raises:
            StoreError: It cannot.
        """
        if self.is_closed:
            raise StoreError(f"{self.place}: {CLOSED}")
        if self.refusal is not None:
            raise StoreError(f"{self.place}: {self.refusal}")

    def check(self, whole: bool, what: str) -> None:
        """Check stored content.

        Args:
            whole: Whether it is intact.
            what: Subject of the message.

        Raises:
            StoreDamaged: It is not.
        """
        if not whole:
            raise StoreDamaged(self.place, f"{what} was changed")

    @contextmanager
    def damage_reports(self, what: str) -> Iterator[None]:
        """Report stored content of an unexpected shape as damage while the block runs.

        Checksums do not detect content written by another program.

        Args:
            what: Subject of the message.

        Raises:
            StoreDamaged: Content has an unexpected shape.
        """
        try:
            yield
        except UNREADABLE as error:
            message = f"{what} is not what this program writes ({excerpt(repr(error), 200)})"
            raise StoreDamaged(self.place, message) from error

    # Writing

    def write(self, change: Change | Computed, *values: Any) -> None:
        """Add a change, or a function that computes changes, to the next transaction."""
        self._writes.append((change, values))

    def write_at_last(self, end: Callable[[], Iterable[Write]]) -> None:
        """Add a function that computes the last changes of the next transaction."""
        self._final_writes.append(end)

    def begin(self, name: str) -> None:
        """Note that a new execution of this name is among the pending changes.

        The caller holds the lock of its name, and calls `settle` before releasing it.
        """
        self._new_names.add(name)

    def settle(self, name: str) -> None:
        """Write pending changes if they create an execution of this name."""
        if name in self._new_names:
            self.flush()

    def _gathered(self) -> list[Write]:
        """Remove and return the pending changes."""
        self._new_names.clear()
        self.values.start_transaction()
        gathered, self._writes = self._writes, []
        ending, self._final_writes = self._final_writes, []
        gathered += [write for end in ending for write in end()]
        return gathered

    def flush(self) -> None:
        """Write the pending changes in one transaction.

        Raises:
            LeaseLost: The lease of this worker expired.
            StoreError: The changes cannot be written.
        """
        if self._end_reason is not None:
            kind = LeaseLost if self._end_reason == FENCED else StoreError
            raise kind(f"{self.place}: {self._end_reason}")
        writes = self._gathered()
        if not writes:
            return
        try:
            self.connection.commit(writes, None if self.worker is None else self._check_lease)
        except StoreContradicted:
            self._end_reason = CONTRADICTED
            raise
        except LeaseLost:
            raise
        except StoreError:  # nothing is lost: the next attempt may succeed
            self._writes = writes + self._writes
            raise
        except BaseException:  # an interrupt: the commit may have happened or not
            self._end_reason = INTERRUPTED
            raise

    def flush_soon(self) -> GroupCommit:
        """Schedule a commit at the end of this turn of the event loop, and return its future."""
        if self._flushing is None:
            from asyncio import get_running_loop

            from asl.stores.group_commit import GroupCommit

            loop = get_running_loop()
            self._flushing = GroupCommit(loop=loop)
            loop.call_soon(self._flush)
        return self._flushing

    def _flush(self) -> None:
        """Perform the scheduled commit."""
        waiting, self._flushing = self._flushing, None
        assert waiting is not None
        try:
            self.flush()
        except StoreError as error:
            waiting.set_exception(error)
            waiting.exception()  # retrieved: the next write raises the same error
        except BaseException:  # the waiting executions fail as well
            waiting.set_exception(StoreError(f"{self.place}: {INTERRUPTED}"))
            waiting.exception()
            raise
        else:
            waiting.set_result(None)

    def _check_lease(self) -> None:
        """Raise LeaseLost within a transaction of a fenced worker."""
        if not self.connection.select(LEASE, (self.worker,)):
            self._end_reason = FENCED
            raise LeaseLost(f"{self.place}: {FENCED}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Return a context that reads, and writes all or nothing, in one transaction.

        Reads within it do not see its own writes.
        """
        self.flush()
        check = None if self.worker is None else self._check_lease
        try:
            with self.reading_written(), self.connection.transaction(self._gathered, check):
                yield
        except BaseException:  # any exception
            self.values.rolled_back()
            raise
        finally:
            self._gathered()

    # Reading

    def select(self, statement: Select, *values: Any) -> list[Row]:
        """Return the rows of a query; pending changes are written first."""
        if not self._reads_written:
            self.flush()
        return self.connection.select(statement, values)

    def read_one(self, statement: Select, *values: Any) -> Row | None:
        """Return the first row of a query or None, without writing pending changes."""
        found = self.connection.select(statement, values)
        return found[0] if found else None

    def scan(self, statement: Select, *values: Any) -> Iterator[Row]:
        """Yield the rows of a query one by one; pending changes are written first."""
        if not self._reads_written:
            self.flush()
        return self.connection.scan(statement, values)

    @contextmanager
    def reading_written(self) -> Iterator[None]:
        """Return a context whose reads do not write unrelated pending changes."""
        self._reads_written = True
        try:
            yield
        finally:
            self._reads_written = False

    @property
    def version(self) -> tuple[int, int]:
        """A value that changes with every write to the store."""
        return self.connection.version()

    @property
    def foreign_version(self) -> int:
        """A number that changes with every write by others.

        It is read once for each group commit.
        """
        waiting = self._flushing
        if waiting is None:
            return self.connection.version()[0]
        if waiting.foreign_version is None:
            waiting.foreign_version = self.connection.version()[0]
        return waiting.foreign_version


class ThreadSessions:
    """The sessions of a store, one for each thread that uses it."""

    def __init__(self, backend: StoreBackend) -> None:
        self.backend = backend
        self._threads = local()
        self._is_closed = False
        self._threads.mine = self._connected()

    def _connected(self) -> _OwnSession:
        return _OwnSession(Session(self.backend.connect(), self.backend.place))

    @property
    def place(self) -> str | os.PathLike[str]:
        """Path of the file, or the name of the store in messages."""
        return self.backend.place

    def reopen(self) -> None:
        """Drop the session of this thread; the next use connects again."""
        self.session.crash()
        self._threads.mine = None

    @property
    def session(self) -> Session:
        """The session of this thread, open from its first use to the end of the thread.

        Raises:
            StoreError: The store is closed or cannot be opened.
        """
        mine: _OwnSession | None = getattr(self._threads, "mine", None)
        if mine is None or not mine.session.connection.is_usable:
            if self._is_closed:
                raise StoreError(f"{self.place}: {CLOSED}")
            mine = self._threads.mine = self._connected()
        elif self._is_closed:
            mine.session.close()
        return mine.session

    def close(self) -> None:
        """Close the store; sessions of other threads close at their next use or with the thread."""
        self._is_closed = True
        mine: _OwnSession | None = getattr(self._threads, "mine", None)
        if mine is not None:
            mine.session.close()


class _OwnSession:
    """Closes the session of a thread when the thread ends; results may refer to it longer."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def __del__(self) -> None:
        if self.session.connection.is_usable:
            self.session.crash()
