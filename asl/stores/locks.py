"""One process at a time works on an execution: locks that die with the process that holds them."""

import fcntl
import os
import struct
from pathlib import Path

__all__ = ["Locks"]

_OFD_SETLK = getattr(fcntl, "F_OFD_SETLK", None) if os.uname().sysname == "Linux" else None
"""Linux has locks of the open file: two stores of one process exclude each other, too."""


class Locks:
    """Byte *n* of a file beside the store stands for execution *n*."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self, number: int) -> bool:
        """Lock an execution; False where somebody else has it."""
        try:
            if _OFD_SETLK is None:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
            else:
                fcntl.fcntl(self._file, _OFD_SETLK, _flock(fcntl.F_WRLCK, number))
        except (BlockingIOError, PermissionError):
            return False
        return True

    def leave(self, number: int) -> None:
        """Unlock an execution."""
        if _OFD_SETLK is None:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)
        else:
            fcntl.fcntl(self._file, _OFD_SETLK, _flock(fcntl.F_UNLCK, number))

    def close(self) -> None:
        """Unlock all."""
        os.close(self._file)


def _flock(kind: int, number: int) -> bytes:
    # struct flock of 64-bit Linux: type, whence, start, length, pid.
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, number, 1, 0)
