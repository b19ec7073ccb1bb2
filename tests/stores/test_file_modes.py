"""Files that hold data of executions belong to their owner alone; systems without POSIX locks."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import asl
from asl.core.private_files import make_private_folder

NOTED = {
    "StartAt": "Note",
    "States": {
        "Note": {"Type": "Checkpoint", "Name": "noted", "Storage": "file", "Next": "Ask"},
        "Ask": {"Type": "Approval", "Prompt": "Go on?", "End": True},
    },
}


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """The umask of most systems."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    """Return the mode of every file and folder below a folder."""
    return {
        path.relative_to(folder).as_posix(): oct(stat.S_IMODE(path.stat().st_mode))
        for path in folder.rglob("*")
    }


def test_a_store_its_log_and_its_locks_are_private(tmp_path: Path) -> None:
    with asl.open_store(tmp_path / "runs.db", notify=f"jsonl:{tmp_path}/told.jsonl") as store:
        store.run(NOTED, name="one")
        found = modes(tmp_path)
    names = {"runs.db", "runs.db-wal", "runs.db-shm", "runs.db.lock", "told.jsonl"}
    assert names < found.keys()
    assert found.pop("runs.db.checkpoints") == "0o700"
    assert set(found.values()) == {"0o600"}


def test_a_memory_is_private(tmp_path: Path) -> None:
    document = {
        "StartAt": "Keep",
        "States": {
            "Keep": {
                "Type": "Task",
                "Agent": "A",
                "Memory": {"Write": [{"Key": "k", "Value.$": "$"}]},
                "End": True,
            }
        },
    }
    result = asl.run(document, agents={"A": lambda data: 1}, memory=str(tmp_path / "memory.db"))
    assert result.ok, result.cause
    assert set(modes(tmp_path).values()) == {"0o600"}


def test_results_of_a_map_are_private(tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir(0o755)
    document = {
        "StartAt": "Each",
        "States": {
            "Each": {
                "Type": "Map",
                "ItemsPath": "$.items",
                "ItemProcessor": {
                    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                    "StartAt": "P",
                    "States": {"P": {"Type": "Pass", "End": True}},
                },
                "ResultWriter": {
                    "Resource": "arn:aws:states:::s3:putObject",
                    "Parameters": {"Bucket": "b", "Prefix": "out"},
                },
                "End": True,
            }
        },
    }
    result = asl.run(document, {"items": [1]}, buckets={"b": tmp_path / "bucket"})
    assert result.ok, result.cause
    found = modes(tmp_path / "bucket")
    assert {mode for name, mode in found.items() if "." in name} == {"0o600"}
    assert {mode for name, mode in found.items() if "." not in name} == {"0o700"}


def test_the_command_line_writes_private_files(tmp_path: Path) -> None:
    (tmp_path / "d.asl.json").write_text('{"StartAt":"P","States":{"P":{"Type":"Succeed"}}}')
    written = ["--history", "history.json", "--record", "record.yaml", "--store", "a/b/runs.db"]
    for arguments in (["run", "d.asl.json", *written], ["init", "made"]):
        command = [sys.executable, "-m", "asl", *arguments]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    found = modes(tmp_path)
    private = ("history.json", "record.yaml", "a/b/runs.db", "made/judge.agents.yaml")
    assert {found[name] for name in private} == {"0o600"}
    assert {found["a"], found["a/b"]} == {"0o700"}


def test_a_file_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    """Whoever shares a store with a group has said so."""
    path = tmp_path / "runs.db"
    path.touch(0o660)
    path.chmod(0o660)
    with asl.open_store(path) as store:
        store.run({"StartAt": "P", "States": {"P": {"Type": "Succeed"}}})
        assert modes(tmp_path)["runs.db"] == "0o660"


def test_folders_above_a_private_one_keep_their_mode(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(0o755)
    make_private_folder(tmp_path / "there" / "a" / "b")
    assert modes(tmp_path) == {"there": "0o755", "there/a": "0o700", "there/a/b": "0o700"}


def test_a_system_without_posix_locks_gets_one_sentence(tmp_path: Path) -> None:
    """A run without a store works there."""
    (tmp_path / "d.asl.json").write_text('{"StartAt":"P","States":{"P":{"Type":"Succeed"}}}')
    code = (
        "import os, sys; sys.modules['fcntl'] = None; sys.platform = 'other';"
        "del os.register_at_fork, os.uname, os.fork; from asl.cli.main import main; main()"
    )
    said = []
    for more in ([], ["--store", "runs.db"]):
        command = [sys.executable, "-c", code, "run", "d.asl.json", *more]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        said.append((done.returncode, done.stdout, done.stderr))
    assert said[0] == (0, "{}\n", "")
    assert said[1][:2] == (2, "")
    assert said[1][2].startswith("asl: stores need the file locks of POSIX")
    assert said[1][2].count("\n") == 1
