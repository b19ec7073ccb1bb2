"""What can be wrong with a store, and is looked for on request only."""

from collections.abc import Iterator
from pathlib import Path

from asl.stores.log import Log
from asl.stores.schema import GUARDED
from asl.stores.sqlite import SqliteStore, StoreDamaged, StoreError, is_hashed

__all__ = ["faults", "of_file"]

HEADER = 100
MAGIC = b"SQLite format 3\0"
ORPHANS = {
    "step": "steps of the history",
    "head": "ends of histories",
    "request": "requests",
    "checkpoint": "checkpoints",
}
VALUES = {
    "execution": ("input", "output", "usage"),
    "request": ("body", "received", "answer"),
    "checkpoint": ("body",),
}
"""The columns that hold values."""
ADDED = (
    "SELECT name, count(*) - step FROM execution JOIN head ON head.execution = execution.number "
    "JOIN step ON step.execution = execution.number GROUP BY execution.number "
    "HAVING count(*) > head.step"
)
"""The executions that have more steps than stand in their history, and how many more."""


def faults(store: SqliteStore) -> Iterator[str]:
    """Yield a sentence for each fault.

    Of the file, of the histories, of what refers to nothing, of values that were changed.
    """
    try:
        yield from _faults(store)
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


def _faults(store: SqliteStore) -> Iterator[str]:
    for (said,) in store.rows("PRAGMA integrity_check"):
        if said != "ok":
            yield f"the file: {said}"
    yield from _chains(store)
    for table, what in ORPHANS.items():
        query = (
            f"SELECT count(*) FROM {table} WHERE execution NOT IN (SELECT number FROM execution)"
        )
        ((count,),) = store.rows(query)
        if count:
            yield f"{count} {what} belong to no execution"
    for name, document in store.rows("SELECT name, document FROM execution"):
        try:
            store.execution(name)
            store.document(document)
        except StoreDamaged as fault:
            yield f"{name}: {fault.what}"
    for table, columns in GUARDED.items():
        name = "name" if table == "execution" else "id"
        changed = f"SELECT {name} FROM {table} WHERE guard({columns}) IS NOT guard"
        for (which,) in store.rows(changed):
            yield f"the {table} {which!r} was changed"
    yield from _values(store)


def _chains(store: SqliteStore) -> Iterator[str]:
    """Each step carries the hash of itself and of all before it; what it refers to is there."""
    damaged = set()
    for number, name in store.rows("SELECT number, name FROM execution"):
        try:
            for _ in Log(store, number).read():
                pass
        except StoreDamaged as fault:
            damaged.add(name)
            yield f"{name}: {fault.what}"
    for name, count in store.rows(ADDED):
        if name not in damaged:
            yield f"{name}: steps of the history were added: {count}"


def _values(store: SqliteStore) -> Iterator[str]:
    """Every value is what was written, and the large ones are there."""
    for table, columns in VALUES.items():
        key = "number" if table == "execution" else "execution"
        for column in columns:
            query = f"SELECT {key}, {column} FROM {table} WHERE {column} IS NOT NULL"
            for number, body in store.rows(query):
                try:
                    store.unpacked(body)
                except StoreDamaged as fault:
                    yield f"{_name(store, number)}: {column} of {table}: {fault.what}"
    for key, body in store.rows("SELECT hash, body FROM blob"):
        if type(key) is not bytes or not is_hashed(body, key):
            name = key.hex()[:12] if type(key) is bytes else repr(key)
            yield f"the large value {name} was changed"


def _name(store: SqliteStore, number: int) -> str:
    found = store.rows("SELECT name FROM execution WHERE number = ?", number)
    return str(found[0][0]) if found else f"execution {number}"
