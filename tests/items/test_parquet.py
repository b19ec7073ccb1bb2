"""Items of a distributed Map in Apache Parquet."""

import io
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.parquet import ParquetFile, write_table

import asl
from asl.checks import execution
from asl.states.items import DataFault, DataFormat
from asl.states.items.parquet_file import read_parquet

Json = Any
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def packed(columns: dict[str, Any], **how: Any) -> bytes:
    file = io.BytesIO()
    write_table(pa.table(columns), file, **how)
    return file.getvalue()


def rows(content: bytes) -> list[Json]:
    return list(read_parquet(io.BytesIO(content), DataFormat()))


def document(**config: Json) -> Json:
    return {
        "StartAt": "Each",
        "States": {
            "Each": {
                "Type": "Map",
                "ItemReader": {
                    "Resource": "arn:aws:states:::s3:getObject",
                    "ReaderConfig": {"InputType": "PARQUET", **config},
                    "Parameters": {"Bucket": "shop", "Key.$": "$.file"},
                },
                "ItemProcessor": {
                    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"},
                    "StartAt": "Go",
                    "States": {"Go": {"Type": "Pass", "End": True}},
                },
                "End": True,
            }
        },
    }


SMALL = packed({"n": [1, 2, 3], "name": ["tea", "pot", None]})


@pytest.mark.parametrize(
    ("column", "items"),
    [
        ([1, None], [1, None]),
        ([True, False], [True, False]),
        (["tea", ""], ["tea", ""]),
        ([1.5, float("nan")], [1.5, None]),
        (pa.array([2**64 - 1], pa.uint64()), [2**64 - 1]),
        (pa.array([NOON], pa.timestamp("us", "UTC")), [1_704_110_400_000]),
        (pa.array([1_704_110_400_000_000_001], pa.timestamp("ns")), [1_704_110_400_000]),
        (pa.array([2**60], pa.timestamp("ms")), [2**60]),
        ([[{"at": NOON}], [], None], [[{"at": 1_704_110_400_000}], [], None]),
        (pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())), [{"k": 1}, {}]),
        (
            pa.array([[(1, NOON)]], pa.map_(pa.int8(), pa.timestamp("us"))),
            [{"1": 1_704_110_400_000}],
        ),
        (pa.array(["a", "a"]).dictionary_encode(), ["a", "a"]),
        ([Decimal("1.10")], ["1.10"]),
        ([date(2024, 1, 2)], ["2024-01-02"]),
        ([time(1, 2, 3)], ["01:02:03"]),
        ([timedelta(seconds=5)], [5000]),
        ([b"\xff"], ["/w=="]),
    ],
)
def test_a_row_is_an_object(column: Any, items: list[Json]) -> None:
    """Values are as JSON has them; timestamps are epoch milliseconds."""
    assert rows(packed({"x": column})) == [{"x": item} for item in items]


@pytest.mark.parametrize("codec", ["gzip", "zstd", "snappy", "none"])
def test_files_are_unpacked(codec: str) -> None:
    """Row groups follow one another, however they are packed."""
    content = packed({"n": list(range(1000))}, compression=codec, row_group_size=300)
    assert rows(content) == [{"n": n} for n in range(1000)]


def test_rows_are_read_as_they_are_asked_for() -> None:
    """What lies behind the last row that is taken may be broken."""
    content = bytearray(packed({"n": list(range(1000))}, row_group_size=500))
    second = ParquetFile(io.BytesIO(content)).metadata.row_group(1).column(0).data_page_offset
    content[second : second + 8] = b"\xff" * 8
    taken = read_parquet(io.BytesIO(bytes(content)), DataFormat())
    assert next(taken) == {"n": 0}
    with pytest.raises(DataFault, match="no Parquet that can be read"):
        list(taken)


@given(st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), max_size=6))
def test_a_damaged_file_is_a_fault(changes: list[tuple[int, int]]) -> None:
    """Whatever is changed, there are rows or a named fault."""
    content = bytearray(SMALL)
    for at, byte in changes:
        content[at] = byte
    try:
        rows(bytes(content))
    except DataFault as fault:
        assert fault.place


def test_a_map_runs_over_the_rows(tmp_path: Path) -> None:
    """From a folder, and from the files that a manifest of Athena names."""
    (tmp_path / "rows.parquet").write_bytes(SMALL)
    (tmp_path / "manifest.csv").write_text("s3://shop/rows.parquet\ns3://shop/rows.parquet\n")
    once = [{"n": 1, "name": "tea"}, {"n": 2, "name": "pot"}, {"n": 3, "name": None}]
    given = {"buckets": {"shop": tmp_path}}
    assert asl.run(document(), {"file": "rows.parquet"}, **given).output == once
    assert asl.run(document(MaxItems=1), {"file": "rows.parquet"}, **given).output == once[:1]
    several = asl.run(document(ManifestType="ATHENA_DATA"), {"file": "manifest.csv"}, **given)
    assert several.output == once + once


def test_a_file_that_is_none_fails_the_map() -> None:
    """The cause names the file."""
    result = asl.run(document(), {"file": "x"}, buckets={"shop": {"x": "product,price"}})
    assert result.error == "States.ItemReaderFailed"
    assert result.cause is not None
    assert "S3://shop/x, after row 0: no Parquet that can be read" in result.cause


def test_without_the_library_it_is_refused_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """EXEC-04 says what to install."""
    assert "EXEC-04" not in {each.code for each in asl.check(document())}
    monkeypatch.setattr(execution, "find_spec", lambda name: None)
    (found,) = (each for each in asl.check(document()) if each.code == "EXEC-04")
    assert found.pointer == "/States/Each/ItemReader/ReaderConfig/InputType"
    assert found.hint == "pip install '.[parquet]'"
    with pytest.raises(asl.InvalidDocument, match="pyarrow"):
        asl.run(document(), {"file": "rows.parquet"})
