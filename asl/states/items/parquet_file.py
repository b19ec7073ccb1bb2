"""Apache Parquet: one object for each row, read by the library pyarrow where it is installed."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from io import SEEK_END
from math import isfinite
from typing import TYPE_CHECKING, Any, BinaryIO
from uuid import UUID

from asl.core.environment import install_command
from asl.core.values import MAX_DEPTH, Json
from asl.states.items.base import DataFault, DataFormat, GzipReader
from asl.states.items.parquet_pages import DELTA_STRINGS, measure_pages

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
"""Rows that become JSON together, at most."""
MAX_BATCH = 16 * 1024 * 1024
"""Bytes that these rows may have: a value that is written once may be that of many rows."""
MAX_VALUES = 10_000_000
"""Values that the lists of a column may have in a row group, besides one per row."""
MAX_PAGES = 96 * 1024 * 1024
"""Bytes of the pages that are unpacked together: one of each column, and its dictionary."""
MAX_PAGE = 48 * 1024 * 1024
"""Bytes of a page and of the dictionary of its column; its texts are copied once or twice."""
ROWS_DECODED = 1024
"""Rows that the library decodes together, however few are asked for."""
MAX_CELLS = 100_000
"""Values that become JSON together, each in some microseconds."""
BUFFER = 8 * 1024
"""Bytes of a column that are read ahead."""


def read_parquet(file: BinaryIO, form: DataFormat) -> Iterator[Json]:
    """Yield the rows, a row group at a time.

    Numbers, texts, lists and structs are unchanged; timestamps are epoch milliseconds (AWS,
    recorded by others). Decimals, dates and times are texts, bytes are Base64, and numbers that
    JSON does not have are null (none of these is recorded).

    Raises:
        DataFault: The file is not Parquet, exceeds a bound, or pyarrow is missing.
    """
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError:
        message = f"Parquet needs 'pyarrow': {install_command('parquet')}"
        raise DataFault(message, "ItemReader") from None
    number = 0
    try:
        _check_footer(file)
        described = ParquetFile(file, pre_buffer=False)
        about = described.metadata
        _check(about)
        for field in described.schema_arrow:
            _check_keys(field.type, field.name)
        for group in range(about.num_row_groups):
            if about.row_group(group).num_rows == 0:
                continue
            end = number + about.row_group(group).num_rows
            count, shared = _plan(file, about, group, form.longest)
            rows = ParquetFile(
                file,
                metadata=about,
                read_dictionary=shared,
                pre_buffer=False,
                buffer_size=BUFFER,
            )
            for batch in rows.iter_batches(count, row_groups=[group]):
                most = max(MAX_BATCH, count * form.longest)
                for part in _parts(_whole_milliseconds(batch), number + 1, most):
                    for row in part.to_pylist(maps_as_pydicts="lossy"):
                        number += 1
                        yield _json(row)
            if number != end:
                raise DataFault(f"row group {group} ends before row {end}", f"after row {number}")
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:  # two for far years
        raise DataFault(
            f"no Parquet that can be read: {str(error).strip()}", f"after row {number}"
        ) from None


def _check_footer(file: BinaryIO) -> None:
    """Raise DataFault for a description that would take too long to read, before it is read."""
    if isinstance(file, GzipReader):
        raise DataFault("Parquet is not packed once more: it is compressed already", "the file")
    end = file.seek(0, SEEK_END)
    file.seek(max(0, end - len(MAGIC) - 4))
    size, magic = int.from_bytes(file.read(4), "little"), file.read()
    if size > MAX_FOOTER and magic == MAGIC:
        raise DataFault(f"longer than {MAX_FOOTER} bytes", "the footer")
    file.seek(max(0, end - len(MAGIC) - 4 - size))
    if _elements(file.read(MAX_PREFIX)) > MAX_ELEMENTS:
        raise DataFault(f"more than {MAX_ELEMENTS} columns and groups", "the schema")
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
    """Raise DataFault for a file whose description is too deep."""
    columns = (about.schema.column(index).path for index in range(about.num_columns))
    if any(path.count(".") >= MAX_DEPTH for path in columns):
        raise DataFault(f"nested deeper than {MAX_DEPTH} levels", "the schema")


def _check_keys(kind: pa.DataType, column: str) -> None:
    """Raise DataFault for maps whose keys cannot be those of an object."""
    import pyarrow as pa

    if pa.types.is_map(kind) and pa.types.is_nested(kind.key_type):
        raise DataFault("the keys of a map are lists or objects", f"column {column!r}")
    for index in range(kind.num_fields):
        _check_keys(kind.field(index).type, column)


def _plan(file: BinaryIO, about: Any, group: int, longest: int) -> tuple[int, list[str]]:
    """Return how many rows of a group to read together, and the columns to read as dictionaries.

    In a list a text that is written once may be that of every value of a row. Raises DataFault
    for a group that is too large.
    """
    place = f"row group {group}"
    this = about.row_group(group)
    columns = [
        (this.column(index), about.schema.column(index)) for index in range(this.num_columns)
    ]
    size = sum(chunk.total_uncompressed_size for chunk, _ in columns)
    if max(size, this.total_byte_size) > MAX_GROUP:
        raise DataFault(f"more than {MAX_GROUP} bytes", place)
    measured = measure_pages(file, columns, _unpack)
    size = sum(pages.unpacked for pages in measured)
    if size > MAX_GROUP:
        raise DataFault(f"more than {MAX_GROUP} bytes", place)
    if any(pages.largest + pages.dictionary > MAX_PAGE for pages in measured):
        raise DataFault(f"pages of more than {MAX_PAGE} bytes", place)
    if sum(pages.largest + pages.dictionary for pages in measured) > MAX_PAGES:
        raise DataFault(f"pages of more than {MAX_PAGES} bytes in all columns together", place)
    shared = []
    fixed = decoded = 0
    for pages, (_, column) in zip(measured, columns, strict=True):
        width = column.length if column.physical_type == "FIXED_LEN_BYTE_ARRAY" else 0
        fixed += width
        decoded += width * min(pages.values, ROWS_DECODED)
        if not column.max_repetition_level:
            continue
        if pages.values > this.num_rows + MAX_VALUES:
            raise DataFault(f"lists of more than {MAX_VALUES} values", place)
        if pages.values * width > MAX_PAGES:
            raise DataFault(f"lists of more than {MAX_PAGES} bytes", place)
        if column.physical_type == "BYTE_ARRAY":
            if DELTA_STRINGS in pages.encodings:
                raise DataFault(f"the encoding DELTA_BYTE_ARRAY of lists in {column.path!r}", place)
            if pages.dictionary:
                shared.append(column.path)
    if decoded > MAX_PAGES:
        raise DataFault(f"values of more than {MAX_PAGES} bytes", place)
    return max(1, min(ROWS, MAX_BATCH // max(1, size, fixed))), shared


def _unpack(compression: str, body: bytes, size: int) -> bytes:
    """Unpack a page; raises ValueError or pyarrow's errors for one of another size."""
    import pyarrow as pa

    if compression == "UNCOMPRESSED":
        return body
    codec = pa.Codec({"LZ4": "lz4_raw"}.get(compression, compression.lower()))
    unpacked: bytes = codec.decompress(body, size, asbytes=True)
    return unpacked


def _parts(batch: pa.RecordBatch, first: int, most: int) -> Iterator[pa.RecordBatch]:
    """Yield rows as parts that become JSON in a short time; raises DataFault for a larger row.

    Args:
        batch: The rows.
        first: The number of the first row.
        most: Bytes that all of them may have.
    """
    values, size = _size(batch.columns)
    if size > most:
        raise DataFault(f"longer than {most // batch.num_rows} bytes", f"row {first}")
    if values <= MAX_CELLS:
        yield batch
        return
    for index in range(batch.num_rows):
        row = batch.slice(index, 1)
        if _size(row.columns)[0] > MAX_CELLS:
            raise DataFault(f"more than {MAX_CELLS} values", f"row {first + index}")
        yield row


def _size(arrays: Iterable[pa.Array]) -> tuple[int, int]:
    """Return how many values there are in arrays, and their bytes, shared ones each time."""
    import pyarrow as pa

    values = size = 0
    todo = [*arrays]
    while todo:
        array = todo.pop()
        values += len(array)
        if isinstance(array, pa.ExtensionArray):
            todo.append(array.storage)
        elif isinstance(array, pa.DictionaryArray):
            from pyarrow import compute

            lengths = compute.binary_length(array.dictionary.cast(pa.large_binary()))
            size += compute.sum(lengths.take(array.indices)).as_py() or 0
        elif isinstance(array, pa.StructArray):
            todo.extend(array.flatten())
        elif isinstance(array, pa.MapArray):  # its keys and items are those of all rows
            first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
            todo.extend(each.slice(first, last - first) for each in (array.keys, array.items))
        elif pa.types.is_nested(array.type):
            todo.append(array.flatten())
        else:
            size += array.nbytes
    return values, size


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
    kind = type(value)
    if kind in _KEPT:
        return value
    if kind not in _MADE:
        raise DataFault(f"values of the type {kind.__name__} have no form in JSON", "the schema")
    return _MADE[kind](value)


_KEPT = (str, int, bool, type(None))


_MADE: Mapping[type, Callable[[Any], Json]] = {
    float: lambda value: value if isfinite(value) else None,
    Decimal: str,
    date: str,
    time: str,
    UUID: str,
    timedelta: lambda value: value // timedelta(milliseconds=1),
    bytes: lambda value: b64encode(value).decode(),
    dict: lambda value: {str(_json(key)): _json(each) for key, each in value.items()},
    list: lambda value: [*map(_json, value)],
}
"""What becomes of values that JSON does not have."""
