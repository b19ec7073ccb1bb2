"""The commands that look at a store."""

import json
from pathlib import Path

import asl as front_door

from .conftest import FAIL, PASS, Asl


def made(folder: Path) -> None:
    with front_door.open_store(folder / "runs.db", clock="virtual") as store:
        store.start(PASS, {"n": 1}, name="good")
        store.start(FAIL, {}, name="bad")


def test_executions_are_listed(asl: Asl, folder: Path) -> None:
    """The newest first, with the error of a failed one; --status picks, --json is for programs."""
    made(folder)
    lines = asl("ls", "--store", "runs.db").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["bad", "FAILED"], ["good", "SUCCEEDED"]]
    assert lines[0].endswith("Refused")
    one = asl("ls", "--store", "runs.db", "--status", "succeeded", "--json").stdout
    assert json.loads(one)["name"] == "good"


def test_an_execution_is_shown(asl: Asl, folder: Path) -> None:
    """What it came to, and every event with the time since its start."""
    made(folder)
    done = asl("show", "bad", "--store", "runs.db")
    assert "error     Refused: why" in done.stdout
    assert "0.000 s  FailStateEntered  No" in done.stdout
    whole = json.loads(asl("show", "good", "--store", "runs.db", "--json").stdout)
    assert (whole["name"], whole["output"]) == ("good", {"n": 1})
    events = asl("show", "good", "--store", "runs.db", "--events").stdout.splitlines()
    assert json.loads(events[0])["type"] == "ExecutionStarted"


def test_a_mistyped_name_gets_a_hint(asl: Asl, folder: Path) -> None:
    """The nearest name is suggested."""
    made(folder)
    done = asl("show", "goood", "--store", "runs.db")
    assert done.exit_code == 2
    assert "did you mean 'good'?" in done.stderr


def test_a_store_that_is_not_there_is_not_made(asl: Asl, folder: Path) -> None:
    """Looking at nothing is wrong usage."""
    assert asl("ls", "--store", "none.db").exit_code == 2
    assert not (folder / "none.db").exists()


def test_what_has_ended_is_not_stopped(asl: Asl, folder: Path) -> None:
    """The message says what it came to."""
    made(folder)
    done = asl("stop", "good", "--store", "runs.db")
    assert done.exit_code == 2
    assert "has ended already: SUCCEEDED" in done.stderr


def test_a_whole_store_is_said_to_be_whole(asl: Asl, folder: Path) -> None:
    """And one whose history was changed is not."""
    made(folder)
    assert asl("doctor", "--store", "runs.db").exit_code == 0
    with front_door.open_store(folder / "runs.db") as store:
        store.file.write("UPDATE record SET path = 'x'")
    done = asl("doctor", "--store", "runs.db")
    assert done.exit_code == 1
    assert "good: record 1 of the history was changed" in done.stdout


def test_costs_are_reported(asl: Asl, folder: Path) -> None:
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
        usage = store.start(document, {}, name="one").usage
    assert json.loads(asl("costs", "one", "--store", "runs.db", "--json").stdout) == usage
    lines = asl("costs", "one", "--store", "runs.db").stdout.splitlines()
    rows = ["in all", "state A", "category c", "model m", "tag t", "team red"]
    assert [line.split("0.5")[0].split() for line in lines] == [row.split() for row in rows]
    assert lines[0].endswith("0.5000 EUR          7 tokens")
