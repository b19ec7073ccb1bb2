"""Export and import of executions."""

import json
import os
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import asl
from asl.cli.main import cli
from asl.core.values import compact
from asl.executions import Store

LARGE = "x" * 70_000
PART = {"StartAt": "P", "States": {"P": {"Type": "Task", "Agent": "Work", "End": True}}}
DOCUMENT = {
    "StartAt": "Save",
    "States": {
        "Save": {"Type": "Checkpoint", "Name": "s", "Next": "Child"},
        "Child": {"Type": "Workflow", "WorkflowId": "Part", "ResultPath": "$.part", "Next": "Ask"},
        "Ask": {"Type": "Approval", "Prompt": "?", "End": True},
    },
}


def opened(path: Path) -> Store:
    return Store(
        path,
        synchronous="OFF",
        clock=asl.VirtualClock(),
        agents={"Work": lambda _: {"text": LARGE}},
        workflows={"Part": PART},
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with opened(tmp_path / "runs.db") as store:
        for name in ("one", "two", "three"):
            store.run(DOCUMENT, {"big": LARGE, "of": name}, name=name)
    return tmp_path / "runs.db"


def test_what_was_exported_goes_on_in_another_store(path: Path) -> None:
    """With its history, child, checkpoint and open request; the store stays whole."""
    with opened(path) as store, opened(path.with_name("new.db")) as new:
        new.start(DOCUMENT, {}, name="own")
        lines = [json.loads(json.dumps(line)) for line in store.export()]
        assert [new.import_execution(line) for line in lines] == ["one", "two", "three"]
        assert list(new.faults()) == []
        for name in ("one", "two", "three"):
            before, after = store.result(name), new.result(name)
            assert before.to_json() == after.to_json()
            assert [e.to_json() for e in before.events] == [e.to_json() for e in after.events]
        (request,) = new.pending("two")
        new.answer(request["requestId"], "approve", by="ann")
        assert new.resume("two").ok
        assert list(new.faults()) == []
        (line,) = store.export(["two"])
        with pytest.raises(asl.StoreError, match="has an execution 'two' already"):
            new.import_execution(line)


def test_an_execution_takes_its_former_documents_along(path: Path) -> None:
    """One that was redriven by another document is read by both; data may look like a reference."""
    fails = {"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Fail"}}}
    right = {**fails, "States": {**fails["States"], "B": {"Type": "Succeed"}}}  # type: ignore[dict-item]
    with opened(path) as store, opened(path.with_name("new.db")) as new:
        store.run(fails, {"large": "0" * 64, "document": "1" * 64}, name="it")
        before = store.redrive("it", document=right)
        (line,) = store.export(["it"])
        new.import_execution(line)
        after = new.result("it")
        assert before.ok
        assert [e.to_json() for e in before.events] == [e.to_json() for e in after.events]
        assert list(new.faults()) == []


def test_an_import_that_was_changed_changes_nothing(path: Path) -> None:
    with opened(path) as store, opened(path.with_name("new.db")) as new:
        (line,) = store.export(["one"])
        line["executions"][0]["execution"][0]["started"] += 1
        for wrong in (line, {}, {"sha256": "0"}, [], None, {**line, "sha256": None}):
            with pytest.raises(asl.StoreError):
                new.import_execution(wrong)
        assert new.executions() == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE execution SET status = 'FINE' WHERE name = 'two'",
        "UPDATE execution SET input = NULL WHERE name = 'two'",
        "UPDATE step SET body = x'5b5d' WHERE execution = "
        "(SELECT number FROM execution WHERE name = 'two') AND number = 2",
        "UPDATE request SET body = x'3d' WHERE key LIKE '/Ask%' AND execution = "
        "(SELECT number FROM execution WHERE name = 'two')",
        "UPDATE checkpoint SET name = 'x' WHERE execution = "
        "(SELECT number FROM execution WHERE name = 'two')",
        "UPDATE execution SET output = NULL WHERE parent = "
        "(SELECT number FROM execution WHERE name = 'two')",
    ],
)
def test_export_leaves_damaged_executions_out(damage: str, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            file.execute(f"DROP TRIGGER {name}")
        file.execute("PRAGMA writable_schema = ON")
        lax = "UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table'"
        file.execute(lax)
        file.execute("PRAGMA writable_schema = RESET")
        assert file.execute(damage).rowcount == 1
    runner: Any = CliRunner()
    done = runner.invoke(cli, ["export", "--store", str(path)])
    assert done.exit_code == 1
    assert "two: " in done.stderr
    path.with_name("runs.jsonl").write_text(done.stdout)
    new = str(path.with_name("new.db"))
    again = runner.invoke(cli, ["import", str(path.with_name("runs.jsonl")), "--store", new])
    assert (again.exit_code, again.stderr) == (0, "asl: 2 executions imported\n")
    with opened(Path(new)) as store:
        assert [each.name for each in store.executions()] == ["three", "one"]
        assert list(store.faults()) == []


def signed(line: Any) -> Any:
    """Return a line with the digest of its content, as who forges one would."""
    content = {key: value for key, value in line.items() if key != "sha256"}
    return {**content, "sha256": sha256(compact(content).encode()).hexdigest()}


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("execution", "parent", -1),
        ("execution", "parent", "x"),
        ("execution", "number", 2**70),
        ("execution", "number", True),
        ("execution", "number", 2**62),
        ("execution", "number", 0),
        ("execution", "name", "a\x1b[31m"),
        ("execution", "status", "FINE"),
        ("execution", "document", "0" * 64),
        ("execution", "name", None),
        ("execution", "name", {"base64": "AAAA"}),
        ("execution", "started", "yesterday"),
        ("execution", "started", 1e300),
        ("execution", "started", -1),
        ("execution", "redriven", 1e300),
        ("execution", "input", "text"),
        ("execution", "chain", {"base64": "!!"}),
        ("request", "created", "x"),
        ("request", "created", {"base64": "AAAA"}),
        ("request", "kind", {"base64": "AAAA"}),
        ("request", "notified", 1.5),
        ("checkpoint", "body", []),
    ],
)
def test_a_forged_row_is_refused(table: str, column: str, value: Any, path: Path) -> None:
    """A digest proves nothing of who has made a line; what no store writes is not imported."""
    with opened(path) as store, opened(path.with_name("new.db")) as new:
        (line,) = store.export(["one"])
        line["executions"][0][table][0][column] = value
        with pytest.raises(asl.StoreError):
            new.import_execution(signed(line))
        assert new.executions() == []
        assert list(new.faults()) == []


def test_a_line_that_is_nested_too_deep_is_refused(path: Path) -> None:
    deep: Any = []
    for _ in range(50_000):
        deep = [deep]
    with opened(path) as store, pytest.raises(asl.StoreError, match="nested"):
        store.import_execution({"executions": deep})
    path.with_name("runs.jsonl").write_text("[" * 100_000)
    words = ["import", str(path.with_name("runs.jsonl")), "--store", str(path)]
    done = CliRunner().invoke(cli, words)
    assert (done.exit_code, done.stderr.count("nested too deep")) == (2, 1)


def test_import_names_the_line_that_it_cannot_read(path: Path) -> None:
    path.with_name("runs.jsonl").write_text("{}\nno\n")
    runner: Any = CliRunner()
    words = ["import", str(path.with_name("runs.jsonl")), "--store", str(path)]
    done = runner.invoke(cli, words)
    assert done.exit_code == 2
    assert "runs.jsonl:1: " in done.stderr


@pytest.mark.parametrize("command", ["ls", "doctor", "export", "import"])
def test_a_store_is_no_device_and_no_pipe(command: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "runs.jsonl").write_text("")
    more = [str(tmp_path / "runs.jsonl")] if command == "import" else []
    for place in (tmp_path / "pipe", "/dev/zero"):
        done = CliRunner().invoke(cli, [command, *more, "--store", str(place)])
        assert done.exit_code == 2
        assert f"the path '{place}' cannot be a store: it is a folder" in done.stderr
