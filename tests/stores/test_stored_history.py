"""The stored history equals that of the run in every detail."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.conformance import Case
from asl.conformance.case import CHECK_FACTS
from asl.core.profile import PROFILES
from asl.dialects import load
from tests.bundled import bundled

FILES = 9
"""One file of so many is in the quick run."""
TRANSITIONS = 2_000
"""After so many a machine ends that goes round: whoever fails each time may never lead out."""


@cache
def cases(files: int) -> list[Case]:
    """The cases that run without an account of their surroundings, of one of so many files."""
    return [
        each
        for each in bundled(each=files)
        if each.document is not None
        and not CHECK_FACTS.issuperset(each.observe)
        and "waitForTaskToken" not in str(each.document)
    ]


def agents_of(value: Any) -> dict[str, Any]:
    """Return somebody for everybody whom a document asks; each second one fails."""
    members = value if isinstance(value, list) else []
    found: dict[str, Any] = {}
    if isinstance(value, dict):
        members = [*value.values()]
        for field in ("Agent", "Agents", "Arbiter"):
            named = value.get(field, [])
            for name in named if isinstance(named, list) else [named]:
                found[str(name)] = answer if len(str(name)) % 2 else refuse
    for member in members:
        found |= agents_of(member)
    return found


def answer(parameters: Any) -> Any:
    return {"got": parameters}


def refuse(parameters: Any) -> Any:
    raise asl.StateError("Refused", "by hand")


def shown(result: asl.Result) -> dict[str, Any]:
    whole = result.to_json()
    return {key: whole.get(key) for key in ("status", "output", "error", "cause", "visited")}


def differing(files: int, path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the cases whose executions a store tells otherwise than they did."""
    with asl.open_store(path, synchronous="OFF", clock="virtual") as store:
        for case in cases(files):
            try:
                document = load(case.document, dialect=case.dialect, reading=case.reading)
                profile = PROFILES[case.profile].with_limits(max_transitions=TRANSITIONS)
                program = asl.compile(document, profile=profile)
                first = store.run(
                    program, case.input, name=case.id, agents=agents_of(document.value)
                )
            except asl.AslError:
                continue
            again = store.result(case.id)
            told, retold = (
                [shown(each), *(event.to_json() for event in each.events)]
                for each in (first, again)
            )
            if told != retold:
                pairs = zip(told, retold, strict=False)
                yield case.id, next((pair for pair in pairs if pair[0] != pair[1]), ())


@pytest.mark.parametrize("files", [FILES, pytest.param(1, marks=pytest.mark.full)])
def test_stored_history_equals_that_of_the_run(files: int, tmp_path: Path) -> None:
    assert not [*differing(files, tmp_path / "runs.db")]


@pytest.mark.full
def test_an_execution_comes_to_the_same_in_a_store(tmp_path: Path) -> None:
    """A store of its own for each, so that the clock begins at the same time."""
    otherwise = []
    for number, case in enumerate(cases(1)):
        if ":activity:" in str(case.document) or ":sendTask" in str(case.document):
            continue  # there is a desk in a store, and none in memory
        document = load(case.document, dialect=case.dialect, reading=case.reading)
        profile = PROFILES[case.profile].with_limits(max_transitions=TRANSITIONS)
        agents = agents_of(document.value)
        try:
            program = asl.compile(document, profile=profile)
            alone = asl.run(program, case.input, name=case.id, agents=agents, clock="virtual")
        except asl.AslError:
            continue
        path = tmp_path / f"{number}.db"
        with asl.open_store(path, synchronous="OFF", clock="virtual") as store:
            kept = store.run(program, case.input, name=case.id, agents=agents)
        path.unlink()
        if shown(alone) != shown(kept):
            otherwise.append((case.id, shown(alone), shown(kept)))
    assert not otherwise


def test_remaining_budget_is_restored(tmp_path: Path) -> None:
    """Before the first answer, and after it."""
    left = {"Type": "Pass", "Parameters": {"left.$": "States.RemainingBudget()"}}
    first = {**left, "ResultPath": "$.first", "Next": "A"}
    task = {"Type": "Task", "Agent": "A", "ResultPath": None, "Next": "Then"}
    states = {"First": first, "A": task, "Then": {**left, "ResultPath": "$.then", "End": True}}
    document = {"StartAt": "First", "Budget": {"MaxCost": "$1.60"}, "States": states}
    with asl.open_store(tmp_path / "runs.db", clock="virtual") as store:
        done = store.run(document, name="one", agents={"A": lambda given: {"_cost": 0.5}})
        again = store.result("one")
    assert done.output == {"first": {"left": 1.6}, "then": {"left": 1.1}}
    assert [each.to_json() for each in again.events] == [each.to_json() for each in done.events]


def test_reservation_of_a_failed_call_is_in_the_usage(tmp_path: Path) -> None:
    task = {"Type": "Task", "Agent": "A", "End": True}
    document = {"StartAt": "A", "Budget": {"MaxTokens": 50}, "States": {"A": task}}
    with asl.open_store(tmp_path / "runs.db", agents={"A": refuse}) as store:
        assert store.run(document, name="a").usage == store.result("a").usage


def test_failure_is_one_event(tmp_path: Path) -> None:
    wait = {"Type": "Wait", "Seconds": "{% $states.input.x %}", "End": True}
    document = {"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": wait}}
    with asl.open_store(tmp_path / "runs.db") as store:
        store.run(document, {"x": "soon"}, name="a")
        types = [event.type for event in store.result("a").events]
    assert types == ["ExecutionStarted", "WaitStateEntered", "EvaluationFailed", "ExecutionFailed"]


def test_what_a_map_within_a_child_of_a_distributed_map_tells(tmp_path: Path) -> None:
    """Of such a child nothing else is written: no record says which machine it runs."""
    inner = {
        "Type": "Map",
        "MaxConcurrency": 1,
        "Progress": {"Milestones": [{"At": 100, "Name": "over"}]},
        "ItemProcessor": {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}},
        "End": True,
    }
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    child = {"ProcessorConfig": config, "StartAt": "I", "States": {"I": inner}}
    document = {
        "StartAt": "M",
        "States": {"M": {"Type": "Map", "ItemProcessor": child, "End": True}},
    }
    with asl.open_store(tmp_path / "runs.db", clock="virtual") as store:
        told = [event.to_json() for event in store.run(document, [[1, 2]], name="it").events]
        assert any(event["type"] == "MilestoneReached" for event in told)
        assert [event.to_json() for event in store.result("it").events] == told
