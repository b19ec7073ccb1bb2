"""What can be wrong with a store, and is looked for on request only."""

from collections.abc import Iterator
from hashlib import sha256

from asl.stores.sqlite import SqliteStore, StoreDamaged

__all__ = ["faults"]

ORPHANS = {
    "record": "records of the history",
    "answer": "answers",
    "position": "positions",
    "request": "requests",
}


def faults(store: SqliteStore) -> Iterator[str]:
    """Yield a sentence for each fault: of the file, of the histories, of what refers to nothing."""
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
            store.document(document)
        except StoreDamaged as fault:
            yield f"{name}: {fault}"


def _chains(store: SqliteStore) -> Iterator[str]:
    """Each record carries the hash of itself and of all before it."""
    for number, name, chain in store.rows("SELECT number, name, chain FROM execution"):
        last = chain
        query = "SELECT number, path, body, hash FROM record WHERE execution = ? ORDER BY number"
        for expected, (at, path, body, kept) in enumerate(store.rows(query, number), start=1):
            last = sha256(last + path.encode() + b"\n" + body).digest()
            if at != expected:
                yield f"{name}: record {expected} of the history is missing"
                break
            if last != kept:
                yield f"{name}: record {at} of the history was changed"
                break
            if body[:1] == b"#":
                try:
                    store.unpacked(body)
                except StoreDamaged as fault:
                    yield f"{name}: record {at}: {fault}"
