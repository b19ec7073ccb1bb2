"""What the readers of data have in common."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, TypeAlias

import orjson

from asl.core.json_text import ValueCounter
from asl.core.values import MAX_DEPTH, Json, deeper_than

__all__ = ["MAX_ITEM", "Fault", "Outline", "Read", "parsed"]

SHALLOW = 2 * MAX_DEPTH
"""A shorter text cannot nest deeper than is allowed."""
MAX_VALUES = 1_000_000
"""Values of one item: each takes many times the memory of its text."""
MAX_ITEM = 16 * 1024 * 1024
"""Bytes of one item: a text of them takes up to four times as many in memory, while it is read."""
BOM = b"\xef\xbb\xbf"


class Fault(Exception):
    """The data cannot be read: *message* says why, *place* where in the file.

    *aws* is what AWS says instead (recorded); without a place the message is that.
    """

    def __init__(self, message: str, place: str | None = None, aws: str | None = None) -> None:
        super().__init__(message, place)
        self.message = message
        self.place = place
        self.aws = message if place is None else aws


@dataclass(frozen=True, slots=True)
class Outline:
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


Read: TypeAlias = Callable[[BinaryIO, Outline], Iterator[Json]]
"""A reader: yields the items of a file, lazily; raises Fault, and OSError if the file does."""


def parsed(text: bytes, line: int, column: int = 1) -> Json:
    """Return the value of a JSON text that begins at *line* and *column*; raises Fault."""
    if len(text) > MAX_VALUES and not ValueCounter(MAX_VALUES).feed(text):
        raise Fault(f"more than {MAX_VALUES} values", f"line {line}")
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if text.startswith(BOM):
            return parsed(text[len(BOM) :], line)
        at = error.colno + (column - 1 if error.lineno == 1 else 0)
        place = f"line {line + error.lineno - 1}, column {at}"
        raise Fault(f"no JSON: {error.msg}", place) from None
    deep = len(text) > SHALLOW and text.count(b"[") + text.count(b"{") > MAX_DEPTH
    if deep and deeper_than(value, MAX_DEPTH):
        raise Fault(f"nested deeper than {MAX_DEPTH} levels", f"line {line}")
    return value
