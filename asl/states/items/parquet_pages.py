"""Pages of Parquet files, measured by their headers before a library unpacks them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import SEEK_CUR, BytesIO
from typing import Any, BinaryIO, Final

from asl.states.items.base import DataFault

__all__ = ["Pages", "measure_pages"]

MAX_WORK: Final = 500_000
"""Bytes and values that are read one by one in a row group; each takes up to a microsecond."""
MAX_LEVELS: Final = 8
"""Levels of a header: those of statistics in a header in a page."""
MAX_COUNT: Final = 10_000_000
"""Lengths of texts that a page may announce."""
MAX_TEXTS: Final = 48 * 1024 * 1024
"""Bytes of a page of such texts."""
MAX_DICTIONARY: Final = 4_000_000
"""Values of a dictionary; each takes 16 bytes."""
TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
INTEGERS: Final = (4, 5, 6)
"""Types of Thrift's compact protocol."""
DATA, DICTIONARY, DATA_V2 = 0, 2, 3
HEADER_OF: Final = {DATA: 5, DICTIONARY: 7, DATA_V2: 8}
"""The field of a page's header that describes a page of its type."""
DELTA_LENGTHS, DELTA_STRINGS = 6, 7
"""Encodings of texts that begin with the number of their lengths."""


@dataclass(slots=True)
class Pages:
    """What the pages of a column have in a row group, in bytes."""

    unpacked: int = 0
    largest: int = 0
    """The largest page of data."""
    dictionary: int = 0
    values: int = 0
    """Number of values."""
    encodings: set[int] = field(default_factory=set)


class _Thrift:
    """Reads Thrift's compact protocol from a file; raises ValueError for what is none."""

    def __init__(self, file: BinaryIO, left: int) -> None:
        self.file = file
        self.left = left
        """Bytes and values that may still be read."""

    def spend(self) -> None:
        """Count a byte or a value; a value may have no bytes of its own."""
        self.left -= 1
        if self.left < 0:
            raise ValueError("headers or lengths of texts are too long")

    def byte(self) -> int:
        self.spend()
        read = self.file.read(1)
        if not read:
            raise ValueError("a header ends early")
        return read[0]

    def number(self) -> int:
        value = shift = 0
        while (byte := self.byte()) & 0x80 and shift < 63:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def signed_integer(self) -> int:
        value = self.number()
        return value >> 1 ^ -(value & 1)

    def value(self, kind: int, levels: int = MAX_LEVELS) -> Any:
        """Return an integer or the fields of a struct; skip any other value."""
        self.spend()
        if kind in INTEGERS:
            return self.signed_integer()
        if kind == STRUCT and levels:
            return dict(self.fields(levels - 1))
        if kind in (LIST, SET) and levels:
            head = self.byte()
            for _ in range(head >> 4 if head >> 4 < 15 else self.number()):
                self.value(BYTE if head & 15 in (TRUE, FALSE) else head & 15, levels - 1)
        elif kind == BYTE:
            self.byte()
        elif kind in (DOUBLE, BINARY):
            self.file.seek(8 if kind == DOUBLE else self.number(), SEEK_CUR)
        elif kind not in (TRUE, FALSE):
            raise ValueError(f"a header has a field of the unknown type {kind}")
        return kind == TRUE

    def fields(self, levels: int = MAX_LEVELS) -> Iterator[tuple[int, Any]]:
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.signed_integer()
            yield number, self.value(head & 15, levels)


def measure_pages(
    file: BinaryIO, columns: list[tuple[Any, Any]], unpack: Callable[[str, bytes, int], bytes]
) -> list[Pages]:
    """Measure the pages of a row group.

    Args:
        file: The Parquet file.
        columns: pyarrow's descriptions of each column: in the row group, and in the schema.
        unpack: Unpacks bytes, by the name of the compression and the size they are unpacked to.

    Returns:
        The measures of each column.

    Raises:
        DataFault: A header cannot be read, or a page announces too many texts.
    """
    left = MAX_WORK
    found = []
    for chunk, column in columns:
        try:
            pages, left = _measure(file, left, chunk, column, unpack)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise DataFault(
                f"no Parquet that can be read: {error}", f"column {column.path!r}"
            ) from None
        found.append(pages)
    return found


def _measure(
    file: BinaryIO,
    left: int,
    chunk: Any,
    column: Any,
    unpack: Callable[[str, bytes, int], bytes],
) -> tuple[Pages, int]:
    """Return the measures of a column, and what is left of `MAX_WORK`."""
    pages = Pages()
    start, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    at = dictionary if dictionary and 0 < dictionary < start else start
    while pages.values < chunk.num_values:  # as the library does: behind them may be anything
        file.seek(at)
        thrift = _Thrift(file, left)
        header = dict(thrift.fields())
        left, at = thrift.left, file.tell() + header[3]
        kind, size, packed = header[1], header[2], header[3]
        if size < 0 or packed < 0:
            raise ValueError("a page has a negative size")
        pages.unpacked += size
        if kind not in HEADER_OF:
            continue
        about = header[HEADER_OF[kind]]
        if kind == DICTIONARY:
            if not 0 <= about[1] <= min(MAX_DICTIONARY, size):
                raise ValueError(f"a dictionary announces {about[1]} values")
            pages.dictionary = max(pages.dictionary, size)
            continue
        if about[1] < 0:
            raise ValueError("a page has a negative number of values")
        pages.values += about[1]
        pages.largest = max(pages.largest, size)
        encoding = about[4 if kind == DATA_V2 else 2]
        pages.encodings.add(encoding)
        if encoding in (DELTA_LENGTHS, DELTA_STRINGS) and chunk.physical_type == "BYTE_ARRAY":
            body = file.read(packed)
            left = _check_lengths(body, left, header, encoding, chunk, column, unpack)
    return pages, left


def _check_lengths(
    body: bytes,
    left: int,
    header: dict[int, Any],
    encoding: int,
    chunk: Any,
    column: Any,
    unpack: Callable[[str, bytes, int], bytes],
) -> int:
    """Check the numbers of lengths that a page of texts announces; return what is left of the work.

    Raises:
        ValueError: There are more than there may be values.
    """
    size = header[2]
    if size > MAX_TEXTS:
        raise ValueError(f"a page of texts is longer than {MAX_TEXTS} bytes")
    if header[1] == DATA_V2:
        about = header[8]
        levels = about[5] + about[6]
        body, size = body[levels:], size - levels
        if about.get(7, True):
            body = unpack(chunk.compression, body, size)
        content = BytesIO(body)
    else:
        content = BytesIO(unpack(chunk.compression, body, size))
        for level in (column.max_repetition_level, column.max_definition_level):
            if level:
                content.seek(int.from_bytes(content.read(4), "little"), SEEK_CUR)
    thrift = _Thrift(content, left)
    lengths = _begin_lengths(thrift)
    if encoding == DELTA_STRINGS:  # lengths of what is repeated, then of what is new
        _skip_lengths(thrift, *lengths)
        _begin_lengths(thrift)
    return thrift.left


def _begin_lengths(thrift: _Thrift) -> tuple[int, int, int]:
    """Read the begin of numbers in the encoding DELTA_BINARY_PACKED.

    Returns:
        How many numbers follow the first one, the parts of a block, and the numbers of a part.
    """
    block, parts, count = thrift.number(), thrift.number(), thrift.number()
    if count > MAX_COUNT:
        raise ValueError(f"a page has more than {MAX_COUNT} texts")
    if not 0 < parts <= block or block % (8 * parts):
        raise ValueError("a page has no blocks of numbers")
    thrift.signed_integer()
    return count - 1, parts, block // parts


def _skip_lengths(thrift: _Thrift, left: int, parts: int, size: int) -> None:
    while left > 0:
        thrift.signed_integer()
        for width in [thrift.byte() for _ in range(parts)]:
            if left > 0:  # parts behind the last number are left out
                thrift.file.seek(width * size // 8, SEEK_CUR)
            left -= size
