"""A memory in one SQLite file, shared by all runs and processes that name it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from asl.core.errors import StateError
from asl.core.json_text import read_data
from asl.core.values import compact
from asl.engine.memory import Entry

if TYPE_CHECKING:
    import sqlite3

__all__ = ["SqliteMemory"]

PATIENCE = 10.0
"""Seconds to wait for another process that writes."""
TABLE = (
    "CREATE TABLE IF NOT EXISTS memory (namespace TEXT NOT NULL, key TEXT NOT NULL, "
    "value TEXT NOT NULL, written REAL NOT NULL, expires REAL, PRIMARY KEY (namespace, key))"
)
SELECT = (
    "SELECT key, value, written, expires FROM memory "
    "WHERE namespace = ? AND (expires IS NULL OR expires > ?)"
)


class SqliteMemory:
    """Protocol `asl.engine.memory.Memory`; the file is open only while it is needed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    @contextmanager
    def _file(self) -> Iterator[sqlite3.Connection]:
        import sqlite3
        from contextlib import closing

        try:
            with closing(
                sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
            ) as file:
                file.execute("PRAGMA journal_mode = WAL")
                file.execute(TABLE)
                yield file
        except sqlite3.Error as error:
            cause = f"the memory {self.path!r} cannot be used: {error}"
            raise StateError("States.MemoryNotConfigured", cause) from error

    def get(self, namespace: str, key: str, now: float) -> Entry | None:
        """Return an entry, None where there is none."""
        with self._file() as file:
            return _found(file, namespace, key, now)

    def entries(self, namespace: str, now: float) -> list[Entry]:
        """Return all entries of a namespace, the latest first."""
        with self._file() as file:
            query = f"{SELECT} ORDER BY written DESC, rowid DESC"
            return [_entry(*row) for row in file.execute(query, (namespace, now))]

    def change(
        self, namespace: str, key: str, now: float, make: Callable[[Entry | None], Entry | None]
    ) -> None:
        """Replace an entry by what *make* makes of it, in one transaction."""
        with self._file() as file:
            file.execute("BEGIN IMMEDIATE")
            entry = make(_found(file, namespace, key, now))
            if entry is not None:
                file.execute(
                    "INSERT OR REPLACE INTO memory VALUES (?, ?, ?, ?, ?)",
                    (namespace, key, compact(entry.value), entry.written, entry.expires),
                )
            file.execute("DELETE FROM memory WHERE expires <= ?", (now,))
            file.execute("COMMIT")


def _found(file: sqlite3.Connection, namespace: str, key: str, now: float) -> Entry | None:
    row = file.execute(f"{SELECT} AND key = ?", (namespace, now, key)).fetchone()
    return None if row is None else _entry(*row)


def _entry(key: str, value: str, written: float, expires: float | None) -> Entry:
    return Entry(key, read_data(value), written, expires)
