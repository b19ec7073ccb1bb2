"""Datasets without end: what a distributed Map holds of them is bounded, by count."""

from collections.abc import Iterator
from io import BytesIO, RawIOBase
from typing import Any

import pytest

import asl
from asl.core.profile import DEFAULT
from asl.effects import local
from asl.states.items.base import CountedFile, GzipReader
from asl.states.map_data import StoredObject
from tests.items.test_decompression_bounds import packed

LIMIT = 1_000_000
"""Bytes that results may take in these tests."""


class _EndlessFile(RawIOBase):
    """The same line again and again."""

    def __init__(self, line: bytes) -> None:
        self.line = line
        self.size = 0
        """Bytes that were read."""

    def seek(self, offset: int, whence: int = 0) -> int:
        self.size = offset
        return offset

    def read(self, size: int = -1) -> bytes:
        begun = self.size % len(self.line)
        self.size += size
        return (self.line * (size // len(self.line) + 2))[begun : begun + size]


class _EndlessBucket:
    """A listing without end, of objects without end."""

    def __init__(self, line: bytes = b"1\n") -> None:
        self.listed = 0
        self.file = _EndlessFile(line)

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        while True:
            self.listed += 1
            yield StoredObject(f"{self.listed:012}", 1, 0, '"tag"')

    def open(self, key: str) -> Any:
        return self.file

    def create(self, key: str) -> Any:
        return BytesIO()


def _end(bucket: _EndlessBucket, action: str, state: dict[str, Any], **fields: Any) -> asl.Result:
    """Run a distributed Map over what the bucket has."""
    reader = {
        "Resource": f"arn:aws:states:::s3:{action}",
        "ReaderConfig": {"InputType": "JSONL"} if action == "getObject" else {},
        "Parameters": {"Bucket": "b", "Prefix": ""}
        if action == "listObjectsV2"
        else {"Bucket": "b", "Key": "k"},
    }
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "S",
        "States": {"S": {**state, "End": True}},
    }
    each = {"Type": "Map", "ItemReader": reader, "ItemProcessor": processor, "End": True, **fields}
    document = {"StartAt": "Each", "States": {"Each": each}}
    agents: Any = {"F": lambda item: item}
    profile = DEFAULT.with_limits(max_payload=LIMIT)
    return asl.run(
        document, {}, buckets={"b": bucket}, agents=agents, clock="virtual", profile=profile
    )


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let results take less, so that the bound is met soon."""
    monkeypatch.setattr(local, "MAX_BUILT", LIMIT)
    monkeypatch.setattr(local, "MAX_HELD", LIMIT)


PASS = {"Type": "Pass"}
TASK = {"Type": "Task", "Agent": "F"}


@pytest.mark.parametrize("state", [PASS, TASK, {"Type": "Pass", "Result": 1}])
def test_results_of_an_endless_listing_are_bounded(state: dict[str, Any]) -> None:
    bucket = _EndlessBucket()
    result = _end(bucket, "listObjectsV2", state)
    assert (result.status, result.error) == ("FAILED", "States.DataLimitExceeded")
    assert "ResultWriter" in str(result.cause)
    assert LIMIT / 500 < bucket.listed < 40 * LIMIT / 256


@pytest.mark.parametrize("line", [b"1\n", b'{"text": "%s"}\n' % (b"x" * 20_000)])
def test_results_of_an_endless_file_are_bounded(line: bytes) -> None:
    bucket = _EndlessBucket(line)
    result = _end(bucket, "getObject", PASS)
    assert (result.status, result.error) == ("FAILED", "States.DataLimitExceeded")
    assert bucket.file.size < 100 * LIMIT  # what is read before an execution yields


def test_results_that_are_written_have_no_bound() -> None:
    writer = {"Resource": "arn:aws:states:::s3:putObject", "Parameters": {"Bucket": "b"}}
    bucket, most = _EndlessBucket(), {"MaxItems": 5_000}
    reading = _end(bucket, "listObjectsV2", PASS, ResultWriter=writer, ItemReader=_listing(most))
    assert reading.ok
    assert bucket.listed == 5_000


def _listing(config: dict[str, Any]) -> dict[str, Any]:
    """An `ItemReader` of a listing."""
    arguments = {"Bucket": "b", "Prefix": ""}
    resource = "arn:aws:states:::s3:listObjectsV2"
    return {"Resource": resource, "ReaderConfig": config, "Parameters": arguments}


def test_bytes_of_files_are_counted_as_they_are_unpacked() -> None:
    counted: list[int] = []
    plain = CountedFile(BytesIO(b"x" * 100), counted.append)
    assert plain.read(60) + plain.read() == b"x" * 100
    assert counted == [60, 40]
    counted.clear()
    assert len(GzipReader(packed(b"y", 1_000), counted.append).read()) == 1_000
    assert sum(counted) == 1_000
