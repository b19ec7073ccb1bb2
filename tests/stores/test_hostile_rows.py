"""Rows that somebody else has written, with checksums and digests of their own.

They are named as damaged, and everything else of the store works.
"""

import asyncio
import json
import sqlite3
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from click.testing import CliRunner

import asl
from asl.cli.main import cli
from asl.core.values import compact, encode
from asl.executions import Store

DOCUMENT = {
    "StartAt": "Work",
    "States": {
        "Work": {"Type": "Task", "Agent": "Work", "Next": "Ask"},
        "Ask": {"Type": "Approval", "Prompt": "?", "End": True},
    },
}
Line = dict[str, Any]


def opened(path: Path) -> Store:
    return Store(
        path, synchronous="OFF", clock=asl.VirtualClock(), agents={"Work": lambda _: {"text": "x"}}
    )


@pytest.fixture
def line(tmp_path: Path) -> Line:
    """An exported execution that waits for an approval."""
    with opened(tmp_path / "from.db") as store:
        store.run(DOCUMENT, {"a": 1}, name="it")
        (found,) = store.export()
    made: Line = json.loads(compact(found))
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with an execution of its own that waits."""
    with opened(tmp_path / "runs.db") as made:
        made.run(DOCUMENT, {}, name="good")
        yield made


def signed(line: Line) -> Line:
    """Return an archive with the digest that it needs."""
    content = {key: value for key, value in line.items() if key != "sha256"}
    return {**content, "sha256": sha256(compact(content).encode()).hexdigest()}


def _packed(value: Any) -> dict[str, str]:
    text = encode(value)
    return {"base64": b64encode(b"=%08x%s" % (crc32(text), text)).decode()}


def with_value(line: Line, table: str, column: str, value: Any) -> Line:
    """Return an archive with another value in the first row of a table."""
    line["executions"][0][table][0][column] = _packed(value)
    return signed(line)


def with_step(line: Line, value: Any) -> Line:
    """Return an archive with another first step, chained as it has to be."""
    rows = line["executions"][0]
    rows["step"][0][1] = {"base64": b64encode(encode(value)).decode()}
    chain = b64decode(rows["execution"][0]["chain"]["base64"])
    for step in rows["step"]:
        chain = sha256(chain + b64decode(step[1]["base64"])).digest()
        step[0] = {"base64": b64encode(chain).decode()}
    return signed(line)


def with_document(line: Line, value: Any) -> Line:
    """Return an archive of another document."""
    key = sha256(encode(value)).hexdigest()
    line["documents"] = {key: value}
    line["executions"][0]["execution"][0]["document"] = key
    return signed(line)


GARBAGE: list[Any] = [None, 5, "x", [], [[]], [["record"]], {"a": 1}, [["record", "", [1, 2]]]]
SHOWN = {"prompt": "?", "promptText": "?", "options": ["approve"]}
REQUESTS: list[Any] = [
    *GARBAGE,
    [{}, {}],
    [{**SHOWN, "options": []}, {}],
    [{**SHOWN, "options": [5]}, {}],
    [{**SHOWN, "promptText": ["x"]}, {}],
    [{**SHOWN, "requestId": "another"}, {}],
    [{**SHOWN, "policy": []}, {}],
    [{**SHOWN, "policy": {"approvers": {"users": [5]}}}, {}],
    [{**SHOWN, "editable": {"fields": []}}, {}],
    [{**SHOWN, "items": 5}, {}],
    [SHOWN, {"timeout": "x"}],
]


@pytest.mark.parametrize("body", REQUESTS)
def test_request_of_another_shape_hides_no_other(body: Any, line: Line, store: Store) -> None:
    """It is named as damaged; the others are listed and answered."""
    store.import_execution(with_value(line, "request", "body", body))
    (good,) = store.pending()
    assert good["state"] == "Ask"
    assert len(store.damaged_requests()) == 1
    with pytest.raises(asl.StoreDamaged):
        store.pending("it")
    done = CliRunner().invoke(cli, ["inbox", "--store", str(store.path)])
    assert done.exit_code == 0, done.output
    assert "is damaged: " in done.stderr
    assert good["requestId"] in done.stdout
    store.answer(good["requestId"], "approve", by="ann")
    assert store.resume("good").ok


COMMANDS = (
    *("ls", "inbox", "doctor", "export", "checkpoints", "costs it", "resume it"),
    *("show it", "show it --events", "logs it", "fork it --at Ask"),
)


def expect_named(store: Store) -> None:
    """Expect that commands end with their codes and messages, never with an exception."""
    for command in COMMANDS:
        done = CliRunner().invoke(cli, [*command.split(), "--store", str(store.path)])
        is_exit = done.exception is None or isinstance(done.exception, SystemExit)
        assert is_exit, (command, done.exception)


@pytest.mark.parametrize("body", GARBAGE)
def test_history_of_another_shape_is_named(body: Any, line: Line, store: Store) -> None:
    """By all commands that read it."""
    store.import_execution(with_step(line, body))
    expect_named(store)
    if body != []:
        with pytest.raises(asl.StoreDamaged):
            store.result("it")


@pytest.mark.parametrize(
    "body", [{"large": 1}, [{"large": 1}], [["record", "", [9], "ExecutionRedriven"]]]
)
def test_doctor_names_each_history_of_another_shape(body: Any, line: Line, store: Store) -> None:
    """And goes on with the others."""
    body = [body, '"large":'] if type(body) is dict else body
    store.import_execution(with_step(line, body))
    (fault,) = store.faults()
    assert fault.startswith("it: step 1 of the history is not what this program writes")


@pytest.mark.parametrize(
    "document",
    [
        *(None, 5, [], {}, {"StartAt": "A"}, {"StartAt": "B", "States": {}}),
        {"StartAt": [], "States": {"Work": {"Type": "Pass", "End": True}}},
        {"StartAt": "Work", "States": {"Work": {"Type": ["Pass"]}}},
        {"StartAt": "Work", "States": {"Work": {"Type": "Pass", "Next": "Nowhere"}}},
        {"StartAt": "Work", "States": {"Work": 5}},
    ],
)
def test_document_of_another_shape_is_named(document: Any, line: Line, store: Store) -> None:
    store.import_execution(with_document(line, document))
    expect_named(store)
    with pytest.raises(asl.StoreDamaged, match="the execution 'it' is not what this program"):
        store.result("it")


@pytest.mark.parametrize(("table", "column"), [("execution", "bound"), ("execution", "usage")])
@pytest.mark.parametrize("value", GARBAGE[1:])
def test_values_of_another_shape_are_named(
    table: str, column: str, value: Any, line: Line, store: Store
) -> None:
    store.import_execution(with_value(line, table, column, value))
    expect_named(store)


@pytest.mark.parametrize(
    "change",
    [
        lambda line: with_step(line, [["record"]]),
        lambda line: with_document(line, {"StartAt": "A"}),
        lambda line: with_value(line, "request", "body", [{}, {}]),
        lambda line: with_value(line, "execution", "bound", 5),
    ],
)
def test_runner_goes_on_with_the_others(
    change: Callable[[Line], Line], line: Line, store: Store
) -> None:
    """What cannot be read is reported, and stays as it is."""
    line["executions"][0]["execution"][0]["wake"] = 0.0
    store.import_execution(change(line))
    reported: dict[str, Any] = {}
    store.answer(store.pending()[0]["requestId"], "approve", by="ann")

    async def drained() -> None:
        async with store.runner(report=reported.__setitem__) as runner:
            await runner.drain()

    with asyncio.Runner(loop_factory=store.clock.new_event_loop) as loop:
        loop.run(drained())
    assert reported["good"].ok
    assert "it" in reported
    assert isinstance(reported["it"], str)


def edit(path: Path, *statements: str) -> None:
    """Change rows by hand, without the checksums of this program."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        triggers = file.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        made = triggers.fetchall()
        for name, _ in made:
            file.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            file.execute(statement)
        for _, sql in made:
            file.execute(sql)


@pytest.mark.parametrize("needs", ["'x'", "5", "x'35'", "x'7b'", "x'5b31225d'"])
@pytest.mark.parametrize("column", ["needs", "cancel"])
def test_runner_survives_a_damaged_claim(
    needs: str, column: str, tmp_path: Path, store: Store
) -> None:
    """Of what it needs, or why it is cancelled."""
    store.start(DOCUMENT, {}, name="odd")
    number = store.get("odd").number
    store.session.flush()
    edit(
        tmp_path / "runs.db",
        f"INSERT INTO claim (execution, {column}) VALUES ({number}, {needs})",
    )
    store.answer(store.pending()[0]["requestId"], "approve", by="ann")
    assert store.stuck() == {} or "odd" in store.stuck()

    async def drained() -> None:
        async with store.runner() as runner:
            await runner.drain()

    with asyncio.Runner(loop_factory=store.clock.new_event_loop) as loop:
        loop.run(drained())
    assert store.result("good").ok


def test_execution_that_has_started_itself_is_damaged(tmp_path: Path) -> None:
    """No command follows the circle for ever."""
    with opened(tmp_path / "runs.db") as store:
        store.run(DOCUMENT, {}, name="it")
        store.run(DOCUMENT, {}, name="good")
    edit(
        tmp_path / "runs.db",
        "UPDATE execution SET parent = number, status = 'PAUSED', wake = 0 WHERE name = 'it'",
    )
    with opened(tmp_path / "runs.db") as store:
        expect_named(store)
        assert [each.name for each in store.executions()] == ["good"]
        (request,) = (each for each in store.pending() if "good" in each["requestId"])
        store.answer(request["requestId"], "approve", by="ann")

        async def drained() -> None:
            async with store.runner() as runner:
                await runner.drain()

        with asyncio.Runner(loop_factory=store.clock.new_event_loop) as loop:
            loop.run(drained())
        assert store.result("good").ok


def test_visit_with_a_number_of_many_digits_is_refused(store: Store) -> None:
    with pytest.raises(asl.AslError, match="has no state 'Ask#9"):
        store.fork("good", f"Ask#{'9' * 5000}")


LONG = b'{"sha256": "' + b"x" * 2**20 + b'"}'
MANY = b"[" + b"{}," * 30_000 + b"{}]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LONG, "the line is longer than 1 MiB"),
        (MANY, "the line is longer than 1 MiB, or has more than 21,845 values"),
        (b"[" * 20_000 + b"]" * 20_000, "the line is nested too deep"),
        (b'{"sha256": NaN}', "its digest differs"),
        (b'{"sha256": ' + b"9" * 5000 + b"}", "digits"),
        (b'{"sha256": "\xff"}', "can't decode byte 0xff"),
        (b'{"sha256": "a", "sha256": "b", "executions": 5}', "its digest differs"),
        (b'{"sha256": "\\ud800"}', "its digest differs"),
        (b"\n", "Expecting value"),
    ],
)
def test_import_refuses_a_hostile_line(text: bytes, message: str, tmp_path: Path) -> None:
    """With its number; what is too large is not even built."""
    path = tmp_path / "runs.jsonl"
    path.write_bytes(text)
    words = ["import", str(path), "--store", str(tmp_path / "runs.db"), "--max-mib", "1"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2, done.output
    assert f"{path}:1: " in done.stderr
    assert message in done.stderr


@pytest.mark.parametrize(
    "column", ["name", "number", "parent", "status", "started", "chain", "bound"]
)
@pytest.mark.parametrize("value", [None, 5, -1, 10**30, 1.5, "x", [], {}, {"base64": "!"}, True])
def test_import_of_a_column_of_another_type_is_refused_or_works(
    column: str, value: Any, line: Line, store: Store
) -> None:
    """Never anything else, and nothing stays of what is refused."""
    line["executions"][0]["execution"][0][column] = value
    try:
        store.import_execution(signed(line))
    except asl.StoreError:
        assert [each.name for each in store.executions()] == ["good"]
    expect_named(store)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW more AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) "
        "SELECT x FROM c",
        "CREATE TRIGGER t AFTER INSERT ON execution BEGIN DELETE FROM step; END",
    ],
)
def test_a_store_with_a_program_in_it_is_refused(statement: str, tmp_path: Path) -> None:
    """A view can have endless rows, and a trigger changes what is written."""
    path = tmp_path / "runs.db"
    Store(path).close()
    with closing(sqlite3.connect(path)) as file:
        file.execute(statement)
    with pytest.raises(asl.StoreError, match=r"has a view or trigger .*, which no store has"):
        Store(path)
