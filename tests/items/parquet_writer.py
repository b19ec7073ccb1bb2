"""Parquet files of one column, written by hand so that each count and size in them can be false."""

from typing import Any

CODECS = {"none": 0, "snappy": 1, "gzip": 2, "zstd": 6}
PLAIN, DELTA_LENGTHS, DELTA_STRINGS, DICTIONARY = 0, 6, 7, 8
INT32, INT64, TEXT, FIXED = 1, 2, 6, 7
REQUIRED, OPTIONAL, REPEATED = 0, 1, 2


class Long(int):
    """A number of 64 bits; other numbers are written as such of 32 bits."""


def number(value: int) -> bytes:
    """Write an unsigned number of Thrift's compact protocol."""
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def struct(fields: dict[int, Any]) -> bytes:
    """Write a struct of Thrift's compact protocol, by the numbers of its fields."""
    out, last = b"", 0
    for field, value in sorted(fields.items()):
        kind, text = _value(value)
        out += bytes([(field - last) << 4 | kind]) + text
        last = field
    return out + b"\0"


def _value(value: Any) -> tuple[int, bytes]:
    """Return type and text of a number, bytes, a list, or a struct."""
    if isinstance(value, int):
        return 6 if isinstance(value, Long) else 5, number(value << 1 ^ value >> 63)
    if isinstance(value, bytes):
        return 8, number(len(value)) + value
    if isinstance(value, dict):
        return 12, struct(value)
    items = [_value(each) for each in value]
    return 9, bytes([0xF0 | items[0][0]]) + number(len(items)) + b"".join(each for _, each in items)


def page(
    body: bytes, values: int, encoding: int = PLAIN, size: int | None = None, length: int = -1
) -> bytes:
    """Write a page of data that announces *size* bytes when unpacked, and *length* bytes packed."""
    fields = {1: 0, 2: len(body) if size is None else size, 3: len(body) if length < 0 else length}
    return struct({**fields, 5: {1: values, 2: encoding, 3: 3, 4: 3}}) + body


def dictionary(body: bytes, values: int, size: int | None = None) -> bytes:
    """Write the page of a dictionary."""
    fields = {1: 2, 2: len(body) if size is None else size, 3: len(body)}
    return struct({**fields, 7: {1: values, 2: PLAIN}}) + body


def run(value: int, times: int) -> bytes:
    """Write a value that is repeated, as levels and indices of a dictionary are."""
    return number(times << 1) + bytes([value])


def levels(*runs: bytes) -> bytes:
    """Write levels of repetition or definition."""
    content = b"".join(runs)
    return len(content).to_bytes(4, "little") + content


def file(
    pages: bytes,
    kind: int,
    rows: int,
    values: int | None = None,
    *,
    first: bytes = b"",
    codec: str = "none",
    repetition: int = REQUIRED,
    length: int | None = None,
    size: int = 100,
    groups: int = 1,
) -> bytes:
    """Write a file with a column 'x'.

    Args:
        pages: The pages of data.
        kind: The physical type.
        rows: Rows that each row group announces.
        values: Values that the column announces; by default as many.
        first: The page of its dictionary.
        codec: How pages are packed.
        repetition: Whether values are required, optional, or repeated.
        length: The length of values that have a fixed one.
        size: Bytes that the row group announces.
        groups: How often the row group is listed.
    """
    column = {1: kind, 3: repetition, 4: b"x"} | ({} if length is None else {2: length})
    about = {
        1: kind,
        2: [PLAIN],
        3: [b"x"],
        4: CODECS[codec],
        5: Long(rows if values is None else values),
        6: Long(size),
        7: Long(len(first + pages)),
        9: Long(4 + len(first)),
    } | ({11: Long(4)} if first else {})
    group = {1: [{2: Long(4), 3: about}], 2: Long(size), 3: Long(rows)}
    schema = [{4: b"root", 5: 1}, column]
    footer = struct({1: 1, 2: schema, 3: Long(rows * groups), 4: [group] * groups})
    return b"PAR1" + first + pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"
