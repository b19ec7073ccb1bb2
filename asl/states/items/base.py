"""What the readers of data have in common."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from gzip import GzipFile
from typing import BinaryIO, TypeAlias

import orjson

from asl.core.json_text import ValueCounter
from asl.core.values import MAX_DEPTH, Json, deeper_than

__all__ = [
    "MAX_ITEM",
    "CountedFile",
    "DataFault",
    "DataFormat",
    "GzipReader",
    "Reader",
    "parse_json",
]

SHALLOW = 2 * MAX_DEPTH
"""A shorter text cannot nest deeper than is allowed."""
MAX_VALUES = 1_000_000
"""Values of one item: each takes many times the memory of its text."""
MAX_ITEM = 16 * 1024 * 1024
"""Bytes of one item: a text of them takes up to four times as many in memory, while it is read."""
BOM = b"\xef\xbb\xbf"


class DataFault(Exception):
    """The data cannot be read: *message* says why, *place* where in the file.

    *aws* is what AWS says instead (recorded); without a place the message is that.
    """

    def __init__(self, message: str, place: str | None = None, aws: str | None = None) -> None:
        super().__init__(message, place)
        self.message = message
        self.place = place
        self.aws = message if place is None else aws


@dataclass(frozen=True, slots=True)
class DataFormat:
    """What the document says about the form of the data (`ReaderConfig`)."""

    delimiter: str = ","
    headers: tuple[str, ...] | None = None
    """The names of the columns; None where the first row has them."""
    pointer: str = ""
    """A JSON Pointer to the items."""
    longest: int = MAX_ITEM
    """Bytes that one item may have."""
    aws: bool = False
    """Whether to refuse what AWS was seen refusing: objects as JSON files, CSV without rows."""


Reader: TypeAlias = Callable[[BinaryIO, DataFormat], Iterator[Json]]
"""A reader: yields the items of a file, lazily; raises DataFault, and OSError if the file does."""


def parse_json(text: bytes, line: int, column: int = 1) -> Json:
    """Return the value of a JSON text that begins at *line* and *column*; raises DataFault."""
    if len(text) > MAX_VALUES and not ValueCounter(MAX_VALUES).feed(text):
        raise DataFault(f"more than {MAX_VALUES} values", f"line {line}")
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if text.startswith(BOM):
            return parse_json(text[len(BOM) :], line)
        at = error.colno + (column - 1 if error.lineno == 1 else 0)
        place = f"line {line + error.lineno - 1}, column {at}"
        raise DataFault(f"no JSON: {error.msg}", place) from None
    deep = len(text) > SHALLOW and text.count(b"[") + text.count(b"{") > MAX_DEPTH
    if deep and deeper_than(value, MAX_DEPTH):
        raise DataFault(f"nested deeper than {MAX_DEPTH} levels", f"line {line}")
    return value


class CountedFile:
    """A file whose reads are counted."""

    def __init__(self, file: BinaryIO, count: Callable[[int], object]) -> None:
        self.file = file
        self.count = count

    def read(self, size: int = -1) -> bytes:
        """Return up to *size* bytes, all that are left if it is negative."""
        data = self.file.read(size)
        self.count(len(data))
        return data

    def __getattr__(self, name: str) -> object:
        return getattr(self.file, name)


MAX_RATIO = 100
"""Bytes that one packed byte may become: texts reach 5 to 30, a file that is made to harm 1,000."""
FREE = 1024 * 1024
"""Bytes that any file may become, since short ones may be very regular."""
UNPACK_BLOCK = 1 << 16


class GzipReader:
    """A reader of a gzip file that bounds the size of its content."""

    def __init__(
        self, packed: BinaryIO, count: Callable[[int], object] = lambda size: None
    ) -> None:
        self.packed = packed
        self.file = GzipFile(fileobj=packed)
        self.size = 0
        self.count = count

    def read(self, size: int = -1) -> bytes:
        """Return up to *size* bytes; all the rest for a negative size.

        Raises:
            DataFault: The content is out of proportion to its packed size.
        """
        parts = []
        while size:
            part = self.file.read(UNPACK_BLOCK if size < 0 else min(size, UNPACK_BLOCK))
            if not part:
                break
            self.size += len(part)
            self.count(len(part))
            if self.size > FREE + MAX_RATIO * self.packed.tell():
                text = f"it unpacks to more than {MAX_RATIO} times its size"
                raise DataFault(text, "the file")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
