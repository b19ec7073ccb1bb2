"""The log of an execution: what of it counts, what stands in it once, how it is cut into rows."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl
from asl.core.values import encode
from asl.stores.log import LogCompaction
from tests.sql import rows

DOCUMENT: dict[str, Any] = {
    "StartAt": "A",
    "States": {
        "A": {"Type": "Task", "Agent": "W", "Next": "B"},
        "B": {"Type": "Task", "Agent": "W", "ResultPath": "$.b", "Next": "C"},
        "C": {"Type": "Task", "Agent": "W", "ResultPath": "$.c", "End": True},
    },
}
ALONE = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "W", "End": True}}}
FORK = "/Each@1.0["
PATHS = ["", f"{FORK}0]", f"{FORK}1]", f"{FORK}0]/In@0.0[3]"]
KEYS = ["!rights", *(f"{path}/S@{visit}.0" for path in PATHS for visit in range(2)), *PATHS[1:]]
ENTRIES = st.one_of(
    st.tuples(st.just("answer"), st.sampled_from(KEYS)),
    st.tuples(st.just("void"), st.sampled_from(KEYS)),
    st.tuples(st.just("position"), st.sampled_from(PATHS), st.sampled_from([None, FORK])),
)


@given(st.lists(ENTRIES, max_size=30))
def test_what_counts_has_no_position_behind_it(entries: list[Any]) -> None:
    """A position makes all past that stands below its path, but for what it keeps."""
    positions: dict[str, Any] = {}
    answers: dict[str, Any] = {}
    alive = LogCompaction({}, {})
    for number, (what, where, *kept) in enumerate(entries):
        if what == "answer":
            alive.answer(where, number)
            answers[where] = number
        elif what == "void":
            alive.discard_answer(where)
            answers.pop(where, None)
        else:
            alive.position(where, number, *kept)
            for table in (positions, answers):
                for key in [key for key in table if key.startswith(f"{where}/")]:
                    if kept[0] is None or not key.startswith(kept[0]):
                        del table[key]
            positions[where] = number
    assert (alive.positions, alive.answers) == (positions, answers)


def bodies(store: asl.Store) -> list[bytes]:
    return [body for (body,) in rows(store, "SELECT body FROM step ORDER BY number")]


@pytest.mark.parametrize("answer", ["a text that is long enough to be referred to", {"n": [1, 2]}])
def test_an_answer_stands_in_the_log_once(answer: Any, tmp_path: Path) -> None:
    """Records of the same step refer to it; the history is told as if they did not."""
    agents = {"W": lambda data: answer}
    with asl.open_store(tmp_path / "runs.db", clock="virtual", agents=agents) as store:
        ran = store.run(ALONE, {}, name="it")
        assert ran.output == answer
        (_, last) = bodies(store)
        assert last.count(encode(answer)) == 1
        kept = [event.to_json() for event in store.result("it").events]
        assert kept == [event.to_json() for event in ran.events]


def test_what_an_answer_is_added_to_stands_in_the_log_once(tmp_path: Path) -> None:
    """The data of a state are not written again with what its answer adds to them."""
    text = "a text that goes through all states"
    agents = {"W": lambda data: len(data)}
    with asl.open_store(tmp_path / "runs.db", clock="virtual", agents=agents) as store:
        document = {"StartAt": "B", "States": {key: DOCUMENT["States"][key] for key in "BC"}}
        ran = store.run(document, {"text": text}, name="it")
        assert ran.output == {"text": text, "b": 1, "c": 2}
        assert [body.count(text.encode()) for body in bodies(store)] == [1, 0, 0]
        assert store.result("it").output == ran.output
        kept = [event.to_json() for event in store.result("it").events]
        assert kept == [event.to_json() for event in ran.events]


LAST = {"Type": "Task", "Agent": "W", "End": True}
ENDS: dict[str, dict[str, Any]] = {
    "its answer": LAST,
    "its answer as a member": {**LAST, "ResultPath": "$.r"},
    "its input": {**LAST, "ResultPath": None},
    "nothing": {**LAST, "OutputPath": None},
    "a part of its answer": {**LAST, "OutputPath": "$.part"},
    "what it was given after a wait": {"Type": "Wait", "Seconds": 1, "End": True},
    "what a pure state makes": {"Type": "Pass", "Result": {"end": True}, "End": True},
    "the output of another fork": {
        "Type": "Map",
        "ItemsPath": "$.part",
        "ItemProcessor": {"StartAt": "C", "States": {"C": LAST}},
        "End": True,
    },
}
ANSWERS = [{"part": ["a part that is long enough to be referred to"] * 2}, {"part": ["x" * 70_000]}]


@pytest.mark.parametrize("answer", ANSWERS, ids=["small", "large"])
@pytest.mark.parametrize("end", ENDS)
def test_what_a_child_came_to_is_known_by_its_last_record(
    end: str, answer: Any, tmp_path: Path
) -> None:
    """Another process joins what the children of a fork have left, and calls nobody again."""
    first = {"Type": "Task", "Agent": "W", "Next": "B"}
    ask = {"StartAt": "Ask", "States": {"Ask": {"Type": "Approval", "Prompt": "?", "End": True}}}
    work = {"StartAt": "A", "States": {"A": first, "B": ENDS[end]}}
    document = {
        "StartAt": "Both",
        "States": {"Both": {"Type": "Parallel", "Branches": [work, ask], "End": True}},
    }
    called = 0

    def agent(data: Any) -> Any:
        nonlocal called
        called += 1
        return answer

    path, clock = tmp_path / "runs.db", asl.VirtualClock(0)
    with asl.open_store(path, clock=clock, agents={"W": agent}) as store:
        assert store.run(document, {}, name="it").status == "PAUSED"
        before = called
    with asl.open_store(path, clock=clock, agents={"W": agent}) as store:
        store.answer(store.pending("it")[0]["requestId"], "approve")
        resumed = store.resume("it")
        assert called == before
        assert list(store.faults()) == []
    assert resumed.output[0] == asl.run(work, {}, agents={"W": agent}, clock="virtual").output


def test_a_transaction_is_one_row_for_each_execution(tmp_path: Path) -> None:
    """Three tasks, four transactions."""
    with asl.open_store(
        tmp_path / "runs.db", clock="virtual", agents={"W": lambda data: {}}
    ) as store:
        store.run(DOCUMENT, {}, name="it")
        assert len(bodies(store)) == 4


@pytest.mark.parametrize("most", [10, 40, 45])
def test_what_is_very_large_becomes_several_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """They are written in one transaction all the same; an answer may be what fills a row."""
    monkeypatch.setattr("asl.stores.log.MOST", most)
    with asl.open_store(
        tmp_path / "runs.db", clock="virtual", agents={"W": lambda data: {}}
    ) as store:
        ran = store.run(DOCUMENT, {}, name="it")
        assert len(bodies(store)) > 4
        assert list(store.faults()) == []
        kept = store.result("it")
        assert kept.visited == ["A", "B", "C"]
        assert [event.to_json() for event in kept.events] == [
            event.to_json() for event in ran.events
        ]
