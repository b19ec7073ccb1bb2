"""Executions in one SQLite file: no server, one writer at a time, every step in one transaction.

What an execution has to write is gathered and written together with what all others of the thread
have gathered by then, in one transaction (group commit). Values above 64 KiB are stored once, by
their content. What an execution adds to its journal in one transaction is one row, a *step*; steps
are chained by hashes and never changed.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import EACCES, EDQUOT, ENOSPC, EPERM, EROFS
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from threading import get_ident
from time import monotonic, sleep
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from weakref import WeakSet
from zlib import crc32

from asl.core.errors import AslError
from asl.core.private import create_private_file
from asl.core.values import Json
from asl.stores.locks import IS_SUPPORTED, UNSUPPORTED, Locks
from asl.stores.schema import APPLICATION_ID, GUARDED, LARGE, UPGRADES, VERSION

if TYPE_CHECKING:
    from asl.engine.awaited import Awaited
    from asl.engine.checkpoints import Checkpoint
    from asl.states.decisions import Asked
    from asl.stores.commit import Commit

__all__ = [
    "BELOW",
    "FAIL_POINTS",
    "STORED",
    "TASKS",
    "LeaseLost",
    "SqliteStore",
    "StoreDamaged",
    "StoreError",
    "Stored",
    "guard",
    "is_hashed",
    "packed_text",
]

BUSY = 10.0
"""Seconds to wait for another process that is writing."""
SOON = 0.005
"""Seconds between two attempts to switch to write-ahead logging."""
INTERRUPTED = "it was interrupted while it wrote, and takes nothing more: open it again"
CONTRADICTED = "others have written what contradicts this; it takes nothing more: open it again"
FENCED = (
    "this worker was silent for so long that others have taken over its executions: it takes "
    "nothing more"
)
CLOSED = (
    "the store is closed; open it again (read the events of a result before you close the store, "
    "or later by 'Store.result')"
)
FORKED = (
    "another thread was at work on it when this process was forked; use it in a process that is "
    "started anew ('spawn')"
)
FULL = "the disk is full: nothing more is recorded until there is room"
NO_FILES = (
    "no file can be written beside it, so nothing can be recorded: is the disk full, or the folder "
    "read-only?"
)
WITHOUT_INDEX = "mode=rw"
"""Opens a file by a connection that needs no index of the write-ahead log on the disk."""
READ_ONLY = "it is read-only: executions cannot be recorded there"
FAIL_POINTS = ("commit.begin", "commit.written", "commit.done")
"""The instants of a transaction at which a process may die; see `SqliteStore.reached`."""

Item = TypeVar("Item")
Write: TypeAlias = tuple[str, tuple[Any, ...]]


class StoreError(AslError):
    """The store cannot be used; the text says why and what to do. Nothing acknowledged is lost."""


class LeaseLost(StoreError):
    """This worker was silent for so long that others have taken over what it ran."""


class StoreDamaged(StoreError):
    """The file is not what was written; `what` says in which way."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} is damaged: {what}; 'asl doctor --store {path}' says more")
        self.path, self.what = path, what


@dataclass(frozen=True, slots=True)
class Stored:
    """An execution as the store knows it; times in epoch seconds."""

    number: int
    name: str
    workflow: str
    document: str
    profile: str
    express: bool
    requestor: str | None
    status: str
    started: float
    ended: float | None
    wake: float | None
    """When something happens without an answer: a timeout, an escalation."""
    error: str | None
    cause: str | None
    redrives: int
    parent: int | None
    """The number of the execution that has started it."""
    redriven: float | None
    """When it last went on after its end."""


STORED = f"{', '.join(Stored.__slots__)}, guard({GUARDED['execution']}) = guard"
_ASKED = f", guard({GUARDED['request']}) = guard"
"""Whether the columns of a row are what was written."""
_TEXT, _NUMBER, _TIME = (str,), (int,), (float,)
_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("name", "workflow", "document", "profile", "status"), _TEXT),
    **dict.fromkeys(("number", "express", "redrives"), _NUMBER),
    **dict.fromkeys(("requestor", "error", "cause"), (*_TEXT, NoneType)),
    **dict.fromkeys(("ended", "wake", "redriven"), (*_TIME, NoneType)),
    "started": _TIME,
    "parent": (*_NUMBER, NoneType),
}
"""The types of what is known of an execution."""
STATUSES = ("RUNNING", "PAUSED", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED")
MISSING = "a large value is missing or was changed"
DAMAGED = "DAMAGED"
"""Stands for the status of an execution whose row was changed."""
TASKS = "('token', 'activity')"
"""The kinds of requests that are answered by task token, not by people."""
BELOW = (
    "WITH RECURSIVE below (number) AS ("
    "SELECT number FROM execution WHERE parent = ? UNION ALL "
    "SELECT e.number FROM execution e JOIN below ON e.parent = below.number)"
)
"""The executions that one has started, and those that they have."""


class SqliteStore:
    """One store, for the thread that has opened it (`asl.stores.opened` gives each its own)."""

    def __init__(self, path: str | os.PathLike[str], *, synchronous: str = "FULL") -> None:
        if synchronous not in ("OFF", "NORMAL", "FULL", "EXTRA"):
            raise StoreError(f"synchronous is OFF, NORMAL, FULL or EXTRA, not {synchronous!r}")
        if not IS_SUPPORTED:
            raise StoreError(UNSUPPORTED)
        self.path = Path(path)
        self.reached: Callable[[str], object] = _nothing
        """Called at each of `FAIL_POINTS`, for tests that end a process there."""
        self.worker: str | None = None
        """The id of the worker that this is (`asl.stores.workers`), None for none."""
        self.at_work: set[int] = set()
        """The locks of the executions that this thread runs."""
        self._thread = get_ident()
        self.inherited = False
        """Whether this process was forked since: it is of no use here."""
        self._writes: list[Write] = []
        self._ending: list[Callable[[], Iterable[Write]]] = []
        self._flushing: Commit | None = None
        self._reads_written = False
        self._ended: str | None = None
        """Why it takes nothing more: what was to be written last may not be in the file."""
        self._begun: set[str] = set()
        """The names of the executions that are gathered."""
        self._documents: set[str] = set()
        """The hashes of documents that are in the file, which are never deleted."""
        self._large: set[bytes] = set()
        """The hashes of large values in the next transaction: another process may delete those
        that are in the file, unless what refers to them is there, too."""
        how = _reading(self.path)
        _refuse_left(self.path)
        self.refusal = None if how is None else READ_ONLY
        """Why nothing can be written, though it can be read; None where it can be written."""
        with self._errors():
            if how is None:
                self._open_to_write(synchronous)
            else:
                self._open(how, synchronous)
        _OPEN.add(self)

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written: it can be looked at."""
        return self.refusal is not None

    def _open_to_write(self, synchronous: str) -> None:
        """Open the file to read and write; only to read where a full disk allows no more."""
        with suppress(OSError):  # SQLite names the reason
            create_private_file(self.path)
        try:
            self._open(None, synchronous)
        except (sqlite3.OperationalError, OSError) as error:
            self.refusal = _refusal(error)
            if self.refusal is None or not _has_content(self.path):
                raise
            self._open(_reading_without_index(self.path), synchronous)

    def _open(self, how: str | None, synchronous: str) -> None:
        """Open the file as SQLite's URI parameter *how* says, to write where it is None."""
        place = self.path if how is None else f"{self.path.absolute().as_uri()}?{how}"
        self._file = sqlite3.connect(place, isolation_level=None, timeout=BUSY, uri=how is not None)
        try:
            if how == WITHOUT_INDEX:
                self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._prepare(synchronous)
            lock = self.path.with_name(self.path.name + ".lock")
            self.locks = Locks(lock, self.read_only)
        except BaseException:  # nobody else could close it
            self._file.close()
            raise

    def _prepare(self, synchronous: str) -> None:
        run = self._file.execute
        self._file.create_function("guard", -1, guard, deterministic=True)
        if self.read_only:
            run("PRAGMA query_only = ON")
        else:
            _use_wal(self._file)
            run(f"PRAGMA synchronous = {synchronous}")
        (version,) = run("PRAGMA user_version").fetchone()
        (application,) = run("PRAGMA application_id").fetchone()
        tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and application != APPLICATION_ID:
            raise StoreError(f"{self.path} is a database, but no store of executions")
        if version > VERSION:
            raise StoreError(
                f"{self.path} was written by a newer version of this program: upgrade it"
            )
        if version < VERSION:
            if self.read_only:
                raise StoreError(
                    f"{self.path} was written by an older version of this program and has to be "
                    "rewritten, but it is read-only: copy it to where it can be"
                )
            self._upgrade()

    def _upgrade(self) -> None:
        run = self._file.execute
        run("BEGIN IMMEDIATE")
        # Another process may have done it since.
        (version,) = run("PRAGMA user_version").fetchone()
        for upgrade in UPGRADES[version:]:
            if callable(upgrade):
                upgrade(run)
            else:
                for statement in _each(upgrade):
                    run(statement)
        run(f"PRAGMA application_id = {APPLICATION_ID}")
        run(f"PRAGMA user_version = {VERSION}")
        run("COMMIT")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Name what SQLite says."""
        try:
            yield
        except sqlite3.ProgrammingError as error:
            raise StoreError(f"{self.path}: {CLOSED if self.locks.closed else error}") from error
        except sqlite3.OperationalError as error:
            raise StoreError(f"{self.path}: {_advice(error)}") from error
        except sqlite3.IntegrityError as error:
            raise StoreError(f"{self.path}: {CONTRADICTED} ({error})") from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise StoreDamaged(self.path, str(error)) from error
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}: {error.filename}") from error
        except (UnicodeEncodeError, OverflowError) as error:  # what was asked for, not what is kept
            raise StoreError(f"{self.path}: {error}") from error

    def close(self) -> None:
        """Write what is gathered and close the file, if it is open.

        It is closed, too, where nothing more can be written: others may go on with what is left.
        """
        if self.locks.closed:
            return
        try:
            if self._ended is None:
                self.flush()
        finally:
            self._file.close()
            self.locks.close()

    def crash(self) -> None:
        """Leave the file as a process does that dies: what is gathered is lost."""
        self._gathered()
        self._file.close()
        self.locks.close()

    def inherit(self) -> None:
        """Behind a fork, let go of what belongs to the parent, its locks above all.

        SQLite would take the parent's locks on the file for those of a connection that is opened
        here. So the parent's is closed, unless a transaction is under way on it, or a call of a
        thread that is not there any more; then the file is refused in this process.
        """
        if self.is_ours and not self._file.in_transaction:
            self._file.close()
        else:
            _LEFT.append(self)
        self.locks.close()
        self.inherited = True

    @property
    def is_ours(self) -> bool:
        """Whether this is the thread, and the process, that has opened it."""
        return self._thread == get_ident() and not self.inherited

    # Writing

    def write(self, statement: str, *values: Any) -> None:
        """Gather one statement for the next transaction."""
        self._writes.append((statement, values))

    def write_at_last(self, end: Callable[[], Iterable[Write]]) -> None:
        """Let *end* give statements for the next transaction when all else is gathered."""
        self._ending.append(end)

    def begin(
        self, stored: Stored, data: bytes, written_by: str, chain: bytes, bound: bytes | None
    ) -> None:
        """Gather a new execution: its input, who writes it, the hash before its first step, and
        what is `bound`.

        Whoever begins one holds the lock of its name, and calls `settle` before he leaves that.
        """
        self._begun.add(stored.name)
        self.write(
            "INSERT INTO execution (number, name, workflow, document, profile, express, input, "
            "requestor, status, started, written_by, chain, parent, bound) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            stored.number,
            stored.name,
            stored.workflow,
            stored.document,
            stored.profile,
            int(stored.express),
            self.packed(data),
            stored.requestor,
            stored.status,
            stored.started,
            written_by,
            chain,
            stored.parent,
            bound,
        )

    def settle(self, name: str) -> None:
        """Write an execution that is still gathered: from here on others may look for its name."""
        if name in self._begun:
            self.flush()

    def _gathered(self) -> list[Write]:
        """Take all that is gathered."""
        self._begun.clear()
        self._large.clear()
        gathered, self._writes = self._writes, []
        ending, self._ending = self._ending, []
        gathered += [write for end in ending for write in end()]
        return gathered

    def flush(self) -> None:
        """Write all that is gathered in one transaction."""
        if self._ended is not None:
            kind = LeaseLost if self._ended == FENCED else StoreError
            raise kind(f"{self.path}: {self._ended}")
        writes = self._gathered()
        if not writes:
            return
        try:
            self._commit(writes)
        except BaseException as stop:
            try:
                with self._errors():
                    raise
            except StoreError:
                if isinstance(stop, sqlite3.IntegrityError):
                    self._ended = CONTRADICTED
                elif isinstance(stop, LeaseLost):
                    self._ended = FENCED
                else:  # nothing is lost: it may work the next time
                    self._writes = writes + self._writes
                raise
            except BaseException:
                self._ended = INTERRUPTED
                raise

    def _flush(self) -> None:
        """Do it for all that wait for it."""
        waiting, self._flushing = self._flushing, None
        assert waiting is not None
        try:
            self.flush()
        except StoreError as error:
            waiting.set_exception(error)
            waiting.exception()  # seen: who puts the next answer meets the same error
        except BaseException:
            waiting.set_exception(StoreError(f"{self.path}: {INTERRUPTED}"))
            waiting.exception()
            raise
        else:
            waiting.set_result(None)

    def _commit(self, writes: Sequence[Write]) -> None:
        run = self._file.execute
        self.reached("commit.begin")
        if len(writes) == 1 and self.worker is None:  # by itself it is a transaction
            run(*writes[0])
            self.reached("commit.done")
            return
        run("BEGIN IMMEDIATE")
        try:
            self._check_lease()
            self._run(writes)
            self.reached("commit.written")
            run("COMMIT")
        except BaseException:
            if self._file.in_transaction:
                run("ROLLBACK")
            raise
        self.reached("commit.done")

    def _check_lease(self) -> None:
        """Raise LeaseLost within a transaction of a worker that others have fenced."""
        if self.worker is None:
            return
        query = "SELECT 1 FROM worker WHERE id = ? AND fenced = 0"
        if self._file.execute(query, (self.worker,)).fetchone() is None:
            self._ended = FENCED
            raise LeaseLost(f"{self.path}: {FENCED}")

    def change(self, statement: str, *values: Any) -> int:
        """Run a statement within a transaction; returns how many rows it has changed."""
        return self._file.execute(statement, values).rowcount

    def _run(self, writes: Sequence[Write]) -> None:
        """Run statements in their order; the same one again and again is run at once."""
        for statement, same in groupby(writes, itemgetter(0)):
            self._file.executemany(statement, [values for _, values in same])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Read and write in one transaction: what is gathered within is committed, or nothing."""
        self.flush()
        run = self._file.execute
        with self._errors():
            self.reached("commit.begin")
            run("BEGIN IMMEDIATE")
            try:
                self._check_lease()
                yield
                self._run(self._gathered())
                self.reached("commit.written")
                run("COMMIT")
            except BaseException:
                self._documents.clear()  # what was put within may be gone again
                if self._file.in_transaction:
                    run("ROLLBACK")
                raise
            finally:
                self._gathered()
            self.reached("commit.done")

    def flush_soon(self) -> Commit:
        """Write what is gathered by the end of this turn of the event loop; awaitable."""
        if self._flushing is None:
            from asyncio import get_running_loop

            from asl.stores.commit import Commit

            loop = get_running_loop()
            self._flushing = Commit(loop=loop)
            loop.call_soon(self._flush)
        return self._flushing

    def packed(self, body: bytes) -> bytes:
        """Return JSON text as it is stored: with a checksum, or the hash of a large one."""
        if len(body) < LARGE:
            return packed_text(body)
        return b"#" + self.put_large(body)

    def put_large(self, body: bytes) -> bytes:
        """Keep a large text once; returns its hash."""
        key = sha256(body).digest()
        if key not in self._large:
            self._large.add(key)
            self.write("INSERT OR IGNORE INTO blob VALUES (?, ?)", key, body)
        return key

    def large(self, key: bytes) -> Json:
        """Return the large value of this hash; raises StoreDamaged."""
        found = self._one("SELECT body FROM blob WHERE hash = ?", key)
        if found is None or not is_hashed(found[0], key):
            raise StoreDamaged(self.path, MISSING)
        return self.read(found[0])

    def unpacked(self, body: Any) -> Json:
        """Return the value that is stored so; raises StoreDamaged for one that was changed."""
        if isinstance(body, str):
            body = body.encode()
        self.check(isinstance(body, bytes), "a stored value")
        if body[:1] == b"#":
            return self.large(body[1:])
        if body[:1] == b"=":
            body = self._small(body)
        return self.read(body)

    def _small(self, body: bytes) -> bytes:
        """Return the text of a small value; raises StoreDamaged for one that was changed."""
        text = body[9:]
        if body[1:9] != b"%08x" % crc32(text):
            raise StoreDamaged(self.path, "a stored value was changed")
        return text

    def check_value(self, body: Any) -> None:
        """Raise StoreDamaged for a value that was changed or is missing; cheaper than to read it.

        A large value has to be there; whether it was changed is not checked.
        """
        if type(body) is bytes and body[:1] == b"=":
            self._small(body)
        elif type(body) is bytes and body[:1] == b"#":
            if not self.rows("SELECT 1 FROM blob WHERE hash = ?", body[1:]):
                raise StoreDamaged(self.path, MISSING)
        else:
            self.unpacked(body)

    def read(self, body: bytes) -> Json:
        """Return the value of a JSON text; raises StoreDamaged."""
        import json

        try:
            return json.loads(body)
        except ValueError as error:
            raise StoreDamaged(self.path, f"a stored value is no JSON ({error})") from error

    @property
    def version(self) -> tuple[int, int]:
        """Stands for what is in the file: it is another one whenever somebody has written."""
        return self.foreign_version, self._file.total_changes

    @property
    def foreign_version(self) -> int:
        """Stands for what others have written: it is another one whenever they have."""
        with self._errors():
            (foreign,) = self._file.execute("PRAGMA data_version").fetchone()
            return foreign  # type: ignore[no-any-return]

    # Reading

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows of a query, with all that is gathered written first."""
        if not self._reads_written:
            self.flush()
        with self._errors():
            return self._file.execute(statement, values).fetchall()

    def look(self, statement: str, *values: Any) -> Any:
        """Return the first row of a query, None without one; what is gathered is not written."""
        with self._errors():
            return self._file.execute(statement, values).fetchone()

    @contextmanager
    def reading_written(self) -> Iterator[None]:
        """Read without writing first what is gathered: none of it is of what is read."""
        self._reads_written = True
        try:
            yield
        finally:
            self._reads_written = False

    def each(self, statement: str) -> Iterator[Any]:
        """Yield the rows of a query one by one, with all that is gathered written first."""
        self.flush()
        with self._errors():
            yield from self._file.execute(statement)

    def _one(self, statement: str, *values: Any) -> Any:
        found = self.rows(statement, *values)
        return found[0] if found else None

    def execution(self, name: str) -> Stored | None:
        """Return the execution of this name, None where there is none."""
        query = f"SELECT {STORED} FROM execution WHERE name = ?"
        with self._errors():
            found = self._file.execute(query, (name,)).fetchone()
        return None if found is None else self.stored(found)

    def requests(
        self, condition: str, *values: Any, damaged: list[str] | None = None
    ) -> list[Asked]:
        """Return the requests of people that meet a condition, in the order they were made.

        Args:
            condition: Of the rows, in SQL.
            values: What its question marks stand for.
            damaged: Takes a sentence on each damaged one; None raises StoreDamaged for the first.
        """
        rows = self.rows(
            f"SELECT id, key, kind, status, created, body, received, told{_ASKED} FROM request "
            f"WHERE kind NOT IN {TASKS} AND {condition} ORDER BY created, length(key), key",
            *values,
        )
        return [*self._whole(rows, self._request, damaged)]

    def _whole(
        self, rows: Iterable[Any], read: Callable[[Any], Item], damaged: list[str] | None
    ) -> Iterator[Item]:
        """Yield what is read of the rows of requests; a damaged one does not stop the others."""
        for row in rows:
            try:
                yield read(row)
            except StoreDamaged as damage:
                if damaged is None:
                    raise
                damaged.append(f"the request {row[0]} is damaged: {damage.what}")

    def _request(self, row: Any) -> Asked:
        from asl.states.decisions import Asked

        id, key, kind, status, created, body, received, told, whole = row
        self.check(whole == 1, f"the request {id}")
        shown, plan = self.unpacked(body)
        asked = Asked(id, key, kind, shown, plan, created)
        asked.status, asked.told = status, told
        asked.received = self.unpacked(received)
        return asked

    def decisions(self, condition: str, *values: Any) -> dict[str, tuple[str, Json]]:
        """Return what people have decided and executions have not gone on with yet.

        By the id of the request: the key of the effect, and its answer.
        """
        query = (
            f"SELECT id, key, answer FROM request WHERE {condition} AND status = 'answered' "
            f"AND wake = 0 AND kind NOT IN {TASKS}"
        )
        found = [(id, key, self.unpacked(kept)) for id, key, kept in self.rows(query, *values)]
        # Up to the fifth version of the tables such an answer stands in the journal.
        return {id: (key, kept[2]) for id, key, kept in found if len(kept) > 2}

    def tasks(
        self, condition: str, *values: Any, damaged: list[str] | None = None
    ) -> list[Awaited]:
        """Return the requests by task token that meet a condition, in the order they were made.

        See `requests` for the arguments.
        """
        rows = self.rows(
            f"SELECT id, key, kind, status, created, body, received, answer{_ASKED} FROM request "
            f"WHERE kind IN {TASKS} AND {condition} ORDER BY created, length(key), key",
            *values,
        )
        return [*self._whole(rows, self._task, damaged)]

    def _task(self, row: Any) -> Awaited:
        from asl.engine.awaited import Awaited

        id, key, kind, status, created, body, received, answer, whole = row
        self.check(whole == 1, f"the request {id}")
        target, state, payload, timeout, heartbeat = self.unpacked(body)
        task = Awaited(id, key, kind, target, state, payload, created, timeout, heartbeat)
        task.status = status
        task.taken, task.worker, task.beat = self.unpacked(received)
        task.outcome = None if answer is None else self.unpacked(answer)
        return task

    def checkpoints(self, condition: str, *values: Any) -> list[Checkpoint]:
        """Return the checkpoints that meet a condition, in the order they were saved."""
        from asl.engine.checkpoints import Checkpoint

        query = f"SELECT body FROM checkpoint WHERE {condition} ORDER BY execution, number"
        return [Checkpoint.read(self.unpacked(body)) for (body,) in self.rows(query, *values)]

    def executions(
        self, *, status: str | None = None, before: int | None = None, limit: int = 50
    ) -> list[Stored]:
        """Return a page of executions, the newest first; *before* is the number of the last one.

        Those that others have started are not among them. A row that was changed has the status
        `DAMAGED`, and its `cause` says what was. Raises AslError for what is no status.
        """
        condition = "parent IS NULL AND number < ?"
        values: list[Any] = [2**62 if before is None else before]
        if status is not None:
            if status not in STATUSES:
                *others, last = STATUSES
                raise AslError(f"an execution is {', '.join(others)} or {last}, not {status!r}")
            condition, values = f"status = ? AND {condition}", [status, *values]
        found = self.rows(
            f"SELECT {STORED} FROM execution WHERE {condition} ORDER BY number DESC LIMIT ?",
            *values,
            limit,
        )
        return [self._listed(row) for row in found]

    def _listed(self, row: Sequence[Any]) -> Stored:
        """Return the execution of a row, also of one that was changed."""
        try:
            return self.stored(row)
        except StoreDamaged as damage:
            number, name, workflow = row[:3]
            return Stored(
                number, str(name), str(workflow), "", "", False, None, DAMAGED, 0.0, None, None,
                None, damage.what, 0, None, None,
            )  # fmt: skip

    def below(self, number: int) -> list[Stored]:
        """Return the executions that one has started, and those that they have, in this order."""
        found = self.rows(
            f"{BELOW} SELECT {STORED} FROM execution JOIN below USING (number) ORDER BY number",
            number,
        )
        return [self.stored(row) for row in found]

    def top(self, name: str) -> str:
        """Return the name of the execution that stands above all that have led to this one."""
        query = (
            "WITH RECURSIVE above (name, parent) AS ("
            "SELECT name, parent FROM execution WHERE name = ? UNION ALL "
            "SELECT e.name, e.parent FROM execution e JOIN above ON e.number = above.parent) "
            "SELECT name FROM above WHERE parent IS NULL"
        )
        found = self._one(query, name)
        return name if found is None else str(found[0])

    def stored(self, row: Sequence[Any]) -> Stored:
        """Return the execution of a row of the columns `STORED`; raises StoreDamaged."""
        *columns, whole = row
        values = dict(zip(Stored.__slots__, columns, strict=True))
        for column, value in values.items():
            self.check(isinstance(value, _TYPES[column]), f"the {column} of an execution")
        self.check(values["status"] in STATUSES, "the status of an execution")
        self.check(whole == 1, f"the execution {values['name']!r}")
        values["express"] = bool(values["express"])
        return Stored(**values)

    def insist_writable(self) -> None:
        """Raise StoreError where nothing can be written."""
        if self.locks.closed:
            raise StoreError(f"{self.path}: {CLOSED}")
        if self.refusal is not None:
            raise StoreError(f"{self.path}: {self.refusal}")

    def check(self, whole: bool, what: str) -> None:
        """Raise StoreDamaged for something that is not what was written."""
        if not whole:
            raise StoreDamaged(self.path, f"{what} was changed")

    def has_large(self, key: bytes) -> bool:
        """Whether the large text of this hash is in the next transaction."""
        return key in self._large

    def has_document(self, key: str) -> bool:
        """Whether it is known that the document of this hash is kept."""
        return key in self._documents

    def put_document(self, key: str, body: bytes) -> None:
        """Keep the text of a document under its hash, once."""
        if key not in self._documents:
            self._documents.add(key)
            self.write("INSERT OR IGNORE INTO document VALUES (?, ?)", key, body)

    def copy_to(self, target: sqlite3.Connection) -> None:
        """Copy the file as it is after all that is gathered was written (SQLite, online backup)."""
        self.flush()
        with self._errors():
            self._file.backup(target)

    def document(self, key: str) -> Json:
        """Return a document by its hash."""
        self.check(isinstance(key, str), "the document of an execution")
        found = self._one("SELECT body FROM document WHERE hash = ?", key)
        body = None if found is None else found[0]
        if not isinstance(body, bytes) or sha256(body).hexdigest() != key:
            raise StoreDamaged(self.path, f"the document {key[:12]} is missing or was changed")
        return self.unpacked(body)


_OPEN: WeakSet[SqliteStore] = WeakSet()
"""The stores of this process."""
_LEFT: list[SqliteStore] = []
"""Those of the parent that cannot be closed here."""


def _behind_a_fork() -> None:
    """Let go of the parent's stores."""
    for store in [*_OPEN]:
        if not store.locks.closed:
            store.inherit()


if hasattr(os, "register_at_fork"):  # where processes fork
    os.register_at_fork(after_in_child=_behind_a_fork)


def _refuse_left(path: Path) -> None:
    """Raise StoreError for a file that the parent's connections are still open to."""
    if any(path.exists() and path.samefile(left.path) for left in _LEFT if left.path.exists()):
        raise StoreError(f"{path}: {FORKED}")


def _reading(path: Path) -> str | None:
    """Return how SQLite opens a file that cannot be written, None for one that can.

    What was written last stands in a file beside it, unless its last writer has put that away.
    """
    exists = _exists(path)
    last, shared = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    may_make = os.access(path.parent, os.W_OK)
    if not exists or (os.access(path, os.W_OK) and (may_make or last.exists())):
        return None
    if may_make or shared.exists():
        return "mode=ro"
    if last.exists():
        raise StoreError(
            f"{path} is read-only, and what was written last stands in {last.name} beside it: copy "
            "both to where they can be written"
        )
    return "immutable=1"


def _reading_without_index(path: Path) -> str:
    """Return how SQLite opens a file where not even the index of its log can be written.

    Without a log the file itself is all there is. With one, a connection that excludes all others
    has the index in its memory.
    """
    return WITHOUT_INDEX if _has_content(path.with_name(path.name + "-wal")) else "immutable=1"


def _has_content(path: Path) -> bool:
    """Whether there is a file that is not empty."""
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _use_wal(file: sqlite3.Connection) -> None:
    """Switch to write-ahead logging.

    Two processes that create one file at the same time would wait for each other, so SQLite
    refuses one of them at once, whatever its timeout is; the other has switched a moment later.
    """
    deadline = monotonic() + BUSY
    while True:
        try:
            file.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                raise
            sleep(SOON)
        else:
            return


def _refusal(error: sqlite3.OperationalError | OSError) -> str | None:
    """Return why a file cannot be opened to write, None where it cannot be read either."""
    if isinstance(error, OSError):
        if error.errno in (ENOSPC, EDQUOT):
            return FULL
        return NO_FILES if error.errno in (EROFS, EACCES, EPERM) else None
    name = getattr(error, "sqlite_errorname", "")
    if name in ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"):
        return FULL
    writing = name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_IOERR"))
    return NO_FILES if writing else None


def _exists(path: Path) -> bool:
    """Whether there is a file; raises StoreError for a path that none can have."""
    if not path.name:
        raise StoreError(f"a store is a file, and '{path}' is a folder")
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise StoreError(f"no store can be at {str(path)!r}: {error}") from None
    return True


def is_hashed(body: Any, key: bytes) -> bool:
    """Whether a column holds the text of this hash."""
    return isinstance(body, bytes) and sha256(body).digest() == key


def packed_text(body: bytes) -> bytes:
    """Return a small JSON text with its checksum."""
    return b"=%08x%s" % (crc32(body), body)


def guard(*columns: Any) -> int:
    """Return the checksum of columns that hold no values with checksums of their own."""
    return crc32(repr(columns).encode("utf-8", "surrogatepass"))


def _each(statements: str) -> Iterator[str]:
    """Yield the statements one by one; those of a trigger belong to it."""
    text = ""
    for part in statements.split(";"):
        text += f"{part};"
        if sqlite3.complete_statement(text) or not part.strip():
            yield text
            text = ""
    if text.strip():
        yield text


def _advice(error: sqlite3.OperationalError) -> str:
    text = str(error)
    # Even to look at a store takes room: for the index of what was written last, beside it. An
    # error that Python raises by itself has no code.
    no_index = getattr(error, "sqlite_errorname", None) == "SQLITE_IOERR_SHMSIZE"
    if "locked" in text:
        return f"another program has been writing to it for {BUSY:g} seconds"
    if "readonly" in text:
        return READ_ONLY
    if "full" in text or no_index:
        return FULL
    if "disk I/O" in text:
        return f"{text}: nothing more is recorded until the disk takes what is written"
    if "unable to open" in text:
        return "it cannot be opened: does the folder exist, and may it be written to?"
    return text


def _nothing(point: str) -> None:
    """Go on: nobody wants the process to die here."""
