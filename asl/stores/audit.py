"""The audit log of a service, as rows in a chain of hashes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, Final, NamedTuple

from asl.core.values import Json, encode
from asl.stores.backend import Write
from asl.stores.resources import Resource, committed_resource, write_of
from asl.stores.session import Session
from asl.stores.statements import PARAMETER, Insert, Select, below
from asl.stores.tables import AUDIT

__all__ = ["HEAD", "AuditEntry", "AuditFilter", "add_entry", "audit_faults", "list_entries"]

COLUMNS: Final = ("time", "user", "method", "action", "target", "hash", "body")
READ: Final = ("id", *COLUMNS)
ADD = Insert(AUDIT, COLUMNS)
PAGE = Select(AUDIT, READ, {"id": below()}, order=("-id",), limited=True, checked=True)
OF_USER = Select(
    AUDIT, READ, {"id": below(), "user": PARAMETER}, order=("-id",), limited=True, checked=True
)
ALL = Select(AUDIT, READ, order=("id",), checked=True)
LARGEST: Final = 2**62
HEAD: Final = "audit-log"
"""Name of the resource with the number of entries and the last hash."""
START: Final = bytes(32)
"""Hash before the first entry."""
PART: Final = 500
"""Entries that are read in one query."""


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
        hash: SHA-256 of the entry and the hash before it; empty for a new one.
    """

    time: float
    user: str
    method: str
    action: str
    target: str
    details: dict[str, Json]
    id: int = 0
    hash: bytes = b""

    def hash_after(self, previous: bytes) -> bytes:
        """Return the hash of the entry, which continues the chain."""
        return sha256(previous + encode([float(self.time), *self[1:5], self.details])).digest()


class AuditFilter(NamedTuple):
    """Which entries are listed.

    Attributes:
        user: Name of the user; None for all.
        action: The action or its first part, such as `execution`; None for all.
        target: Part of the target; None for all.
        since: Earliest time in epoch seconds; None for all.
    """

    user: str | None = None
    action: str | None = None
    target: str | None = None
    since: float | None = None

    def accepts(self, entry: AuditEntry) -> bool:
        """Return whether an entry of the user is listed."""
        return (
            (self.action is None or f"{entry.action}.".startswith(f"{self.action}."))
            and (self.target is None or self.target in entry.target)
            and (self.since is None or entry.time >= self.since)
        )


EVERYTHING: Final = AuditFilter()


def add_entry(session: Session, entry: AuditEntry) -> None:
    """Add an entry with the next commit."""
    body = session.values.pack(encode(entry.details))
    session.write(_append, session, entry, body)


def _append(session: Session, entry: AuditEntry, body: bytes) -> Iterable[Write]:
    """Yield the changes that continue the chain, within their transaction."""
    count, last = _head(session)
    hashed = entry.hash_after(last)
    yield ADD, (*entry[:5], hashed, body)
    head = Resource(HEAD, HEAD, "", 0, {"count": count + 1, "hash": hashed.hex()})
    yield write_of(session, head)


def _head(session: Session) -> tuple[int, bytes]:
    """Return the number of entries and the last hash."""
    found = committed_resource(session, HEAD)
    if found is None:
        return 0, START
    with session.damage_reports("the end of the audit log"):
        return int(found.body["count"]), bytes.fromhex(found.body["hash"])


def list_entries(
    session: Session,
    *,
    before: int | None = None,
    limit: int = 100,
    wanted: AuditFilter = EVERYTHING,
) -> list[AuditEntry]:
    """Return a page of the log, newest first.

    Args:
        session: The store.
        before: Number of the last entry of the previous page; None for the first page.
        limit: Maximum number of entries.
        wanted: Which entries.

    Raises:
        StoreDamaged: An entry is damaged.
    """
    found: list[AuditEntry] = []
    position = LARGEST if before is None else before
    while len(found) < limit:
        if wanted.user is None:
            rows = session.select(PAGE, position, PART)
        else:
            rows = session.select(OF_USER, position, wanted.user, PART)
        page = [_read(session, row) for row in rows]
        found += filter(wanted.accepts, page)
        if len(rows) < PART or (wanted.since is not None and page[-1].time < wanted.since):
            break
        position = page[-1].id
    return found[:limit]


def _read(session: Session, row: tuple[Any, ...]) -> AuditEntry:
    number, time, user, method, action, target, hashed, body, whole = row
    session.check(whole == 1, f"the entry {number} of the audit log")
    details: Json = session.values.unpack(body)
    session.check(type(details) is dict, f"the entry {number} of the audit log")
    return AuditEntry(time, user, method, action, target, details, number, hashed)


def audit_faults(session: Session) -> Iterator[str]:
    """Yield a sentence for each break of the chain: changed, inserted and removed entries.

    Raises:
        StoreDamaged: A row cannot be read.
    """
    count, last = 0, START
    for row in session.scan(ALL):
        entry = _read(session, row)
        count += 1
        if entry.hash_after(last) != entry.hash:
            yield f"the audit log: the entry {entry.id} does not follow the one before it"
        last = entry.hash
    if (count, last) != _head(session):
        expected, _ = _head(session)
        yield f"the audit log: it has {count} entries and should have {expected}"
