"""Delete, prune and backup."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.executions import ExecutionBusy, ExecutionNotFound, Store
from asl.executions.locking import hold_lock
from asl.stores.errors import StoreError
from asl.stores.sqlite.connection import SqliteConnection
from tests.sql import rows
from tests.stores.conftest import Place

DAY = 86_400.0
LARGE = "x" * 70_000
PART = {"StartAt": "P", "States": {"P": {"Type": "Task", "Agent": "Work", "End": True}}}
DONE = {
    "StartAt": "Save",
    "States": {
        "Save": {"Type": "Checkpoint", "Name": "s", "Storage": "file", "Next": "Child"},
        "Child": {"Type": "Workflow", "WorkflowId": "Part", "Next": "Work"},
        "Work": {"Type": "Task", "Agent": "Work", "End": True},
    },
}
ASKING = {"StartAt": "Ask", "States": {"Ask": {"Type": "Approval", "Prompt": "?", "End": True}}}


def opened(path: Path, clock: Any = None, text: str = LARGE, **more: Any) -> Store:
    return Store(
        path,
        synchronous="OFF",
        clock=clock or asl.VirtualClock(),
        agents={"Work": lambda _: {"text": text}},
        workflows={"Part": PART},
        **more,
    )


def count(store: Store, table: str) -> int:
    ((found,),) = rows(store, f"SELECT count(*) FROM {table}")
    assert type(found) is int
    return found


def test_delete_removes_an_execution_and_all_that_it_started(tmp_path: Path) -> None:
    with opened(tmp_path / "runs.db") as store:
        store.run(DONE, {"in": LARGE + "1"}, name="one")
        store.run(DONE, {"in": LARGE + "2"}, name="two")
        assert len(os.listdir(tmp_path / "runs.db.checkpoints")) == 2
        before = count(store, "blob")
        store.delete("one")
        with pytest.raises(ExecutionNotFound):
            store.get("one")
        assert [each.name for each in store.executions()] == ["two"]
        assert (count(store, "execution"), count(store, "head")) == (2, 2)
        assert 0 < count(store, "blob") < before
        assert len(os.listdir(tmp_path / "runs.db.checkpoints")) == 1
        assert list(store.faults()) == []
        assert store.result("two").output == {"text": LARGE}
        store.delete("two")
        tables = ("execution", "step", "head", "blob", "checkpoint", "request")
        assert [count(store, table) for table in tables] == [0] * len(tables)
        assert store.run(DONE, {}, name="one").ok, "the name is free again"


def test_delete_refuses_what_has_not_ended(tmp_path: Path) -> None:
    """One that waits, a part of another one, one that runs, and one that is not there."""
    with opened(tmp_path / "runs.db") as store, opened(tmp_path / "runs.db") as other:
        store.run(ASKING, {}, name="ask")
        store.run(DONE, {}, name="one")
        part = store.descendants("one")[0].name
        with pytest.raises(asl.AslError, match=r"has not ended \(PAUSED\): cancel it"):
            store.delete("ask")
        with pytest.raises(asl.AslError, match="is a part of 'one': delete that one"):
            store.delete(part)
        with pytest.raises(ExecutionNotFound):
            store.delete("none")
        with hold_lock(other.session, "one"), pytest.raises(ExecutionBusy):
            store.delete("one")
        store.cancel("ask")
        store.delete("ask")
        assert [each.name for each in store.executions()] == ["one"]


def test_prune_keeps_recent_and_paused_executions(tmp_path: Path) -> None:
    for day in range(4):
        with opened(tmp_path / "runs.db", asl.VirtualClock(1_700_000_000 + day * DAY)) as store:
            store.run(ASKING, {}, name=f"ask-{day}")
            store.run(DONE, {}, name=f"done-{day}")
    with opened(tmp_path / "runs.db", asl.VirtualClock(1_700_000_000 + 3 * DAY + 60)) as store:
        assert store.prune("2d", dry_run=True) == ["done-0", "done-1"]
        assert len(store.executions()) == 8
        assert store.prune("2d") == ["done-0", "done-1"]
        assert store.prune(2 * DAY) == []
        kept = {each.name for each in store.executions()}
        assert kept == {"done-2", "done-3", *(f"ask-{day}" for day in range(4))}
        assert list(store.faults()) == []


def test_prune_keeps_the_latest_ended_executions(place: Place) -> None:
    """Running ones and children are not counted."""
    with Store(place, agents={"Work": lambda _: 1}, workflows={"Part": PART}) as store:
        store.run(ASKING, {}, name="ask")
        for number in range(4):
            store.run(PART, {}, name=f"one-{number}", express=number % 2 == 0)
        assert store.prune(latest=3, dry_run=True) == ["one-0"]
        assert store.prune(express=0) == ["one-0", "one-2"]
        assert store.prune(latest=1) == ["one-1"]
        assert [each.name for each in store.executions()] == ["one-3", "ask"]
        assert list(store.faults()) == []
        assert store.prune(latest=0) == ["one-3"]


@pytest.mark.parametrize("latest", [-1, 1.5, True])
def test_prune_refuses_what_is_no_number_of_executions(place: Place, latest: Any) -> None:
    with Store(place) as store, pytest.raises(asl.AslError, match="'latest' must be 0 or more"):
        store.prune(latest=latest)


def test_prune_deletes_large_values_that_only_deleted_executions_had(tmp_path: Path) -> None:
    with opened(tmp_path / "runs.db") as store:
        store.run(PART, {}, name="one")
        before = count(store, "blob")
        store.run(PART, {"in": LARGE + "1"}, name="two")
        assert count(store, "blob") == before + 1
        assert store.prune(latest=0) == ["one", "two"]
        assert count(store, "blob") == 0


@pytest.mark.parametrize("keep", ["-1d", "soon", -5, "1.5d", float("nan")])
def test_prune_refuses_what_is_no_duration(tmp_path: Path, keep: Any) -> None:
    with opened(tmp_path / "runs.db") as store:
        store.run(DONE, {}, name="one")
        with pytest.raises(asl.AslError, match="is not a duration"):
            store.prune(keep)
        assert store.get("one")


def test_a_large_value_that_another_process_deletes_is_written_again(tmp_path: Path) -> None:
    """A store that has written it before does not rely on its being there."""
    with opened(tmp_path / "runs.db") as long, opened(tmp_path / "runs.db") as other:
        long.run(DONE, {"in": LARGE}, name="one")
        other.delete("one")
        assert long.run(DONE, {"in": LARGE}, name="two").ok
        assert list(other.faults()) == []


def test_backup_is_a_store_of_its_own(tmp_path: Path) -> None:
    with opened(tmp_path / "runs.db") as store:
        store.run(DONE, {"in": LARGE}, name="one")
        store.run(ASKING, {}, name="ask")
        store.backup(tmp_path / "copy.db")
        store.delete("one")
    assert sorted(os.listdir(tmp_path)) == [
        "copy.db", "runs.db", "runs.db.checkpoints", "runs.db.lock"
    ]  # fmt: skip
    assert stat.S_IMODE(os.stat(tmp_path / "copy.db").st_mode) == 0o600
    with opened(tmp_path / "copy.db") as copy:
        assert list(copy.faults()) == []
        assert copy.result("one").output == {"text": LARGE}
        (request,) = copy.pending()
        copy.answer(request["requestId"], "approve", by="ann")
        assert copy.resume("ask").ok


def test_backup_overwrites_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "runs.db") as store:
        store.run(DONE, {}, name="one")
        with pytest.raises(asl.StoreError, match="exists"):
            store.backup(tmp_path / "runs.db")
        with pytest.raises(asl.StoreError, match="cannot be written"):
            store.backup(tmp_path / "no" / "copy.db")
        assert store.get("one")


def test_backup_during_a_transaction_of_another_process(tmp_path: Path) -> None:
    """It has what was committed before."""
    with opened(tmp_path / "runs.db") as store:
        store.run(DONE, {}, name="one")
        with closing(sqlite3.connect(tmp_path / "runs.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("DELETE FROM step")
            store.backup(tmp_path / "copy.db")
            other.execute("ROLLBACK")
    with opened(tmp_path / "copy.db") as copy:
        assert list(copy.faults()) == []


def test_an_interrupted_backup_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a part of a copy nor SQLite's journal of it."""

    def full(self: SqliteConnection, target: sqlite3.Connection, path: str) -> None:
        target.execute("CREATE TABLE half (a)")
        target.execute("BEGIN")
        target.execute("INSERT INTO half VALUES (1)")
        raise error

    monkeypatch.setattr(SqliteConnection, "_copy_to", full)
    with Store(tmp_path / "runs.db") as store:
        before = sorted(tmp_path.iterdir())
        error: BaseException = sqlite3.OperationalError("database or disk is full")
        with pytest.raises(StoreError, match=r"copy\.db cannot be written: .* full"):
            store.backup(tmp_path / "copy.db")
        error = KeyboardInterrupt()
        with pytest.raises(KeyboardInterrupt):
            store.backup(tmp_path / "copy.db")
        assert sorted(tmp_path.iterdir()) == before


def test_a_backup_names_both_files_if_it_fails(tmp_path: Path) -> None:
    """SQLite does not say which of them it could not use."""
    with (
        Store(tmp_path / "runs.db") as store,
        closing(sqlite3.connect(tmp_path / "copy.db", isolation_level=None)) as target,
    ):
        connection = store.session.connection
        assert isinstance(connection, SqliteConnection)
        target.execute("PRAGMA max_page_count = 1")
        with pytest.raises(StoreError, match=r"runs\.db cannot be copied to copy\.db: .* full"):
            connection._copy_to(target, "copy.db")
