"""Files and folders of the user: access for their owner only, and complete or not at all.

Windows has no modes: there the access of a new file is that of its folder.
"""

import os
import sys
from contextlib import suppress
from errno import EACCES
from io import BufferedWriter, FileIO
from stat import S_IMODE, S_ISREG
from types import TracebackType
from typing import Any, BinaryIO, Final, cast

__all__ = [
    "create_private_file",
    "make_private_folder",
    "open_replacement",
    "private_opener",
    "unfinished_path",
]

FILE_MODE = 0o600
FOLDER_MODE = 0o700
NEW: Final = (
    os.O_CREAT
    | os.O_EXCL
    | os.O_WRONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)  # Windows would write other ends of lines
)
"""Flags to open a file that must not exist."""
UMASK_MODE: Final = 0o666
"""Mode of a new file that anybody may read whom the umask of the process allows."""


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
    with suppress(FileExistsError):
        os.close(os.open(path, NEW, FILE_MODE))


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


def unfinished_path(path: str | os.PathLike[str]) -> str:
    """Return a new path in the folder of a file, for content that is not complete yet."""
    return os.path.join(os.path.dirname(os.fspath(path)), f".{os.urandom(8).hex()}.part")


def open_replacement(path: str | os.PathLike[str], *, private: bool = False) -> BinaryIO:
    """Open a file whose content appears when it is closed: complete, or not at all.

    Until then, after an exception in its `with` block and after a failed write the former content
    remains. Links are followed, and an existing file keeps its mode. What is no regular file, such
    as a device or a pipe, and a file in a folder that allows no new files are written in place.

    Args:
        path: The file.
        private: Whether a new file has mode 0600; otherwise the umask decides.

    Raises:
        OSError: The file cannot be written.
    """
    existing = None
    with suppress(FileNotFoundError):
        existing = os.stat(path)
    mode = FILE_MODE if private else UMASK_MODE
    if existing is None:
        return _replacement(os.path.realpath(path), mode)
    if not S_ISREG(existing.st_mode):
        return open(path, "wb")
    if not os.access(path, os.W_OK):
        raise PermissionError(EACCES, os.strerror(EACCES), os.fspath(path))
    try:
        file = _replacement(os.path.realpath(path), S_IMODE(existing.st_mode))
    except PermissionError:
        return open(path, "wb")
    if sys.platform != "win32":
        os.chmod(file.fileno(), S_IMODE(existing.st_mode))  # whatever the umask is
        with suppress(OSError):  # only an administrator may give files away
            os.chown(file.fileno(), existing.st_uid, existing.st_gid)
    return file


def _replacement(path: str, mode: int) -> BinaryIO:
    part = unfinished_path(path)
    return cast(BinaryIO, _Replacement(FileIO(os.open(part, NEW, mode), "wb"), part, path))


class _Replacement(BufferedWriter):
    """The content of a file until it is complete.

    Args:
        file: The open file of the content.
        part: Its path.
        path: The file to replace, without links.
    """

    def __init__(self, file: FileIO, part: str, path: str) -> None:
        super().__init__(file)
        self._part = part
        self._path = path
        self._is_broken = False
        """Whether a write has failed."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BaseException:  # raised again: an interrupted write is incomplete as well
            self._is_broken = True
            raise

    def close(self) -> None:
        """Replace the file, unless a write has failed."""
        if self.closed:
            return
        try:
            if not self._is_broken:
                self.flush()
                os.fsync(self.fileno())
                self.raw.close()
                os.replace(self._part, self._path)
        finally:
            self._discard()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_broken = self._is_broken or kind is not None
        self.close()

    def __del__(self) -> None:
        """Discard what was never closed: it may be incomplete."""
        self._is_broken = True
        self.close()

    def _discard(self) -> None:
        """Close what is open and delete the unfinished content."""
        self.raw.close()
        with suppress(OSError):
            os.unlink(self._part)
