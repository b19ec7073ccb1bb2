"""What a store promises beside recovery: names, exclusion, a word for all that is wrong."""

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.stores.session import Session
from asl.stores.sqlite import SqliteBackend
from asl.stores.statements import Insert
from asl.stores.tables import DOCUMENT as DOCUMENTS
from asl.stores.values import FIND_DOCUMENT, PUT_DOCUMENT
from tests.sql import execute, rows

INSERT = Insert(DOCUMENTS, ("hash", "body"))


def session(path: Path) -> Any:
    """Return the session of a file."""
    return Session(SqliteBackend(path).connect(), path)


DOCUMENT = {
    "StartAt": "A",
    "States": {
        "A": {"Type": "Task", "Agent": "W", "ResultPath": "$.a", "Next": "B"},
        "B": {"Type": "Task", "Agent": "W", "ResultPath": "$.b", "Next": "C"},
        "C": {"Type": "Pass", "Next": "D"},
        "D": {"Type": "Task", "Agent": "W", "ResultPath": "$.d", "End": True},
    },
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def opened(path: Path, **bindings: Any) -> asl.Store:
    return asl.open_store(path, clock="virtual", **{"agents": {"W": lambda data: 1}, **bindings})


def test_an_execution_can_be_read_after_its_process(path: Path) -> None:
    """Output, usage, visited states and events are those of the run."""
    with opened(path, agents={"W": lambda data: {"_tokens": 3}}) as store:
        ran = store.run(DOCUMENT, {"n": 1}, name="one")
        events = [event.to_json() for event in ran.events]
    with opened(path) as store:
        kept = store.result("one")
        assert (kept.status, kept.output) == ("SUCCEEDED", ran.output)
        assert kept.usage == ran.usage
        assert kept.visited == ["A", "B", "C", "D"]
        assert [event.to_json() for event in kept.events] == events


def test_a_failure_can_be_read_after_its_process(path: Path) -> None:
    """Error and cause are those of the run."""
    document = {"StartAt": "A", "States": {"A": {"Type": "Pass", "InputPath": "$.x", "End": True}}}
    with opened(path) as store:
        ran = store.run(document, {}, name="one")
    with opened(path) as store:
        kept = store.result("one")
        assert (kept.status, kept.error, kept.cause) == ("FAILED", ran.error, ran.cause)


def test_starting_twice_is_starting_once(path: Path) -> None:
    """The same name, document and input: what came of it, and no agent is called again."""
    calls: list[Any] = []
    with opened(path, agents={"W": calls.append}) as store:
        first = store.run(DOCUMENT, {"n": 1}, name="one")
        again = store.run(DOCUMENT, {"n": 1}, name="one")
    assert again.output == first.output
    assert len(calls) == 3


@pytest.mark.parametrize(
    "other",
    [(DOCUMENT, {"n": 2}), (DOCUMENT, {"n": True}), ({**DOCUMENT, "Comment": "x"}, {"n": 1})],
)
def test_a_name_belongs_to_one_document_and_input(path: Path, other: Any) -> None:
    """Anything else under the name is refused."""
    with opened(path) as store:
        store.run(DOCUMENT, {"n": 1}, name="one")
        with pytest.raises(asl.ExecutionExists):
            store.run(*other, name="one")


def test_two_stores_exclude_each_other_per_execution(path: Path) -> None:
    """While one is at work on an execution, the other cannot touch it, but any other one."""
    with opened(path) as second:

        def meddle(data: Any) -> Any:
            with pytest.raises(asl.ExecutionBusy):
                second.run(DOCUMENT, {}, name="one")
            return second.run(DOCUMENT, {}, name="two").status

        with opened(path, agents={"W": meddle}) as first:
            assert first.run(DOCUMENT, {}, name="one").status == "SUCCEEDED"


def test_who_cannot_run_an_execution_does_not_begin_it(path: Path) -> None:
    """Its name stays free."""
    with opened(path) as store:
        with pytest.raises(asl.AslError, match="bound to int"):
            store.run(DOCUMENT, {}, name="one", agents={"W": 5})  # type: ignore[dict-item]
        assert store.executions() == []
        assert store.run(DOCUMENT, {}, name="one").ok


def test_an_execution_is_in_the_file_before_its_lock_is_free(path: Path) -> None:
    """Also where it ends in an exception of others before it has come to anything."""

    def fails(event: asl.Event) -> None:
        raise KeyError(event.type)

    with opened(path) as one, opened(path) as other:
        with pytest.raises(KeyError):
            one.run(DOCUMENT, {}, name="one", listener=fails)
        assert other.run(DOCUMENT, {}, name="one").ok
        assert one.run(DOCUMENT, {}, name="one").ok


def test_what_contradicts_the_file_is_no_damage(path: Path) -> None:
    """The store that wanted to write it is of no use any more; whoever opens it again goes on."""
    with opened(path) as one, opened(path) as other:
        for store in (one, other):
            store.session.write(INSERT, "key", b"text")
        other.session.flush()
        for _ in range(2):
            with pytest.raises(asl.StoreError, match=r"contradicts this.*open it again") as refused:
                one.run(DOCUMENT, {}, name="one")
            assert not isinstance(refused.value, asl.StoreDamaged)
    with opened(path) as store:
        assert store.run(DOCUMENT, {}, name="two").ok


def test_plain_tasks_cost_one_commit_each_and_one(path: Path) -> None:
    """Three tasks, four transactions: what an effect leaves is written with the next one."""
    commits: list[str] = []
    with opened(path) as store:
        store.session.on_fail_point = commits.append
        store.run(DOCUMENT, {}, name="one")
    assert commits.count("commit.done") == 4


def test_executions_at_the_same_time_share_their_commits(path: Path) -> None:
    """Thirty executions of three tasks need far fewer transactions than tasks."""

    async def answer(data: Any) -> int:
        await asyncio.sleep(0)
        return 1

    async def all_at_once(store: asl.Store) -> list[Any]:
        starts = (store.arun(DOCUMENT, {}, name=f"n{i}") for i in range(30))
        return await asyncio.gather(*starts)

    commits: list[str] = []
    with asl.open_store(path, agents={"W": answer}) as store:
        store.session.on_fail_point = commits.append
        results = asyncio.run(all_at_once(store))
    assert {result.status for result in results} == {"SUCCEEDED"}
    assert commits.count("commit.done") < 30


@pytest.mark.parametrize(("limit", "most"), [(0, 16), (10, 32)])
def test_items_that_may_run_together_share_their_commits(path: Path, limit: int, most: int) -> None:
    """Also where no agent waits, and so nothing else asks for an event loop."""
    tasks = {"StartAt": "A", "States": {"A": DOCUMENT["States"]["A"], "B": DOCUMENT["States"]["D"]}}
    each = {"Type": "Map", "MaxConcurrency": limit, "ItemProcessor": tasks, "End": True}
    document = {"StartAt": "Each", "States": {"Each": each}}
    commits: list[str] = []
    with asl.open_store(path, agents={"W": {"return": 1}}) as store:
        store.session.on_fail_point = commits.append
        result = store.run(document, [{}] * 80)
    assert result.output == [{"a": 1, "d": 1}] * 80
    assert commits.count("commit.done") <= most


def answered_on_disk(path: Path) -> int:
    """How many items have an answer that whoever comes after this process would find."""
    with closing(sqlite3.connect(path)) as other:
        steps = b"".join(body for (body,) in other.execute("SELECT body FROM step"))
    return len(set(re.findall(rb'"answer","(/Each@0\.0\[\d+\])', steps)))


@pytest.mark.parametrize(("limit", "found"), [(0, {5}), (2, {1, 2}), (3, {1, 2, 3})])
def test_an_item_waits_only_for_those_that_it_may_not_run_with(
    path: Path, limit: int, found: set[int]
) -> None:
    """What led to its first call is on disk. Never are more calls without an answer there."""
    lacking: list[int] = []

    async def count(data: Any) -> int:
        lacking.append(data + 1 - answered_on_disk(path))
        return 1

    task = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "W", "End": True}}}
    each = {"Type": "Map", "MaxConcurrency": limit, "ItemProcessor": task, "End": True}
    with asl.open_store(path, agents={"W": count}) as store:
        result = store.run({"StartAt": "Each", "States": {"Each": each}}, list(range(5)))
    assert result.output == [1] * 5
    assert max(lacking) in found


def test_items_that_wait_for_nothing_let_others_run(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When much is to be written it is, and the event loop goes round."""
    monkeypatch.setattr("asl.effects.journaled.results.MUCH", 1000)
    task = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "W", "End": True}}}
    each = {"Type": "Map", "ItemProcessor": task, "End": True}
    document = {"StartAt": "Each", "States": {"Each": each}}
    turns = 0

    async def answer(data: Any) -> int:
        return 1

    async def aside(store: asl.Store) -> Any:
        nonlocal turns
        running = asyncio.create_task(store.arun(document, [0] * 100))
        while not running.done():
            await asyncio.sleep(0)
            turns += 1
        return running.result()

    with asl.open_store(path, agents={"W": answer}) as store:
        assert asyncio.run(aside(store)).output == [1] * 100
    assert turns > 7


def test_an_execution_by_itself_lets_others_run(path: Path) -> None:
    """It shares no transaction, so it waits for none; yet the event loop goes round."""
    states = {
        f"S{i}": {
            "Type": "Task",
            "Agent": "W",
            **({"Next": f"S{i + 1}"} if i < 99 else {"End": True}),
        }
        for i in range(100)
    }
    turns = 0

    async def answer(data: Any) -> int:
        return turns

    async def aside(store: asl.Store) -> Any:
        nonlocal turns
        running = asyncio.create_task(store.arun({"StartAt": "S0", "States": states}, {}))
        while not running.done():
            await asyncio.sleep(0)
            turns += 1
        return running.result()

    with asl.open_store(path, agents={"W": answer}) as store:
        seen = asyncio.run(aside(store)).output
    assert 5 <= seen <= 20


def test_a_write_that_fails_is_no_failure_of_who_was_to_be_called(tmp_path: Path) -> None:
    """The disk does not take one of the transactions that two share: no state catches that."""
    catching = {
        name: {**state, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "C"}]}
        if state["Type"] == "Task"
        else state
        for name, state in DOCUMENT["States"].items()
    }

    async def answer(data: Any) -> int:
        return 1

    async def both(store: asl.Store) -> list[Any]:
        document = {**DOCUMENT, "States": catching}
        started = (store.arun(document, {}) for _ in range(2))
        return await asyncio.gather(*started, return_exceptions=True)

    def ended(at: int) -> list[Any]:
        """Return what becomes of them where the disk is full at one transaction."""
        commits = 0

        def full(point: str) -> None:
            nonlocal commits
            commits += point == "commit.begin"
            if point == "commit.begin" and commits == at:
                raise sqlite3.OperationalError("database or disk is full")

        with asl.open_store(tmp_path / f"{at}.db", agents={"W": answer}) as store:
            store.session.on_fail_point = full
            return asyncio.run(both(store))

    found = [each for at in range(1, 6) for each in ended(at)]
    failed = [each for each in found if isinstance(each, asl.StoreError)]
    assert all("disk is full" in str(each) for each in failed)
    assert all(each in failed or each.output == {"a": 1, "b": 1, "d": 1} for each in found)
    assert len(failed) > 3


@pytest.mark.parametrize("turns", range(1, 6))
def test_who_is_cancelled_does_not_cancel_those_that_wait_for_the_same_commit(
    path: Path, turns: int
) -> None:
    """At whatever turn of the event loop that happens; odd ones lie within a commit."""

    async def answer(data: Any) -> int:
        return 1

    async def one_is_cancelled(store: asl.Store) -> list[Any]:
        started = [asyncio.create_task(store.arun(DOCUMENT, {})) for _ in range(3)]
        for _ in range(turns):
            await asyncio.sleep(0)
        started[0].cancel()
        return await asyncio.gather(*started, return_exceptions=True)

    with asl.open_store(path, agents={"W": answer}) as store:
        first, *others = asyncio.run(one_is_cancelled(store))
    assert isinstance(first, asyncio.CancelledError)
    assert [result.status for result in others] == ["SUCCEEDED", "SUCCEEDED"]


def test_a_store_that_was_interrupted_while_it_wrote_takes_nothing_more(path: Path) -> None:
    """What was to be written may be in the file or not: whatever came behind it could be wrong."""

    def interrupted(point: str) -> None:
        if point == "commit.written":
            raise KeyboardInterrupt

    with opened(path) as store:
        store.session.on_fail_point = interrupted
        with pytest.raises(KeyboardInterrupt):
            store.run(DOCUMENT, {}, name="one")
        store.session.on_fail_point = lambda point: None
        with pytest.raises(asl.StoreError, match="was interrupted while it wrote"):
            store.run(DOCUMENT, {}, name="one")
    with opened(path) as store:
        assert store.run(DOCUMENT, {}, name="one").status == "SUCCEEDED"


def test_the_newest_execution_is_listed_first(path: Path) -> None:
    """Pages go on where the last one ended."""
    with opened(path) as store:
        for name in ("a", "b", "c"):
            store.run(DOCUMENT, {}, name=name)
        first = store.executions(limit=2)
        assert [each.name for each in first] == ["c", "b"]
        assert [each.name for each in store.executions(before=first[-1].number)] == ["a"]
        assert store.executions(status="FAILED") == []
        with pytest.raises(asl.AslError, match=r"RUNNING, PAUSED, .* or ABORTED, not 'succeeded'"):
            store.executions(status="succeeded")


def test_a_large_value_is_stored_once(path: Path) -> None:
    """Whoever refers to it: positions, answers and records of the history."""
    task = {"Type": "Task", "Agent": "W", "ResultPath": None}
    states = {"A": {**task, "Next": "B"}, "B": {**task, "Next": "C"}, "C": {"Type": "Succeed"}}
    with opened(path) as store:
        store.run({"StartAt": "A", "States": states}, {"text": "x" * 300_000}, name="one")
        assert store.result("one").output["text"] == "x" * 300_000
        assert len(store.result("one").events) == 12
    assert path.stat().st_size < 2 * 300_000


def test_debate_is_stored(path: Path) -> None:
    """Its agents are looked up once, and each turn is an answer of its own."""
    discuss = {"Type": "Debate", "Agents": ["One", "Two"], "Rounds": 2, "End": True}
    document = {"StartAt": "Discuss", "States": {"Discuss": discuss}}
    agents = dict.fromkeys(("One", "Two"), lambda turn: len(turn["history"]))
    with opened(path, agents=agents) as store:
        ran = store.run(document, {}, name="one")
        assert [turn["response"] for turn in ran.output["history"]] == [0, 1, 2, 3]
        assert store.result("one").output == ran.output


def test_an_aborted_execution_is_over(path: Path) -> None:
    """What has ended cannot be stopped."""
    with opened(path) as store:
        store.run(DOCUMENT, {}, name="one")
        with pytest.raises(asl.AslError, match="ended already: SUCCEEDED"):
            store.cancel("one")


def test_error_names_an_unknown_execution(path: Path) -> None:
    """The message names it and the file."""
    with opened(path) as store, pytest.raises(asl.ExecutionNotFound, match="'nobody' in"):
        store.resume("nobody")


def test_a_store_that_is_closed_says_so(path: Path) -> None:
    """Closing it again lets nobody else's file go, which may have got its number."""
    store = opened(path)
    store.close()
    with path.open("rb") as other:
        store.close()
        assert other.read(6) == b"SQLite"
    for use, given in ((store.run, DOCUMENT), (store.resume, "one"), (store.get, "one")):
        with pytest.raises(asl.StoreError, match="the store is closed; open it again"):
            use(given)
    assert not store.session.connection.is_locked(1)


def test_a_store_that_cannot_be_written_any_more_is_let_go(path: Path) -> None:
    """So that another one may go on with its executions."""
    file = session(path)
    file.connection.lock(17)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    file.connection.patience = 0
    file.write(PUT_DOCUMENT, "h", b"b")
    with pytest.raises(asl.StoreError, match="another program"):
        file.close()
    other.close()
    again = session(path)
    assert again.connection.lock(17)
    again.close()
    with pytest.raises(sqlite3.ProgrammingError):
        file.connection._file.execute("SELECT 1")


def test_no_statement_numbers_its_parameters() -> None:
    """CPython 3.12.0 to 3.12.3 warn of those that are given as a sequence."""
    sources = [path for path in Path(asl.__file__).parent.rglob("*.py") if "stores" in str(path)]
    sources += Path(asl.__file__).parent.glob("executions/*.py")
    assert [path.name for path in sources if re.search(r"= \?\d|[(, ]\?\d", path.read_text())] == []


def test_an_input_of_null_is_none_that_is_absent(path: Path) -> None:
    """As with `asl.run`."""
    document = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
    with opened(path) as store:
        assert store.run(document, None).output is None
        assert store.run(document).output == {}


def test_invalid_names_and_numbers_are_refused(tmp_path: Path) -> None:
    """A name that is no text of whole characters, a number that SQLite does not have."""
    with asl.open_store(tmp_path / "runs.db") as store:
        with pytest.raises(asl.StoreError, match="surrogates"):
            store.get("\ud800")
        with pytest.raises(asl.AslError, match="must be a string, got NoneType"):
            store.get(None)  # type: ignore[arg-type]
        with pytest.raises(asl.StoreError, match="too large"):
            store.executions(limit=10**30)


# Files that are no store, or no whole one


def test_a_file_of_something_else_is_refused(path: Path) -> None:
    """A text is damage, a database of others is not ours."""
    path.write_text("this is no database at all, but long enough to have a header of one" * 10)
    with pytest.raises(asl.StoreDamaged):
        opened(path)
    path.unlink()
    sqlite3.connect(path).execute("CREATE TABLE theirs (x)").connection.close()
    with pytest.raises(asl.StoreError, match="not a store of executions"):
        opened(path)


def test_a_newer_store_is_refused(path: Path) -> None:
    """It says what to do."""
    opened(path).close()
    file = sqlite3.connect(path)
    file.execute("PRAGMA user_version = 99")
    file.close()
    with pytest.raises(asl.StoreError, match="newer version"):
        opened(path)


def test_what_cannot_be_opened_is_let_go(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is closed at once, not when somebody forgets the error."""
    path.write_text("this is no database at all, but long enough to have a header of one" * 10)
    opening, connect = [], sqlite3.connect
    monkeypatch.setattr(
        sqlite3,
        "connect",
        lambda *given, **more: opening.append(connect(*given, **more)) or opening[-1],
    )
    with pytest.raises(asl.StoreDamaged):
        session(path)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opening[0].execute("SELECT 1")


@pytest.mark.parametrize(("level", "number"), [("OFF", 0), ("NORMAL", 1), ("FULL", 2)])
def test_how_safe_a_commit_is_can_be_chosen(level: str, number: int, path: Path) -> None:
    """With FULL, the default, what is acknowledged survives a loss of power."""
    with opened(path, synchronous=level) as store:
        assert rows(store, "PRAGMA synchronous") == [(number,)]
    with opened(path) as store:
        assert rows(store, "PRAGMA synchronous") == [(2,)]
        assert rows(store, "PRAGMA journal_mode") == [("wal",)]


def test_a_newer_store_is_not_touched(path: Path) -> None:
    with opened(path) as store:
        execute(store, "PRAGMA user_version = 2")
    with pytest.raises(asl.StoreError, match="newer version"):
        opened(path)


def test_unknown_synchronous_is_refused(path: Path) -> None:
    """The message names those that there are, and no file is made."""
    with pytest.raises(asl.StoreError, match="OFF, NORMAL, FULL or EXTRA, got 'SAFE'"):
        opened(path, synchronous="SAFE")
    assert not path.exists()


def test_error_names_a_missing_folder(tmp_path: Path) -> None:
    """The message asks for the folder."""
    with pytest.raises(asl.StoreError, match="does the folder exist"):
        opened(tmp_path / "no" / "runs.db")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            "UPDATE step SET body = CAST('[]' AS BLOB) WHERE number = 2",
            "step 2 of the history was changed",
        ),
        ("DELETE FROM step WHERE number = 2", "step 2 of the history is missing"),
        (
            "DELETE FROM step WHERE number = (SELECT max(number) FROM step)",
            "one: the end of the history is missing: step 4",
        ),
        ("DELETE FROM step", "one: the end of the history is missing: step 1 to 4"),
        ("DELETE FROM head", "one: the recorded end of a history is missing"),
        ("UPDATE step SET number = number + 99", "one: the end of the history is missing: step 1"),
        (
            "UPDATE step SET before = before - 1 WHERE number = 3",
            "step 2 of the history is missing",
        ),
        (
            "INSERT INTO step SELECT 99, execution, 5, place, hash, body FROM step "
            "WHERE number = 4",
            "one: step 5 of the history was changed",
        ),
        (
            "UPDATE head SET (step, place) = (SELECT number, place FROM step WHERE number = 3)",
            "one: the history has steps after its recorded end, step 3",
        ),
        ("UPDATE document SET body = CAST('{}' AS BLOB)", "is missing or was changed"),
        ("DELETE FROM execution", "belong to no execution"),
    ],
)
def test_the_doctor_finds_what_was_changed(path: Path, change: str, fault: str) -> None:
    """A whole store has no fault; each change behind our back is one."""
    with opened(path) as store:
        store.run(DOCUMENT, {}, name="one")
        assert list(store.faults()) == []
        execute(store, change)
        store.session.flush()
        assert any(fault in said for said in store.faults())


def test_a_lost_end_is_noticed_by_who_looks(path: Path) -> None:
    """Where the end of a history is an older one, nobody goes on from there or shows it."""
    ask = {"Type": "Approval", "Prompt": "?", "End": True}
    asking = {**DOCUMENT, "States": {**DOCUMENT["States"], "D": ask}}
    with opened(path) as store:
        assert store.run(asking, {}, name="one").status == "PAUSED"
        store.run(DOCUMENT, {}, name="two")
        execute(
            store,
            "UPDATE head SET (step, place) = (SELECT number, place FROM step WHERE number = 1 AND "
            "execution = head.execution) WHERE execution = "
            "(SELECT number FROM execution WHERE name = 'one')",
        )
        looks = (lambda name: store.result(name).events, lambda name: list(store.events(name)))
        for look in (*looks, store.resume):
            with pytest.raises(asl.StoreDamaged, match="has steps after its recorded end"):
                look("one")
        assert store.result("two").status == "SUCCEEDED"


def test_a_failed_write_loses_nothing(path: Path) -> None:
    """What could not be written is written the next time."""
    file = session(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    file.connection.patience = 0
    file.write(PUT_DOCUMENT, "h", b"b")
    with pytest.raises(asl.StoreError, match="another program"):
        file.flush()
    other.execute("ROLLBACK")
    assert file.select(FIND_DOCUMENT, "h") == [(b"b",)]
    other.close()
    file.close()
