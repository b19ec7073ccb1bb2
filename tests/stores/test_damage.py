"""Whatever happens to the file of a store: a word for it, and nothing acknowledged is lost."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import asl
from asl.executions import ExecutionNotFound, Store
from tests.sql import execute

EACH = {
    "StartAt": "In",
    "States": {"In": {"Type": "Task", "Agent": "Flaky", "End": True}},
}
DOCUMENT = {
    "StartAt": "A",
    "States": {
        "A": {"Type": "Task", "Agent": "Costly", "ResultPath": "$.a", "Next": "Save"},
        "Save": {"Type": "Checkpoint", "Name": "after-a", "Next": "Each"},
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": EACH,
            "ResultPath": "$.each",
            "Next": "B",
        },
        "B": {"Type": "Pass", "End": True},
    },
}
ASKING = {"StartAt": "Ask", "States": {"Ask": {"Type": "Approval", "Prompt": "?", "End": True}}}


def costly(parameters: Any) -> Any:
    return {"v": 1, "_cost": 2}


def flaky(item: Any) -> Any:
    if item == 2:
        raise asl.StateError("Boom")
    return item


LUCK = {"Costly": costly, "Flaky": lambda item: item}


def opened(path: Path, **bindings: Any) -> Store:
    return Store(path, synchronous="OFF", clock=asl.VirtualClock(), **bindings)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with an execution that failed, one that succeeded and one that waits."""
    path = tmp_path_factory.mktemp("whole") / "runs.db"
    with opened(path, agents={"Costly": costly, "Flaky": flaky}) as store:
        store.run(DOCUMENT, {"items": [1, 2], "big": "x" * 70_000}, name="bad")
        store.run(DOCUMENT, {"items": [1, 3]}, name="good")
        store.run(ASKING, {}, name="ask")
    return path


def seen(path: Path) -> dict[str, Any]:
    """Return all that a store tells, and what comes of going on with what is in it."""
    found: dict[str, Any] = {}
    with opened(path, agents=LUCK) as store:
        found["listed"] = [(each.name, each.status) for each in store.executions()]
        for name in ("bad", "good", "ask"):
            result = store.result(name)
            events = [event.to_json() for event in result.events]
            found[name] = (result.status, result.output, result.error, result.visited, events)
        found["saved"] = [each.to_json() for each in store.checkpoints()]
        found["faults"] = list(store.faults())
        if not found["faults"]:
            found["redriven"] = store.redrive("bad").output
            (request,) = store.pending()
            store.answer(request["requestId"], "approve", by="ann")
            found["answered"] = store.resume("ask").status
    return found


@pytest.fixture(scope="module")
def expected(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    copy = tmp_path_factory.mktemp("copy") / "runs.db"
    shutil.copy(whole, copy)
    found = seen(copy)
    assert found["faults"] == []
    assert found["redriven"]["each"] == [1, 2]
    return found


@given(place=st.integers(0, 10**6 - 1), bit=st.integers(0, 7))
@example(place=0, bit=0)
@settings(suppress_health_check=list(HealthCheck))
def test_a_flipped_bit_is_noticed(
    place: int, bit: int, whole: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    """Nobody is told anything wrong: there is an error with a name, or the doctor has one."""
    content = bytearray(whole.read_bytes())
    content[place * len(content) // 10**6] ^= 1 << bit
    for old in tmp_path.iterdir():
        old.unlink()
    path = tmp_path / "runs.db"
    path.write_bytes(content)
    try:
        found = seen(path)
    except asl.AslError:
        return
    assert found["faults"] or found == expected


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_file_is_noticed(part: float, whole: Path, tmp_path: Path) -> None:
    """It says that it is damaged, and what to ask."""
    content = whole.read_bytes()
    path = tmp_path / "runs.db"
    path.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(asl.StoreDamaged, match="asl doctor --store"):
        seen(path)


def test_the_doctor_names_every_value_that_was_changed(whole: Path, tmp_path: Path) -> None:
    """By the execution and the column; also large values, and those that are missing."""
    changes = {
        "UPDATE step SET hash = zeroblob(32) WHERE number = 3": "step 3 of the history was changed",
        "UPDATE checkpoint SET body = CAST('=00000000{}' AS BLOB)": "body of checkpoint",
        "UPDATE request SET body = CAST('=00000000{}' AS BLOB)": "ask: body of request",
        "UPDATE execution SET output = CAST('=00000000{}' AS BLOB)": "output of execution",
        "UPDATE execution SET status = 'FINE'": "the status of an execution was changed",
        "DELETE FROM blob": "a large value is missing",
        "UPDATE blob SET body = CAST('{}' AS BLOB)": "was changed",
        "DELETE FROM execution WHERE name = 'bad'": "belong to no execution",
    }
    for number, (change, fault) in enumerate(changes.items()):
        path = tmp_path / f"{number}.db"
        shutil.copy(whole, path)
        with opened(path) as store:
            execute(store, change)
            store.session.flush()
            assert any(fault in said for said in store.faults()), change


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("UPDATE execution SET started = started + 1", "the execution 'ask' was changed"),
        ("UPDATE execution SET wake = 5", "the execution 'ask' was changed"),
        ("UPDATE execution SET status = 'SUCCEEDED'", "the execution 'bad' was changed"),
        ("UPDATE execution SET name = name || 'x'", "the execution 'askx' was changed"),
        ("UPDATE request SET status = 'answered'", "the request 'arn:"),
        ("UPDATE request SET created = created - 1", "the request 'arn:"),
        ("UPDATE step SET number = 99 WHERE number = 3", "step 3 of the history"),
    ],
)
def test_names_times_and_statuses_have_a_checksum(
    change: str, fault: str, whole: Path, tmp_path: Path
) -> None:
    """What is changed past the program is found, and not taken for what was written."""
    path = tmp_path / "runs.db"
    shutil.copy(whole, path)
    raw = sqlite3.connect(path)
    raw.create_function("guard", -1, lambda *columns: None)
    for table in ("execution", "request"):
        raw.execute(f"DROP TRIGGER {table}_changed")
    raw.execute(change)
    raw.commit()
    raw.close()
    with opened(path) as store:
        faults = list(store.faults())
    assert any(fault in said for said in faults), faults
    if change.startswith("UPDATE execution"):
        with pytest.raises((asl.StoreDamaged, ExecutionNotFound)):
            seen(path)


@pytest.mark.parametrize("lost", [1, 2])
def test_a_history_without_its_end_is_not_gone_on_with(lost: int, tmp_path: Path) -> None:
    """Nobody is called again whose answer stood in it; also where its process has died."""
    world = World()

    def die(parameters: Any, call: Any) -> Any:
        if len(world.answered) == 3:
            raise KeyboardInterrupt
        return world.work(parameters, call)

    with opened(tmp_path / "runs.db", agents={"Work": die}) as store:
        with pytest.raises(KeyboardInterrupt):
            store.run(chain_of(5), {}, name="it")
        execute(store, "DELETE FROM step WHERE number > 4 - ?", lost)
    with opened(tmp_path / "runs.db", agents={"Work": world.work}) as store:
        with pytest.raises(asl.StoreDamaged, match=r"the end of the history is missing: step .*4"):
            store.resume("it")
        with pytest.raises(asl.StoreDamaged, match=r"the end of the history is missing"):
            store.result("it")
        assert any("it: the end of the history" in fault for fault in store.faults())
    assert len(world.answered) == 3


class World:
    """Agents that remember whom they have answered."""

    def __init__(self) -> None:
        self.answered: list[str] = []

    def work(self, parameters: Any, call: Any) -> Any:
        self.answered.append(call.idempotency_key)
        return {"text": "x" * 3000}


def chain_of(length: int) -> dict[str, Any]:
    """A workflow of so many tasks, each of which adds to the data."""
    states: dict[str, Any] = {
        f"S{n}": {"Type": "Task", "Agent": "Work", "ResultPath": f"$.r{n}", "Next": f"S{n + 1}"}
        for n in range(length)
    }
    return {"StartAt": "S0", "States": {**states, f"S{length}": {"Type": "Succeed"}}}


@pytest.mark.parametrize(
    ("trouble", "end", "word"),
    [
        ("PRAGMA max_page_count = 40", "PRAGMA max_page_count = 100000", "the disk is full"),
        ("PRAGMA query_only = ON", "PRAGMA query_only = OFF", "it is read-only"),
    ],
)
def test_full_disk_is_an_error_and_loses_nothing(
    trouble: str, end: str, word: str, tmp_path: Path
) -> None:
    """When there is room again it goes on: what was acknowledged is not done a second time."""
    world = World()

    def work(parameters: Any, call: Any) -> Any:
        if len(world.answered) == 3:
            store.session.connection._file.execute(trouble)
        return world.work(parameters, call)

    with opened(tmp_path / "runs.db", agents={"Work": work}) as store:
        with pytest.raises(asl.StoreError, match=word):
            store.run(chain_of(30), {}, name="it")
        store.session.connection._file.execute(end)
    done = len(world.answered)
    with opened(tmp_path / "runs.db", agents={"Work": world.work}) as store:
        assert store.resume("it").status == "SUCCEEDED"
        assert list(store.faults()) == []
    assert len(set(world.answered)) == 30
    assert len(world.answered) == 30 or len(world.answered) - done <= 30 - done + 1


def test_a_store_without_room_for_its_index_can_be_looked_at(tmp_path: Path) -> None:
    """SQLite calls it an I/O error that there is no room for its index: the disk is full."""
    resource = pytest.importorskip("resource")
    path = tmp_path / "runs.db"
    opened(path).close()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        with opened(path) as store:
            assert list(store.faults()) == []
            with pytest.raises(asl.StoreError, match="the disk is full"):
                store.run({"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with opened(path) as store:
        assert list(store.faults()) == []


def test_a_clock_that_was_set_back_delays_and_breaks_nothing(tmp_path: Path) -> None:
    """A Wait ends when it would have ended; a request can still be answered."""
    states = {
        "Nap": {"Type": "Wait", "Seconds": 600, "Next": "Ask"},
        "Ask": {
            "Type": "Approval",
            "Prompt": "?",
            "Timeout": "1h",
            "Default": "No",
            "Choices": [{"Variable": "$.approval", "StringEquals": "approve", "Next": "Yes"}],
        },
        "Yes": {"Type": "Succeed"},
        "No": {"Type": "Fail"},
    }
    document = {"StartAt": "Nap", "States": states}
    noon = asl.VirtualClock(1_800_000_000)
    with Store(tmp_path / "runs.db", clock=noon) as store:
        store.run(document, {}, name="it")
    earlier = asl.VirtualClock(1_800_000_000 - 86_400)
    with Store(tmp_path / "runs.db", clock=earlier) as store:
        (request,) = store.resume("it").pending
        store.answer(request["requestId"], "approve")
        assert store.resume("it").visited == ["Nap", "Ask", "Yes"]
        assert list(store.faults()) == []


def test_a_document_that_was_changed_in_the_file_is_not_gone_on_with(tmp_path: Path) -> None:
    """Its hash says that it is another one."""
    with opened(tmp_path / "runs.db") as store:
        store.run(ASKING, {}, name="it")
        execute(store, "UPDATE document SET body = CAST('{}' AS BLOB)")
    with opened(tmp_path / "runs.db") as store:
        with pytest.raises(asl.StoreDamaged, match=r"the document .* is missing or was changed"):
            store.resume("it")
        with pytest.raises(asl.ExecutionExists):
            store.run({**ASKING, "Comment": "other"}, {}, name="it")


def test_locked_file_is_an_error_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program writes for too long; when it has ended, the execution goes on."""
    monkeypatch.setattr("asl.stores.sqlite.connection.BUSY", 0.05)
    world = World()
    other = sqlite3.connect(tmp_path / "runs.db", isolation_level=None, check_same_thread=False)

    def work(parameters: Any, call: Any) -> Any:
        if len(world.answered) == 3:
            other.execute("BEGIN IMMEDIATE")
        return world.work(parameters, call)

    with opened(tmp_path / "runs.db", agents={"Work": work}) as store:
        with pytest.raises(asl.StoreError, match="another program has been writing to it"):
            store.run(chain_of(10), {}, name="it")
        other.execute("ROLLBACK")
    other.close()
    with opened(tmp_path / "runs.db", agents={"Work": world.work}) as store:
        assert store.resume("it").status == "SUCCEEDED"
        assert list(store.faults()) == []
    assert len(world.answered) == len(set(world.answered)) == 10


LOOKS: tuple[Callable[[asl.Store], object], ...] = (
    lambda store: list(store.faults()),
    lambda store: store.checkpoints(),
    lambda store: store.pending(),
    lambda store: store.pending_callbacks(),
    lambda store: store.executions(),
    lambda store: store.result("e"),
    lambda store: list(store.events("e")),
    lambda store: store.resume("e"),
)
"""What can be asked of a store."""


VALUES = [None, "text", b"bytes"]


@pytest.mark.parametrize("value", VALUES)
def test_a_column_of_another_type_is_damage(
    tmp_path: Path, value: Any, pytestconfig: pytest.Config
) -> None:
    """Whichever it is: a bit of a row makes a number, a text or nothing of it.

    Without `--full` each column takes one of the values.
    """
    path = tmp_path / "runs.db"
    document = {
        "StartAt": "Save",
        "States": {
            "Save": {"Type": "Checkpoint", "Name": "one", "Next": "Work"},
            "Work": {"Type": "Task", "Agent": "Work", "ResultPath": "$.work", "Next": "Ask"},
            "Ask": {"Type": "Approval", "Prompt": "?", "End": True},
        },
    }
    agents = {"Work": lambda data: {"_tokens": 1, "large": "x" * 100_000}}

    def opened(path: Path) -> asl.Store:
        return asl.open_store(path, agents=agents, synchronous="OFF")

    with opened(path) as store:
        assert store.run(document, {}, name="e").pending
    columns = _columns(path)
    if not pytestconfig.getoption("--full"):
        columns = columns[VALUES.index(value) :: len(VALUES)]
    for table, column in columns:
        other = tmp_path / "other.db"
        shutil.copy(path, other)
        _put(other, table, column, value)
        with suppress(asl.AslError), opened(other) as store:
            for look in LOOKS:
                with suppress(asl.AslError):
                    look(store)


def _columns(path: Path) -> list[tuple[str, str]]:
    query = (
        "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c "
        "WHERE m.type = 'table'"
    )
    with closing(sqlite3.connect(path)) as file:
        return file.execute(query).fetchall()


def _put(path: Path, table: str, column: str, value: Any) -> None:
    """Put a value into a column, past all that watches over it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        triggers = file.execute(query).fetchall()
        for name, _ in triggers:
            file.execute(f"DROP TRIGGER {name}")
        file.execute("PRAGMA writable_schema = ON")
        lax = "UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table'"
        file.execute(lax)
        file.execute("PRAGMA writable_schema = RESET")
        with suppress(sqlite3.IntegrityError):  # a key is unique
            file.execute(f"UPDATE {table} SET {column} = ?", (value,))
        for _, sql in triggers:
            file.execute(sql)


@pytest.mark.parametrize(
    ("column", "value"), [("status", "BROKEN"), ("started", "noon"), ("redrives", "x")]
)
def test_one_damaged_row_hides_no_others(column: str, value: Any, tmp_path: Path) -> None:
    """It is listed as damaged; all else works."""
    path = tmp_path / "runs.db"
    done = {"StartAt": "P", "States": {"P": {"Type": "Succeed"}}}
    with opened(path) as store:
        for name in ("one", "two", "three"):
            store.run(done, {}, name=name)
    with closing(sqlite3.connect(path)) as file:
        file.execute("DROP TRIGGER execution_changed")
        file.execute(f"UPDATE execution SET {column} = ? WHERE name = 'two'", (value,))
        file.commit()
    with opened(path) as store:
        listed = {each.name: each.status for each in store.executions()}
        assert listed == {"one": "SUCCEEDED", "two": "DAMAGED", "three": "SUCCEEDED"}
        assert store.result("one").ok
        assert store.run(done, {}, name="four").ok
        assert store.due() == store.interrupted() == []
        with pytest.raises(asl.StoreDamaged):
            store.get("two")
        assert any("two" in fault for fault in store.faults())
