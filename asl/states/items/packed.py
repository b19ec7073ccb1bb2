"""Data packed with gzip, unpacked as it is read and only as far as its packed size justifies."""

from gzip import GzipFile
from typing import BinaryIO

from asl.states.items.base import Fault

__all__ = ["Unpacked"]

MAX_RATIO = 100
"""Bytes that one packed byte may become: texts reach 5 to 30, a file that is made to harm 1,000."""
FREE = 1024 * 1024
"""Bytes that any file may become, since short ones may be very regular."""
BLOCK = 1 << 16


class Unpacked:
    """A file in gzip as one of its content; raises Fault when that is out of proportion."""

    def __init__(self, packed: BinaryIO) -> None:
        self.packed = packed
        self.file = GzipFile(fileobj=packed)
        self.size = 0

    def read(self, size: int = -1) -> bytes:
        """Return up to *size* bytes, all that are left if it is negative."""
        parts = []
        while size:
            part = self.file.read(BLOCK if size < 0 else min(size, BLOCK))
            if not part:
                break
            self.size += len(part)
            if self.size > FREE + MAX_RATIO * self.packed.tell():
                text = f"it unpacks to more than {MAX_RATIO} times its size"
                raise Fault(text, "the file")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
