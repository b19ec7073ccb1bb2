"""A copy of a store, made while executions run in it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from asl.core.private import create_private_file
from asl.stores.sqlite import StoreError

if TYPE_CHECKING:
    from asl.stores.sqlite import SqliteStore

__all__ = ["back_up"]


def back_up(store: SqliteStore, path: str | os.PathLike[str]) -> None:
    """Copy a store into a new file, readable by its owner only (SQLite's online backup).

    The file is there as a whole or not at all. Raises StoreError if it exists or cannot be written.
    """
    path = os.fspath(path)
    if os.path.lexists(path):
        raise StoreError(f"{path} exists: a backup is written to a new file")
    part = f"{path}.{os.getpid()}.part"
    try:
        create_private_file(part)
        with closing(sqlite3.connect(part, isolation_level=None)) as target:
            store.copy_to(target)
            target.execute("PRAGMA journal_mode = DELETE")  # the backup is one file
        os.rename(part, path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be written: {error}") from error
    finally:
        if os.path.exists(part):
            os.unlink(part)
