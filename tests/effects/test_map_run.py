"""Distributed Maps as a whole: items are drawn late, results leave early, nothing is lost."""

import asyncio
import errno
import json
import os
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl

Json = Any
PASS = {"Type": "Pass", "End": True}
ASK = {"Ask": {"Type": "Task", "Agent": "A", "End": True}}
READER = {
    "Resource": "arn:aws:states:::s3:getObject",
    "ReaderConfig": {"InputType": "JSONL"},
    "Parameters": {"Bucket": "b", "Key": "rows"},
}
LINES = {"Transformation": "COMPACT", "OutputType": "JSONL"}


def writer(**config: Json) -> Json:
    return {
        "Resource": "arn:aws:states:::s3:putObject",
        "Parameters": {"Bucket": "b", "Prefix": "out"},
        "WriterConfig": config or LINES,
    }


def distributed(states: Json, first: str, **fields: Json) -> Json:
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": first,
        "States": states,
    }
    each = {"Type": "Map", "ItemProcessor": processor, "End": True, **fields}
    return {"StartAt": "Each", "States": {"Each": each}}


def written(bucket: dict[str, str | bytes], name: str) -> list[Json]:
    """Return the lines of the result file of this status."""
    found = [key for key in bucket if re.fullmatch(rf"out/[^/]+/{name}_0\.jsonl", key)]
    assert len(found) <= 1
    text = "".join(str(bucket[key]) for key in found)
    return [json.loads(line) for line in text.splitlines()]


class Counted:
    """A bucket with one endless file of numbers, which counts what is read from it."""

    def __init__(self, lines: int) -> None:
        self.lines = lines
        self.read = 0
        self.open_files = 0

    def open(self, key: str) -> Any:
        return _Numbers(self)

    def create(self, key: str) -> Any:
        raise NotImplementedError

    def objects(self, prefix: str) -> Iterator[Any]:
        raise NotImplementedError


class _Numbers:
    def __init__(self, bucket: Counted) -> None:
        self.bucket = bucket
        self.at = 0
        bucket.open_files += 1

    def __enter__(self) -> "_Numbers":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        self.bucket.open_files -= 1

    def seek(self, at: int, whence: int = 0) -> int:
        self.at = at
        return at

    def read(self, size: int) -> bytes:
        """Return one line a time, whatever was asked for."""
        if size < 10:  # the first bytes, to see what the file is
            return b"0"
        if self.at >= self.bucket.lines:
            return b""
        self.at += 1
        self.bucket.read = self.at
        return b"%d\n" % (self.at - 1)


@given(st.integers(1, 7), st.integers(8, 40))
def test_items_are_drawn_as_children_are_free(limit: int, items: int) -> None:
    """Never more than run at once, and one to see the end."""
    bucket = Counted(items)
    ahead = []

    async def agent(item: int) -> int:
        ahead.append(bucket.read - item)
        await asyncio.sleep(1)
        return item

    document = distributed(ASK, "Ask", ItemReader=READER, MaxConcurrency=limit)
    result = asl.run(document, {}, agents={"A": agent}, buckets={"b": bucket}, clock="virtual")
    assert result.output == list(range(items))
    assert result.elapsed == -(-items // limit)
    assert max(ahead) <= limit
    assert bucket.open_files == 0


def test_reading_stops_where_the_map_fails() -> None:
    """And the file is closed."""
    bucket = Counted(1_000_000)
    states = {
        "Look": {
            "Type": "Choice",
            "Choices": [{"Variable": "$", "NumericEquals": 3, "Next": "Bad"}],
            "Default": "Good",
        },
        "Good": {"Type": "Succeed"},
        "Bad": {"Type": "Fail", "Error": "Sour"},
    }
    result = asl.run(distributed(states, "Look", ItemReader=READER), {}, buckets={"b": bucket})
    assert result.error == "States.ExceedToleratedFailureThreshold"
    assert (bucket.read, bucket.open_files) == (4, 0)


@given(st.lists(st.integers(0, 3), max_size=30), st.integers(0, 5))
def test_every_result_is_written_once(naps: list[int], limit: int) -> None:
    """In the order in which the children end."""
    ended = []

    async def agent(item: Json) -> Json:
        await asyncio.sleep(item["nap"])
        ended.append(item["n"])
        return item["n"]

    lines = "".join(json.dumps({"n": n, "nap": nap}) + "\n" for n, nap in enumerate(naps))
    bucket: dict[str, str | bytes] = {"rows": lines}
    document = distributed(
        ASK, "Ask", ItemReader=READER, ResultWriter=writer(), MaxConcurrency=limit
    )
    result = asl.run(document, {}, agents={"A": agent}, buckets={"b": bucket}, clock="virtual")
    assert result.ok
    assert written(bucket, "SUCCEEDED") == ended
    assert sorted(ended) == list(range(len(naps)))


def test_results_reach_the_file_while_children_run(tmp_path: Path) -> None:
    """They do not wait in memory for the end."""
    (tmp_path / "rows").write_text("1\n" * 2000)
    sizes = []

    async def agent(item: Json) -> Json:
        files = list(tmp_path.glob("out/*/*"))  # complete, or not yet
        sizes.append(sum(file.stat().st_size for file in files))
        return "x" * 1000

    document = distributed(ASK, "Ask", ItemReader=READER, ResultWriter=writer(), MaxConcurrency=1)
    assert asl.run(document, {}, agents={"A": agent}, buckets={"b": tmp_path}).ok
    assert max(sizes) > 1_500_000


def test_a_large_result_goes_on_in_another_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest has all of them, each is complete by itself."""
    monkeypatch.setattr("asl.states.map_results.LARGEST", 100_000)
    bucket: dict[str, str | bytes] = {"rows": "1\n" * 300}
    states = {"Fill": {"Type": "Pass", "Result": "x" * 1000, "End": True}}
    document = distributed(
        states, "Fill", ItemReader=READER, ResultWriter=writer(Transformation="COMPACT")
    )
    result = asl.run(document, {}, buckets={"b": bucket})
    manifest = json.loads(str(bucket[result.output["ResultWriterDetails"]["Key"]]))
    files = manifest["ResultFiles"]["SUCCEEDED"]
    assert len(files) > 1
    assert [file["Key"].rpartition("_")[2] for file in files] == [
        f"{n}.json" for n in range(len(files))
    ]
    assert [file["Size"] for file in files] == [len(str(bucket[file["Key"]])) for file in files]
    results = [value for file in files for value in json.loads(str(bucket[file["Key"]]))]
    assert results == ["x" * 1000] * 300


def test_a_cancelled_run_completes_its_files() -> None:
    """What has been reached is kept, what ran is told, and the history says that it ended."""
    bucket: dict[str, str | bytes] = {"rows": "0\n9\n8\n"}

    async def agent(item: int) -> int:
        await asyncio.sleep(item)
        return item

    document = distributed(ASK, "Ask", ItemReader=READER, ResultWriter=writer())
    document["TimeoutSeconds"] = 5
    result = asl.run(document, {}, agents={"A": agent}, buckets={"b": bucket}, clock="virtual")
    assert result.status == "TIMED_OUT"
    assert "MapRunAborted" in [event.type for event in result.events]
    assert written(bucket, "SUCCEEDED") == [0]
    assert [(r["Input"], r["Status"]) for r in written(bucket, "FAILED")] == [
        ("9", "ABORTED"),
        ("8", "ABORTED"),
    ]
    assert any(key.endswith("/manifest.json") for key in bucket)


def test_a_disk_that_is_full_fails_the_map(tmp_path: Path) -> None:
    """With what the system says; the children that run are stopped."""

    class Full:
        def write(self, content: bytes) -> int:
            raise OSError(28, "No space left on device")

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *raised: object) -> None: ...

        def close(self) -> None: ...

    class Store(Counted):
        def create(self, key: str) -> Any:
            return Full()

    document = distributed(ASK, "Ask", ItemReader=READER, ResultWriter=writer(), MaxConcurrency=1)
    result = asl.run(
        document, {}, agents={"A": lambda item: "x" * 100_000}, buckets={"b": Store(100)}
    )
    assert result.error == "States.ResultWriterFailed"
    assert "No space left on device" in (result.cause or "")


def test_children_have_keys_of_their_own() -> None:
    """An agent can tell every call from every other one, and a retry from none."""
    keys = []

    def agent(item: Json, call: asl.Call) -> Json:
        keys.append((call.execution_id, call.idempotency_key))
        return item

    inner = distributed(ASK, "Ask", ItemsPath="$")["States"]["Each"]
    document = distributed({"Inner": inner}, "Inner", ItemsPath="$")
    assert asl.run(document, [[1, 2], [3]], agents={"A": agent}).output == [[1, 2], [3]]
    assert len({execution for execution, _ in keys}) == 3
    assert len({key for _, key in keys}) == 3


def test_a_retry_is_a_run_of_its_own() -> None:
    """With an id of its own, so that it does not write over the first one's files."""
    bucket: dict[str, str | bytes] = {"rows": "1\n"}
    calls = 0

    def agent(item: Json) -> Json:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise asl.StateError("Busy")
        return item

    document = distributed(
        ASK,
        "Ask",
        ItemReader=READER,
        ResultWriter=writer(),
        Retry=[{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1}],
    )
    result = asl.run(document, {}, agents={"A": agent}, buckets={"b": bucket}, clock="virtual")
    assert result.ok
    assert len({key.split("/")[1] for key in bucket if key.startswith("out/")}) == 2


def test_a_repeated_execution_writes_the_same() -> None:
    """Ids depend on the execution's name and the way to the state, not on chance."""
    document = distributed(
        {"Go": {"Type": "Pass", "End": True}}, "Go", ItemReader=READER, ResultWriter=writer()
    )
    buckets: list[dict[str, str | bytes]] = [{"rows": "1\n2\n"}, {"rows": "1\n2\n"}]
    for bucket in buckets:
        assert asl.run(document, {}, buckets={"b": bucket}, name="one").ok
    assert buckets[0] == buckets[1]


def test_random_numbers_of_children_differ_and_repeat() -> None:
    """Also where one frame serves all children."""
    states = {"Roll": {"Type": "Pass", "Parameters": {"id.$": "States.UUID()"}, "End": True}}
    document = distributed(states, "Roll", ItemsPath="$")
    outputs = [asl.run(document, [1, 2, 3], name="n").output for _ in range(2)]
    assert outputs[0] == outputs[1]
    assert len({each["id"] for each in outputs[0]}) == 3


def test_long_pure_child_gives_same_result() -> None:
    """One that takes more states than run at a stretch is interpreted; the next one starts anew."""
    states = {
        "Count": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.n", "NumericGreaterThan": 0, "Next": "Less"}],
            "Default": "Done",
        },
        "Less": {
            "Type": "Pass",
            "Parameters": {"n.$": "States.MathAdd($.n, -1)"},
            "Assign": {"seen": True},
            "Next": "Count",
        },
        "Done": {"Type": "Pass", "Parameters": {"i.$": "$$.Map.Item.Index"}, "End": True},
    }
    document = distributed(states, "Count", ItemsPath="$")
    items = [{"n": 0}, {"n": 12_000}, {"n": 1}]
    assert asl.run(document, items).output == [{"i": 0}, {"i": 1}, {"i": 2}]


def test_variables_of_one_child_are_unknown_to_the_next() -> None:
    """Also where one frame serves all children."""
    states = {
        "Look": {
            "Type": "Choice",
            "Choices": [{"Variable": "$", "NumericEquals": 1, "Next": "Set"}],
            "Default": "Get",
        },
        "Set": {"Type": "Pass", "Assign": {"v": 1}, "Next": "Get"},
        "Get": {"Type": "Pass", "Parameters": {"v.$": "$v"}, "End": True},
    }
    document = distributed(states, "Look", ItemsPath="$", ToleratedFailureCount=1)
    assert asl.run(document, [1, 2], profile="default").output == [{"v": 1}]


def test_many_pure_children_can_be_ended() -> None:
    """The time limit of the execution is looked at between them."""
    bucket = Counted(10**9)
    document = distributed({"Go": {"Type": "Pass", "End": True}}, "Go", ItemReader=READER)
    document["TimeoutSeconds"] = 1

    class Hasty:
        """Every look at the clock is a tenth of a second later."""

        def __init__(self) -> None:
            self.time = 0.0

        def now(self) -> float:
            self.time += 0.1
            return self.time

        def new_event_loop(self) -> Any:
            raise AssertionError("nobody waits")

    clock: Any = Hasty()
    assert asl.run(document, {}, buckets={"b": bucket}, clock=clock).status == "TIMED_OUT"
    assert bucket.read < 50_000


@pytest.mark.parametrize("field", ["ItemReader", "ItemBatcher", "ResultWriter"])
def test_a_field_of_distributed_maps_makes_one(field: str) -> None:
    """Even where the mode is not said."""
    fields = {
        "ItemReader": READER,
        "ItemBatcher": {"MaxItemsPerBatch": 5},
        "ResultWriter": writer(),
    }
    processor = {"StartAt": "Go", "States": {"Go": {"Type": "Pass", "End": True}}}
    each = {"Type": "Map", "ItemProcessor": processor, "End": True, field: fields[field]}
    result = asl.run(
        {"StartAt": "Each", "States": {"Each": each}}, [1], buckets={"b": {"rows": "1\n"}}
    )
    assert result.ok, result.cause
    assert "MapRunSucceeded" in [event.type for event in result.events]


def test_a_full_disk_leaves_no_part_of_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    (tmp_path / "rows").write_text("1\n" * 20)
    document = distributed({"P": PASS}, "P", ItemReader=READER, ResultWriter=writer())
    result = asl.run(document, {}, buckets={"b": tmp_path})
    assert result.error == "States.ResultWriterFailed"
    assert "No space left" in str(result.cause)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "rows"]


class FlakyBucket:
    """A bucket whose second write fails; the later ones succeed."""

    def __init__(self) -> None:
        self.created: list[str] = []
        self.writes = 0

    def open(self, key: str) -> Any:
        return BytesIO(b"1\n" * 2_000)

    def create(self, key: str) -> Any:
        self.created.append(key.rpartition("/")[2])
        bucket = self

        class File(BytesIO):
            def write(self, data: Any) -> int:
                bucket.writes += 1
                if bucket.writes == 2:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                return super().write(data)

        return File()

    def objects(self, prefix: str) -> Any:
        return iter(())


def test_no_manifest_after_a_failed_write() -> None:
    """The manifest says that the files are complete."""
    bucket = FlakyBucket()
    document = distributed(
        {"P": {**PASS, "Result": "x" * 1000}}, "P", ItemReader=READER, ResultWriter=writer()
    )
    result = asl.run(document, {}, buckets={"b": bucket})
    assert result.error == "States.ResultWriterFailed"
    assert bucket.created == ["SUCCEEDED_0.jsonl"]
    assert bucket.writes == 2
