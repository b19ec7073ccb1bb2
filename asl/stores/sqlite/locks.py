"""Locks on executions, which end with the process that holds them."""

import os
import struct
import sys
from pathlib import Path

try:
    import fcntl

    IS_SUPPORTED = True
except ImportError:  # Windows
    IS_SUPPORTED = False

__all__ = ["IS_SUPPORTED", "UNSUPPORTED", "Locks"]

UNSUPPORTED = (
    "stores need the file locks of POSIX, which this system does not have: run without --store, "
    "or under WSL"
)
_OFD_SETLK = getattr(fcntl, "F_OFD_SETLK", None) if sys.platform == "linux" else None
"""Linux's locks of the open file, which also exclude two stores of one process."""
_OFD_GETLK = None if _OFD_SETLK is None else fcntl.F_OFD_GETLK
_FLOCK = "hhqqi4x"
"""`struct flock` of 64-bit Linux: type, whence, start, length, pid."""


class Locks:
    """Locks on bytes of a file named after the store: byte *n* is lock *n*."""

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self.closed = False
        self._file = -1
        """File descriptor; -1 if the file does not exist and cannot be created, so that no lock is
        held."""
        if not read_only:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        elif _OFD_GETLK is not None and path.exists():
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def acquire(self, number: int) -> bool:
        """Lock an execution; return False if another connection holds the lock."""
        try:
            if _OFD_SETLK is None:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
            else:
                fcntl.fcntl(self._file, _OFD_SETLK, _flock(fcntl.F_WRLCK, number))
        except (BlockingIOError, PermissionError):
            return False
        return True

    def is_held(self, number: int) -> bool:
        """Return whether another process holds a lock, without taking it."""
        if self._file < 0:
            return False
        if _OFD_GETLK is not None:
            found = fcntl.fcntl(self._file, _OFD_GETLK, _flock(fcntl.F_WRLCK, number))
            return struct.unpack(_FLOCK, found)[0] != fcntl.F_UNLCK  # type: ignore[no-any-return]
        if not self.acquire(number):
            return True
        self.release(number)
        return False

    def release(self, number: int) -> None:
        """Unlock an execution; after `close` this does nothing."""
        if self.closed:
            return
        if _OFD_SETLK is None:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)
        else:
            fcntl.fcntl(self._file, _OFD_SETLK, _flock(fcntl.F_UNLCK, number))

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Release all locks. The file descriptor may be reused afterwards."""
        if self._file >= 0:
            os.close(self._file)
        self.closed, self._file = True, -1


def _flock(kind: int, number: int) -> bytes:
    return struct.pack(_FLOCK, kind, os.SEEK_SET, number, 1, 0)
