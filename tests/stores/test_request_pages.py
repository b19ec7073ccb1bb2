"""Pages of open requests: every one once, and no more rows read than a page has."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import asl
from asl.cli.main import cli
from asl.engine.pending_callback import PendingCallback
from asl.executions import RequestNotFound, Store
from asl.states.approval_request import ApprovalRequest
from asl.stores.backend import StoreConnection
from asl.stores.memory import MemoryBackend
from asl.stores.requests import PAGE, put_request, put_task
from asl.stores.tables import REQUEST

DOCUMENT = {
    "StartAt": "Ask",
    "States": {"Ask": {"Type": "Approval", "Prompt": "Publish?", "End": True}},
}
ACTIVITY = "arn:aws:states:eu-west-1:123456789012:activity:work"


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    place: Any = tmp_path / "runs.db" if request.param == "sqlite" else MemoryBackend()
    with Store(place, clock="virtual") as made:
        yield made


@pytest.fixture
def fill(store: Store) -> Callable[[int], None]:
    """Add so many open requests of people, and as many activity tasks, to one execution."""

    def add(count: int) -> None:
        store.run(DOCUMENT, {}, name="it")
        session = store.session
        number = store.get("it").number
        shown = store.pending()[0]
        for index in range(count):
            id = f"{index * 7919 % count:06}"
            created, key = float(index // 7), f"/M@0.0[{index}]/Ask@0.0"
            asked = ApprovalRequest(id, key, "approval", {**shown, "requestId": id}, {}, created)
            put_request(session, number, asked, True)
            task = PendingCallback(
                f"t{id}", key, "activity", ACTIVITY, "Do", {}, created, None, None
            )
            put_task(session, number, task)
        session.flush()

    return add


@pytest.fixture
def rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of requests that each query has returned."""
    counts: list[int] = []
    kind: type[StoreConnection] = type(store.session.connection)
    select = kind.select

    def counted(self: Any, statement: Any, values: Any = ()) -> Any:
        found = select(self, statement, values)
        if statement.table is REQUEST and "body" in statement.columns:
            counts.append(len(found))
        return found

    monkeypatch.setattr(kind, "select", counted)
    return counts


def test_page_reads_only_its_rows(
    store: Store, fill: Callable[[int], None], rows: list[int]
) -> None:
    """Also with tens of thousands of open requests, at any place of the list."""
    fill(5000)
    all_ids = [each["requestId"] for each in store.pending()]
    del rows[:]
    page = store.pending(limit=20, after=all_ids[4000])
    assert [each["requestId"] for each in page] == all_ids[4001:4021]
    assert sum(rows) == 20
    del rows[:]
    assert len(store.pending_callbacks("it", limit=20)) == 20
    assert sum(rows) == 20


def test_all_requests_are_read_in_pages(
    store: Store, fill: Callable[[int], None], rows: list[int]
) -> None:
    """So no query returns more rows than a page has."""
    fill(2 * PAGE)
    assert len(store.pending()) == 2 * PAGE + 1
    assert len(store.pending_callbacks()) == 2 * PAGE
    assert store.damaged_requests() == []
    assert max(rows) == PAGE


def test_pages_list_each_request_once(store: Store, fill: Callable[[int], None]) -> None:
    """Though several were made at the same time: their keys, then their ids say the order."""
    fill(100)
    for read, name in ((store.pending, "requestId"), (store.pending_callbacks, "taskToken")):
        whole = [each[name] for each in read()]
        listed: list[str] = []
        while page := read(limit=9, after=listed[-1] if listed else None):
            listed += [str(each[name]) for each in page]
        assert listed == whole
        assert len({*listed}) == len(listed) >= 100


def test_page_after_an_unknown_request_is_refused(store: Store) -> None:
    with pytest.raises(RequestNotFound, match="no request 'it'"):
        store.pending(after="it")
    with pytest.raises(RequestNotFound, match="no request 'it'"):
        store.pending_callbacks(after="it")


def test_names_with_nul_are_listed_once(store: Store) -> None:
    """To SQLite a text ends at its first NUL when its length is asked for."""
    inner = {"StartAt": "A\0b", "States": {"A\0b": DOCUMENT["States"]["Ask"]}}
    document = {
        "StartAt": "M",
        "States": {"M": {"Type": "Map", "ItemProcessor": inner, "End": True}},
    }
    store.run(document, [1, 2, 3], name="it", profile="lenient")
    whole = [each["requestId"] for each in store.pending()]
    assert len(whole) == 3
    listed: list[str] = []
    while page := store.pending(limit=1, after=listed[-1] if listed else None):
        listed += [str(each["requestId"]) for each in page]
    assert listed == whole


def test_worker_of_an_activity_reads_no_more_than_a_page_of_tasks(
    store: Store, fill: Callable[[int], None], rows: list[int]
) -> None:
    fill(2 * PAGE)
    del rows[:]
    assert store.tokens.get_activity_task(ACTIVITY)["taskToken"] is not None
    assert sum(rows) <= 2 * PAGE, "of the page once more, within the transaction"


def test_inbox_reads_only_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command, and a list of what an execution asks."""
    path = tmp_path / "runs.db"
    inner = {"StartAt": "Ask", "States": DOCUMENT["States"]}
    document = {
        "StartAt": "M",
        "States": {"M": {"Type": "Map", "ItemProcessor": inner, "End": True}},
    }
    with asl.open_store(path, clock="virtual") as store:
        store.run(document, [*range(300)], name="it")
        kind: Any = type(store.session.connection)
    select, counts = kind.select, [0]

    def counted(self: Any, statement: Any, values: Any = ()) -> Any:
        found = select(self, statement, values)
        if statement.table is REQUEST and "body" in statement.columns:
            counts[0] += len(found)
        return found

    monkeypatch.setattr(kind, "select", counted)
    done = CliRunner().invoke(cli, ["inbox", "-n", "10", "--store", str(path)])
    assert done.exit_code == 0, done.output
    assert "there are more" in done.stderr
    assert counts[0] <= 11
