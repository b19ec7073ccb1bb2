"""The audit log of a service, as rows."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from asl.core.values import Json, encode
from asl.stores.session import Session
from asl.stores.statements import Insert, Select, below
from asl.stores.tables import AUDIT

__all__ = ["AuditEntry", "add_entry", "list_entries"]

COLUMNS: Final = ("time", "user", "method", "action", "target", "body")
ADD = Insert(AUDIT, COLUMNS)
PAGE = Select(AUDIT, ("id", *COLUMNS), {"id": below()}, order=("-id",), limited=True, checked=True)
LARGEST: Final = 2**62


class AuditEntry(NamedTuple):
    """One action of a user.

    Attributes:
        time: Epoch seconds.
        user: Name of the user.
        method: How the user was authenticated.
        action: What was done.
        target: To what it was done.
        details: What else describes it.
        id: Number of the entry; 0 for a new one.
    """

    time: float
    user: str
    method: str
    action: str
    target: str
    details: dict[str, Json]
    id: int = 0


def add_entry(session: Session, entry: AuditEntry) -> None:
    """Add an entry with the next commit."""
    *columns, details, _ = entry
    session.write(ADD, *columns, session.values.pack(encode(details)))


def list_entries(
    session: Session, *, before: int | None = None, limit: int = 100
) -> list[AuditEntry]:
    """Return a page of the log, newest first.

    Raises:
        StoreDamaged: An entry is damaged.
    """
    rows = session.select(PAGE, LARGEST if before is None else before, limit)
    return [_read(session, row) for row in rows]


def _read(session: Session, row: tuple[Any, ...]) -> AuditEntry:
    number, time, user, method, action, target, body, whole = row
    session.check(whole == 1, f"the entry {number} of the audit log")
    details: Json = session.values.unpack(body)
    session.check(type(details) is dict, f"the entry {number} of the audit log")
    return AuditEntry(time, user, method, action, target, details, number)
