"""What durability costs beyond the commits that it makes, and what waits for nothing costs."""

import asyncio
import gc
import shutil
import sqlite3
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asl
from asl.stores.sqlite import SqliteBackend
from asl.stores.sqlite.connection import guard
from asl.stores.sqlite.sql import compile_statement, parameters
from asl.stores.statements import Values
from benchmarks.workloads import LOOP, Sides, Workload, echo, items, map_document, program

__all__ = ["WORKLOADS"]

Json = Any

# D1, D32: executions of plain tasks

STEPS = 20
RUNS = 10
"""Times that it is done in a row: a disk that was idle takes longer for the first commits."""


def _steps() -> Json:
    """A document of so many tasks."""
    states = {
        f"S{i}": {
            "Type": "Task",
            "Agent": "W",
            "ResultPath": f"$.s{i}",
            **({"Next": f"S{i + 1}"} if i < STEPS - 1 else {"End": True}),
        }
        for i in range(STEPS)
    }
    return {"StartAt": "S0", "States": states}


def durable(at_once: int) -> Callable[[], Sides]:
    """Executions of 20 tasks on SQLite FULL, *at_once* at a time; a unit is one durable step."""

    def prepare() -> Sides:
        folder = Path(tempfile.mkdtemp())
        raw = _raw(folder / "raw.db")
        raw.execute("CREATE TABLE step (body BLOB)")
        store = asl.open_store(folder / "runs.db", agents={"W": echo})
        document = program(_steps())

        def by_hand() -> None:
            for _ in range(RUNS * STEPS * at_once):
                raw.execute("BEGIN IMMEDIATE")
                raw.execute("INSERT INTO step VALUES (?)", (b'{"seen":true}',))
                raw.execute("COMMIT")

        async def together() -> None:
            await asyncio.gather(*(store.arun(document, {}) for _ in range(at_once)))

        def ours() -> None:
            for _ in range(RUNS):
                if at_once == 1:
                    store.run(document, {})
                else:
                    asyncio.run(together())

        return by_hand, ours, RUNS * STEPS * at_once

    return prepare


def _raw(path: Path) -> sqlite3.Connection:
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("PRAGMA synchronous = FULL")
    raw.create_function("guard", -1, guard, deterministic=True)
    return raw


# DM: a Map of 10,000 durable items


def mapped() -> Sides:
    """By hand: the same Map four times in memory, and its transactions without us.

    Both come in by the front door, which copies the items and measures what becomes of them.
    """
    folder = Path(tempfile.mkdtemp())
    SqliteBackend(folder / "empty.db").connect().close()
    compiled, data = program(map_document(0)), items(10_000)
    store = asl.open_store(folder / "runs.db", agents={"A": echo})
    opened: list[sqlite3.Connection] = []

    async def in_memory() -> None:
        assert (await asl.arun(compiled, data, agents={"A": echo})).ok

    async def ours() -> None:
        assert (await store.arun(compiled, data)).ok

    transactions = _transactions(store, ours)

    def by_hand() -> None:
        for _ in range(4):
            LOOP.run_until_complete(in_memory())
        copy = folder / f"{len(opened)}.db"
        shutil.copy(folder / "empty.db", copy)
        raw = _raw(copy)
        opened.append(raw)  # to close it now would cost more than a commit
        for writes in transactions:
            raw.execute("BEGIN IMMEDIATE")
            for statement, values in writes:
                raw.execute(statement, values)
            raw.execute("COMMIT")

    return by_hand, lambda: LOOP.run_until_complete(ours()), 10_000


def _transactions(store: asl.Store, run: Callable[[], Any]) -> list[list[tuple[str, Values]]]:
    """Return what a run writes, a list of statements for each of its transactions."""
    written: list[list[tuple[str, Values]]] = []
    connection = store.session.connection
    commit = connection.commit

    def recorded(writes: Any, check: Any) -> None:
        written.append(
            [
                (compile_statement(change).sql, parameters(change, [values])[0])
                for change, values in writes
            ]
        )
        commit(writes, check)

    connection.commit = recorded  # type: ignore[method-assign]
    LOOP.run_until_complete(run())
    connection.commit = commit  # type: ignore[method-assign]
    return written


# DP: 10,000 executions that wait for people

ASKING = {
    "StartAt": "Ask",
    "States": {"Ask": {"Type": "Approval", "Prompt": "Go on?", "Timeout": "1h", "End": True}},
}
PAUSED = 10_000
BYTES = 16
"""What each of them may cost: less than any object."""


def paused() -> Sides:
    """Bytes that they hold in the process, with a check that nothing of them is left to happen."""
    compiled = program(ASKING)

    def ours() -> float:
        with asl.open_store(Path(tempfile.mkdtemp()) / "runs.db", synchronous="OFF") as store:

            async def wait(count: int) -> None:
                for _ in range(count // 100):
                    await asyncio.gather(*(store.arun(compiled, {}) for _ in range(100)))

            async def settled() -> None:
                for _ in range(3):  # the loop itself refers to what it did last
                    await asyncio.sleep(0)
                gc.collect()

            async def idle() -> float:
                await wait(100)
                await settled()
                tracemalloc.start()
                before, threads = tracemalloc.get_traced_memory()[0], threading.active_count()
                await wait(PAUSED)
                await settled()
                held = tracemalloc.get_traced_memory()[0] - before
                tracemalloc.stop()
                assert asyncio.all_tasks() == {asyncio.current_task()}
                assert threading.active_count() == threads
                begun = time.process_time()
                await asyncio.sleep(0.5)
                assert time.process_time() - begun < 0.01, "they are not idle"
                return held / PAUSED

            return max(1.0, asyncio.run(idle()))

    return lambda: BYTES, ours, 1


# DL: opening a store and listing a page


def listed() -> Sides:
    """By hand: a store of 1,000 executions; ours: one of 100,000."""
    folder = Path(tempfile.mkdtemp())
    for count in (1_000, 100_000):
        with asl.open_store(folder / f"{count}.db", agents={"W": echo}) as store:
            store.run(program(_steps()), {}, name="first")
            _multiply(store, count)

    def page(count: int) -> Callable[[], object]:
        def look() -> None:
            with asl.open_store(folder / f"{count}.db") as store:
                newest = store.executions()
                assert len(newest) == len(store.executions(before=newest[-1].number)) == 50
                assert len(store.executions(status="SUCCEEDED")) == 50

        return look

    return page(1_000), page(100_000), 1


def _multiply(store: asl.Store, count: int) -> None:
    """Add executions that are like the only one, but in number and name."""
    raw = _raw(Path(store.path))
    columns = [name for _, name, *_ in raw.execute("PRAGMA table_info(execution)")]
    copied = ", ".join(
        {"number": "number + n", "name": "name || n"}.get(name, name) for name in columns
    )
    raw.execute(
        "WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < ?) "
        f"INSERT INTO execution ({', '.join(columns)}) SELECT {copied} FROM execution, counted",
        (count - 1,),
    )
    raw.close()


WORKLOADS = (
    Workload("D1", "durable steps, one execution; vs single-row commits", 3, durable(1)),
    Workload("D32", "durable steps, 32 executions at once; vs the same", 0.6, durable(32)),
    Workload("DM", "durable Map, 10,000 items; vs 4 in memory + its commits", 1.15, mapped),
    Workload("DP", "bytes of an execution that is paused; vs 16 B", 1, paused, gives="B"),
    Workload("DL", "a page of 100,000 executions, store opened; vs 1,000", 2, listed),
)
