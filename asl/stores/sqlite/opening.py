"""Modes of opening a file: to write if possible, otherwise to read."""

import os
import sqlite3
from errno import EACCES, EDQUOT, ENOSPC, EPERM, EROFS
from pathlib import Path
from stat import S_ISREG
from time import monotonic, sleep
from typing import Final

from asl.stores.errors import StoreError

__all__ = [
    "BUSY",
    "FULL",
    "READ_ONLY",
    "WITHOUT_INDEX",
    "advice",
    "has_content",
    "reading_mode",
    "reading_mode_without_index",
    "refusal_of",
    "run_when_free",
    "use_wal",
]

BUSY: Final = 10.0
"""Seconds to wait for another writing process."""
SOON: Final = 0.0005
"""Seconds between two attempts to run a blocked statement."""
FULL: Final = "the disk is full: nothing more is recorded until there is room"
NO_FILES: Final = (
    "no file can be written next to it, so nothing can be recorded: check that the disk is not "
    "full and that the folder is writable"
)
READ_ONLY: Final = "it is read-only: executions cannot be recorded there"
WITHOUT_INDEX: Final = "mode=rw"
"""Opens a file on a connection that needs no index of the write-ahead log on the disk."""


def reading_mode(path: Path) -> str | None:
    """Return how SQLite opens a read-only file, None for a writable one.

    The last writes are in its write-ahead log, unless the last writer removed it.

    Raises:
        StoreError: The file cannot be read without writing, or the path is invalid.
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
            f"{path} is read-only, and the latest changes are in {last.name} next to it: copy "
            "both files to a writable folder"
        )
    return "immutable=1"


def reading_mode_without_index(path: Path) -> str:
    """Return how SQLite opens a file if not even the index of its log can be written.

    Without a log the file is complete. With one, an exclusive connection has the index in its
    memory.
    """
    return WITHOUT_INDEX if has_content(path.with_name(path.name + "-wal")) else "immutable=1"


def has_content(path: Path) -> bool:
    """Return whether a file exists and is not empty."""
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def run_when_free(file: sqlite3.Connection, statement: str, patience: float) -> None:
    """Run a statement that SQLite refuses while others write, as soon as they have finished.

    Args:
        file: The connection.
        statement: The statement.
        patience: Seconds for which to try.

    Raises:
        sqlite3.OperationalError: Others still write after that time, or the statement fails.
    """
    deadline = monotonic() + patience
    while True:
        try:
            file.execute(statement)
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY  # for any reason
            if not is_busy or monotonic() > deadline:
                raise
            sleep(SOON)
        else:
            return


def use_wal(file: sqlite3.Connection) -> None:
    """Switch to write-ahead logging.

    Two processes that create one file at the same time would wait for each other, so SQLite
    refuses one of them immediately, regardless of its timeout; the other switches soon after.
    """
    run_when_free(file, "PRAGMA journal_mode = WAL", BUSY)


def refusal_of(error: sqlite3.OperationalError | OSError) -> str | None:
    """Return why a file cannot be opened to write, None if it cannot be read either."""
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
    """Return whether a file exists.

    Raises:
        StoreError: The path is invalid.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise StoreError(f"the path {str(path)!r} cannot be a store: {error}") from None
    if not S_ISREG(mode):
        reason = "it is a folder, a device or a pipe"
        raise StoreError(f"the path {str(path)!r} cannot be a store: {reason}")
    return True


def advice(error: sqlite3.OperationalError) -> str:
    """Return SQLite's message and what to do about it."""
    text = str(error)
    # Even reading takes disk space, for the index of the write-ahead log. An
    # error raised by Python itself has no code.
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
