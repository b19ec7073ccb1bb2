"""A store in several threads and processes: each thread of each process has it open for itself.

A connection of SQLite must not cross a fork, and what an execution gathers for its next transaction
must not get into that of another thread. So threads stand beside each other as processes do.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import local

from asl.stores.sqlite import CLOSED, SqliteStore, StoreError

__all__ = ["Opened"]


class Opened:
    """A file of executions, opened by whoever opens the store and by every thread that uses it."""

    def __init__(self, path: str | os.PathLike[str], synchronous: str) -> None:
        self._threads = local()
        self._threads.mine = _Mine(SqliteStore(path, synchronous=synchronous))
        self._synchronous = synchronous
        self._is_closed = False
        self.path = Path(path)
        self._place = self.path.absolute()
        """Where it is, wherever the process goes."""

    def reopen(self) -> None:
        """Leave the store of this thread as it is, and open the file anew at the next use."""
        self.file.crash()
        self._threads.mine = None

    @property
    def file(self) -> SqliteStore:
        """The store of this thread, open from its first use to the end of the thread.

        Raises StoreError where it cannot be opened, or was closed.
        """
        mine: _Mine | None = getattr(self._threads, "mine", None)
        if mine is None or mine.file.inherited:
            if self._is_closed:
                raise StoreError(f"{self.path}: {CLOSED}")
            mine = _Mine(SqliteStore(self._place, synchronous=self._synchronous))
            self._threads.mine = mine
        elif self._is_closed:
            mine.file.close()
        return mine.file

    def close(self) -> None:
        """Close it; what another thread has open ends when that comes by or ends itself."""
        self._is_closed = True
        mine: _Mine | None = getattr(self._threads, "mine", None)
        if mine is not None:
            mine.file.close()


class _Mine:
    """Lives as long as a thread, and closes what that had open: results may refer to it longer."""

    def __init__(self, file: SqliteStore) -> None:
        self.file = file

    def __del__(self) -> None:
        if self.file.is_ours:
            self.file.crash()
