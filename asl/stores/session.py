"""A store as one thread has it: what is gathered, and committed together (group commit).

What an execution has to write is gathered and written together with what all others of the thread
have gathered by then, in one transaction.
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
    """One store, for the thread that has connected (`ThreadSessions` gives each its own).

    Args:
        connection: The store as the backend has opened it for this thread.
        place: The path of its file, or what names it in messages.
    """

    def __init__(self, connection: StoreConnection, place: str | os.PathLike[str]) -> None:
        self.connection = connection
        self.place = place
        self.values = StoredValues(self)
        self.worker: str | None = None
        """The id of the worker that this is (`asl.stores.workers`), None for none."""
        self.at_work: set[int] = set()
        """The locks of the executions that this thread runs."""
        self._writes: list[Write] = []
        self._ending: list[Callable[[], Iterable[Write]]] = []
        self._flushing: GroupCommit | None = None
        self._reads_written = False
        self._ended: str | None = None
        """Why it takes nothing more: what was to be written last may not be in the store."""
        self._begun: set[str] = set()
        """The names of the executions that are gathered."""

    # Its life

    @property
    def reached(self) -> Callable[[str], object]:
        """What is called at each of `asl.stores.backend.FAIL_POINTS`."""
        return self.connection.reached

    @reached.setter
    def reached(self, call: Callable[[str], object]) -> None:
        self.connection.reached = call

    def close(self) -> None:
        """Write what is gathered and close the store, if it is open.

        It is closed, too, where nothing more can be written: others may go on with what is left.
        """
        if self.connection.is_closed:
            return
        try:
            if self._ended is None:
                self.flush()
        finally:
            self.connection.close()

    def crash(self) -> None:
        """Leave the store as a process does that dies: what is gathered is lost."""
        self._gathered()
        self.connection.close()

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self.connection.is_closed

    @property
    def refusal(self) -> str | None:
        """Why nothing can be written, though it can be read; None where it can be written."""
        return self.connection.refusal

    def insist_writable(self) -> None:
        """Raise StoreError where nothing can be written."""
        if self.is_closed:
            raise StoreError(f"{self.place}: {CLOSED}")
        if self.refusal is not None:
            raise StoreError(f"{self.place}: {self.refusal}")

    def check(self, whole: bool, what: str) -> None:
        """Raise StoreDamaged for something that is not what was written."""
        if not whole:
            raise StoreDamaged(self.place, f"{what} was changed")

    @contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """Raise StoreDamaged for stored content of another shape than what this program writes.

        Checksums do not show that: whoever has written the content has made them, too.

        Args:
            what: What is read, for the message.
        """
        try:
            yield
        except UNREADABLE as error:
            message = f"{what} is not what this program writes ({excerpt(repr(error), 200)})"
            raise StoreDamaged(self.place, message) from error

    # Writing

    def write(self, change: Change | Computed, *values: Any) -> None:
        """Gather a change for the next transaction, or what computes changes within it."""
        self._writes.append((change, values))

    def write_at_last(self, end: Callable[[], Iterable[Write]]) -> None:
        """Let *end* give changes for the next transaction when all else is gathered."""
        self._ending.append(end)

    def begin(self, name: str) -> None:
        """Know that an execution of this name is gathered.

        Whoever begins one holds the lock of its name, and calls `settle` before he leaves that.
        """
        self._begun.add(name)

    def settle(self, name: str) -> None:
        """Write an execution that is still gathered: from here on others may look for its name."""
        if name in self._begun:
            self.flush()

    def _gathered(self) -> list[Write]:
        """Take all that is gathered."""
        self._begun.clear()
        self.values.committed()
        gathered, self._writes = self._writes, []
        ending, self._ending = self._ending, []
        gathered += [write for end in ending for write in end()]
        return gathered

    def flush(self) -> None:
        """Write all that is gathered in one transaction."""
        if self._ended is not None:
            kind = LeaseLost if self._ended == FENCED else StoreError
            raise kind(f"{self.place}: {self._ended}")
        writes = self._gathered()
        if not writes:
            return
        try:
            self.connection.commit(writes, None if self.worker is None else self._check_lease)
        except StoreContradicted:
            self._ended = CONTRADICTED
            raise
        except LeaseLost:
            raise
        except StoreError:  # nothing is lost: it may work the next time
            self._writes = writes + self._writes
            raise
        except BaseException:  # an interrupt: whether it was committed is not known
            self._ended = INTERRUPTED
            raise

    def flush_soon(self) -> GroupCommit:
        """Write what is gathered by the end of this turn of the event loop; awaitable."""
        if self._flushing is None:
            from asyncio import get_running_loop

            from asl.stores.group_commit import GroupCommit

            loop = get_running_loop()
            self._flushing = GroupCommit(loop=loop)
            loop.call_soon(self._flush)
        return self._flushing

    def _flush(self) -> None:
        """Do it for all that wait for it."""
        waiting, self._flushing = self._flushing, None
        assert waiting is not None
        try:
            self.flush()
        except StoreError as error:
            waiting.set_exception(error)
            waiting.exception()  # seen: who puts the next answer meets the same error
        except BaseException:  # those who wait are told; it flies on
            waiting.set_exception(StoreError(f"{self.place}: {INTERRUPTED}"))
            waiting.exception()
            raise
        else:
            waiting.set_result(None)

    def _check_lease(self) -> None:
        """Raise LeaseLost within a transaction of a worker that others have fenced."""
        if not self.connection.select(LEASE, (self.worker,)):
            self._ended = FENCED
            raise LeaseLost(f"{self.place}: {FENCED}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Read and write in one transaction: what is gathered within is committed, or nothing.

        What is read within is what was there before.
        """
        self.flush()
        check = None if self.worker is None else self._check_lease
        try:
            with self.reading_written(), self.connection.transaction(self._gathered, check):
                yield
        except BaseException:  # whatever has cut it off
            self.values.rolled_back()
            raise
        finally:
            self._gathered()

    # Reading

    def select(self, statement: Select, *values: Any) -> list[Row]:
        """Return the rows of a query, with all that is gathered written first."""
        if not self._reads_written:
            self.flush()
        return self.connection.select(statement, values)

    def look(self, statement: Select, *values: Any) -> Row | None:
        """Return the first row of a query, None without one; what is gathered is not written."""
        found = self.connection.select(statement, values)
        return found[0] if found else None

    def scan(self, statement: Select, *values: Any) -> Iterator[Row]:
        """Yield the rows of a query one by one, with all that is gathered written first."""
        if not self._reads_written:
            self.flush()
        return self.connection.scan(statement, values)

    @contextmanager
    def reading_written(self) -> Iterator[None]:
        """Read without writing first what is gathered: none of it is of what is read."""
        self._reads_written = True
        try:
            yield
        finally:
            self._reads_written = False

    @property
    def version(self) -> tuple[int, int]:
        """Stands for what is in the store: it is another one whenever somebody has written."""
        return self.connection.version()

    @property
    def foreign_version(self) -> int:
        """Stands for what others have written: it is another one whenever they have.

        The store is asked once for all that is committed together.
        """
        waiting = self._flushing
        if waiting is None:
            return self.connection.version()[0]
        if waiting.foreign_version is None:
            waiting.foreign_version = self.connection.version()[0]
        return waiting.foreign_version


class ThreadSessions:
    """A store, connected to by whoever opens it and by every thread that uses it."""

    def __init__(self, backend: StoreBackend) -> None:
        self.backend = backend
        self._threads = local()
        self._is_closed = False
        self._threads.mine = self._connected()

    def _connected(self) -> _Mine:
        return _Mine(Session(self.backend.connect(), self.backend.place))

    @property
    def place(self) -> str | os.PathLike[str]:
        """The path of the file, or what names the store in messages."""
        return self.backend.place

    def reopen(self) -> None:
        """Leave the session of this thread as it is, and connect anew at the next use."""
        self.session.crash()
        self._threads.mine = None

    @property
    def session(self) -> Session:
        """The session of this thread, open from its first use to the end of the thread.

        Raises StoreError where it cannot be opened, or was closed.
        """
        mine: _Mine | None = getattr(self._threads, "mine", None)
        if mine is None or not mine.session.connection.is_usable:
            if self._is_closed:
                raise StoreError(f"{self.place}: {CLOSED}")
            mine = self._threads.mine = self._connected()
        elif self._is_closed:
            mine.session.close()
        return mine.session

    def close(self) -> None:
        """Close it; what another thread has open ends when that comes by or ends itself."""
        self._is_closed = True
        mine: _Mine | None = getattr(self._threads, "mine", None)
        if mine is not None:
            mine.session.close()


class _Mine:
    """Lives as long as a thread, and closes what that had open: results may refer to it longer."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def __del__(self) -> None:
        if self.session.connection.is_usable:
            self.session.crash()
