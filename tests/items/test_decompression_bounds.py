"""Small files with large content: bytes are counted during decompression."""

import gzip
import tracemalloc
from io import BytesIO

import pytest

from asl.states.items.base import (
    FREE,
    MAX_ITEM,
    MAX_RATIO,
    UNPACK_BLOCK,
    DataFault,
    DataFormat,
    GzipReader,
)
from asl.states.items.csv_file import MAX_LINE, read_csv
from asl.states.items.json_file import read_json
from asl.states.items.lines import read_json_lines

FORM = DataFormat(longest=262_144)
READERS = [read_csv, read_json, read_json_lines]


def packed(content: bytes, times: int = 1) -> BytesIO:
    """Return content, repeated, as a file in gzip."""
    return BytesIO(gzip.compress(content * times))


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("content", [b" ", b"\n", b"\r\n", b'{"a": 1}\n', b"[", b"0", b'"\n'])
def test_gzip_unpacks_in_proportion(read: object, content: bytes) -> None:
    """No reader gets more than the ratio allows of 5 MB that are packed in 5 kB."""
    file = packed(content, 5_000_000 // len(content))
    unpacked = GzipReader(file)
    with pytest.raises(DataFault):
        for _ in read(unpacked, FORM):  # type: ignore[operator]
            pass
    assert unpacked.size <= FREE + MAX_RATIO * len(file.getvalue()) + UNPACK_BLOCK


def test_gzip_of_usual_text_is_read() -> None:
    """Regular data of a usual size and its members are read to the end."""
    lines = b"".join(b'{"id": %d, "name": "item %d"}\n' % (i, i * 7919) for i in range(50_000))
    found = list(read_json_lines(GzipReader(packed(lines)), FORM))
    assert found[49_999] == {"id": 49_999, "name": f"item {49_999 * 7919}"}
    two = BytesIO(gzip.compress(b"1\n") + gzip.compress(b"2\n"))
    assert list(read_json_lines(GzipReader(two), FORM)) == [1, 2]


@pytest.mark.parametrize(
    ("read", "blank"),
    [
        *((read_csv, each) for each in (b"\n", b"\r\n")),
        *((read_json_lines, each) for each in (b"\n", b" \n", b"\t", b"\r\n", b"\n \n")),
    ],
)
def test_blank_lines_are_bounded(read: object, blank: bytes) -> None:
    """Blank lines in succession end in a fault instead of holding the event loop."""
    content = b"a\n" + blank * 1_200_000
    with pytest.raises(DataFault):
        list(read(BytesIO(content), FORM))  # type: ignore[operator]


def test_parquet_rows_are_read_lazily() -> None:
    """A value that is written once for all rows is not multiplied by them at once."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from asl.states.items.parquet_file import MAX_BATCH, read_parquet

    column = pa.DictionaryArray.from_arrays(pa.array([0] * 2_000, pa.int32()), ["x" * 4_000_000])
    file = BytesIO()
    parquet.write_table(pa.table({"a": column}), file, compression="zstd")
    assert len(file.getvalue()) < 10_000
    before = pa.total_allocated_bytes()
    rows = read_parquet(BytesIO(file.getvalue()), FORM)
    assert len(next(rows)["a"]) == 4_000_000  # type: ignore[call-overload, index, arg-type]
    assert pa.total_allocated_bytes() - before < 4 * MAX_BATCH


def test_parquet_lists_are_bounded() -> None:
    """One row with a list of millions of equal values is refused before it is unpacked."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from asl.states.items.parquet_file import read_parquet

    values = pa.Array.from_buffers(pa.int8(), 11_000_000, [None, pa.py_buffer(bytes(11_000_000))])
    lists = pa.ListArray.from_arrays([0, 11_000_000], values)
    file = BytesIO()
    parquet.write_table(pa.table({"a": lists}), file, compression="zstd")
    with pytest.raises(DataFault, match="lists of more than"):
        next(read_parquet(BytesIO(file.getvalue()), FORM))


@pytest.mark.parametrize("mark", [b'""', b'\\"', b'\\""', b'x""\\x', b'"",""'])
@pytest.mark.parametrize("before", [b"", b"x", b'"'])
def test_csv_rows_of_marks_take_memory_in_proportion(mark: bytes, before: bytes) -> None:
    """Quotation marks and backslashes are looked at one by one, and no place is remembered."""
    content = b"a,b\n1," + before + mark * (1_000_000 // len(mark)) + b"\n"
    tracemalloc.start()
    try:
        with pytest.raises(DataFault):
            list(read_csv(BytesIO(content), DataFormat()))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 40 * len(content)


def test_csv_lines_are_bounded() -> None:
    """A line of a size that no row needs is refused before its marks are looked at."""
    content = b"a,b\n1," + b'""' * (MAX_LINE // 2) + b"\n"
    with pytest.raises(DataFault, match=f"longer than {MAX_LINE} bytes"):
        list(read_csv(BytesIO(content), DataFormat()))


@pytest.mark.parametrize("character", ["x", "\u00e9", "\U0001f600"])
@pytest.mark.parametrize("last", ["x", "\U0001f600"])
@pytest.mark.parametrize("read", [read_json, read_json_lines])
def test_one_item_takes_memory_in_proportion(read: object, character: str, last: str) -> None:
    """The parser itself reserves 16 times the size of a text, most of which it never uses."""
    text = character * (MAX_ITEM // 8 // len(character.encode())) + last
    content = f'["{text}"]'.encode()
    assert _most_memory(read, content) < 24 * len(content)
    with pytest.raises(DataFault, match=f"{MAX_ITEM} bytes"):
        list(read(BytesIO(b'["' + b"x" * (2 * MAX_ITEM) + b'"]'), DataFormat()))  # type: ignore[operator]


def _most_memory(read: object, content: bytes) -> int:
    """Return the most bytes that are allocated at a time while a file is read."""
    tracemalloc.start()
    try:
        assert list(read(BytesIO(content), DataFormat()))  # type: ignore[operator]
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _parquet_of(columns: int) -> bytes:
    """Return a file of no rows, with a schema of so many columns, in Thrift's compact protocol."""

    def number(value: int) -> bytes:
        return (b"" if value < 128 else bytes([value & 127 | 128])) + (
            bytes([value]) if value < 128 else number(value >> 7)
        )

    root = b"\x48\x01s\x15" + number(2 * columns) + b"\0"
    column = b"\x15\x02\x25\x02\x18\x01a\0"
    schema = b"\x19\xfc" + number(columns + 1) + root + column * columns
    footer = b"\x15\x02" + schema + b"\x16\0\x19\x0c\0"
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def test_parquet_schemas_are_bounded_before_they_are_read() -> None:
    """A short description of many columns would take seconds and much memory to read."""
    pytest.importorskip("pyarrow")
    from asl.states.items.parquet_file import MAX_ELEMENTS, MAX_FOOTER, read_parquet

    assert list(read_parquet(BytesIO(_parquet_of(20)), FORM)) == []
    assert list(read_parquet(BytesIO(_parquet_of(1000)), FORM)) == []
    with pytest.raises(DataFault, match=f"more than {MAX_ELEMENTS} columns"):
        list(read_parquet(BytesIO(_parquet_of(MAX_ELEMENTS)), FORM))
    long = b"PAR1" + (MAX_FOOTER + 1).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(DataFault, match=f"longer than {MAX_FOOTER} bytes"):
        list(read_parquet(BytesIO(long), FORM))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1PAR1", b"\0\0\0\0PAR1", b"x" * 100])
def test_parquet_without_a_footer_is_refused(content: bytes) -> None:
    pytest.importorskip("pyarrow")
    from asl.states.items.parquet_file import read_parquet

    with pytest.raises(DataFault, match=r"no Parquet that can be read|the footer|longer than"):
        list(read_parquet(BytesIO(content), FORM))


def test_parquet_in_gzip_is_refused() -> None:
    """It is read from its end, which a stream does not have."""
    pytest.importorskip("pyarrow")
    from asl.states.items.parquet_file import read_parquet

    with pytest.raises(DataFault, match="not packed once more"):
        list(read_parquet(GzipReader(packed(_parquet_of(20))), FORM))  # type: ignore[arg-type]
