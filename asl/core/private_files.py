"""Files and folders with access for their owner only, for private data of executions."""

import os
from contextlib import suppress

__all__ = ["create_private_file", "make_private_folder", "private_opener"]

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def private_opener(path: str, flags: int) -> int:
    """Open a file for `open(..., opener=private_opener)`; a new one belongs to its owner alone."""
    return os.open(path, flags, FILE_MODE)


def create_private_file(path: str | os.PathLike[str]) -> None:
    """Create an empty file with mode 0600 unless there is one.

    One that exists is not opened: to close it would release the POSIX locks that this process
    holds on it, those of SQLite for example.

    Raises:
        OSError: There is none, and none can be made.
    """
    flags = os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    with suppress(FileExistsError):
        os.close(os.open(path, flags, FILE_MODE))


def make_private_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder and the missing ones above it, each with mode 0700.

    Folders that exist keep their mode.

    Raises:
        OSError: A folder cannot be made.
    """
    folder = os.path.abspath(path)
    if os.path.isdir(folder):
        return
    make_private_folder(os.path.dirname(folder))
    try:
        os.mkdir(folder, FOLDER_MODE)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
