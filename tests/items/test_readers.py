"""The readers of a distributed Map: what they yield, how lazily, and what they say is wrong."""

import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.buckets import as_bucket
from asl.core.errors import StateError
from asl.states.item_sources import make_batches
from asl.states.items import READERS, DataFault, DataFormat
from asl.states.items.dataset import MAX_EMPTY, MAX_MANIFEST, Dataset

Json = Any


class Dribble(io.RawIOBase):
    """A file that hands out as many bytes at once as it is told, over and over."""

    def __init__(self, content: bytes, sizes: list[int]) -> None:
        self.content = io.BytesIO(content)
        self.sizes = sizes
        self.turn = 0
        self.taken = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        self.turn += 1
        most = self.sizes[self.turn % len(self.sizes)]
        block = self.content.read(most if size < 0 else min(size, most))
        self.taken += len(block)
        return block


def items(kind: str, content: bytes, **form: Any) -> list[Json]:
    return list(READERS[kind](io.BytesIO(content), DataFormat(**form)))


def fault(kind: str, content: bytes, **form: Any) -> DataFault:
    with pytest.raises(DataFault) as caught:
        items(kind, content, **form)
    return caught.value


scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)
blocks = st.lists(st.integers(1, 40), min_size=1, max_size=5)


# Laws


@given(st.lists(values), blocks, st.booleans())
def test_json_lines_read_back(written: list[Json], sizes: list[int], last: bool) -> None:
    """Whatever the size of the blocks that come, and whether the last line has an end."""
    text = "\n".join(json.dumps(value, ensure_ascii=False) for value in written) + "\n" * last
    file: Any = Dribble(text.encode(), sizes)
    assert list(READERS["JSONL"](file, DataFormat())) == written


fields = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\\"))


@given(
    st.lists(st.text("abcxyz", min_size=1), min_size=1, max_size=4, unique=True),
    st.lists(st.lists(fields, min_size=4, max_size=4), max_size=6),
    st.sampled_from([",", "|", ";", " ", "\t"]),
    blocks,
)
def test_csv_reads_back(
    names: list[str], rows: list[list[str]], delimiter: str, sizes: list[int]
) -> None:
    """What the csv module writes is read again, in blocks of any size."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerow(names)
    cut = [row[: len(names)] for row in rows]
    writer.writerows(cut)
    file: Any = Dribble(text.getvalue().encode(), sizes)
    read = list(READERS["CSV"](file, DataFormat(delimiter=delimiter)))
    assert read == [dict(zip(names, row, strict=True)) for row in cut]


@given(st.lists(values), st.integers(1, 5), st.integers(1, 200) | st.none())
def test_batches_hold_the_items_in_their_order(
    given_items: list[Json], most: int, size: int | None
) -> None:
    """All of them, no batch empty, none beyond its bounds but a single item."""
    made = list(make_batches(iter(given_items), most, size or 2**53, {"BatchInput": 1}))
    assert [item for batch in made for item in batch["Items"]] == given_items
    for batch in made:
        assert 1 <= len(batch["Items"]) <= most
        length = len(json.dumps(batch, separators=(",", ":"), ensure_ascii=False).encode())
        assert size is None or length <= size or len(batch["Items"]) == 1


@given(st.lists(values), st.integers(1, 4))
def test_batches_are_drawn_as_they_are_needed(given_items: list[Json], most: int) -> None:
    """A batch takes no more items than stand in it."""
    drawn = 0

    def counted() -> Iterator[Json]:
        nonlocal drawn
        for item in given_items:
            drawn += 1
            yield item

    taken = 0
    for batch in make_batches(counted(), most, 2**53, {}):
        taken += len(batch["Items"])
        assert drawn == taken


# Forms


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n\n", []),
        (b"1", [1]),
        (b" 1 \r\n\t2\n", [1, 2]),
        (b'\xef\xbb\xbf{"a": 1}\n2\n', [{"a": 1}, 2]),
        (b"9007199254740993\n", [9007199254740993]),
    ],
)
def test_json_lines(content: bytes, expected: list[Json]) -> None:
    """One value a line; blanks around it and blank lines mean nothing."""
    assert items("JSONL", content) == expected


@pytest.mark.parametrize(
    ("kind", "content", "place"),
    [
        ("JSONL", b"1\n\n[1, 2\n", "line 3, column 6"),
        ("JSONL", b"1\nNaN\n", "line 2, column 1"),
        ("JSONL", b'1\n"\xff"\n', "line 2, column 1"),
        ("JSONL", b"1\n" + b"[" * 300 + b"]" * 300, "line 2"),
        ("JSONL", b"1\n" + b"[" * 5000 + b"]" * 5000, "line 2"),
        ("JSON", b'[1,\n\n"a]', "line 3, column"),
        ("JSON", b"[" + b"[" * 300 + b"]" * 300 + b"]", "line 1"),
        ("CSV", b'a\n1\n"2\n3\n', "the row that begins in line 3"),
        ("CSV", b'"a\n', "the row that begins in line 1"),
        ("CSV", b"a\n1\n\xff\n", "line 3, byte 1"),
    ],
)
def test_a_fault_has_a_place(kind: str, content: bytes, place: str) -> None:
    """The line where it stands, counted from one, and the column where there is one."""
    assert (fault(kind, content).place or "").startswith(place)


@pytest.mark.parametrize("kind", ["JSONL", "CSV"])
@pytest.mark.parametrize("sizes", [[7], [1000]])
def test_a_line_without_end_is_refused(kind: str, sizes: list[int]) -> None:
    """It is not read as a whole first."""
    file: Any = Dribble(b"0\n1\n" + b"2" * 100_000, sizes)
    with pytest.raises(DataFault, match="longer than 500 bytes") as caught:
        list(READERS[kind](file, DataFormat(headers=("a",), longest=500)))
    assert caught.value.place == "line 3"
    assert file.taken <= 2 * 500 + 1000 + 4


@pytest.mark.parametrize(
    ("kind", "line"), [("JSONL", b'{"a": 1}\n'), ("CSV", b"value\n")], ids=["JSONL", "CSV"]
)
def test_reading_is_lazy(kind: str, line: bytes) -> None:
    """The first items of a large file cost one block of it."""
    file: Any = Dribble(line * 1_000_000, [1 << 18])
    reader = READERS[kind](file, DataFormat())
    next(reader)
    next(reader)
    assert file.taken <= 1 << 18


# Data sets


def dataset(
    contents: dict[str, str | bytes], config: Json = None, most: int = 0, **arguments: Json
) -> Dataset:
    bucket = as_bucket("b", contents)
    reader = {
        "Resource": "arn:aws:states:::s3:getObject",
        "ReaderConfig": config or {"InputType": "JSONL"},
    }
    return Dataset(
        reader,
        {"Bucket": "b", "Key": "x", **arguments},
        lambda name: bucket,
        most,
        1 << 20,
        aws=False,
        count=lambda size: None,
    )


def test_a_gzip_file_is_unpacked() -> None:
    """Whatever its name is."""
    assert list(dataset({"x": gzip.compress(b"1\n2\n")})) == [1, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"1\n2\n" * 5000)[:30], r"S3://b/x, the file: .*"),
        (gzip.compress(b"1\n" * 5000)[:-8] + b"12345678", r"S3://b/x, the file: .*"),
        (gzip.compress(b"1\n" * 50)[:12] + b"\xff" * 30, r"S3://b/x, the file: .*"),
        (b"\x28\xb5\x2f\xfd....", "S3://b/x, the file: this version unpacks gzip, not zstd"),
    ],
    ids=["cut", "wrong sum", "damaged", "zstd"],
)
def test_a_damaged_file_fails_the_reader(content: bytes, message: str) -> None:
    """With the file in the cause."""
    with pytest.raises(StateError) as caught:
        list(dataset({"x": content}))
    assert caught.value.name == "States.ItemReaderFailed"
    assert re.fullmatch(message, caught.value.cause or "", re.DOTALL)


def test_a_file_is_closed_when_its_items_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or when nobody wants more of them."""
    opened: list[Any] = []
    for most in (0, 1):
        data = dataset({"x": b"1\n2\n"}, most=most)
        bucket = data.bucket("b")
        original = bucket.open

        def remembered(key: str, open: Callable[[str], Any] = original) -> Any:
            opened.append(open(key))
            return opened[-1]

        monkeypatch.setattr(bucket, "open", remembered)
        list(data)
        data.close()
    assert [file.closed for file in opened] == [True, True]


def test_files_of_an_inventory_are_opened_one_after_the_other() -> None:
    """The second one is not looked at while the first one has items."""
    manifest = {
        "destinationBucket": "arn:aws:s3:::b",
        "fileFormat": "CSV",
        "fileSchema": "Key",
        "files": [{"key": "1"}, {"key": "missing"}],
    }
    data = dataset({"x": json.dumps(manifest), "1": b"a\nb\n"}, {"InputType": "MANIFEST"})
    rows = iter(data)
    assert [next(rows), next(rows)] == [{"Key": "a"}, {"Key": "b"}]
    with pytest.raises(StateError, match="S3://b/missing does not exist"):
        next(rows)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("[]", "no manifest of an S3 inventory"),
        ('{"fileFormat": "ORC", "fileSchema": "", "destinationBucket": "b", "files": []}', "ORC"),
        ("{", "line 1, column 2"),
    ],
)
def test_invalid_inventory_is_an_error(manifest: str, message: str) -> None:
    """With the file."""
    with pytest.raises(StateError, match=f"S3://b/x.*{message}"):
        list(dataset({"x": manifest}, {"ManifestType": "S3_INVENTORY"}))


def test_invalid_line_of_an_athena_manifest_is_named() -> None:
    """With its number."""
    data = dataset(
        {"x": "s3://b/1\nnonsense\n", "1": b"1\n"},
        {"InputType": "JSONL", "ManifestType": "ATHENA_DATA"},
    )
    rows = iter(data)
    assert next(rows) == 1
    with pytest.raises(StateError, match="line 2: no URI of an object: 'nonsense'"):
        next(rows)


def test_files_without_items_are_bounded() -> None:
    """So many in succession end in a fault; an item between them starts the count again."""
    uris = "s3://b/e\n" * MAX_EMPTY + "s3://b/i\n" + "s3://b/e\n" * MAX_EMPTY
    config = {"InputType": "JSONL", "ManifestType": "ATHENA_DATA"}
    assert list(dataset({"x": uris, "e": "", "i": "1"}, config)) == [1]
    with pytest.raises(StateError, match=f"more than {MAX_EMPTY} files in succession"):
        list(dataset({"x": uris + "s3://b/e\n", "e": "", "i": "1"}, config))


def test_an_athena_manifest_is_bounded() -> None:
    """A file that lists other files may not have any size."""
    uris = b"s3://b/1\n" * (MAX_MANIFEST // 9 + 1)
    data = dataset({"x": uris, "1": b"1\n"}, {"InputType": "JSONL", "ManifestType": "ATHENA_DATA"})
    with pytest.raises(StateError, match=f"more than {MAX_MANIFEST} bytes"):
        list(data)


STREAMED = [
    b'[1, "a]\\"\\\\", {"b": [2, {"c": null}]}, [], "", -1.5e3, true]',
    b'\xef\xbb\xbf [\n {"a": "\\\\"},\n "\xc3\xa9"\n]\n',
    b'{"a": {"b": 1}, "c\\"": [1], "d": "e"}',
    b"[]",
    b"{}",
    b'{"m": [{"x": "]"}], "rows": [1, {"y": 2}], "z": 3}',
    b'[1, 2,\n {"a" 1}]',
    b"[1, 2}",
    b"[1, 2",
    b"[1, 2] 3",
    b"[1,, 2]",
    b'["a]',
    b"7",
]


@pytest.mark.parametrize("content", STREAMED)
@pytest.mark.parametrize("pointer", ["", "/rows", "/m/0", "/none"])
def test_large_json_is_read_as_small_json(
    content: bytes, pointer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JSON file that is read as a stream has the items of one that is read as a whole."""
    form = DataFormat(pointer=pointer)

    def outcome() -> Any:
        try:
            return list(READERS["JSON"](io.BytesIO(content), form))
        except DataFault as fault:
            return str(fault.message).startswith("no JSON") or fault.args

    whole = outcome()
    monkeypatch.setattr("asl.states.items.json_file.SMALL", 3)
    for block in (1, 2, 5, 64):
        monkeypatch.setattr("asl.states.items.json_stream.BLOCK", block)
        # A pointer may find its items before the mistake.
        assert outcome() == whole or (whole is True and pointer)


def test_json_stream_is_lazy_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first item is there before the rest is read; an item is bounded in bytes and values."""
    monkeypatch.setattr("asl.states.items.json_file.SMALL", 100)
    monkeypatch.setattr("asl.states.items.json_stream.BLOCK", 100)
    file = io.BytesIO(b"[" + b'{"a": 1},' * 1_000 + b"{}]")
    assert next(READERS["JSON"](file, DataFormat(longest=1_000))) == {"a": 1}
    assert file.tell() < 500
    for large in (b'["' + b"x" * 5_000 + b'"]', b"[" + b" " * 5_000 + b"1]"):
        with pytest.raises(DataFault, match="more than 1000 bytes"):
            list(READERS["JSON"](io.BytesIO(large), DataFormat(longest=1_000)))
    monkeypatch.setattr("asl.states.items.json_stream.MAX_VALUES", 100)
    with pytest.raises(DataFault, match="100 values"):
        list(READERS["JSON"](io.BytesIO(b"[[" + b"[]," * 300 + b"[]]]"), DataFormat()))


def test_json_lines_bound_the_values_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of very many values is refused before it is built."""
    monkeypatch.setattr("asl.states.items.base.MAX_VALUES", 5_000)
    line = b"[" + b"[]," * 5_000 + b"1]"
    with pytest.raises(DataFault, match="5000 values"):
        list(READERS["JSONL"](io.BytesIO(line), DataFormat()))


@pytest.mark.parametrize("content", [b"a,b\n" + b"," * 2_000, b"a,b\n" + b'"x\n",' * 2_000 + b"1"])
def test_csv_rows_are_bounded(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of very many columns is refused, also one of many lines."""
    monkeypatch.setattr("asl.states.items.csv_file.MAX_COLUMNS", 1_000)
    with pytest.raises(DataFault, match="1000 columns"):
        list(READERS["CSV"](io.BytesIO(content), DataFormat()))
