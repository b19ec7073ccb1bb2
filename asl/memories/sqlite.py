"""A memory in one SQLite file, shared by all runs and processes that name it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from asl.core.errors import StateError
from asl.core.json_text import read_data
from asl.core.private_files import create_private_file
from asl.core.values import compact
from asl.engine.memory import MemoryEntry
from asl.expr.text_matching import words

if TYPE_CHECKING:
    import sqlite3

__all__ = ["SqliteMemory"]

PATIENCE = 10.0
"""Seconds to wait for another process that writes."""
VERSION = 1
TABLE = (
    "CREATE TABLE IF NOT EXISTS memory (namespace TEXT NOT NULL, key TEXT NOT NULL, "
    "value TEXT NOT NULL, written REAL NOT NULL, expires REAL, PRIMARY KEY (namespace, key))"
)
INDEX = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS memory_words USING "
    """fts5(words, tokenize = "unicode61 remove_diacritics 0 tokenchars '_'")"""
)
"""Words of every value, under the same rowid."""
FIELDS = "key, value, written, expires"
ALIVE = "namespace = ? AND (expires IS NULL OR expires > ?)"
LATEST = "ORDER BY written DESC, rowid DESC"


class SqliteMemory:
    """A memory in a file (protocols `asl.engine.memory.Memory` and `Searchable`), open only during
    use.

    It uses SQLite's rollback journal: if two processes create a file and switch it to write-ahead
    logging, SQLite refuses one immediately.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    @contextmanager
    def _file(self) -> Iterator[sqlite3.Connection]:
        import sqlite3
        from contextlib import closing

        with suppress(OSError):  # SQLite's error names the reason
            create_private_file(self.path)
        try:
            with closing(
                sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
            ) as file:
                self._set_up(file)
                yield file
        except sqlite3.Error as error:
            raise self._unusable(str(error)) from error

    def _set_up(self, file: sqlite3.Connection) -> None:
        """Create the tables, once per file, and index the present values."""
        if _version(file) == VERSION:
            return
        file.execute("BEGIN IMMEDIATE")
        version = _version(file)
        if version > VERSION:
            raise self._unusable(f"a newer version has written it ({version})")
        if version < VERSION:
            file.execute(TABLE)
            file.execute(INDEX)
            for row, value in file.execute("SELECT rowid, value FROM memory").fetchall():
                _put_words(file, row, read_data(value))
            file.execute(f"PRAGMA user_version = {VERSION}")
        file.execute("COMMIT")

    def _unusable(self, reason: str) -> StateError:
        cause = f"the memory {self.path!r} cannot be used: {reason}"
        return StateError("States.MemoryNotConfigured", cause)

    def get(self, namespace: str, key: str, now: float) -> MemoryEntry | None:
        """Return an entry, None without one."""
        with self._file() as file:
            return _found(file, namespace, key, now)

    def entries(self, namespace: str, now: float) -> list[MemoryEntry]:
        """Return all entries of a namespace, the latest first."""
        query = f"SELECT {FIELDS} FROM memory WHERE {ALIVE} {LATEST}"
        with self._file() as file:
            return [_entry(*row) for row in file.execute(query, (namespace, now))]

    def search(
        self, namespace: str, words: Sequence[str], now: float, most: int
    ) -> list[MemoryEntry]:
        """Return entries with one of *words*; of more than *most* those with the rarer words."""
        if not words:
            return []
        likely = (
            "SELECT memory.rowid FROM memory_words JOIN memory ON memory.rowid = memory_words.rowid"
            f" WHERE memory_words MATCH ? AND {ALIVE} ORDER BY rank LIMIT ?"
        )
        query = f"SELECT {FIELDS} FROM memory WHERE rowid IN ({likely}) {LATEST}"
        match = " OR ".join(f'"{word}"' for word in words)
        with self._file() as file:
            return [_entry(*row) for row in file.execute(query, (match, namespace, now, most))]

    def change(
        self,
        namespace: str,
        key: str,
        now: float,
        make: Callable[[MemoryEntry | None], MemoryEntry | None],
    ) -> None:
        """Replace an entry by the result of *make*, in one transaction."""
        with self._file() as file:
            file.execute("BEGIN IMMEDIATE")
            _delete(file, "expires <= ?", now)
            entry = make(_found(file, namespace, key, now))
            if entry is not None:
                _delete(file, "namespace = ? AND key = ?", namespace, key)
                row = file.execute(
                    "INSERT INTO memory VALUES (?, ?, ?, ?, ?)",
                    (namespace, key, compact(entry.value), entry.written, entry.expires),
                ).lastrowid
                assert row is not None
                _put_words(file, row, entry.value)
            file.execute("COMMIT")


def _version(file: sqlite3.Connection) -> int:
    (version,) = file.execute("PRAGMA user_version").fetchone()
    return int(version)


def _put_words(file: sqlite3.Connection, row: int, value: object) -> None:
    file.execute(
        "INSERT INTO memory_words (rowid, words) VALUES (?, ?)", (row, " ".join(words(value)))
    )


def _delete(file: sqlite3.Connection, condition: str, *values: str | float) -> None:
    rows = f"SELECT rowid FROM memory WHERE {condition}"
    file.execute(f"DELETE FROM memory_words WHERE rowid IN ({rows})", values)
    file.execute(f"DELETE FROM memory WHERE {condition}", values)


def _found(file: sqlite3.Connection, namespace: str, key: str, now: float) -> MemoryEntry | None:
    query = f"SELECT {FIELDS} FROM memory WHERE {ALIVE} AND key = ?"
    row = file.execute(query, (namespace, now, key)).fetchone()
    return None if row is None else _entry(*row)


def _entry(key: str, value: str, written: float, expires: float | None) -> MemoryEntry:
    return MemoryEntry(key, read_data(value), written, expires)
