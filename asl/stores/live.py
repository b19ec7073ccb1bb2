"""What agents say while they say it, for those who follow an execution until it is recorded."""

from __future__ import annotations

from asl.core.values import Json, encoded
from asl.stores.session import Session
from asl.stores.statements import GIVEN, Delete, Insert, Select, above
from asl.stores.tables import LIVE

__all__ = ["chunks_after", "drop_chunks", "put_chunk"]

PUT = Insert(LIVE, ("execution", "body"))
AFTER = Select(LIVE, ("id", "body"), {"execution": GIVEN, "id": above()}, order=("id",))
DROP = Delete(LIVE, {"execution": GIVEN})


def put_chunk(session: Session, number: int, chunk: Json) -> None:
    """Show with the next commit what an agent of an execution says."""
    session.write(PUT, number, encoded(chunk))


def chunks_after(session: Session, number: int, last: int) -> list[tuple[int, Json]]:
    """Return what was shown behind the row *last*, each with the id of its row."""
    return [(id, session.values.read(body)) for id, body in session.select(AFTER, number, last)]


def drop_chunks(session: Session, number: int) -> None:
    """Forget with the next commit what was shown of an execution: it is recorded."""
    session.write(DROP, number)
