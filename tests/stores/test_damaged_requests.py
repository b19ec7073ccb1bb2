"""Damaged rows of requests: named, while all others can be answered."""

import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

import asl
from asl.cli.main import cli
from asl.executions import Store

DOCUMENT = {"StartAt": "Ask", "States": {"Ask": {"Type": "Approval", "Prompt": "?", "End": True}}}


def damaged_store(path: Path, column: str) -> str:
    """Make a store of two requests and change a column of the first; return the other's id."""
    with Store(path, clock="virtual") as store:
        for name in ("one", "two"):
            store.run(DOCUMENT, {}, name=name)
        first, second = (each["requestId"] for each in store.pending())
    raw = sqlite3.connect(path)
    raw.create_function("guard", -1, lambda *columns: None)
    raw.execute("DROP TRIGGER request_changed")
    raw.execute(f"UPDATE request SET {column} = 'x' WHERE id = ?", (first,))
    raw.commit()
    raw.close()
    return str(second)


@pytest.mark.parametrize("column", ["body", "received", "key", "kind", "created"])
def test_inbox_lists_the_requests_beside_a_damaged_one(column: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    whole = damaged_store(path, column)
    found = CliRunner().invoke(cli, ["inbox", "--store", str(path)])
    assert found.exit_code == 0, found.output
    assert whole in found.stdout
    assert "is damaged: " in found.stderr
    with Store(path, clock="virtual") as store:
        assert [each["requestId"] for each in store.pending()] == [whole]
        assert len(store.damaged_requests()) == 1
        assert store.answer(whole, "approve", by="bo")
        with pytest.raises(asl.StoreDamaged):
            store.pending("one")


def test_events_of_a_result_after_close_say_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Store(path, clock="virtual") as store:
        store.run(DOCUMENT, {}, name="it")
        store.answer(store.pending()[0]["requestId"], "approve", by="bo")
        result = store.resume("it")
    with pytest.raises(asl.StoreError, match="read the events of a result before you close"):
        assert result.events
