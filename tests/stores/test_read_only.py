"""A store where nothing can be written: it can be looked at, and says so."""

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import asl
from asl.cli.main import cli
from asl.executions import Store

DOCUMENT = {"StartAt": "Ask", "States": {"Ask": {"Type": "Approval", "Prompt": "?", "End": True}}}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store in a folder that the system calls read-only; nothing but SQLite may keep to that."""
    path = tmp_path / "runs.db"
    with Store(path, clock="virtual") as store:
        store.start(DOCUMENT, {}, name="it")
    monkeypatch.setattr("asl.stores.sqlite.os.access", lambda place, mode: False)
    return path


def content(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def test_it_is_looked_at(path: Path) -> None:
    """All that reads works, and leaves no trace."""
    before = content(path.parent)
    with Store(path) as store:
        assert [(each.name, each.status) for each in store.executions()] == [("it", "PAUSED")]
        assert store.result("it").visited == ["Ask"]
        assert len(store.pending()) == 1
        assert list(store.faults()) == []
        assert not store.left_behind("it")
    assert content(path.parent) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.start(DOCUMENT, {}, name="other"),
        lambda store: store.resume("it"),
        lambda store: store.stop("it"),
        lambda store: store.answer(store.pending()[0]["requestId"], "approve"),
    ],
)
def test_nothing_is_recorded(change: Any, path: Path) -> None:
    """Whoever wants to is told why."""
    with Store(path) as store, pytest.raises(asl.StoreError, match="it is read-only"):
        change(store)


@pytest.mark.parametrize("command", [["ls"], ["show", "it"], ["doctor"], ["inbox"]])
def test_commands_say_so(command: list[str], path: Path) -> None:
    """They do what they are for, beside."""
    found = CliRunner().invoke(cli, [*command, "--store", str(path)])
    assert found.exit_code == 0, found.output
    assert "is read-only: it can only be looked at" in found.stderr


def test_what_was_written_last_is_not_left_out(tmp_path: Path, path: Path) -> None:
    """A store whose process has died is read with the file beside it, or not at all."""
    dead = tmp_path / "dead.db"
    raw = sqlite3.connect(path)
    raw.execute("CREATE TABLE last (a)")
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(f"{path}{suffix}", f"{dead}{suffix}")
    raw.close()
    with Store(dead) as store:
        assert store.file.rows("SELECT count(*) FROM last") == [(0,)]
    Path(f"{dead}-shm").unlink()
    with pytest.raises(asl.StoreError, match=r"stands in dead\.db-wal beside it: copy both"):
        Store(dead)


def test_an_older_version_is_not_rewritten(path: Path) -> None:
    """It cannot be: the message says what to do."""
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA user_version = 6")
    raw.close()
    with pytest.raises(asl.StoreError, match="copy it to where it can be"):
        Store(path)
