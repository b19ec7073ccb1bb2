"""A distributed Map goes on after its process has died, and writes the same results."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.executions import Store
from tests.deaths import instants, lived

DOCUMENT: Any = {
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


def work(item: Any) -> Any:
    if item["n"] == 2:
        from asl import StateError

        raise StateError("Sour", "two")
    return {"n": item["n"], "done": item.get("done", 0) + 1, "_tokens": 1}


def run(
    path: Path, bucket: dict[str, str | bytes], die_at: int | None, document: Any = DOCUMENT
) -> Any:
    """Run until the end or the *die_at*-th instant; returns the result, None for a death."""
    store = Store(
        path, clock="virtual", synchronous="OFF", agents={"Work": work}, buckets={"b": bucket}
    )
    return lived(store, lambda: store.run(document, {}, name="it"), die_at)


def sorted_lines(bucket: dict[str, str | bytes]) -> dict[str, list[str]]:
    """Return what stands in each file; in which order depends on when children end."""
    return {
        key: sorted(str(text).splitlines())
        for key, text in bucket.items()
        if not key.endswith("FAILED_0.jsonl")  # its records have the instants of their run
    }


@pytest.mark.parametrize("die_at", instants(range(1, 70, 3), 5))
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


def telling() -> Any:
    """Return the document with blocks that tell something."""
    each = deepcopy(DOCUMENT["States"]["Each"])
    each["Progress"] = {"Milestones": [{"At": 50, "Name": "half"}]}
    states = each["ItemProcessor"]["States"]
    states["Work"] |= {"Audit": {"LogLevel": "full"}, "Events": {"OnError": {"Type": "sour"}}}
    states["Nap"]["Events"] = {"OnEnter": {"Type": "tired"}}
    states["Again"] |= {"Audit": {}, "Events": {"OnExit": {"Type": "done", "Include": ["$.n"]}}}
    return {"StartAt": "Each", "States": {"Each": each}}


def told(result: Any) -> list[Any]:
    """Return what the children have told, in the order of the children; when depends on the run."""
    found = [
        (event.path, event.type, {**event.details, "duration": 0})
        for event in result.events
        if event.type in ("AuditRecorded", "EventEmitted")
    ]
    return sorted(found, key=lambda each: (each[0][1], json.dumps(each)))


@pytest.mark.parametrize("die_at", instants(range(1, 90, 4), 5))
def test_events_of_children_occur_once(die_at: int, tmp_path: Path) -> None:
    """Whatever was told before the process died is in the history, and is not told again."""
    rows = "".join(f'{{"n": {n}}}\n' for n in range(6))
    document = telling()
    whole = run(tmp_path / "whole.db", {"rows": rows}, None, document)
    if run(tmp_path / "it.db", {"rows": rows}, die_at, document) is None:
        run(tmp_path / "it.db", {"rows": rows}, None, document)
    with Store(tmp_path / "it.db", clock="virtual") as store:
        result = store.result("it")
        assert len(told(whole)) == 6 + 5 + 5 + 1 + 5
        assert told(result) == told(whole)
        counts = [
            event.details["completed"] + event.details["failed"]
            for event in result.events
            if event.type == "ProgressUpdated"
        ]
        assert counts == sorted(set(counts))
        assert counts[-1] == 6
        assert [event.type for event in result.events].count("MilestoneReached") == 1


def test_a_paused_child_keeps_its_start_time() -> None:
    tell = {"Type": "Pass", "Parameters": {"t.$": "$$.Execution.StartTime"}, "OutputPath": "$.t"}
    each = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "Ask",
        "States": {
            "Ask": {"Type": "Approval", "Prompt": "ok?", "Next": "Tell"},
            "Tell": {**tell, "End": True},
        },
    }
    state = {"Type": "Map", "ItemsPath": "$", "ItemProcessor": each, "End": True}
    clock = asl.VirtualClock()
    with asl.open_store("memory:", clock=clock) as store:
        paused = store.run({"StartAt": "Each", "States": {"Each": state}}, [1])
        clock.elapsed += 10
        store.answer(store.pending()[0]["requestId"], "approve")
        assert store.resume(paused.name).output == ["2024-01-01T00:00:00.000Z"]
