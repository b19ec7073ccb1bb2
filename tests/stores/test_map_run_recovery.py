"""A distributed Map goes on after its process has died, and writes the same results."""

from pathlib import Path
from typing import Any

import pytest

from asl.executions import Store

DOCUMENT = {
    "StartAt": "Each",
    "States": {
        "Each": {
            "Type": "Map",
            "MaxConcurrency": 2,
            "ToleratedFailureCount": 1,
            "ItemReader": {
                "Resource": "arn:aws:states:::s3:getObject",
                "ReaderConfig": {"InputType": "JSONL"},
                "Parameters": {"Bucket": "b", "Key": "rows"},
            },
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                "StartAt": "Work",
                "States": {
                    "Work": {"Type": "Task", "Agent": "Work", "Next": "Nap"},
                    "Nap": {"Type": "Wait", "Seconds": 5, "Next": "Again"},
                    "Again": {"Type": "Task", "Agent": "Work", "End": True},
                },
            },
            "ResultWriter": {
                "Resource": "arn:aws:states:::s3:putObject",
                "Parameters": {"Bucket": "b", "Prefix": "out"},
                "WriterConfig": {"Transformation": "COMPACT", "OutputType": "JSONL"},
            },
            "End": True,
        }
    },
}


class Died(KeyboardInterrupt):
    """The process is gone."""


def work(item: Any) -> Any:
    if item["n"] == 2:
        from asl import StateError

        raise StateError("Sour", "two")
    return {"n": item["n"], "done": item.get("done", 0) + 1, "_tokens": 1}


def run(path: Path, bucket: dict[str, str | bytes], die_at: int | None) -> Any:
    """Run until the end or the *die_at*-th instant; returns the result, None for a death."""
    store = Store(
        path, clock="virtual", synchronous="OFF", agents={"Work": work}, buckets={"b": bucket}
    )
    instants = 0

    def reached(point: str) -> None:
        nonlocal instants
        instants += 1
        if instants == die_at:
            raise Died

    store.file.reached = reached
    try:
        return store.start(DOCUMENT, {}, name="it")
    except Died:
        return None
    finally:
        store.file.crash()


def sorted_lines(bucket: dict[str, str | bytes]) -> dict[str, list[str]]:
    """Return what stands in each file; in which order depends on when children end."""
    return {
        key: sorted(str(text).splitlines())
        for key, text in bucket.items()
        if not key.endswith("FAILED_0.jsonl")  # its records have the instants of their run
    }


@pytest.mark.parametrize("die_at", range(1, 70, 3))
def test_a_map_run_goes_on_where_it_was(die_at: int, tmp_path: Path) -> None:
    """Wherever it dies, its result, its files and what it has spent are the same."""
    rows = "".join(f'{{"n": {n}}}\n' for n in range(6))
    whole_bucket: dict[str, str | bytes] = {"rows": rows}
    bucket: dict[str, str | bytes] = {"rows": rows}
    whole = run(tmp_path / "whole.db", whole_bucket, None)
    first = run(tmp_path / "it.db", bucket, die_at)
    result = run(tmp_path / "it.db", bucket, None) if first is None else first
    assert (result.status, result.output) == ("SUCCEEDED", whole.output)
    assert result.usage["tokens"] == whole.usage["tokens"] == 10
    assert sorted_lines(bucket) == sorted_lines(whole_bucket)
