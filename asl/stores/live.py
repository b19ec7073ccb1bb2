"""What agents say while they say it, for those who follow an execution until it is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asl.core.values import Json, encoded

if TYPE_CHECKING:
    from asl.stores.sqlite import SqliteStore

__all__ = ["TABLE", "chunks_after", "drop_chunks", "put_chunk"]

TABLE = """
    CREATE TABLE live (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        execution INTEGER NOT NULL,
        body BLOB NOT NULL
    );
    CREATE INDEX live_execution ON live (execution, id);
"""


def put_chunk(store: SqliteStore, number: int, chunk: Json) -> None:
    """Show with the next commit what an agent of an execution says."""
    store.write("INSERT INTO live (execution, body) VALUES (?, ?)", number, encoded(chunk))


def chunks_after(store: SqliteStore, number: int, last: int) -> list[tuple[int, Json]]:
    """Return what was shown behind the row *last*, each with the id of its row."""
    query = "SELECT id, body FROM live WHERE execution = ? AND id > ? ORDER BY id"
    return [(id, store.read(body)) for id, body in store.rows(query, number, last)]


def drop_chunks(store: SqliteStore, number: int) -> None:
    """Forget with the next commit what was shown of an execution: it is recorded."""
    store.write("DELETE FROM live WHERE execution = ?", number)
