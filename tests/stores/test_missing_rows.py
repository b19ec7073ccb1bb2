"""Rows that are missing: the doctor names what they belonged to."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.executions import Store

TOKEN = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"
INNER = {
    "StartAt": "Ask",
    "States": {
        "Ask": {
            "Type": "Task",
            "Resource": TOKEN,
            "Parameters": {"T.$": "$$.Task.Token"},
            "End": True,
        }
    },
}
WAITS = {"StartAt": "M", "States": {"M": {"Type": "Map", "ItemProcessor": INNER, "End": True}}}
SPENDS = {
    "StartAt": "A",
    "Budget": {"MaxCostPerHour": 1, "MaxCostPerDay": 2, "Pool": "p"},
    "States": {"A": {"Type": "Task", "Agent": "A", "End": True}},
}


def opened(path: Path) -> Store:
    return asl.open_store(
        path,
        clock="virtual",
        agents={"A": lambda parameters: {"_cost": 0.1}},
        pools={"p": 5},
        resources={TOKEN: lambda parameters: {}},
    )


def edited(path: Path, statement: str, *values: Any) -> list[str]:
    """Edit a store past all that guards it; return what the doctor finds."""
    with closing(sqlite3.connect(path)) as file:
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            file.execute(f"DROP TRIGGER {name}")
        file.execute(statement, values)
        file.commit()
    with opened(path) as store:
        return [*store.faults()]


@pytest.mark.parametrize("is_answered", [True, False])
def test_request_by_task_token(tmp_path: Path, is_answered: bool) -> None:
    """One of two, so that the execution still waits for the other."""
    path = tmp_path / "s.db"
    with opened(path) as store:
        store.run(WAITS, [1, 2], name="it")
        token = store.pending_callbacks()[0]["taskToken"]
        if is_answered:
            store.tokens.send_task_success(token, {})
        assert [*store.faults()] == []
    found = edited(path, "DELETE FROM request WHERE id = ?", token)
    assert found == ["it: the request by task token of /M@0.0[0] is missing"]


def test_tasks_that_have_ended_need_no_request(tmp_path: Path) -> None:
    """Also when the Map around them has failed by one of them, or goes on."""
    with opened(tmp_path / "s.db") as store:
        store.run(WAITS, [1, 2], name="it")
        first, second = (each["taskToken"] for each in store.pending_callbacks())
        store.tokens.send_task_success(first, {})
        assert store.resume("it").status == "PAUSED"
        assert [*store.faults()] == []
        store.tokens.send_task_failure(second, "Bad", "on purpose")
        assert store.resume("it").status == "FAILED"
        assert [*store.faults()] == []


@pytest.mark.parametrize("budget", ["MaxCostPerHour", "MaxCostPerDay", "Pool"])
def test_shared_budget(tmp_path: Path, budget: str) -> None:
    """A row that is missing, and one that cannot be read, which hides no other fault."""
    path = tmp_path / "s.db"
    with opened(path) as store:
        store.run(SPENDS, {}, name="it")
        assert [*store.faults()] == []
    found = edited(path, "UPDATE budget SET body = x'00' WHERE name LIKE ?", f"{budget}%")
    assert len(found) == 2
    assert all(budget in each and "changed" in each for each in found)
    (found,) = edited(path, "DELETE FROM budget WHERE name LIKE ?", f"{budget}%")
    assert found.startswith("it: what was spent from ")
    assert found.endswith(" is missing")
