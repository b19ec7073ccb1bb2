"""Deletion of executions and of unreferenced large values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from asl.stores.executions import ENDED
from asl.stores.session import Session
from asl.stores.statements import PARAMETER, Delete, Select, begins_with, below, contains, one_of
from asl.stores.tables import (
    AUDIT,
    BLOB,
    BUDGET,
    CHECKPOINT,
    CLAIM,
    EXECUTION,
    HEAD,
    LIVE,
    REQUEST,
    RESOURCE,
    STEP,
)

__all__ = ["LARGE_IN_STEP", "delete_executions", "delete_unused_values", "ended_before"]

LARGE_IN_STEP = re.compile(rb'"large":"([0-9a-f]{64})"')
"""Reference of a step to a large value; data of this form preserves a value without need."""
ENDED_BEFORE = Select(
    EXECUTION,
    ("name",),
    {"parent": None, "ended": below(), "status": one_of(*ENDED)},
    order=("number",),
)
PARTS = (STEP, HEAD, REQUEST, CHECKPOINT, CLAIM, LIVE)
DELETE = (
    *(Delete(table, {"execution": one_of()}) for table in PARTS),
    Delete(EXECUTION, {"number": one_of()}),
)
LARGE = Select(BLOB, ("hash",))
DELETE_LARGE = Delete(BLOB, {"hash": PARAMETER})
REFERRING = tuple(
    Select(table, (column,), {column: begins_with(b"#")})
    for table in (EXECUTION, REQUEST, CHECKPOINT, BUDGET, RESOURCE, AUDIT)
    for column in table.values
)
STEPS = Select(STEP, ("body",), {"body": contains(b'"large":')})


def ended_before(session: Session, time: float) -> list[str]:
    """Return the names of the executions that ended before a time, oldest first.

    Child executions are not listed; they are deleted with their parents.
    """
    return [name for (name,) in session.select(ENDED_BEFORE, time)]


def delete_executions(session: Session, numbers: Iterable[int]) -> None:
    """Delete executions with their histories, requests and checkpoints in one transaction.

    Large values remain until `delete_unused_values`; documents remain.
    """
    listed = [*numbers]
    with session.transaction():
        for delete in DELETE:
            session.write(delete, listed)


def delete_unused_values(session: Session) -> None:
    """Delete unreferenced large values."""
    with session.transaction():
        unused = {key for (key,) in session.scan(LARGE)}
        unused.difference_update(_referred(session) if unused else ())
        for key in unused:
            session.write(DELETE_LARGE, key)


def _referred(session: Session) -> Iterator[bytes]:
    """Yield the hashes of the referenced large values."""
    for select in REFERRING:
        yield from (body[1:] for (body,) in session.scan(select))
    for (body,) in session.scan(STEPS):
        yield from (bytes.fromhex(each.decode()) for each in LARGE_IN_STEP.findall(body))
