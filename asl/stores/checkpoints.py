"""Checkpoints of executions as rows."""

from __future__ import annotations

from asl.core.values import Json, encode
from asl.engine.checkpoints import Checkpoint
from asl.stores.session import Session
from asl.stores.statements import PARAMETER, Insert, Select
from asl.stores.tables import CHECKPOINT

__all__ = ["checkpoint_names", "put_checkpoint", "read_checkpoints"]

ADD = Insert(CHECKPOINT, ("execution", "number", "id", "name", "body"))
NAMES = Select(CHECKPOINT, ("id", "name"), {"execution": PARAMETER}, order=("number",))
ALL = Select(CHECKPOINT, ("body",), order=("execution", "number"))
OF_EXECUTION = Select(CHECKPOINT, ("body",), {"execution": PARAMETER}, order=("number",))


def put_checkpoint(
    session: Session, execution: int, number: int, checkpoint: Checkpoint, content: Json
) -> None:
    """Store a checkpoint with the next commit.

    Args:
        session: The store.
        execution: The number of the execution.
        number: The number of the checkpoint within the execution, from 1.
        checkpoint: The checkpoint.
        content: The stored JSON.
    """
    body = session.values.pack(encode(content))
    session.write(ADD, execution, number, checkpoint.id, checkpoint.name, body)


def checkpoint_names(session: Session, execution: int) -> list[tuple[str, str]]:
    """Return id and name of the checkpoints of an execution, in the order they were saved."""
    found = session.select(NAMES, execution)
    for id, name in found:
        session.check(type(id) is type(name) is str, "the name of a checkpoint")
    return [(id, name) for id, name in found]


def read_checkpoints(session: Session, execution: int | None = None) -> list[Checkpoint]:
    """Return the checkpoints of an execution, or of all, in the order they were saved."""
    rows = session.select(ALL) if execution is None else session.select(OF_EXECUTION, execution)
    with session.damage_reports("a checkpoint"):
        return [Checkpoint.read(session.values.unpack(body)) for (body,) in rows]
