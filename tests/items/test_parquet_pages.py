"""Pages of Parquet whose headers are false: what they announce is counted before it is unpacked."""

import uuid
from io import BytesIO
from typing import Any

import pytest

from asl.states.items import DataFault, DataFormat
from asl.states.items import parquet_file as module
from asl.states.items.parquet_file import MAX_CELLS, MAX_PAGE, read_parquet
from tests.items import parquet_writer as write
from tests.items.parquet_writer import FIXED, INT32, INT64, REPEATED, TEXT, file, levels, page, run

pa = pytest.importorskip("pyarrow")

SEVEN = (7).to_bytes(8, "little")
MANY = 2**31 - 1
ONE_RUN = run(0, 10)


def rows(content: bytes) -> list[Any]:
    return list(read_parquet(BytesIO(content), DataFormat(longest=262_144)))


def packed(body: bytes, codec: str) -> bytes:
    unpacked: bytes = pa.Codec(codec).compress(body, asbytes=True)
    return unpacked


def deltas(count: int) -> bytes:
    """Write the begin of numbers in DELTA_BINARY_PACKED."""
    return write.number(128) + write.number(4) + write.number(count) + b"\0" * 6


EMPTY_LENGTHS = write.number(8) + write.number(1) + write.number(9_000_000) + bytes(2_300_000)
"""Many lengths of zero, each block of them in two bytes, which are packed well."""


def listed(count: int, value: bytes, size: int | None = None, codec: str = "none") -> bytes:
    """Write a row with a list of one value that is repeated."""
    body = levels(run(0, 1), run(1, count - 1)) + levels(run(1, count)) + b"\0" + run(0, count)
    first = write.dictionary(value if codec == "none" else packed(value, codec), 1, size)
    kind = INT32 if len(value) == 4 else TEXT
    content = body if codec == "none" else packed(body, codec)
    pages = page(content, count, write.DICTIONARY, len(body))
    return file(pages, kind, 1, count, first=first, repetition=REPEATED, codec=codec)


def test_pages_written_by_hand_are_read() -> None:
    """Plain, packed, by a dictionary, and in lists."""
    seven = [{"x": 7}] * 10
    assert rows(file(page(SEVEN * 10, 10), INT64, 10)) == seven
    for codec in ("snappy", "gzip", "zstd"):
        pages = page(packed(SEVEN * 10, codec), 10, size=80)
        assert rows(file(pages, INT64, 10, codec=codec)) == seven
    first = write.dictionary(SEVEN, 1)
    assert rows(file(page(b"\0" + ONE_RUN, 10, write.DICTIONARY), INT64, 10, first=first)) == seven
    assert rows(listed(5, b"\5\0\0\0")) == [{"x": [5] * 5}]
    assert rows(file(page(SEVEN * 5, 5) * 2, INT64, 10)) == seven


def texts(encoding: str) -> bytes:
    from pyarrow.parquet import write_table

    made = BytesIO()
    column = [f"name {index}" for index in range(1_000)]
    write_table(
        pa.table({"x": column, "y": [[each] for each in column]}),
        made,
        use_dictionary=encoding == "dictionary",
        column_encoding=None if encoding == "dictionary" else {"x": encoding},
        data_page_version="2.0" if encoding == "DELTA_BYTE_ARRAY" else "1.0",
        compression="zstd",
    )
    return made.getvalue()


@pytest.mark.parametrize("encoding", ["dictionary", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_texts_are_read_in_every_encoding(encoding: str) -> None:
    wanted = [{"x": f"name {index}", "y": [f"name {index}"]} for index in range(1_000)]
    assert rows(texts(encoding)) == wanted


FALSE = {
    "size of a page": file(page(SEVEN * 10, 10, size=MANY), INT64, 10, codec="snappy"),
    "page above the limit": file(page(SEVEN * 10, 10, size=MAX_PAGE + 1), INT64, 10, codec="zstd"),
    "pages above the limit": file(
        page(SEVEN * 10, 10, size=40_000_000) * 7, INT64, 70, codec="zstd"
    ),
    "negative size": file(page(SEVEN * 10, 10, size=-1), INT64, 10),
    "negative length": file(page(SEVEN * 10, 10, length=2**63), INT64, 10),
    "negative values": file(page(SEVEN * 10, -10), INT64, 10),
    "values that are missing": file(page(SEVEN * 10, 10), INT64, 2**40),
    "rows that are missing": file(page(SEVEN * 10, 10), INT64, 11, 10),
    "empty pages": file(page(b"", 0) * 20_000, INT64, 10),
    "text in a header": file(b"\x18" + write.number(MANY) + b"x" * 100, INT64, 10),
    "values without bytes in a header": file(b"\x19\xf7" + write.number(2**40), INT64, 10),
    "lengths of nothing": file(
        page(packed(EMPTY_LENGTHS, "zstd"), 10, write.DELTA_STRINGS, len(EMPTY_LENGTHS)),
        TEXT,
        10,
        codec="zstd",
    ),
    "nested header": file(b"\x1c" * 10_000, INT64, 10),
    "values of a dictionary": file(
        page(b"\0" + ONE_RUN, 10, write.DICTIONARY), INT64, 10, first=write.dictionary(SEVEN, MANY)
    ),
    "width of an index": file(
        page(b"\xff" + ONE_RUN, 10, write.DICTIONARY), INT64, 10, first=write.dictionary(SEVEN, 1)
    ),
    "lengths of texts": file(page(deltas(2**30) + b"x" * 99, 10, write.DELTA_LENGTHS), TEXT, 10),
    "prefixes of texts": file(page(deltas(2**30) + b"x" * 99, 10, write.DELTA_STRINGS), TEXT, 10),
    "suffixes of texts": file(
        page(deltas(10) + deltas(2**30) + b"x" * 99, 10, write.DELTA_STRINGS), TEXT, 10
    ),
    "fixed length": file(page(b"x" * 40, 10), FIXED, 10, length=MANY),
    "fixed length of nulls": file(
        page(levels(run(0, 256)), 256), FIXED, 256, length=10_000_000, repetition=write.OPTIONAL
    ),
    "values of a row": listed(MAX_CELLS + 1, b"\5\0\0\0"),
    "values of a row that is false": file(
        page(b"", 2**27, write.DICTIONARY), INT32, 1, 100, repetition=REPEATED
    ),
    "texts of a row": listed(1_000, (1_000_000).to_bytes(4, "little") + b"x" * 1_000_000),
    "prefixes in lists": file(page(b"", 10, write.DELTA_STRINGS), TEXT, 1, 10, repetition=REPEATED),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_page_that_announces_too_much_is_a_fault(name: str) -> None:
    """Its place is named, and the library allocates nothing of what is announced."""
    before = pa.total_allocated_bytes()
    with pytest.raises(DataFault) as fault:
        rows(FALSE[name])
    assert fault.value.place
    assert "malloc" not in fault.value.message
    assert pa.total_allocated_bytes() - before < MAX_PAGE


def test_empty_row_groups_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may list very many of them."""
    monkeypatch.setattr(module, "measure_pages", None)
    assert rows(file(b"", INT64, 0, groups=20_000)) == []


def test_values_that_json_does_not_have() -> None:
    """A UUID is a text; a map whose keys are lists or objects is refused."""
    from pyarrow.parquet import write_table

    made = BytesIO()
    one = uuid.UUID(int=5)
    schema = pa.schema([("x", pa.binary(16))])
    write_table(pa.table({"x": [one.bytes]}, schema=schema), made)
    assert len(rows(made.getvalue())) == 1
    if hasattr(pa, "uuid"):
        made = BytesIO()
        write_table(pa.table({"x": pa.array([one.bytes], pa.uuid())}), made)
        assert rows(made.getvalue()) == [{"x": str(one)}]
    made = BytesIO()
    kind = pa.map_(pa.list_(pa.int8()), pa.int8())
    write_table(pa.table({"x": pa.array([[([1], 1)]], kind)}), made)
    with pytest.raises(DataFault, match="keys of a map"):
        rows(made.getvalue())
