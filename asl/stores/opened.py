"""A store in several threads and processes: each thread of each process connects for itself.

A connection of SQLite must not cross a fork, and what an execution gathers for its next transaction
must not get into that of another thread. So threads stand beside each other as processes do.
"""

from __future__ import annotations

import os
from threading import local

from asl.stores.backend import StoreBackend
from asl.stores.errors import CLOSED, StoreError
from asl.stores.session import Session

__all__ = ["Opened"]


class Opened:
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
