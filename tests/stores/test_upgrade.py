"""Stores of earlier versions of the tables.

Of the fifth, when records, answers and positions were rows, and of the seventh, when the steps of
an execution were found by an index. Both hold five executions: one that succeeded, one whose second
item failed, one that asks, one whose request was answered while nobody ran, one whose process died
after one item.
"""

import gzip
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.executions import Store

FILES = Path(__file__).parent / "files"


def unpacked(version: int, path: Path) -> Path:
    path.write_bytes(gzip.decompress((FILES / f"version-{version}.db.gz").read_bytes()))
    return path


@pytest.fixture(params=[5, 7])
def path(request: Any, tmp_path: Path) -> Path:
    return unpacked(request.param, tmp_path / "runs.db")


def opened(path: Path, called: list[Any]) -> Store:
    """Open it; *called* gets what the items' agent is asked. The other one has been called."""
    return Store(
        path,
        synchronous="OFF",
        clock=asl.VirtualClock(1_700_000_000),
        agents={"Flaky": lambda item: called.append(item) or item},
    )


def test_it_is_whole_and_listed(path: Path) -> None:
    """All that was there is there, and the doctor finds nothing."""
    with opened(path, []) as store:
        assert list(store.faults()) == []
        found = {each.name: each.status for each in store.executions()}
    assert found == {
        "bad": "FAILED",
        "good": "SUCCEEDED",
        "ask": "PAUSED",
        "decided": "PAUSED",
        "died": "RUNNING",
    }


def test_it_is_shown(path: Path) -> None:
    """Outputs, errors and histories are those of then."""
    with opened(path, []) as store:
        good, bad = store.result("good"), store.result("bad")
        assert (good.output["each"], good.visited) == ([1, 3], ["A", "Save", "Each", "B"])
        assert (bad.error, bad.execution.input["big"]) == ("Boom", "x" * 70_000)
        types = [event.type for event in store.events("good")]
        assert types.count("MapIterationSucceeded") == 2
        assert types[-1] == "ExecutionSucceeded"
        assert [each.name for each in store.checkpoints("bad")] == ["after-a"]


@pytest.mark.parametrize(("name", "called"), [("bad", [2]), ("died", [3])])
def test_it_is_gone_on_with(name: str, called: list[Any], path: Path) -> None:
    """Of an execution that failed or died only what had not succeeded is done."""
    asked: list[Any] = []
    with opened(path, asked) as store:
        result = store.redrive(name) if name == "bad" else store.resume(name)
        assert result.output["each"] == [1, called[0]]
        assert list(store.faults()) == []
        assert store.result(name).output == result.output
    assert asked == called


def test_what_was_decided_counts(path: Path) -> None:
    """Also a decision that nobody has gone on with; others can still be made."""
    with opened(path, []) as store:
        assert store.due() == ["decided"]
        assert store.resume("decided").output["approval"] == "approve"
        (request,) = store.pending()
        store.answer(request["requestId"], "approve", by="ann")
        assert store.resume("ask").output["approval"] == "approve"
        assert list(store.faults()) == []


@pytest.mark.parametrize(
    ("version", "change", "fault"),
    [
        (5, "UPDATE record SET path = 'x' WHERE number = 1", "step 1 of the history"),
        (5, "UPDATE position SET path = path || 'x'", "step 1 of the history"),
        (5, "UPDATE answer SET body = CAST('~00000000[]' AS BLOB)", "step 1 of the history"),
        (7, "UPDATE step SET body = CAST('[]' AS BLOB) WHERE number = 2", "step 2 of the history"),
        (7, "DELETE FROM step WHERE number = 2", "step 2 of the history is missing"),
        (
            7,
            "DELETE FROM step WHERE (execution, number) IN (SELECT execution, step FROM head)",
            "the end of the history is missing",
        ),
    ],
)
def test_what_was_changed_before_stays_found_out(
    version: int, change: str, fault: str, tmp_path: Path
) -> None:
    """The upgrade does not vouch for what was not written so."""
    path = unpacked(version, tmp_path / "runs.db")
    raw = sqlite3.connect(path)
    raw.execute(change)
    raw.commit()
    raw.close()
    with opened(path, []) as store:
        assert any("bad: " in said and fault in said for said in store.faults())
        with pytest.raises(asl.StoreDamaged):
            store.redrive("bad")
