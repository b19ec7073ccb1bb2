"""What can be wrong with a store, and is looked for on request only."""

from collections.abc import Iterator
from hashlib import sha256

from asl.stores.journal import linked
from asl.stores.schema import GUARDED
from asl.stores.sqlite import SqliteStore, StoreDamaged, StoreError

__all__ = ["faults"]

ORPHANS = {
    "record": "records of the history",
    "answer": "answers",
    "position": "positions",
    "request": "requests",
    "checkpoint": "checkpoints",
}
VALUES = {
    "execution": ("input", "output", "usage"),
    "position": ("body",),
    "answer": ("body",),
    "request": ("body", "received", "answer"),
    "record": ("body",),
    "checkpoint": ("body",),
}
"""The columns that hold values."""
KEYS = {"position": "path", "answer": "key"}
"""The columns whose checksum is that of a value beside them."""


def faults(store: SqliteStore) -> Iterator[str]:
    """Yield a sentence for each fault.

    Of the file, of the histories, of what refers to nothing, of values that were changed.
    """
    try:
        yield from _faults(store)
    except StoreError as fault:  # the file cannot be read any further
        yield str(fault)


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
            yield f"{name}: {fault}"
    for table, columns in GUARDED.items():
        name = "name" if table == "execution" else "id"
        changed = f"SELECT {name} FROM {table} WHERE guard({columns}) IS NOT guard"
        for (which,) in store.rows(changed):
            yield f"the {table} {which!r} was changed"
    yield from _values(store)


def _chains(store: SqliteStore) -> Iterator[str]:
    """Each record carries the hash of itself and of all before it."""
    for number, name, chain in store.rows("SELECT number, name, chain FROM execution"):
        last = chain
        query = "SELECT number, path, body, hash FROM record WHERE execution = ? ORDER BY number"
        for expected, (at, path, body, kept) in enumerate(store.rows(query, number), start=1):
            last = linked(last, path, body)
            if at != expected:
                yield f"{name}: record {expected} of the history is missing"
                break
            if last != kept:
                yield f"{name}: record {at} of the history was changed"
                break


def _values(store: SqliteStore) -> Iterator[str]:
    """Every value is what was written, and the large ones are there."""
    for table, columns in VALUES.items():
        key = "number" if table == "execution" else "execution"
        for column in columns:
            row = KEYS.get(table, "''")
            query = f"SELECT {key}, {row}, {column} FROM {table} WHERE {column} IS NOT NULL"
            for number, name, body in store.rows(query):
                try:
                    store.unpacked(body, name)
                except StoreDamaged as fault:
                    yield f"{_name(store, number)}: {column} of {table}: {fault}"
    for key, body in store.rows("SELECT hash, body FROM blob"):
        if sha256(body).digest() != key:
            yield f"the large value {key.hex()[:12]} was changed"


def _name(store: SqliteStore, number: int) -> str:
    found = store.rows("SELECT name FROM execution WHERE number = ?", number)
    return str(found[0][0]) if found else f"execution {number}"
