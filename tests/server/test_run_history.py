"""What a page knows about the states of an execution, from its events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("jinja2")

import asl
from asl.graphs.model import graph_of
from asl.server.pages.history import HistoryCache, RunHistory, StateVisit
from asl.server.pages.sources import place_of_error, readable_document
from asl.server.pages.timeline import timeline_of
from asl.server.projects import make_project

PASS = {"Type": "Pass", "End": True}


def task(**more: Any) -> dict[str, Any]:
    return {"Type": "Task", "Agent": "A", "End": True, **more}


def machine(**states: Any) -> dict[str, Any]:
    return {"StartAt": next(iter(states)), "States": states}


@pytest.fixture
def store() -> Iterator[asl.Store]:
    with asl.open_store("memory:", clock="virtual") as opened:
        yield opened


def history(store: asl.Store, name: str) -> RunHistory:
    graph = graph_of(store.program(name).document)
    found = RunHistory(store.feed(name), graph)
    found.refresh()
    return found


def statuses(found: RunHistory) -> dict[str, str]:
    return {pointer.rpartition("/")[2]: each.status for pointer, each in found.totals.items()}


def test_retries_are_attempts_of_one_visit(store: asl.Store) -> None:
    retry = [{"ErrorEquals": ["Boom"], "IntervalSeconds": 5}]
    agent = {"sequence": [{"raise": {"Error": "Boom"}}, {"return": 1}]}
    store.run(machine(T=task(Retry=retry)), name="x", agents={"A": agent})
    (visit,) = history(store, "x").visits
    assert (visit.status, visit.attempts, visit.ended) == ("SUCCEEDED", 2, visit.entered + 5)


def test_a_caught_error_is_remembered(store: asl.Store) -> None:
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Rest"}]
    document = machine(T=task(Catch=catch), Rest=PASS)
    store.run(document, name="x", agents={"A": {"raise": {"Error": "Boom", "Cause": "why"}}})
    found = history(store, "x")
    assert statuses(found) == {"T": "CAUGHT", "Rest": "SUCCEEDED"}
    assert (found.visits[0].error, found.visits[0].cause) == ("Boom", "why")


def test_a_failing_branch_aborts_its_sibling(store: asl.Store) -> None:
    first = {"Type": "Wait", "Seconds": 1, "Next": "Bad"}
    branches = [
        machine(First=first, Bad=task()),
        machine(Slow={"Type": "Wait", "Seconds": 9, "End": True}),
    ]
    document = machine(P={"Type": "Parallel", "Branches": branches, "End": True})
    store.run(document, name="x", agents={"A": {"raise": {"Error": "Boom"}}})
    found = history(store, "x")
    assert statuses(found) == {
        "P": "FAILED",
        "First": "SUCCEEDED",
        "Slow": "ABORTED",
        "Bad": "FAILED",
    }
    assert found.failed is not None
    assert found.failed.path == ("P", 0, "Bad")
    assert found.failed.pointer == "/States/P/Branches/0/States/Bad"


def test_failing_items_of_a_tolerant_map(store: asl.Store) -> None:
    processor = machine(F={"Type": "Fail", "Error": "Odd"})
    document = machine(
        M={
            "Type": "Map",
            "ItemProcessor": processor,
            "Catch": [{"ErrorEquals": ["Odd"], "Next": "Rest"}],
            "End": True,
        },
        Rest=PASS,
    )
    store.run(document, [1, 2], name="x")
    found = history(store, "x")
    assert statuses(found)["M"] == "CAUGHT"
    assert statuses(found)["F"] == "FAILED"
    assert statuses(found)["Rest"] == "SUCCEEDED"


def test_a_fail_state_fails_the_execution(store: asl.Store) -> None:
    store.run(machine(F={"Type": "Fail", "Error": "E", "Cause": "c"}), name="x")
    found = history(store, "x")
    assert found.failed is not None
    assert (found.failed.path, found.failed.error, found.failed.cause) == (("F",), "E", "c")


def test_a_fail_state_after_a_caught_error_is_the_failure(store: asl.Store) -> None:
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "F"}]
    document = machine(
        T={"Type": "Task", "Agent": "A", "Catch": catch, "End": True},
        F={"Type": "Fail", "Error": "E"},
    )
    store.run(document, name="x", agents={"A": {"raise": {"Error": "Boom"}}})
    found = history(store, "x")
    assert statuses(found) == {"T": "CAUGHT", "F": "FAILED"}
    assert found.failed is not None
    assert (found.failed.path, found.failed.error) == (("F",), "E")


def test_loops_are_visits_of_one_state(store: asl.Store) -> None:
    rule = {"Variable": "$.n", "NumericLessThan": 3, "Next": "Add"}
    document = machine(
        Add={
            "Type": "Pass",
            "Parameters": {"n.$": "States.MathAdd($.n, 1)"},
            "Next": "More",
        },
        More={"Type": "Choice", "Choices": [rule], "Default": "End"},
        End={"Type": "Succeed"},
    )
    store.run(document, {"n": 0}, name="x")
    found = history(store, "x")
    assert found.totals["/States/Add"].visits == 3
    assert [each.number for each in found.visits_of("/States/Add")] == [1, 2, 3]


def test_a_redrive_reopens_what_failed(store: asl.Store) -> None:
    agent = {"sequence": [{"raise": {"Error": "Boom"}}, {"return": 1}]}
    document = machine(T=task())
    store.run(document, name="x", agents={"A": agent})
    cache = HistoryCache()
    project = make_project("p", store, {})

    def get() -> RunHistory:
        return cache.get(project, store.get("x"), lambda *_: graph_of(document))

    before = get()
    assert statuses(before) == {"T": "FAILED"}
    assert get() is before
    store.redrive("x", agents={"A": {"return": 1}})
    after = get()
    assert after is not before
    assert statuses(after) == {"T": "SUCCEEDED"}
    assert after.visits[0].attempts == 2


def test_variables_before_a_state_are_those_of_its_machines(store: asl.Store) -> None:
    document = machine(
        One={"Type": "Pass", "Assign": {"a": 1}, "Next": "P"},
        P={
            "Type": "Parallel",
            "Branches": [
                machine(In={"Type": "Pass", "Assign": {"b": 2}, "Next": "Out"}, Out=PASS),
                machine(Other={"Type": "Pass", "Assign": {"c": 3}, "End": True}),
            ],
            "End": True,
        },
    )
    store.run(document, name="x")
    found = history(store, "x")
    (visit,) = found.visits_of("/States/P/Branches/0/States/Out")
    assert found.variables_before(visit) == {"a": 1, "b": 2}


def test_the_place_of_an_error_is_its_field(store: asl.Store) -> None:
    document = {
        "QueryLanguage": "JSONata",
        **machine(
            Sum={"Type": "Pass", "Output": {"x": "{% $states.input.a.b + 1 %}"}, "End": True}
        ),
    }
    store.run(document, {}, name="x")
    project = make_project("p", store, {})
    visit = history(store, "x").failed
    assert visit is not None
    found = place_of_error(readable_document(project, store.get("x")), visit)
    assert found is not None
    assert found.pointer == "/States/Sum/Output/x"
    (marked,) = [each for each in found.lines if each.caret]
    assert marked.text[marked.caret - 1 :].startswith('"{% $states')  # type: ignore[operator]
    assert len(marked.pad) == marked.caret - 1  # type: ignore[operator]


def visit(name: str, start: float, end: float | None, kind: str = "Task") -> StateVisit:
    return StateVisit((name,), None, kind, 1, start, 0, 0, end, "SUCCEEDED")


def test_long_waits_are_compressed() -> None:
    """A day between two tasks takes a small share of the width."""
    day = 86400.0
    visits = [visit("A", 0, 10), visit("W", 10, day, "Wait"), visit("B", day, day + 10)]
    found = timeline_of(visits, 0, day + 10)
    (gap,) = found.gaps
    assert gap.seconds == day - 10
    assert gap.width < 10
    first, wait, last = found.bars
    assert first.width == pytest.approx(last.width)
    assert first.width > 40
    assert wait.left == pytest.approx(gap.left)
    assert last.left + last.width == pytest.approx(100)


def test_a_timeline_without_work_has_a_scale() -> None:
    found = timeline_of([visit("W", 0, None, "Wait")], 0, 100)
    assert found.bars[0].width == pytest.approx(100)
    assert timeline_of([], 5, 5).bars == []
    assert timeline_of([visit("A", 5, 5)], 5, 5).bars[0].width > 0


def test_a_timeline_shows_outer_states_first() -> None:
    inner = [
        StateVisit(
            ("M", index, "A"), None, "Task", 1, index, index + 1, 0, index + 1.0, "SUCCEEDED"
        )
        for index in range(500)
    ]
    outer = [visit("M", 0, 500, "Map"), StateVisit(("Z",), None, "Task", 1, 500, 999, 0, 501.0)]
    found = timeline_of([*outer[:1], *inner, *outer[1:]], 0, 501)
    assert {"M", "Z"} <= {str(bar.visit.path[-1]) for bar in found.bars}
    assert found.hidden == 502 - len(found.bars)
