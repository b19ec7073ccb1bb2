"""What can be wrong with a store, and is looked for on request only."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from asl.engine.checkpoints import Checkpoint
from asl.stores.histories import History, chain_faults, read_histories
from asl.stores.pools import StoreBudgets, holder_of
from asl.stores.schema import GUARDED
from asl.stores.sqlite import STORED, TASKS, SqliteStore, StoreDamaged, StoreError, is_hashed

__all__ = ["faults", "of_file"]

HEADER = 100
MAGIC = b"SQLite format 3\0"
ORPHANS = {
    "step": "steps of the history",
    "head": "ends of histories",
    "request": "requests",
    "checkpoint": "checkpoints",
}
ENDED = ("SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED")
"""The statuses of executions that do not run any more."""
VALUES = {
    "execution": ("input", "output", "usage", "bound"),
    "request": ("body", "received", "answer"),
    "checkpoint": ("body",),
    "tab": ("body",),
}
"""The columns that hold values."""
OWNERS = {
    "execution": "number", "request": "execution", "checkpoint": "execution", "tab": "name"
}  # fmt: skip
"""The columns that say to what a value belongs."""
WAITING_FOR_NOTHING = (
    "SELECT name FROM execution AS e WHERE status = 'PAUSED' AND wake IS NOT 0 AND NOT EXISTS ("
    "SELECT 1 FROM request WHERE execution = e.number AND status IN ('open', 'answered')) "
    "AND NOT EXISTS (SELECT 1 FROM execution WHERE parent = e.number "
    "AND status IN ('PAUSED', 'RUNNING')) AND NOT EXISTS (SELECT 1 FROM claim "
    "WHERE execution = e.number AND (needs IS NOT NULL OR timer IS NOT NULL))"
)
"""The executions that are paused and not due, and wait for no answer, time, binding or child."""
SPENT = (
    "SELECT min(name), body FROM execution JOIN document ON hash = document "
    "WHERE usage IS NOT NULL AND parent IS NULL AND typeof(body) = 'blob' "
    "AND instr(body, CAST('\"Pool\":' AS BLOB)) GROUP BY hash"
)
"""An execution that has spent something for each document that may name a pool."""
Progress: TypeAlias = Callable[[str], object]
"""Takes the name of what is checked next, and how much of it is done."""


def _nothing(part: str) -> None:
    """Report no progress."""


def faults(store: SqliteStore, report: Progress = _nothing) -> Iterator[str]:
    """Yield a sentence for each fault.

    Of the file, of the histories, of what refers to nothing, of values that were changed.
    """
    try:
        yield from _faults(store, report)
    except StoreDamaged as damage:  # the file cannot be read any further
        yield from of_file(store.path)
        yield f"the file: {damage.what}"
    except StoreError as fault:
        yield str(fault)


def of_file(path: Path) -> Iterator[str]:
    """Yield what the beginning and the size of a file say that is damaged (SQLite, file format)."""
    with path.open("rb") as file:
        head = file.read(HEADER)
        size = file.seek(0, 2)
    if not head.startswith(MAGIC):
        yield "the file: it is no SQLite database, or its beginning was overwritten"
        return
    page, pages = int.from_bytes(head[16:18]), int.from_bytes(head[28:32])
    whole = pages * (0x10000 if page == 1 else page)
    if size < whole:
        yield f"the file: it was truncated, {size:,} bytes of {whole:,} are there"


def _faults(store: SqliteStore, report: Progress) -> Iterator[str]:
    report("the file")
    for (said,) in store.rows("PRAGMA integrity_check"):
        if said != "ok":
            yield f"the file: {said}"
    histories = read_histories(store, report)
    for number, history in histories.items():
        if not history.whole:
            yield from chain_faults(store, number, history)
    report("executions")
    yield from _orphans(store)
    yield from _documents(store)
    yield from _executions(store)
    yield from _changed(store)
    yield from _requests(store, histories)
    yield from _paused(store)
    yield from _checkpoints(store, histories)
    report("values")
    yield from _values(store)
    yield from _large(store, histories)
    yield from _reservations(store)
    yield from _pools(store)


def _orphans(store: SqliteStore) -> Iterator[str]:
    for table, what in ORPHANS.items():
        query = (
            f"SELECT count(*) FROM {table} WHERE execution NOT IN (SELECT number FROM execution)"
        )
        ((count,),) = store.rows(query)
        if count:
            yield f"{count} {what} belong to no execution"


def _documents(store: SqliteStore) -> Iterator[str]:
    """Every document is what was written, and those of all executions are there."""
    used = {key: name for name, key in store.each("SELECT name, document FROM execution")}
    for key, name in used.items():
        try:
            store.document(key)
        except StoreDamaged as fault:
            yield f"{name}: {fault.what}"


def _executions(store: SqliteStore) -> Iterator[str]:
    """Every execution can be read, and one that has succeeded has an output."""
    query = f"SELECT {STORED}, output IS NULL FROM execution"
    for *row, without_output in store.each(query):
        try:
            known = store.stored(row)
        except StoreDamaged as fault:
            yield f"{row[1]}: {fault.what}"
        else:
            if known.status == "SUCCEEDED" and without_output:
                yield f"{known.name}: the output of an execution is missing"


def _changed(store: SqliteStore) -> Iterator[str]:
    """Every row has its checksum; those of executions are checked when they are read."""
    for table, columns in GUARDED.items():
        if table == "execution":
            continue
        name = "name" if table == "tab" else "id"
        changed = f"SELECT {name} FROM {table} WHERE guard({columns}) IS NOT guard"
        for (which,) in store.rows(changed):
            yield f"the {table} {which!r} was changed"


def _requests(store: SqliteStore, histories: Mapping[int, History]) -> Iterator[str]:
    """Every request asks what the history says, and none is missing."""
    there = set()
    asked = f"SELECT id, execution FROM request WHERE kind NOT IN {TASKS}"
    for id, number in store.rows(asked):
        there.add(id)
        history = histories.get(number)
        recorded = None if history is None else history.digests.get(id)
        try:
            for request in store.requests("id = ?", id) if recorded is not None else ():
                store.check(request.content_digest == recorded, f"what the request {id} asks")
        except StoreDamaged as fault:
            yield f"{_name(store, number)}: {fault.what}"
    for history in histories.values():
        for id in sorted(history.requests - there):
            yield f"{history.name}: the request {id} is missing"


def _paused(store: SqliteStore) -> Iterator[str]:
    """Every paused execution waits for an answer, for a time or for one that it has started."""
    for (name,) in store.rows(WAITING_FOR_NOTHING):
        yield f"{name}: it is paused, and the request that it waits for is missing"


def _checkpoints(store: SqliteStore, histories: Mapping[int, History]) -> Iterator[str]:
    """Every checkpoint has the name under which it was saved, and none is missing."""
    count: dict[int, int] = {}
    for number, id, name, body in store.each("SELECT execution, id, name, body FROM checkpoint"):
        count[number] = count.get(number, 0) + 1
        try:
            saved = Checkpoint.read(store.unpacked(body))
            store.check((saved.id, saved.name) == (id, name), f"the checkpoint {name!r}")
        except StoreDamaged as fault:
            yield f"{_name(store, number)}: {fault.what}"
    for number, history in histories.items():
        missing = history.checkpoints - count.get(number, 0)
        if missing > 0:
            yield f"{history.name}: checkpoints are missing: {missing}"


def _values(store: SqliteStore) -> Iterator[str]:
    """Every value is what was written, and the large ones are there."""
    for table, columns in VALUES.items():
        key = OWNERS[table]
        for column in columns:
            query = f"SELECT {key}, {column} FROM {table} WHERE {column} IS NOT NULL"
            for owner, body in store.rows(query):
                try:
                    store.check_value(body)
                except StoreDamaged as fault:
                    of = owner if table == "tab" else _name(store, owner)
                    yield f"{of}: {column} of {table}: {fault.what}"


def _large(store: SqliteStore, histories: Mapping[int, History]) -> Iterator[str]:
    """Every large value has its hash, and those that steps refer to are there."""
    there = set()
    for key, body in store.each("SELECT hash, body FROM blob"):
        there.add(key.hex() if type(key) is bytes else None)
        if type(key) is not bytes or not is_hashed(body, key):
            name = key.hex()[:12] if type(key) is bytes else repr(key)
            yield f"the large value {name} was changed"
    for history in histories.values():
        for key in sorted(history.large - there):
            yield f"{history.name}: the large value {key[:12]} is missing"


def _reservations(store: SqliteStore) -> Iterator[str]:
    """An execution holds nothing of a pool, or of the money of an hour, once it has ended; once its
    process has died, nothing for calls."""
    budgets = StoreBudgets(store)
    ended = set(store.rows(f"SELECT workflow, name FROM execution WHERE status IN {ENDED}"))
    for budget, body in store.rows("SELECT name, body FROM tab WHERE name NOT LIKE 'Tools %'"):
        for entry in store.unpacked(body)["open"]:
            holder = holder_of(entry)
            if holder is None:
                continue
            if (holder.workflow, holder.name) in ended:
                why = "which has ended"
            elif entry != holder.id and not budgets.is_at_work(holder.name):
                why = "whose process has died"
            else:
                continue
            left = f"a reservation is left of {holder.name}, {why}"
            yield f"{budget}: {left}; --release gives it back"


def _pools(store: SqliteStore) -> Iterator[str]:
    """Every pool from which an execution has spent has its row."""
    there = {name for (name,) in store.rows("SELECT name FROM tab")}
    for name, body in store.rows(SPENT):
        with suppress(StoreDamaged):  # a damaged document is another fault
            pool = store.read(body).get("Budget", {}).get("Pool")
            if pool is not None and f"Pool {pool}" not in there:
                yield f"{name}: what was spent from the pool {pool!r} is missing"


def _name(store: SqliteStore, number: int) -> str:
    found = store.rows("SELECT name FROM execution WHERE number = ?", number)
    return str(found[0][0]) if found else f"execution {number}"
