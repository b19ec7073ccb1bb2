"""Deletion of executions and of unreferenced large values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from asl.stores.executions import ENDED, LARGEST_NUMBER
from asl.stores.session import Session
from asl.stores.statements import (
    PARAMETER,
    Delete,
    Select,
    begins_with,
    below,
    contains,
    one_of,
)
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

__all__ = [
    "LARGE_IN_STEP",
    "delete_executions",
    "delete_unused_values",
    "ended_before",
    "ended_beyond",
]

LARGE_IN_STEP = re.compile(rb'"large":"([0-9a-f]{64})"')
"""Reference of a step to a large value; data of this form preserves a value without need."""
_BEFORE = {"parent": None, "ended": below(), "status": one_of(*ENDED)}
ENDED_BEFORE = Select(EXECUTION, ("name",), _BEFORE, order=("number",))
EXPRESS_BEFORE = Select(EXECUTION, ("name",), {**_BEFORE, "express": 1}, order=("number",))
LATEST_ENDED = Select(
    EXECUTION,
    ("number", "name"),
    {"parent": None, "status": one_of(*ENDED), "number": below()},
    order=("-number",),
    limited=True,
    by="number",
)
TOGETHER = 5000
"""Number of rows that are read together."""
PARTS = (HEAD, REQUEST, CHECKPOINT, CLAIM, LIVE)
DELETE = (
    *(Delete(table, {"execution": one_of()}) for table in PARTS),
    Delete(EXECUTION, {"number": one_of()}),
)
HEADS = Select(HEAD, ("step", "place"), {"execution": one_of()})
DELETE_STEPS = Delete(STEP, {"place": one_of()})
DELETE_ALL_STEPS = Delete(STEP, {"execution": one_of()})
LARGE = Select(BLOB, ("hash",))
DELETE_LARGE = Delete(BLOB, {"hash": PARAMETER})
REFERRING = tuple(
    Select(table, (column,), {column: begins_with(b"#")})
    for table in (EXECUTION, REQUEST, CHECKPOINT, BUDGET, RESOURCE, AUDIT)
    for column in table.values
)
STEPS = Select(STEP, ("body",), {"body": contains(b'"large":')})
LARGE_STEPS = Select(
    STEP, ("place",), {"place": one_of(), "body": contains(b'"large":')}, limited=True
)
REFERRING_OF = tuple(
    Select(
        table,
        (column,),
        {"number" if table is EXECUTION else "execution": one_of(), column: begins_with(b"#")},
        limited=True,
    )
    for table in (EXECUTION, REQUEST, CHECKPOINT)
    for column in table.values
    if column != "bound"  # most executions share one
)


def ended_before(session: Session, time: float, *, express: bool = False) -> list[str]:
    """Return the names of the executions that ended before a time, oldest first.

    Child executions are not listed; they are deleted with their parents.

    Args:
        session: The store.
        time: The time in epoch seconds.
        express: Whether to list only express executions.
    """
    found = session.select(EXPRESS_BEFORE if express else ENDED_BEFORE, time)
    return [name for (name,) in found]


def ended_beyond(session: Session, latest: int) -> list[str]:
    """Return the names of the ended executions that are not the latest ones, oldest first.

    Child executions are neither counted nor listed.

    Args:
        session: The store.
        latest: Number of the latest ones.
    """
    names: list[str] = []
    before, count = LARGEST_NUMBER, 0
    while rows := session.select(LATEST_ENDED, before, TOGETHER):
        names += [name for _, name in rows[max(0, latest - count) :]]
        before, count = rows[-1][0], count + len(rows)
    return names[::-1]


def delete_executions(session: Session, numbers: Iterable[int]) -> bool:
    """Delete executions with their histories, requests and checkpoints in one transaction.

    Large values remain until `delete_unused_values`; documents remain.

    Returns:
        Whether the executions referred to large values other than the names of their bindings.
    """
    listed = [*numbers]
    with session.transaction():
        places = _places_of_steps(session, listed)
        if places is None:
            session.write(DELETE_ALL_STEPS, listed)
        else:
            session.write(DELETE_STEPS, places)
        for delete in DELETE:
            session.write(delete, listed)
        return places is None or _refer(session, listed, places)


def _places_of_steps(session: Session, numbers: list[int]) -> list[int] | None:
    """Return the places of the steps of executions; None if one may be missing."""
    places: list[int] = []
    heads = session.select(HEADS, numbers)
    if len(heads) < len(numbers):
        return None
    for last, place in heads:
        found = session.connection.trace(place, last, 1)
        if len(found) != last:
            return None
        places += [place for _, place in found]
    return places


def _refer(session: Session, numbers: list[int], places: list[int]) -> bool:
    """Return whether executions refer to large values in their rows or steps."""
    referring = any(session.select(select, numbers, 1) for select in REFERRING_OF)
    return referring or bool(session.select(LARGE_STEPS, places, 1))


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
