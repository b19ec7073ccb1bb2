"""A store where nothing can be written: it can be looked at, and says so."""

import errno
import os
import resource
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import asl
from asl.cli.main import cli
from asl.executions import Store
from tests.sql import rows

DOCUMENT = {"StartAt": "Ask", "States": {"Ask": {"Type": "Approval", "Prompt": "?", "End": True}}}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store in a folder that the system calls read-only; nothing but SQLite may keep to that."""
    path = tmp_path / "runs.db"
    with Store(path, clock="virtual") as store:
        store.run(DOCUMENT, {}, name="it")
    monkeypatch.setattr("asl.stores.sqlite.opening.os.access", lambda place, mode: False)
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
        assert not store.is_interrupted("it")
    assert content(path.parent) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.run(DOCUMENT, {}, name="other"),
        lambda store: store.resume("it"),
        lambda store: store.cancel("it"),
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
    assert "is opened read-only: it is read-only" in found.stderr


def test_what_was_written_last_is_not_left_out(tmp_path: Path, path: Path) -> None:
    """A store whose process has died is read with the file beside it, or not at all."""
    dead = tmp_path / "dead.db"
    raw = sqlite3.connect(path)
    raw.execute("CREATE TABLE last (a)")
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(f"{path}{suffix}", f"{dead}{suffix}")
    raw.close()
    with Store(dead) as store:
        assert rows(store, "SELECT count(*) FROM last") == [(0,)]
    Path(f"{dead}-shm").unlink()
    with pytest.raises(asl.StoreError, match=r"in dead\.db-wal next to it: copy both"):
        Store(dead)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A store whose process has closed it, on a system that takes no byte more."""
    path = tmp_path / "runs.db"
    with Store(path, clock="virtual") as store:
        store.run(DOCUMENT, {}, name="it")
    yield from without_room(path)


@pytest.fixture
def full_disk_with_log(tmp_path: Path) -> Iterator[Path]:
    """A store whose process has died: what was written last stands in the log beside it."""
    path, living = tmp_path / "runs.db", tmp_path / "living.db"
    with Store(living, clock="virtual") as store:
        store.run(DOCUMENT, {}, name="it")
        for suffix in ("", "-wal"):
            shutil.copy(f"{living}{suffix}", f"{path}{suffix}")
    yield from without_room(path)


def without_room(path: Path) -> Iterator[Path]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield path
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("disk", ["full_disk", "full_disk_with_log"])
@pytest.mark.parametrize(
    "command", [["ls"], ["show", "it"], ["logs", "it"], ["costs", "it"], ["doctor"], ["inbox"]]
)
def test_full_disk_can_be_looked_at(
    command: list[str], disk: str, request: pytest.FixtureRequest
) -> None:
    """No room for the index of the log is needed."""
    path = request.getfixturevalue(disk)
    found = CliRunner().invoke(cli, [*command, "--store", str(path)])
    assert found.exit_code == 0, found.output
    assert "is opened read-only: " in found.stderr


@pytest.mark.parametrize("disk", ["full_disk", "full_disk_with_log"])
def test_full_disk_refuses_what_is_to_be_written(disk: str, request: pytest.FixtureRequest) -> None:
    with (
        Store(request.getfixturevalue(disk), clock="virtual") as store,
        pytest.raises(asl.StoreError, match=r"disk is not full|the disk is full"),
    ):
        store.cancel("it")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with Store(request.getfixturevalue(disk), clock="virtual") as store:
        store.cancel("it")
        assert store.result("it").status == "ABORTED"


def test_lock_file_that_cannot_be_made_makes_a_store_read_only(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file at all can be made on a disk without room for its name."""
    monkeypatch.undo()
    opened = os.open

    def full(place: Any, flags: int, *mode: int) -> int:
        if str(place).endswith(".lock") and flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))
        return opened(place, flags, *mode)

    monkeypatch.setattr(os, "open", full)
    with Store(path, clock="virtual") as store:
        assert store.session.refusal
        assert [each.name for each in store.executions()] == ["it"]
