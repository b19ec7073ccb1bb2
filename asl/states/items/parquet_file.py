"""Apache Parquet: one object for each row, read by the library pyarrow where it is installed."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from io import SEEK_END
from math import isfinite
from typing import TYPE_CHECKING, Any, BinaryIO

from asl.core.environment import install_command
from asl.core.values import MAX_DEPTH, Json
from asl.states.items.base import Fault, Outline
from asl.states.items.packed import Unpacked

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_parquet"]

MAX_FOOTER = 5 * 1024 * 1024
MAX_ELEMENTS = 10_000
"""Columns and groups of columns; reading the descriptions of so many takes a fifth of a second."""
MAGIC = b"PAR1"
MAX_PREFIX = 32
_PREFIX = re.compile(
    rb"\x15[\x80-\xff]*[\x00-\x7f]\x19(?:\xfc(?P<long>[\x80-\xff]*[\x00-\x7f])|.)", re.DOTALL
)
MAX_GROUP = 256 * 1024 * 1024
"""Bytes of the footer, and of a row group when it is unpacked, as with AWS."""
ROWS = 256
"""Rows that become JSON at once, at most."""
MAX_BATCH = 16 * 1024 * 1024
"""Bytes that these rows may have: a value that is written once may be that of many rows."""
MAX_VALUES = 10_000_000
"""Values that the lists of a column may have in a row group beside one for each row."""


def read_parquet(file: BinaryIO, form: Outline) -> Iterator[Json]:
    """Yield the rows, a row group at a time.

    Numbers, texts, lists and structs are what they are, timestamps epoch milliseconds (AWS,
    recorded by others). Decimals, dates and times are texts, bytes are Base64, and what JSON has no
    number for is null: of these nothing is recorded.
    """
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError:
        message = f"Parquet needs 'pyarrow': {install_command('parquet')}"
        raise Fault(message, "ItemReader") from None
    number = 0
    try:
        _check_footer(file)
        rows = ParquetFile(file)
        about = rows.metadata
        _check(about)
        for group in range(about.num_row_groups):
            count = _rows_at_once(about.row_group(group), form.longest, group)
            for batch in rows.iter_batches(count, row_groups=[group]):
                if batch.nbytes > max(MAX_BATCH, count * form.longest):
                    raise Fault(f"longer than {form.longest} bytes", f"row {number + 1}")
                for row in _whole_milliseconds(batch).to_pylist(maps_as_pydicts="lossy"):
                    number += 1
                    yield _json(row)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:  # two for far years
        raise Fault(
            f"no Parquet that can be read: {str(error).strip()}", f"after row {number}"
        ) from None


def _check_footer(file: BinaryIO) -> None:
    """Raise Fault for a description that would take too long to read, before it is read."""
    if isinstance(file, Unpacked):
        raise Fault("Parquet is not packed once more: it is compressed already", "the file")
    end = file.seek(0, SEEK_END)
    file.seek(max(0, end - len(MAGIC) - 4))
    size, magic = int.from_bytes(file.read(4), "little"), file.read()
    if size > MAX_FOOTER and magic == MAGIC:
        raise Fault(f"longer than {MAX_FOOTER} bytes", "the footer")
    file.seek(max(0, end - len(MAGIC) - 4 - size))
    if _elements(file.read(MAX_PREFIX)) > MAX_ELEMENTS:
        raise Fault(f"more than {MAX_ELEMENTS} columns and groups", "the schema")
    file.seek(0)


def _elements(footer: bytes) -> int:
    """Return how many elements the schema has, 0 where the footer does not begin with it.

    It is in Thrift's compact protocol: the version, then the list of the elements.
    """
    form = _PREFIX.match(footer)
    if form is None:
        return 0
    count = 0
    for shift, byte in enumerate(form["long"] or b""):
        count |= (byte & 0x7F) << 7 * shift
    return count


def _check(about: Any) -> None:
    """Raise Fault for a file whose description is too deep."""
    columns = (about.schema.column(index).path for index in range(about.num_columns))
    if any(path.count(".") >= MAX_DEPTH for path in columns):
        raise Fault(f"nested deeper than {MAX_DEPTH} levels", "the schema")


def _rows_at_once(about: Any, longest: int, group: int) -> int:
    """Return how many rows of a group to read at once; raises Fault for one that is too large."""
    place = f"row group {group}"
    columns = [about.column(index) for index in range(about.num_columns)]
    size: int = sum(column.total_uncompressed_size for column in columns)
    if max(size, about.total_byte_size) > MAX_GROUP:
        raise Fault(f"more than {MAX_GROUP} bytes", place)
    if any(column.num_values > about.num_rows + MAX_VALUES for column in columns):
        raise Fault(f"lists of more than {MAX_VALUES} values", place)
    return max(1, min(ROWS, MAX_BATCH // max(1, size)))


def _whole_milliseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows whose timestamps are numbers: Python's have neither nanoseconds nor all years."""
    import pyarrow as pa

    for index, field in enumerate(batch.schema):
        rounded = _with_timestamps(field.type, pa.timestamp("ms"))
        if _with_timestamps(field.type, pa.int64()) != field.type:
            column = batch.column(index).cast(rounded, safe=False)
            column = column.cast(_with_timestamps(rounded, pa.int64()))
            batch = batch.set_column(index, field.name, column)
    return batch


def _with_timestamps(kind: pa.DataType, instead: pa.DataType) -> pa.DataType:
    """Return a type with another one in place of that of its timestamps."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return instead
    if pa.types.is_struct(kind):
        return pa.struct([(each.name, _with_timestamps(each.type, instead)) for each in kind])
    if pa.types.is_map(kind):
        value = _with_timestamps(kind.item_type, instead)
        return pa.map_(_with_timestamps(kind.key_type, instead), value)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_with_timestamps(kind.value_type, instead))
    return kind


def _json(value: Any) -> Json:
    made = _MADE.get(type(value))
    return value if made is None else made(value)


_MADE: Mapping[type, Callable[[Any], Json]] = {
    float: lambda value: value if isfinite(value) else None,
    Decimal: str,
    date: str,
    time: str,
    timedelta: lambda value: value // timedelta(milliseconds=1),
    bytes: lambda value: b64encode(value).decode(),
    dict: lambda value: {str(_json(key)): _json(each) for key, each in value.items()},
    list: lambda value: [*map(_json, value)],
}
"""What becomes of values that JSON does not have."""
