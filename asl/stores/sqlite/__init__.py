"""Executions in an SQLite file: no server, one writer at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from asl.stores.errors import StoreError
from asl.stores.sqlite.connection import SqliteConnection

__all__ = ["SqliteBackend"]

HEADER = 100
MAGIC = b"SQLite format 3\0"


class SqliteBackend:
    """A file of executions (protocol `asl.stores.backend.StoreBackend`).

    Args:
        path: Path of the file.
        synchronous: SQLite's pragma of this name: with `FULL` commits survive a loss of power, with
            `NORMAL` the death of the process.

    Raises:
        StoreError: The path is a folder.
    """

    def __init__(self, path: str | os.PathLike[str], synchronous: str = "FULL") -> None:
        self.place = Path(path)
        if not self.place.name:
            raise StoreError(f"a store must be a file, but '{path}' is a folder")
        self._path = self.place.absolute()
        """The absolute path, independent of the current folder."""
        self._synchronous = synchronous

    @property
    def checkpoints(self) -> str:
        """The folder of the checkpoints, named after the file."""
        return f"{self.place}.checkpoints"

    def connect(self) -> SqliteConnection:
        """Open the file for the calling thread."""
        return SqliteConnection(self._path, self.place, self._synchronous)

    def faults(self) -> Iterator[str]:
        """Yield the faults of the file's header and size."""
        with self._path.open("rb") as file:
            head = file.read(HEADER)
            size = file.seek(0, 2)
        if not head.startswith(MAGIC):
            yield "it is no SQLite database, or its beginning was overwritten"
            return
        page, pages = int.from_bytes(head[16:18]), int.from_bytes(head[28:32])
        whole = pages * (0x10000 if page == 1 else page)
        if size < whole:
            yield f"it was truncated, {size:,} bytes of {whole:,} are there"
