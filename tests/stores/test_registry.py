"""Backends of stores: each gives the same rows for the same statements, and none is built in."""

import re
import threading
from importlib.metadata import EntryPoint
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asl
from asl.stores import registry
from asl.stores.backend import StoreBackend
from asl.stores.errors import StoreContradicted
from asl.stores.memory import MemoryBackend
from asl.stores.sqlite import SqliteBackend
from asl.stores.statements import (
    APPEND,
    PARAMETER,
    Delete,
    Insert,
    Select,
    Update,
    above,
    at_most,
    begins_with,
    below,
    between,
    contains,
    is_set,
    none_of,
    one_of,
)
from asl.stores.tables import CLAIM, EXECUTION, HEAD, STEP, WORKER
from tests.stores.conftest import Place

PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}

_ADD = Insert(CLAIM, ("execution", "owner", "timer"))
_KEEP = Insert(CLAIM, ("execution", "owner", "timer"), "keep")
_PUT = Insert(CLAIM, ("execution", "owner", "timer"), "update", ("owner",))
_PUT_FREE = Insert(CLAIM, ("execution", "owner", "timer"), "update", ("timer",), {"owner": None})
_TIME = Update(CLAIM, {"timer": PARAMETER}, {"owner": PARAMETER})
_FEW = {"execution": one_of(), "owner": one_of("a", "b")}
_NUMBERS = st.integers(0, 5)
_NAMES = st.none() | st.sampled_from(["a", "ab", "b"])
_TIMES = st.none() | st.sampled_from([0.0, 1.5, 7])
_ROWS = st.tuples(_NUMBERS, _NAMES, _TIMES)
CHANGES = st.one_of(
    st.tuples(st.sampled_from([_ADD, _KEEP, _PUT, _PUT_FREE]), _ROWS),
    st.tuples(
        st.just(Update(CLAIM, {"timer": PARAMETER}, {"owner": PARAMETER})),
        st.tuples(_TIMES, _NAMES),
    ),
    st.tuples(
        st.just(Update(CLAIM, {"owner": "x"}, {"execution": one_of()})),
        st.tuples(st.lists(_NUMBERS)),
    ),
    st.tuples(st.just(Delete(CLAIM, {"execution": PARAMETER})), st.tuples(_NUMBERS)),
    st.tuples(st.just(Delete(CLAIM, {"owner": begins_with()})), st.tuples(st.just("a"))),
)
_ALL = ("execution", "owner", "timer")
SELECTS = (
    (Select(CLAIM, _ALL, {}, ("execution",)), ()),
    (Select(CLAIM, _ALL, {"owner": None}, ("-execution",), limited=True), (2,)),
    (Select(CLAIM, _ALL, {"owner": is_set(), "timer": above()}, ("execution",)), (0.5,)),
    (Select(CLAIM, _ALL, {"timer": below(), "execution": at_most()}, ("execution",)), (2, 3)),
    (Select(CLAIM, _ALL, {"execution": between()}, ("execution",)), (1, 4)),
    (Select(CLAIM, _ALL, {"owner": none_of("a", "x")}, ("#owner", "owner", "execution")), ()),
    (Select(CLAIM, _ALL, _FEW, ("execution",)), ([1, 2],)),
    (Select(CLAIM, _ALL, {"timer": at_most()}, ("timer", "-execution"), by="timer"), (1.5,)),
)


@settings(max_examples=60)
@given(st.lists(st.lists(CHANGES, max_size=4), max_size=6))
def test_backends_keep_the_same_rows(transactions: list[list[Any]]) -> None:
    """Each transaction is made as a whole or not at all, and every query finds the same."""
    with TemporaryDirectory() as folder:
        places = (MemoryBackend(), SqliteBackend(Path(folder, "it.db"), "OFF"))
        connections: list[Any] = [place.connect() for place in places]
        for changes in transactions:
            refused = [each for each in connections if is_refused(each, changes)]
            assert refused in ([], connections)
            for select, values in SELECTS:
                one, other = (connection.select(select, values) for connection in connections)
                assert one == other, select
        for connection in connections:
            connection.close()


def is_refused(connection: Any, changes: list[Any]) -> bool:
    """Whether a transaction contradicts what is there."""
    try:
        connection.commit(changes, None)
    except StoreContradicted:
        return True
    return False


@pytest.fixture
def connection(place: Place, backend: StoreBackend) -> Any:
    connection = backend.connect()
    yield connection
    connection.close()


@pytest.fixture
def backend(place: Place) -> StoreBackend:
    return place if isinstance(place, MemoryBackend) else SqliteBackend(place, "OFF")


ADD_EXECUTION = Insert(EXECUTION, ("number", "name", "workflow", "document", "profile", "express",
                         "input", "status", "started", "written_by", "chain"))  # fmt: skip


def test_steps_stand_behind_each_other(connection: Any) -> None:
    """Whatever is appended in between; the head says where the last one is."""
    rows = [
        (number, f"e{number}", "w", "d", "p", 0, b"", "RUNNING", 1, "v", b"") for number in (1, 2)
    ]
    steps = [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3)]
    connection.commit([(ADD_EXECUTION, row) for row in rows], None)
    connection.commit([(APPEND, (*step, b"hash", b"body of %d" % step[1])) for step in steps], None)
    ((last, place),) = connection.select(Select(HEAD, ("step", "place"), {"execution": 1}))
    assert (last, place) == (3, 5)
    assert connection.trace(place, last, 1) == [(3, 5), (2, 3), (1, 1)]
    assert connection.trace(place, last, 3) == [(3, 5)]
    assert connection.trace(place, 9, 1) == []
    found = connection.select(
        Select(STEP, ("number",), {"body": contains()}, ("place",)), (b"of 2",)
    )
    assert found == [(2,), (2,)]


def test_a_step_follows_the_last_one(connection: Any) -> None:
    """Of two who go on with one execution the second is refused."""
    row = (1, "e", "w", "d", "p", 0, b"", "RUNNING", 1, "v", b"")
    connection.commit([(ADD_EXECUTION, row), (APPEND, (1, 1, b"a", b"a"))], None)
    for number in (1, 3):
        with pytest.raises(StoreContradicted):
            connection.commit([(APPEND, (1, number, b"b", b"b"))], None)
    assert connection.select(Select(STEP, ("number", "body"))) == [(1, b"a")]


def test_a_failed_transaction_changes_nothing(connection: Any) -> None:
    """Neither one that ends in an exception, nor one of which a change contradicts."""
    add = Insert(WORKER, ("id", "about", "seen"))
    with pytest.raises(KeyError), connection.transaction(list, None):
        raise KeyError
    with pytest.raises(StoreContradicted):
        connection.commit([(add, ("a", b"", 1)), (add, ("a", b"", 2))], None)
    assert connection.select(Select(WORKER, ("id",))) == []
    connection.commit([(add, ("a", b"", 1))], None)
    assert connection.select(Select(WORKER, ("id", "seen", "fenced"))) == [("a", 1.0, 0)]


def test_changes_may_be_computed_within_a_transaction(connection: Any) -> None:
    """From what the changes before them have made."""
    add, all_ids = Insert(WORKER, ("id", "about", "seen")), Select(WORKER, ("id",), {}, ("id",))

    def double(suffix: str) -> Any:
        for (id,) in connection.select(all_ids):
            yield add, (id + suffix, b"", 1)

    connection.commit([(add, ("a", b"", 1)), (double, ("b",)), (double, ("c",))], None)
    assert connection.select(all_ids) == [("a",), ("ab",), ("abc",), ("ac",)]


def test_a_lock_is_held_by_one_connection(backend: StoreBackend) -> None:
    """Until it leaves it or is closed."""
    one, other = backend.connect(), backend.connect()
    assert one.lock(7)
    assert not other.lock(7)
    assert (one.is_locked(7), other.is_locked(7)) == (False, True)
    one.unlock(7)
    assert other.lock(7)
    other.close()
    assert one.lock(7)
    one.close()
    other.close()


def test_versions_tell_whose_change_it_was(backend: StoreBackend) -> None:
    one, other = backend.connect(), backend.connect()
    foreign, own = one.version()
    one.commit([(Insert(WORKER, ("id", "about", "seen")), ("a", b"", 1))], None)
    assert one.version()[0] == foreign
    assert one.version()[1] != own
    before = one.version()
    other.commit([(Insert(WORKER, ("id", "about", "seen")), ("b", b"", 1))], None)
    assert one.version()[0] != before[0]
    one.close()
    other.close()


# As the place of a store


def test_a_store_in_memory_runs_and_forgets() -> None:
    """`memory:` is a new one each time."""
    with asl.Store("memory:", clock="virtual") as store:
        assert store.run(PASS, {"n": 1}, name="one").output == {"n": 1}
        assert [each.name for each in store.executions()] == ["one"]
        assert [*store.faults()] == []
        assert str(store.path) == "memory:"
        with pytest.raises(asl.StoreError, match="no file: export"):
            store.backup("copy.db")
    with asl.Store("memory:") as store:
        assert store.executions() == []


def test_executions_move_from_memory_to_a_file(tmp_path: Path) -> None:
    with asl.Store("memory:", clock="virtual") as store:
        store.run(PASS, {"text": "x" * 100_000}, name="one")
        lines = [*store.export()]
    with asl.Store(tmp_path / "runs.db", clock="virtual") as store:
        assert [store.import_execution(line) for line in lines] == ["one"]
        assert len(store.result("one").output["text"]) == 100_000
        assert [*store.faults()] == []


def test_threads_share_a_store_in_memory() -> None:
    with asl.Store("memory:") as store:
        threads = [
            threading.Thread(target=store.run, args=(PASS, n), kwargs={"name": f"e{n}"})
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {each.status for each in store.executions()} == {"SUCCEEDED"}
        assert len(store.executions()) == 8


class Point:
    """An entry point of an installed package."""

    name, group, dist = "shelf", "asl.stores", None

    @staticmethod
    def load() -> Any:
        def make(place: str) -> StoreBackend:
            backend = MemoryBackend()
            backend.place = f"shelf:{place}"
            return backend

        return make


def test_an_installed_package_adds_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an entry point of the group `asl.stores`, named before the colon."""
    monkeypatch.setattr(
        "importlib.metadata.entry_points",
        lambda group, name: [Point] if (group, name) == ("asl.stores", "shelf") else [],
    )
    with asl.Store("shelf:third") as store:
        assert str(store.path) == "shelf:third"
        assert store.run(PASS, 1).output == 1


def no_backend(place: str) -> None:
    return None


def failing_backend(place: str) -> StoreBackend:
    raise ZeroDivisionError("no")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("nosuchmodule:X", "'kept' of asl.stores cannot be loaded: ModuleNotFoundError"),
        (f"{__name__}:__name__", "'kept' of asl.stores is no function"),
        (f"{__name__}:no_backend", "'kept' of asl.stores has made no backend: None has no 'place'"),
        (f"{__name__}:failing_backend", "'kept' of asl.stores has made no backend: ZeroDivision"),
    ],
)
def test_broken_backend_of_a_package_is_named(
    value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = EntryPoint("kept", value, "asl.stores")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group, name: [point])
    with pytest.raises(asl.AslError, match=message):
        asl.Store("kept:x")


def test_a_file_may_have_a_colon_in_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no backend has the name before it."""
    monkeypatch.chdir(tmp_path)
    with asl.Store("its:own.db") as store:
        assert store.run(PASS, 1).ok
    assert (tmp_path / "its:own.db").exists()
    assert isinstance(registry.open_backend(tmp_path / "memory:", "OFF"), SqliteBackend)


def test_sql_stands_in_one_package() -> None:
    """Whatever else is about stores asks in terms of `asl.stores.statements`."""
    root = Path(asl.__file__).parent
    sql = re.compile(r"\b(SELECT [\w*]|INSERT INTO|DELETE FROM|UPDATE \w+ SET|PRAGMA )")
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if sql.search(path.read_text())
    }
    assert {path for path in found if not path.startswith("stores/sqlite/")} == {
        "memories/sqlite.py"  # the memory of agents, a file of its own
    }
    assert found != {"memories/sqlite.py"}
