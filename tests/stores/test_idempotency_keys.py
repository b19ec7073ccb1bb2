"""Keys of calls and ids of child executions: the same with and without a store."""

import json
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.executions import Store

RETRY = [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 5, "IntervalSeconds": 1}]
TASK = {"Type": "Task", "Agent": "Work", "End": True}
CHILD = {"StartAt": "C", "States": {"C": TASK}}
PART = {"StartAt": "T", "States": {"T": TASK}}
CALLED = {
    "StartAt": "W",
    "States": {"W": {"Type": "Workflow", "WorkflowId": "Child", "End": True}},
}
RETRIED_INSIDE = {"StartAt": "T", "States": {"T": {**TASK, "Retry": RETRY}}}


def parallel(machine: Any) -> dict[str, Any]:
    return {"Type": "Parallel", "Branches": [machine]}


def each(machine: Any, **fields: Any) -> dict[str, Any]:
    return {"Type": "Map", "ItemsPath": "$.few", "ItemProcessor": {**machine, **fields}}


DISTRIBUTED = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
FORKS = {
    "Parallel": parallel(PART),
    "Map": each(PART),
    "distributed Map": each(PART, **DISTRIBUTED),
    "Include": {"Type": "Include", "Template": "Part"},
    "Parallel in a Map": each({"StartAt": "P", "States": {"P": {**parallel(PART), "End": True}}}),
    "Workflow in a Parallel": parallel(CALLED),
}


def keys_of(state: Any, folder: Path, *, stored: bool) -> list[tuple[str, str]]:
    """Return key and execution of each call of a state whose first three attempts fail."""
    keys: list[tuple[str, str]] = []

    def work(payload: Any, call: Any) -> Any:
        keys.append((call.idempotency_key, call.execution_id))
        if len(keys) <= 3:
            raise ValueError("again")
        return 1

    states = {"Fork": {**state, "Next": "End"}, "End": {"Type": "Pass", "End": True}}
    document = {"Imports": {"Part": "part.json"}, "StartAt": "Fork", "States": states}
    (folder / "part.json").write_text(json.dumps(PART))
    (folder / "it.json").write_text(json.dumps(document))
    bindings: Any = {"agents": {"Work": work}, "workflows": {"Child": CHILD}}
    data = {"few": [1]}
    if not stored:
        result = asl.run(folder / "it.json", data, name="it", clock="virtual", **bindings)
    else:
        with Store(folder / "it.db", clock="virtual", **bindings) as opened:
            result = opened.run(folder / "it.json", data, name="it")
    assert result.ok, result.cause
    return keys


@pytest.mark.parametrize("kind", FORKS)
def test_each_attempt_of_a_fork_has_keys_of_its_own(kind: str, tmp_path: Path) -> None:
    """The states in it are entered anew by each attempt: these are visits of their own."""
    keys = keys_of({**FORKS[kind], "Retry": RETRY}, tmp_path, stored=False)
    assert len(set(keys)) == 4
    assert keys == keys_of({**FORKS[kind], "Retry": RETRY}, tmp_path, stored=True)


def test_attempts_of_one_visit_share_a_key(tmp_path: Path) -> None:
    """Within a fork, too: an agent knows a repeated call by its key."""
    keys = keys_of(parallel(RETRIED_INSIDE), tmp_path, stored=False)
    assert (len(keys), len(set(keys))) == (4, 1)
    assert keys == keys_of(parallel(RETRIED_INSIDE), tmp_path, stored=True)


LOOP: dict[str, Any] = {
    "StartAt": "Body",
    "States": {
        "More": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.n", "NumericLessThan": 3, "Next": "Body"}],
            "Default": "Done",
        },
        "Done": {"Type": "Succeed"},
    },
}
IDEMPOTENT = {**TASK, "Idempotent": True}
STEP = {"StartAt": "I", "States": {"I": IDEMPOTENT}}
BODIES: dict[str, dict[str, Any]] = {
    "Task": {"Type": "Task", "Agent": "Work", "Idempotent": True},
    "Task with Retry": {"Type": "Task", "Agent": "Work", "Idempotent": True, "Retry": RETRY},
    "Parallel": parallel(STEP),
    "Map": {"Type": "Map", "ItemsPath": "$.few", "ItemProcessor": STEP},
    "Workflow": {"Type": "Workflow", "WorkflowId": "Step"},
}


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("stored", [False, True])
def test_idempotent_without_a_key_has_one_for_each_visit(
    kind: str, stored: bool, tmp_path: Path
) -> None:
    """Each visit of a loop, each item and each child execution; attempts of one visit share it."""
    keys: list[str] = []

    def work(payload: Any, call: Any) -> Any:
        keys.append(call.idempotency_key)
        if kind == "Task with Retry" and call.attempt == 1:
            raise ValueError("again")
        return payload

    count = {"n.$": "States.MathAdd($.n, 1)", "few.$": "$.few"}
    body = {**BODIES[kind], "ResultPath": None, "Next": "Count"}
    states = {
        "Body": body,
        "Count": {"Type": "Pass", "Parameters": count, "Next": "More"},
        **LOOP["States"],
    }
    bindings: Any = {"agents": {"Work": work}, "workflows": {"Step": STEP}}
    document, data = {**LOOP, "States": states}, {"n": 0, "few": [1, 2]}
    if stored:
        with Store(tmp_path / "it.db", clock="virtual", **bindings) as opened:
            result = opened.run(document, data, name="it")
    else:
        result = asl.run(document, data, name="it", clock="virtual", **bindings)
    assert result.ok, result.cause
    calls = {"Map": 6, "Task with Retry": 6}.get(kind, 3)
    assert len(keys) == calls
    assert len(set(keys)) == (3 if kind == "Task with Retry" else calls)
    assert keys == EXPECTED.setdefault(kind, keys), "the same with and without a store"


EXPECTED: dict[str, list[str]] = {}
"""The keys that were seen first, by the kind of body."""
