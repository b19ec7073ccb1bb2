"""Recordings of the real service: which of them this version runs, and how one is replayed."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from asl.agents.registry import AgentRegistry
from asl.buckets import bind_buckets
from asl.compiler import compile_workflow
from asl.core.json_patterns import matches
from asl.core.profile import AWS
from asl.effects.clock import VirtualClock
from asl.effects.driver import drive
from asl.effects.run import execute
from asl.engine.execution import Identity
from asl.engine.result import Result
from asl.expr.times import parse_epoch

RECORDINGS = Path(__file__).parents[3] / "shared" / "corpus" / "aws" / "open.jsonl"
NOT_YET = {
    "test-state",
    "unverified",
}

needs_recordings = pytest.mark.skipif(not RECORDINGS.exists(), reason="the recordings are not here")


@cache
def everything() -> tuple[Any, ...]:
    """Return all that was recorded; nothing where the recordings are not here."""
    if not RECORDINGS.exists():
        return ()
    # Only a line feed ends a line: other line separators occur inside the recorded strings.
    lines = RECORDINGS.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return tuple(map(json.loads, lines))


def recordings() -> Iterator[Any]:
    """Yield the executions that this version can run."""
    for case in everything():
        if case["kind"] == "execute" and case["runnable"] != "no" and not NOT_YET & {*case["tags"]}:
            yield pytest.param(case, id=case["id"])


def script(mock: Any) -> Any:
    """Turn a recorded mock into a script."""
    match mock["kind"]:
        case "return":
            return {"return": mock["value"]}
        case "raise":
            names = {"Error": mock.get("error"), "Cause": mock.get("cause")}
            return {"raise": {key: text for key, text in names.items() if text is not None}}
        case "sequence":
            return {"sequence": [script(item) for item in mock["items"]]}
        case "table":
            rows = [{"when": row["when"], "then": script(row["then"])} for row in mock["rows"]]
            return {"table": rows}
        case kind:
            return {kind: True}


def agrees(expected: Any, value: Any) -> bool:
    """Whether a value is what was recorded; hidden values and JSON inside strings included."""
    if isinstance(expected, dict) and "$like" in expected:
        return matches(expected, value if isinstance(value, str) else json.dumps(value))
    if isinstance(expected, dict | list) and isinstance(value, str):
        return agrees(expected, json.loads(value))
    if isinstance(expected, dict) and isinstance(value, dict):
        return expected.keys() == value.keys() and all(
            agrees(part, value[key]) for key, part in expected.items()
        )
    if isinstance(expected, list) and isinstance(value, list):
        return len(expected) == len(value) and all(map(agrees, expected, value))
    return matches(expected, value)


UNRECORDED = {
    "region",
    "roleArn",
    "inputDetails",
    "outputDetails",
    "assignedVariablesDetails",
    "mapRunArn",
    "taskCredentials",
}
"""Details that the recordings leave out."""


def told(event: Any) -> dict[str, Any]:
    """Return an event of an exported history in the form of the recordings."""
    found = {"type": event["type"]}
    details = next((part for key, part in event.items() if key.endswith("EventDetails")), {})
    for key, value in details.items():
        match key:
            case "name":
                found["state"] = value
            case "assignedVariables":
                found["assigned"] = {name: json.loads(text) for name, text in value.items()}
            case "input" | "output" | "parameters":
                found[key] = json.loads(value)
            case _ if key not in UNRECORDED:
                found[key] = value
    return found


def agrees_with_event(recorded: Any, event: Any) -> bool:
    """Whether an event has the recorded type and exactly the recorded details."""
    found = told(event)
    if recorded["type"] == "TaskSubmitted":  # the mocks hold the answer of the task alone
        recorded = {key: value for key, value in recorded.items() if key != "output"}
        found.pop("output", None)
    return agrees(recorded, found)


def replay(case: Any) -> Result:
    """Run a recorded execution."""
    program = compile_workflow(case["definition"], AWS, "workflow")
    clock = VirtualClock(parse_epoch(case["clock"])) if "clock" in case else VirtualClock()
    registry = AgentRegistry(
        mocks={name: script(mock) for name, mock in case.get("mocks", {}).items()}
    )
    work = execute(
        program,
        case.get("input", {}),
        registry.find,
        clock,
        Identity(
            case.get("name"),
            express=case["type"] == "EXPRESS",
            asynchronous="test_express_async" in case["id"],
        ),
        buckets=bind_buckets(case.get("s3")),
    )
    return drive(work, clock)
