"""Every single edit of a small store is found: by the doctor, or by whoever reads the row."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import asl
from asl.executions import Store
from asl.stores.audit import AuditEntry, add_entry
from asl.stores.resources import Resource, put_resource

LARGE = "x" * 66_000
WORK = {
    "Budget": {"Pool": "team", "MaxCost": "$5.00"},
    "StartAt": "Large",
    "States": {
        "Large": {"Type": "Task", "Agent": "Large", "ResultPath": "$.large", "Next": "Save"},
        "Save": {"Type": "Checkpoint", "Name": "first", "Next": "Again"},
        "Again": {"Type": "Checkpoint", "Name": "second", "Next": "Child"},
        "Child": {
            "Type": "Workflow",
            "WorkflowId": "Child",
            "ResultPath": "$.child",
            "Next": "Ask",
        },
        "Ask": {
            "Type": "Approval",
            "Prompt": "Pay?",
            "Approvers": {"Users": ["ann", "bob"]},
            "RequiredApprovals": 2,
            "End": True,
        },
    },
}
CHILD = {"StartAt": "P", "States": {"P": {"Type": "Task", "Agent": "Small", "End": True}}}
TOKEN = {
    "StartAt": "T",
    "States": {
        "T": {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
            "Parameters": {"QueueUrl": "q", "MessageBody": {"token.$": "$$.Task.Token"}},
            "End": True,
        }
    },
}
TABLES = (
    *("execution", "document", "step", "head", "blob", "request", "checkpoint", "budget"),
    *("resource", "audit"),
)
ROWS = 4
"""Rows of each table that are edited."""
PASSING = ("worker", "claim", "live")
"""The tables that say what workers are doing, and nothing of what was done."""


def opened(path: Path) -> Store:
    return Store(
        path,
        synchronous="OFF",
        clock=asl.VirtualClock(),
        agents={
            "Large": lambda _: {"text": LARGE, "_cost": 1, "_tokens": 3},
            "Small": lambda _: {"n": 1, "_cost": 1},
        },
        workflows={"Child": CHILD},
        pools={"team": "$100.00", "other": "$50.00"},
        resources={"arn:aws:states:::sqs:sendMessage": lambda _: {}},
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two executions that wait for people, their children, and one with a token."""
    path = tmp_path_factory.mktemp("whole") / "runs.db"
    with opened(path) as store:
        store.run(WORK, {"order": 1}, name="one")
        store.run(WORK | {"Comment": "other"}, {"order": 2}, name="two")
        other = WORK | {"Budget": {"Pool": "other", "MaxCost": "$5.00"}}
        store.run(other, {"order": 3, "text": LARGE + "y"}, name="three")
        store.run(TOKEN, {}, name="token")
        for number in range(2):
            arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:m{number}"
            machine = Resource(arn, "stateMachine", arn[:38], number, {"name": f"m{number}"})
            put_resource(store.session, machine)
            add_entry(store.session, AuditEntry(number, "ann", "token", "stop", arn, {"n": number}))
        for request in store.pending():
            store.answer(request["requestId"], "approve", by="ann")
        assert list(store.faults()) == []
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA journal_mode = DELETE")
    return path


class Edit(NamedTuple):
    """One change of one row, and what undoes it."""

    statement: str
    values: tuple[Any, ...]
    table: str
    row: tuple[Any, ...]


@pytest.fixture(scope="module")
def unguarded(whole: Path) -> Path:
    """The same store for whoever edits it past all that watches over it."""
    with closing(sqlite3.connect(whole, isolation_level=None)) as file:
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            file.execute(f"DROP TRIGGER {name}")
        file.execute("PRAGMA writable_schema = ON")
        lax = "UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table'"
        file.execute(lax)
        file.execute("PRAGMA writable_schema = RESET")
    return whole


def tables(file: sqlite3.Connection) -> list[str]:
    found = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [name for (name,) in found if not name.startswith("sqlite_")]


def edits(file: sqlite3.Connection, table: str) -> Iterator[Edit]:
    """Yield rows deleted; columns set NULL, set to another row's value, swapped with the next."""
    info = file.execute(f"PRAGMA table_info({table})").fetchall()
    columns, keys = [each[1] for each in info], [each[1] for each in info if each[5]]
    where = " AND ".join(f"{key} = ?" for key in keys)
    rows = file.execute(f"SELECT * FROM {table} LIMIT {ROWS}").fetchall()
    for index, row in enumerate(rows):
        now = dict(zip(columns, row, strict=True))
        other = dict(zip(columns, rows[index - 1], strict=True))
        key = tuple(now[each] for each in keys)
        if table != "resource":  # which is deleted without a trace
            yield Edit(f"DELETE FROM {table} WHERE {where}", key, table, row)
        for column, following in zip(columns, [*columns[1:], columns[0]], strict=True):
            one = f"UPDATE {table} SET {column} = ? WHERE {where}"
            two = f"UPDATE {table} SET {column} = ?, {following} = ? WHERE {where}"
            if now[column] is not None:
                yield Edit(one, (None, *key), table, row)
            if now[column] != other[column]:
                yield Edit(one, (other[column], *key), table, row)
            if now[column] != now[following]:
                yield Edit(two, (now[following], now[column], *key), table, row)


def is_found(store: Store, file: sqlite3.Connection, edit: Edit) -> bool | None:
    """Whether the doctor finds an edit, which is undone then; None if SQLite refuses it."""
    before = set(file.execute(f"SELECT * FROM {edit.table}"))
    try:
        file.execute(edit.statement, edit.values)
    except sqlite3.Error:  # a key is unique, or of one type
        return None
    found = bool(list(store.faults()))
    for row in set(file.execute(f"SELECT * FROM {edit.table}")) - before:
        names = [each[1] for each in file.execute(f"PRAGMA table_info({edit.table})")]
        same = " AND ".join(f"{name} IS ?" for name in names)
        file.execute(f"DELETE FROM {edit.table} WHERE {same}", row)
    marks = ", ".join("?" for _ in edit.row)
    file.execute(f"INSERT OR REPLACE INTO {edit.table} VALUES ({marks})", edit.row)
    return found


@pytest.mark.parametrize("table", TABLES)
def test_every_single_edit_of_a_row_is_found(table: str, unguarded: Path) -> None:
    """A value that is set NULL, moved or deleted, whichever it is."""
    with opened(unguarded) as store, closing(sqlite3.connect(unguarded)) as file:
        file.isolation_level = None
        assert sorted(tables(file)) == sorted((*TABLES, *PASSING))
        found = {edit: is_found(store, file, edit) for edit in [*edits(file, table)]}
        assert list(store.faults()) == []
    assert [edit for edit, seen in found.items() if seen is False] == []
    assert any(found.values())
