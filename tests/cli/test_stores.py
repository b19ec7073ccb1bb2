"""The commands that look at a store."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import asl as front_door
from asl.stores.sqlite.connection import SqliteConnection
from tests.sql import execute

from .conftest import FAIL, PASS, Asl


def made(folder: Path) -> None:
    with front_door.open_store(folder / "runs.db", clock="virtual") as store:
        store.run(PASS, {"n": 1}, name="good")
        store.run(FAIL, {}, name="bad")


def test_ls_lists_executions(asl: Asl, folder: Path) -> None:
    """The newest first, with the error of a failed one; --status picks, --json is for programs."""
    made(folder)
    lines = asl("ls", "--store", "runs.db").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["bad", "FAILED"], ["good", "SUCCEEDED"]]
    assert lines[0].endswith("Refused")
    one = asl("ls", "--store", "runs.db", "--status", "succeeded", "--json").stdout
    assert json.loads(one)["name"] == "good"


def test_show_prints_the_outcome_and_the_history(asl: Asl, folder: Path) -> None:
    """What it came to, and every event with the time since its start."""
    made(folder)
    done = asl("show", "bad", "--store", "runs.db")
    assert "error     Refused: why" in done.stdout
    assert "0.000 s  FailStateEntered  No" in done.stdout
    whole = json.loads(asl("show", "good", "--store", "runs.db", "--json").stdout)
    assert (whole["name"], whole["output"]) == ("good", {"n": 1})
    events = asl("show", "good", "--store", "runs.db", "--events").stdout.splitlines()
    assert json.loads(events[0])["type"] == "ExecutionStarted"


def test_show_prints_progress(asl: Asl, folder: Path) -> None:
    """As a whole, and in the state at which it stands."""
    works = {"reports": [{"progress": 40, "message": "page 2"}], "raise": {"Error": "Stuck"}}
    document = {
        "Progress": {"WeightedProgress": {"A": 1, "B": 3}},
        "StartAt": "A",
        "States": {
            "A": {"Type": "Wait", "Seconds": 0, "Next": "B"},
            "B": {"Type": "Task", "Agent": "W", "Progress": {}, "End": True},
        },
    }
    with front_door.open_store(folder / "runs.db", agents={"W": works}) as store:
        store.run(document, {}, name="far")
    lines = asl("show", "far", "--store", "runs.db").stdout.splitlines()
    assert "progress  25 %" in lines
    assert 'state     B, at 40 %: "page 2"' in lines


def test_unknown_execution_has_a_suggestion(asl: Asl, folder: Path) -> None:
    """The nearest name is suggested."""
    made(folder)
    done = asl("show", "goood", "--store", "runs.db")
    assert done.exit_code == 2
    assert "did you mean 'good'?" in done.stderr


def test_missing_store_exits_with_2(asl: Asl, folder: Path) -> None:
    """It is not created."""
    assert asl("ls", "--store", "none.db").exit_code == 2
    assert not (folder / "none.db").exists()


@pytest.mark.parametrize("variable", [None, "mine.db"])
def test_default_store_of_all_commands(
    variable: str | None, asl: Asl, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of the variable, or the one of the user."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    monkeypatch.delenv("ASL_STORE", raising=False)
    if variable is not None:
        monkeypatch.setenv("ASL_STORE", variable)
    assert asl("run", "pass.asl.json", "--store", "--name", "it").exit_code == 0
    assert asl("ls").stdout.startswith("it  SUCCEEDED")
    assert (folder / (variable or "state/asl/runs.db")).exists()


def test_store_option_refuses_a_folder(asl: Asl, folder: Path) -> None:
    """And no near name is suggested for one that is to be read."""
    done = asl("ls", "--store", folder)
    assert (done.exit_code, done.stderr) == (
        2,
        f"asl: {folder} is a folder: a store must be a file\n",
    )
    (folder / "sub").mkdir()
    (folder / "sut").write_text("{}")
    assert asl("graph", "sub").stderr == "asl: cannot read 'sub': is a directory\n"


def test_stop_of_an_ended_execution_exits_with_2(asl: Asl, folder: Path) -> None:
    """The message says what it came to."""
    made(folder)
    done = asl("stop", "good", "--store", "runs.db")
    assert done.exit_code == 2
    assert "has ended already: SUCCEEDED" in done.stderr


def test_doctor_verifies_a_store(asl: Asl, folder: Path) -> None:
    """And one whose history was changed is not."""
    made(folder)
    assert asl("doctor", "--store", "runs.db").exit_code == 0
    with front_door.open_store(folder / "runs.db") as store:
        execute(store, "UPDATE step SET body = CAST('[]' AS BLOB)")
    done = asl("doctor", "--store", "runs.db")
    assert done.exit_code == 1
    assert "good: step 1 of the history was changed" in done.stdout


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (lambda whole: whole[: len(whole) // 2], "the file: it was truncated"),
        (lambda whole: b"hello", "it is no SQLite database"),
        (lambda whole: whole[:100] + b"?" + whole[101:], "image is malformed"),
    ],
)
def test_doctor_reports_a_store_that_cannot_be_opened(
    content: Any, says: str, asl: Asl, folder: Path
) -> None:
    """The other commands send to it, so it has more to say."""
    made(folder)
    whole = (folder / "runs.db").read_bytes()
    (folder / "runs.db").write_bytes(content(whole))
    assert "'asl doctor --store runs.db' says more" in asl("ls", "--store", "runs.db").stderr
    done = asl("doctor", "--store", "runs.db")
    assert done.exit_code == 1
    assert says in done.stdout
    assert "says more" not in done.output


@pytest.mark.parametrize("command", [("ls",), ("show", "good"), ("doctor",)])
def test_empty_file_is_not_a_store(command: tuple[str, ...], asl: Asl, folder: Path) -> None:
    """Nothing is written to it."""
    path = folder / "runs.db"
    path.write_bytes(b"")
    done = asl(*command, "--store", "runs.db")
    assert done.exit_code == 2
    assert "runs.db is empty: if it was a store, its content is lost" in done.stderr
    assert path.read_bytes() == b""


def test_ls_of_an_empty_store(asl: Asl, folder: Path) -> None:
    """On standard error: a program reads nothing."""
    made(folder)
    done = asl("ls", "--store", "runs.db", "--status", "paused")
    assert (done.stdout, done.stderr) == ("", "asl: there are no executions with status PAUSED\n")


def test_logs_truncate_details(asl: Asl, folder: Path) -> None:
    """--json has all of them."""
    with front_door.open_store(folder / "runs.db", clock="virtual") as store:
        store.run(PASS, {"n": "x" * 400}, name="long")
    lines = asl("logs", "long", "--store", "runs.db").stdout.splitlines()
    assert lines[0].endswith("xxx… (418 characters)")
    first = asl("logs", "long", "--store", "runs.db", "--json").stdout.splitlines()[0]
    assert json.loads(first)["details"]["input"] == {"n": "x" * 400}


def test_interrupted_run_prints_how_to_resume(asl: Asl, folder: Path) -> None:
    """Ctrl-C ends the process, and not the execution."""
    (folder / "stops.py").write_text("def now(parameters):\n    raise KeyboardInterrupt\n")
    words = ("run", "hello.asl.json", "-i", '{"name": "Ann"}', "--store", "runs.db", "--name", "it")
    done = asl(*words, "--agent", "Greeter=stops:now")
    assert done.exit_code == 5
    assert "'asl resume --due --agent Greeter=stops:now --store runs.db' resumes the" in done.stderr
    for look in (("ls",), ("show", "it")):
        shown = asl(*look, "--store", "runs.db").stdout
        assert "its process has ended" in shown
        assert "'asl resume it --agent Greeter=stops:now --store runs.db'" in shown
    words = ("resume", "--due", "--store", "runs.db", "--agents", "agents.yaml")
    assert asl(*words).stdout == "it  SUCCEEDED\n"
    assert "its process has ended" not in asl("ls", "--store", "runs.db").stdout


@pytest.mark.parametrize("fault", ["database or disk is full", "disk I/O error"])
def test_run_on_a_failing_store_prints_how_to_resume(
    fault: str, asl: Asl, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No recorded result is lost."""
    commits: list[object] = []
    commit = SqliteConnection._change

    def full(self: SqliteConnection, writes: Any) -> None:
        commits.append(writes)
        if len(commits) > 1:
            raise sqlite3.OperationalError(fault)
        commit(self, writes)

    words = ("run", "hello.asl.json", "-i", '{"name": "Ann"}', "--store", "runs.db", "--name", "it")
    with monkeypatch.context() as broken:
        broken.setattr(SqliteConnection, "_change", full)
        done = asl(*words, "--agents", "agents.yaml")
    assert done.exit_code == 2
    assert "nothing more is recorded until" in done.stderr
    assert "'asl resume --due --agents agents.yaml --store runs.db' resumes the" in done.stderr
    words = ("resume", "--due", "--store", "runs.db", "--agents", "agents.yaml")
    assert asl(*words).stdout == "it  SUCCEEDED\n"


def test_failed_run_prints_how_to_redrive(asl: Asl, folder: Path) -> None:
    """Where it is kept; also for one without a name of its own."""
    done = asl("run", "fail.asl.json", "--store", "runs.db", "--name", "it")
    assert "hint: 'asl redrive it --store runs.db' continues from the failed state" in done.stderr
    assert "redrive" in asl("resume", "it", "--store", "runs.db").stderr
    assert "redrive" not in asl("run", "fail.asl.json").stderr


def test_costs(asl: Asl, folder: Path) -> None:
    """What stands in the store is all that the run itself could tell."""
    document = {
        "StartAt": "A",
        "Budget": {"MaxCost": 5, "Currency": "EUR"},
        "States": {
            "A": {
                "Type": "Task",
                "Agent": "X",
                "Budget": {"Category": "c", "Tags": ["t"], "Attribution": {"team": "red"}},
                "End": True,
            }
        },
    }
    agents = {"X": {"return": {"_cost": 0.5, "_tokens": 7, "model": "m"}}}
    with front_door.open_store(folder / "runs.db", agents=agents, clock="virtual") as store:
        usage = store.run(document, {}, name="one").usage
    report = json.loads(asl("costs", "one", "--store", "runs.db", "--json").stdout)
    assert report.pop("total") == usage.pop("cost")
    assert report == {**usage, "byCategory": report["byCategory"]}
    assert report.keys() >= {"tokens", "byState", "byCategory", "byModel"}
    lines = asl("costs", "one", "--store", "runs.db").stdout.splitlines()
    rows = ["total", "state A", "category c", "model m", "tag t", "team red"]
    assert [line.split("0.5")[0].split() for line in lines] == [row.split() for row in rows]
    assert lines[0].endswith("0.5000 EUR          7 tokens")
