"""Included documents with parameters from the data of a run: stored, resumed and read."""

import json
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.executions import Store
from tests.deaths import instants, lived

PART = {
    "Parameters": {"who": {"Type": "string"}, "attempt": {"Default": 0}},
    "StartAt": "Greet",
    "States": {
        "Greet": {
            "Type": "Pass",
            "Result": {"name": "{{who}}", "attempt": "{{attempt}}", "two": [1, 2]},
            "Next": "Ask",
        },
        "Ask": {"Type": "Task", "Agent": "W", "Next": "Each"},
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.two",
            "ItemProcessor": {
                "StartAt": "One",
                "States": {
                    "One": {"Type": "Pass", "Result": "{{who}} {{attempt}}", "Next": "Two"},
                    "Two": {"Type": "Task", "Agent": "W", "End": True},
                },
            },
            "End": True,
        },
    },
}
INCLUDE = {
    "Type": "Include",
    "Template": "Part",
    "Parameters": {"who.$": "$", "attempt.$": "$$.State.RetryCount"},
    "Retry": [{"ErrorEquals": ["Again"], "IntervalSeconds": 9}],
    "End": True,
}
DISTRIBUTED = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
EACH = {"StartAt": "In", "States": {"In": INCLUDE}}
WHOLE = {
    "Imports": {"Part": "part.json"},
    "StartAt": "All",
    "States": {"All": {"Type": "Map", "ItemsPath": "$", "ItemProcessor": EACH, "End": True}},
}


def work(parameters: Any) -> Any:
    if type(parameters) is dict and (parameters["name"], parameters["attempt"]) == ("Bo", 0):
        raise asl.StateError("Again")
    return parameters


def run(folder: Path, name: str, die_at: int | None, part: Any = PART) -> Any:
    """Run until the end or the *die_at*-th commit; returns the result, None for a death."""
    (folder / "part.json").write_text(json.dumps(part))
    (folder / "whole.json").write_text(json.dumps(WHOLE))
    agents = {"W": work}
    store = Store(folder / name, clock=asl.VirtualClock(), synchronous="OFF", agents=agents)
    path = folder / "whole.json"
    return lived(store, lambda: store.run(path, ["Ann", "Bo"], name="it"), die_at, "commit.done")


def told(path: Path) -> list[Any]:
    """The history as another process reads it, which is what it reads while it follows it."""
    with Store(path) as store:
        assert list(store.faults()) == []
        events = store.result("it").events
        assert [each.to_json() for each in store.events("it")] == [
            each.to_json() for each in events
        ]
        return [(each.type, each.path, each.details) for each in events]


@pytest.mark.parametrize("die_at", instants(range(1, 12), 3))
def test_the_history_has_the_states_as_they_were_filled_in(die_at: int, tmp_path: Path) -> None:
    """Those of each item and each attempt, whatever process has run them, and whoever reads it."""
    whole = run(tmp_path, "whole.db", None)
    assert whole.output == [["Ann 0", "Ann 0"], ["Bo 1", "Bo 1"]]
    assert told(tmp_path / "whole.db") == [(e.type, e.path, e.details) for e in whole.events]
    if run(tmp_path, "it.db", die_at) is None:
        told_before = told(tmp_path / "it.db")
        assert run(tmp_path, "it.db", None).output == whole.output
        assert told(tmp_path / "it.db")[: len(told_before)] == told_before
    assert sorted(map(str, told(tmp_path / "it.db"))) == sorted(
        map(str, told(tmp_path / "whole.db"))
    )


@pytest.mark.parametrize("die_at", instants(range(1, 12, 2), 2))
def test_a_distributed_map_goes_on_as_it_was_filled_in(die_at: int, tmp_path: Path) -> None:
    """Its children are those of the document that the data made, in whatever process they run."""
    each = PART["States"]["Each"]
    processor = {**each["ItemProcessor"], "ProcessorConfig": DISTRIBUTED}
    states = {**PART["States"], "Each": {**each, "ItemProcessor": processor}}
    part = {**PART, "States": states}
    assert run(tmp_path, "it.db", die_at, part) is None
    told_before = told(tmp_path / "it.db")
    result = run(tmp_path, "it.db", None, part)
    assert result.output == [["Ann 0", "Ann 0"], ["Bo 1", "Bo 1"]]
    assert told(tmp_path / "it.db")[: len(told_before)] == told_before
    assert sum(kind == "MapRunSucceeded" for kind, _, _ in told(tmp_path / "it.db")) == 2
