"""Deletion of executions, and of the large values that nothing refers to any more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from asl.core.values import compact

if TYPE_CHECKING:
    from asl.stores.sqlite import SqliteStore

__all__ = ["delete_executions", "delete_unused_values", "ended_before"]

TABLES = {
    "step": "execution",
    "head": "execution",
    "request": "execution",
    "checkpoint": "execution",
    "claim": "execution",
    "live": "execution",
    "execution": "number",
}
"""The tables with rows of executions, and the column with the number of the execution."""
REFERRING = {
    "execution": ("input", "output", "usage", "bound"),
    "request": ("body", "received", "answer"),
    "checkpoint": ("body",),
    "tab": ("body",),
}
"""The columns that may refer to a large value by `#` and its hash."""
REFERENCE = re.compile(rb'"large":"([0-9a-f]{64})"')
"""How a step refers to a large value; data that looks so keeps a value that nothing needs."""
ENDED = (
    "SELECT name FROM execution WHERE parent IS NULL AND ended < ? "
    "AND status IN ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'ABORTED') ORDER BY number"
)


def ended_before(store: SqliteStore, time: float) -> list[str]:
    """Return the names of the executions that ended before a time, the oldest first.

    Those that another execution started are deleted together with it, and not listed.
    """
    return [name for (name,) in store.rows(ENDED, time)]


def delete_executions(store: SqliteStore, numbers: Iterable[int]) -> None:
    """Delete executions with their histories, requests and checkpoints in one transaction.

    Large values stay until `delete_unused_values`; documents stay.
    """
    listed = compact([*numbers])
    with store.transaction():
        for table, column in TABLES.items():
            values = "SELECT value FROM json_each(?)"
            store.write(f"DELETE FROM {table} WHERE {column} IN ({values})", listed)


def delete_unused_values(store: SqliteStore) -> None:
    """Delete the large values that nothing refers to."""
    with store.transaction():
        unused = {key for (key,) in store.each("SELECT hash FROM blob")}
        unused.difference_update(_referred(store) if unused else ())
        for key in unused:
            store.write("DELETE FROM blob WHERE hash = ?", key)


def _referred(store: SqliteStore) -> Iterator[bytes]:
    """Yield the hashes of the large values that rows refer to."""
    for table, columns in REFERRING.items():
        for column in columns:
            query = f"SELECT substr({column}, 2) FROM {table} WHERE substr({column}, 1, 1) = x'23'"
            yield from (key for (key,) in store.each(query))
    steps = "SELECT body FROM step WHERE instr(body, CAST('\"large\":' AS BLOB))"
    for (body,) in store.each(steps):
        yield from (bytes.fromhex(each.decode()) for each in REFERENCE.findall(body))
