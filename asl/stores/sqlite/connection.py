"""An SQLite file as one thread uses it (protocol `asl.stores.backend.StoreConnection`)."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from threading import get_ident
from typing import Final
from weakref import WeakSet
from zlib import crc32

from asl.core.private_files import create_private_file, unfinished_path
from asl.core.values import excerpt
from asl.stores.backend import Write
from asl.stores.errors import CLOSED, CONTRADICTED, StoreContradicted, StoreDamaged, StoreError
from asl.stores.sqlite.locks import IS_SUPPORTED, UNSUPPORTED, Locks
from asl.stores.sqlite.opening import (
    BUSY,
    READ_ONLY,
    WITHOUT_INDEX,
    advice,
    has_content,
    reading_mode,
    reading_mode_without_index,
    refusal_of,
    run_when_free,
    use_wal,
)
from asl.stores.sqlite.sql import TRACE, compile_statement, parameters, schema, triggers
from asl.stores.statements import Append, Delete, Insert, Row, Select, Update, Values

__all__ = ["SYNCHRONOUS", "SqliteConnection", "guard"]

VERSION: Final = 1
"""Version of the tables."""
APPLICATION_ID: Final = 0x41534C53
"""`ASLS`: marks an SQLite file as a store."""
SYNCHRONOUS: Final = ("OFF", "NORMAL", "FULL", "EXTRA")

FORKED: Final = (
    "another thread was at work on it when this process was forked; use it in a process that is "
    "started anew ('spawn')"
)
PROGRAMS: Final = "SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger')"
_CHANGES: Final = (Insert, Update, Delete, Append)


class _Errors:
    """Converts SQLite's exceptions; a class, because a generator would slow down every commit."""

    __slots__ = ("_connection",)

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and (named := self._connection.store_error(error)) is not None:
            raise named from error


class SqliteConnection:
    """A file as the thread that opened it uses it.

    Args:
        path: The file; created with access for its owner only if it is missing.
        place: The path for messages.
        synchronous: SQLite's pragma of this name.

    Raises:
        StoreError: The file cannot be opened, or is not a store.
        StoreDamaged: The file is damaged.
    """

    def __init__(self, path: Path, place: Path, synchronous: str) -> None:
        if synchronous not in SYNCHRONOUS:
            raise StoreError(
                f"'synchronous' must be OFF, NORMAL, FULL or EXTRA, got {synchronous!r}"
            )
        if not IS_SUPPORTED:
            raise StoreError(UNSUPPORTED)
        self.path = path
        self.place = place
        self._log = f"{path}-wal"
        self.patience = BUSY
        """Seconds to wait for other writers."""
        self.on_fail_point: Callable[[str], object] = _nothing
        self._thread = get_ident()
        self._is_inherited = False
        """Whether the process was forked since; the connection cannot be used then."""
        how = reading_mode(path)
        _refuse_left(path)
        self.refusal = None if how is None else READ_ONLY
        with _Errors(self):
            if how is None:
                self._open_to_write(synchronous)
            else:
                self._open(how, synchronous)
        _OPEN.add(self)

    def _open_to_write(self, synchronous: str) -> None:
        """Open the file for writing, or only for reading if the disk is full."""
        with suppress(OSError):  # SQLite's error names the reason
            create_private_file(self.path)
        try:
            self._open(None, synchronous)
        except (sqlite3.OperationalError, OSError) as error:
            self.refusal = refusal_of(error)
            if self.refusal is None or not has_content(self.path):
                raise
            self._open(reading_mode_without_index(self.path), synchronous)

    def _open(self, mode: str | None, synchronous: str) -> None:
        """Open the file with SQLite's URI parameter *mode*; None to write."""
        place = self.path if mode is None else f"{self.path.absolute().as_uri()}?{mode}"
        self._file = sqlite3.connect(
            place, isolation_level=None, timeout=BUSY, uri=mode is not None
        )
        try:
            if mode == WITHOUT_INDEX:
                self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._prepare(synchronous)
            lock = self.path.with_name(self.path.name + ".lock")
            self._locks = Locks(lock, self.refusal is not None)
        except BaseException:  # no other reference to it exists
            self._file.close()
            raise

    def _prepare(self, synchronous: str) -> None:
        run = self._file.execute
        self._file.create_function("guard", -1, guard, deterministic=True)
        if self.refusal is not None:
            run("PRAGMA query_only = ON")
        else:
            use_wal(self._file)
            run(f"PRAGMA synchronous = {synchronous}")
        # First: the transaction that creates the tables sets both numbers.
        tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        programs = {name for (name,) in run(PROGRAMS)} - triggers()
        (version,) = run("PRAGMA user_version").fetchone()
        (application,) = run("PRAGMA application_id").fetchone()
        if tables and application != APPLICATION_ID:
            raise StoreError(f"{self.place} is a database, but not a store of executions")
        if programs:  # a view can have endless rows, and a trigger changes what is written
            found = excerpt(min(programs), 100)
            raise StoreError(f"{self.place} has a view or trigger {found}, which no store has")
        if version > VERSION:
            raise StoreError(
                f"{self.place} was written by a newer version of this program: upgrade it"
            )
        if version < VERSION:
            if self.refusal is not None:
                raise StoreError(f"{self.place} is empty, and cannot be written: {self.refusal}")
            self._create()

    def _create(self) -> None:
        """Create the tables, unless another process has done so meanwhile."""
        run = self._file.execute
        run("BEGIN IMMEDIATE")
        if run("PRAGMA user_version").fetchone() != (VERSION,):
            for statement in schema():
                run(statement)
            run(f"PRAGMA application_id = {APPLICATION_ID}")
            run(f"PRAGMA user_version = {VERSION}")
        run("COMMIT")

    def store_error(self, error: BaseException) -> StoreError | None:
        """Return the error for an exception of SQLite, None for other exceptions."""
        match error:
            case sqlite3.ProgrammingError():
                return StoreError(f"{self.place}: {CLOSED if self.is_closed else error}")
            case sqlite3.OperationalError():
                return StoreError(f"{self.place}: {advice(error)}")
            case sqlite3.IntegrityError():
                return StoreContradicted(f"{self.place}: {CONTRADICTED} ({error})")
            case sqlite3.DatabaseError() | UnicodeDecodeError():
                return StoreDamaged(self.place, str(error))
            case OSError():
                return StoreError(f"{self.place}: {error.strerror}: {error.filename}")
            case UnicodeEncodeError() | OverflowError():  # the argument is wrong, not the file
                return StoreError(f"{self.place}: {error}")
        return None

    # Life cycle

    @property
    def is_usable(self) -> bool:
        """Return whether thread and process are those that opened it."""
        return self._thread == get_ident() and not self._is_inherited

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._locks.closed

    def close(self) -> None:
        """Close the file and release its locks."""
        self._file.close()
        self._locks.close()

    def inherit(self) -> None:
        """After a fork, release the resources of the parent process, especially its locks.

        SQLite would attribute the parent's locks on the file to a new connection of this process.
        So the parent's connection is closed, unless it has a transaction, or a call of a thread
        that the fork did not copy; then this process refuses the file.
        """
        if self.is_usable and not self._file.in_transaction:
            self._file.close()
        else:
            _LEFT.append(self)
        self._locks.close()
        self._is_inherited = True

    # Locks

    def lock(self, number: int) -> bool:
        """Take a lock that ends with this process; return False if another one holds it."""
        return self._locks.acquire(number)

    def unlock(self, number: int) -> None:
        """Release a lock."""
        self._locks.release(number)

    def is_locked(self, number: int) -> bool:
        """Return whether another connection holds a lock."""
        return self._locks.is_held(number)

    # Reading

    def version(self) -> tuple[int, int]:
        """Return SQLite's counts of writes by others and by this connection."""
        with _Errors(self):
            (foreign,) = self._file.execute("PRAGMA data_version").fetchone()
            return foreign, self._file.total_changes

    def change_marker(self) -> tuple[int, int]:
        """Return time and size of the write-ahead log.

        Two changes within a few milliseconds may have the same time.
        """
        try:
            found = os.stat(self._log)
        except OSError:  # nothing has been written since the log was removed
            return 0, 0
        return found.st_mtime_ns, found.st_size

    def select(self, statement: Select, values: Values = ()) -> list[Row]:
        """Return the rows of a query."""
        sql = compile_statement(statement)
        with _Errors(self):
            return self._file.execute(sql.sql, sql.values(values)).fetchall()

    def scan(self, statement: Select, values: Values = ()) -> Iterator[Row]:
        """Yield the rows of a query one by one."""
        sql = compile_statement(statement)
        with _Errors(self):
            yield from self._file.execute(sql.sql, sql.values(values))

    def trace(self, place: int, number: int, first: int) -> list[tuple[int, int]]:
        """Return number and place of steps of one execution, from one back to another."""
        with _Errors(self):
            return self._file.execute(TRACE, (place, number, first)).fetchall()

    def faults(self) -> Iterator[str]:
        """Yield the results of SQLite's integrity check."""
        with _Errors(self):
            for (said,) in self._file.execute("PRAGMA integrity_check"):
                if said != "ok":
                    yield said

    def _copy_to(self, target: sqlite3.Connection, path: str) -> None:
        """Copy the committed content of the file (SQLite, online backup)."""
        with _Errors(self):
            try:
                self._file.backup(target)
            except sqlite3.OperationalError as error:  # SQLite does not name the file
                text = f"{self.place} cannot be copied to {path}: {error}"
                raise StoreError(text) from error

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the file atomically, with access for its owner only (SQLite, online backup).

        Raises:
            StoreError: The file exists or cannot be written.
        """
        path = os.fspath(path)
        part = unfinished_path(path)
        try:
            if os.path.lexists(path):
                raise StoreError(f"{path} exists: a backup is written to a new file")
            create_private_file(part)
            with closing(sqlite3.connect(part, isolation_level=None)) as target:
                self._copy_to(target, path)
                target.execute("PRAGMA journal_mode = DELETE")  # the backup is one file
            os.rename(part, path)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}") from error
        except (sqlite3.Error, ValueError) as error:
            raise StoreError(f"{path} cannot be written: {error}") from error
        finally:
            for left in (part, f"{part}-journal", f"{part}-wal", f"{part}-shm"):
                with suppress(OSError, ValueError):
                    os.unlink(left)

    # Writing

    def commit(self, writes: Iterable[Write], check: Callable[[], object] | None) -> None:
        """Make changes in one transaction; a single unchecked change is one by itself."""
        writes = [*writes]
        with _Errors(self):
            match writes:
                case [(change, values)] if check is None and isinstance(change, _CHANGES):
                    self.on_fail_point("commit.begin")
                    self._file.execute(
                        compile_statement(change).sql, parameters(change, (values,))[0]
                    )
                    self.on_fail_point("commit.done")
                case _:
                    with self._transaction(check):
                        self._change(writes)

    @contextmanager
    def transaction(
        self, writes: Callable[[], Iterable[Write]], check: Callable[[], object] | None
    ) -> Iterator[None]:
        """Read and write in one transaction."""
        with _Errors(self), self._transaction(check):
            yield
            self._change(writes())

    @contextmanager
    def _transaction(self, check: Callable[[], object] | None) -> Iterator[None]:
        run = self._file.execute
        self.on_fail_point("commit.begin")
        self._begin()
        try:
            if check is not None:
                check()
            yield
            self.on_fail_point("commit.written")
            run("COMMIT")
        except BaseException:  # after any exception nothing of it remains in the file
            if self._file.in_transaction:
                run("ROLLBACK")
            raise
        self.on_fail_point("commit.done")

    def _begin(self) -> None:
        """Begin a write transaction as soon as no other process writes.

        SQLite would sleep longer and longer between two attempts, so several processes with
        frequent writes would mostly sleep.
        """
        run = self._file.execute
        run("PRAGMA busy_timeout = 0")
        try:
            run_when_free(self._file, "BEGIN IMMEDIATE", self.patience)
        finally:
            run(f"PRAGMA busy_timeout = {int(self.patience * 1000)}")

    def _change(self, writes: Iterable[Write]) -> None:
        """Make changes in their order; runs of the same statement use one call."""
        for change, same in groupby(writes, itemgetter(0)):
            if isinstance(change, _CHANGES):
                rows = parameters(change, (values for _, values in same))
                self._file.executemany(compile_statement(change).sql, rows)
            else:
                for _, values in same:
                    self._change(change(*values))


_OPEN: Final[WeakSet[SqliteConnection]] = WeakSet()
"""Connections of this process."""
_LEFT: Final[list[SqliteConnection]] = []
"""Connections of the parent that cannot be closed here."""


def _behind_a_fork() -> None:
    """Release the parent's connections."""
    for connection in [*_OPEN]:
        if not connection.is_closed:
            connection.inherit()


if hasattr(os, "register_at_fork"):  # on systems with fork
    os.register_at_fork(after_in_child=_behind_a_fork)


def _refuse_left(path: Path) -> None:
    """Check that no connection of the parent has a file open.

    Raises:
        StoreError: One has.
    """
    if any(path.exists() and path.samefile(left.path) for left in _LEFT if left.path.exists()):
        raise StoreError(f"{path}: {FORKED}")


def guard(*columns: object) -> int:
    """Return the checksum of the columns of a row."""
    return crc32(repr(columns).encode("utf-8", "surrogatepass"))


def _nothing(point: str) -> None:
    """Ignore a fail point."""
