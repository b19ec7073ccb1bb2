"""Workers of a store, and their claims on executions.

A worker is one connection to the store. It holds a lock that ends with its process, and renews its
lease while it runs. A worker whose lock is free has died; one whose lease has expired may hang, so
it is fenced: its next commit is refused, and others continue its executions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

from asl.core.values import Json, encode
from asl.stores.backend import Write
from asl.stores.errors import StoreDamaged
from asl.stores.requests import answered_ids
from asl.stores.session import Session
from asl.stores.statements import (
    PARAMETER,
    Delete,
    Insert,
    Select,
    Update,
    above,
    at_most,
    is_set,
    one_of,
)
from asl.stores.tables import CLAIM, EXECUTION, WORKER

__all__ = ["LEASE", "Cancellation", "Workers", "lock_of"]

LEASE = 15.0
"""Seconds after which a worker without a renewed lease is fenced."""

FENCED = Select(WORKER, ("id",), {"fenced": 1})
OWNED = Select(CLAIM, ("owner",), {"owner": is_set()})
FORGET_WORKER = Delete(WORKER, {"id": PARAMETER})
REGISTER = Insert(WORKER, ("id", "about", "seen"))
RENEW = Update(WORKER, {"seen": PARAMETER}, {"id": PARAMETER})
FENCE = Update(WORKER, {"fenced": 1}, {"id": PARAMETER})
SEEN = Select(WORKER, ("id", "seen"), {"fenced": 0}, order=("id",))
IS_FENCED = Select(WORKER, ("id",), {"id": PARAMETER, "fenced": 1})
IS_ALIVE = Select(WORKER, ("id",), {"id": PARAMETER, "fenced": 0})

OWN = Insert(CLAIM, ("execution", "owner"), "update", ("owner",))
NEED = Insert(CLAIM, ("execution", "needs"), "update", ("needs",))
TIME = Insert(CLAIM, ("execution", "timer"), "update", ("timer",))
CANCEL = Insert(CLAIM, ("execution", "cancel"), "update", ("cancel",))
RELEASE = Update(CLAIM, {"owner": None}, {"execution": PARAMETER, "owner": PARAMETER})
RELEASE_ALL = Update(CLAIM, {"owner": None}, {"owner": PARAMETER})
FORGET = Delete(CLAIM, {"execution": PARAMETER})
OWNER = Select(CLAIM, ("owner",), {"execution": PARAMETER, "owner": is_set()})
CLAIMS = Select(CLAIM, ("execution", "owner", "needs"), {"execution": one_of()})
NEEDING = Select(CLAIM, ("execution", "needs", "owner"), {"needs": is_set()}, by="needs")
NEEDS = Select(CLAIM, ("needs",), {"execution": PARAMETER, "needs": is_set()})
CANCELLED = Select(CLAIM, ("execution", "cancel"), {"cancel": is_set()})
CANCELLATION = Select(CLAIM, ("cancel",), {"execution": PARAMETER, "cancel": is_set()})

_NAMED = ("number", "name")
NEW = Select(
    EXECUTION,
    _NAMED,
    {"status": "RUNNING", "parent": None, "number": above()},
    order=("number",),
    limited=True,
)
DUE = Select(
    EXECUTION,
    (*_NAMED, "wake"),
    {"status": "PAUSED", "parent": None, "wake": at_most()},
    order=("wake",),
    limited=True,
    by="wake",
)
DUE_PARTS = Select(
    EXECUTION,
    ("parent",),
    {"status": "PAUSED", "parent": is_set(), "wake": at_most()},
    by="wake",
)
ABOVE = Select(EXECUTION, (*_NAMED, "parent", "status"), {"number": one_of()})
NEXT_WAKE = Select(
    EXECUTION,
    ("wake",),
    {"status": "PAUSED", "wake": above()},
    order=("wake",),
    limited=True,
    by="wake",
)
NAME = Select(EXECUTION, ("name", "status"), {"number": PARAMETER})


def lock_of(name: str) -> int:
    """Return the number of the lock of an execution or a worker."""
    return int.from_bytes(sha256(name.encode()).digest()[:7])


class Cancellation(NamedTuple):
    """A requested cancellation of an execution."""

    number: int
    name: str
    error: str | None
    cause: str | None


class Workers:
    """The claims of one store, for one thread."""

    def __init__(self, session: Session) -> None:
        self.session = session

    # Life cycle of a worker

    def register(self, id: str, about: Json, now: float) -> None:
        """Register this connection as the worker *id*: take its lock and start its lease."""
        session = self.session
        session.insist_writable()
        session.connection.lock(lock_of(id))
        session.write(self._forget_fenced)
        session.write(REGISTER, id, encode(about), now)
        session.flush()
        session.worker = id

    def _forget_fenced(self) -> Iterator[Write]:
        """Yield the changes that delete fenced workers without executions."""
        select = self.session.connection.select
        owners = {owner for (owner,) in select(OWNED)}
        for (id,) in select(FENCED):
            if id not in owners:
                yield FORGET_WORKER, (id,)

    def renew(self, now: float) -> None:
        """Renew the lease with the next commit."""
        self.session.write(RENEW, now, self.session.worker)

    def deregister(self) -> None:
        """End this worker, so that others may take its executions."""
        session, id = self.session, self.session.worker
        if id is None:
            return
        session.write(RELEASE_ALL, id)
        session.write(FORGET_WORKER, id)
        session.flush()
        session.worker = None
        session.connection.unlock(lock_of(id))

    def fence(self, now: float) -> list[str]:
        """Fence the workers that have died or whose leases have expired, and return their ids."""
        lost = [
            id
            for id, seen in self.session.select(SEEN)
            if id != self.session.worker
            and (type(seen) is not float or seen + LEASE < now or not self._is_there(id))
        ]
        for id in lost:
            self.session.write(FENCE, id)
        self.session.flush()
        return lost

    def _is_there(self, id: str) -> bool:
        """Return whether the process of another worker is alive."""
        return self.session.connection.is_locked(lock_of(id))

    # Claims

    def claim(self, number: int) -> None:
        """Record with the next commit that this worker runs an execution whose lock it holds."""
        self.session.write(OWN, number, self.session.worker)

    def acquire(self, number: int) -> bool:
        """Claim an execution whose lock is held here; return False if a live worker runs it.

        The claim is committed immediately, because another worker may take it over without the
        lock.
        """
        session = self.session
        if session.read_one(OWNER, number) in (None, (session.worker,)):
            return True
        with session.transaction():
            owner = session.read_one(OWNER, number)
            if owner is not None and owner != (session.worker,):
                if session.read_one(IS_ALIVE, *owner) is not None and self._is_there(owner[0]):
                    return False
                session.write(OWN, number, session.worker)
        return True

    def take_over(self, number: int) -> bool:
        """Claim an execution of a fenced worker, which may still hold its lock; return whether it
        succeeded.
        """
        session = self.session
        with session.transaction():
            owner = session.read_one(OWNER, number)
            if owner is None or owner not in session.select(FENCED):
                return False
            session.write(OWN, number, session.worker)
        return True

    def is_owned(self, number: int) -> bool:
        """Return whether another live worker runs an execution."""
        found = self.session.read_one(OWNER, number)
        if found is None or found[0] == self.session.worker:
            return False
        return self.session.read_one(IS_ALIVE, *found) is not None and self._is_there(found[0])

    def is_fenced(self, number: int) -> bool:
        """Return whether the worker that runs an execution is fenced."""
        owner = self.session.read_one(OWNER, number)
        return owner is not None and self.session.read_one(IS_FENCED, *owner) is not None

    def release(self, number: int) -> None:
        """Record with the next commit that this worker no longer runs an execution."""
        self.session.write(RELEASE, number, self.session.worker)

    def delete_claim(self, number: int) -> None:
        """Delete the claim of an ended execution with the next commit."""
        self.session.write(FORGET, number)

    def ready(self, now: float, most: int) -> list[tuple[int, str]]:
        """Return executions that any worker may run: new ones, and paused ones that are due.

        Args:
            now: Current time in epoch seconds.
            most: Maximum number.
        """
        found = [*self._due(now, most), *self._above_due(now), *self._new(most)]
        return [*dict.fromkeys(found)]

    def _due(self, now: float, most: int) -> list[tuple[int, str]]:
        """Return paused executions that are due, longest due first."""
        limit = most
        while True:
            rows = self.session.select(DUE, now, limit)
            free = self._free([(number, name) for number, name, _ in rows])
            if len(free) >= most or len(rows) < limit:
                return free[:most]
            limit *= 4  # many are claimed or lack bindings

    def _new(self, most: int) -> list[tuple[int, str]]:
        """Return executions that have not started, or whose process has died."""
        free: list[tuple[int, str]] = []
        last, rows = -1, [(0, "")]
        while rows and len(free) < most:
            rows = self.session.select(NEW, last, most + len(free))
            free += self._free(rows)
            last = rows[-1][0] if rows else last
        return free[:most]

    def _above_due(self, now: float) -> list[tuple[int, str]]:
        """Return the root executions with a due descendant."""
        tops: list[tuple[int, str]] = []
        level = {parent for (parent,) in self.session.select(DUE_PARTS, now)}
        seen: set[int] = set()
        while level:
            seen |= level  # damaged rows may lead back to where they come from
            rows = self.session.select(ABOVE, [*level])
            level = {parent for _, _, parent, _ in rows if parent is not None} - seen
            tops += [
                (number, name)
                for number, name, parent, status in rows
                if parent is None and status == "PAUSED"
            ]
        return self._free(tops)

    def _free(self, executions: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
        """Return the executions that no worker runs and that lack no bindings, in their order.

        Executions of a fenced worker are free, even if it still holds the lock.
        """
        if not executions:
            return []
        claims = self.session.select(CLAIMS, [number for number, _ in executions])
        fenced = {id for (id,) in self.session.select(FENCED)} if claims else set()
        owners = {number: owner for number, owner, _ in claims}
        lacking = {number for number, _, needs in claims if needs is not None}
        is_locked = self.session.connection.is_locked
        return [
            (number, name)
            for number, name in executions
            if number not in lacking
            and (
                not is_locked(lock_of(name))
                if owners.get(number) is None
                else owners[number] in fenced
            )
        ]

    def next_wake(self, now: float) -> float | None:
        """Return the epoch second after *now* at which the next execution is due, None for none."""
        found = self.session.select(NEXT_WAKE, now, 1)
        return found[0][0] if found else None

    # Missing bindings

    def put_needs(self, number: int, needs: Sequence[str]) -> None:
        """Record the missing bindings of an execution with the next commit; [] for none."""
        self.session.write(NEED, number, encode([*needs]) if needs else None)

    def put_timer(self, number: int, wake: float | None) -> None:
        """Record the wake time of a paused execution with the next commit, None for none."""
        self.session.write(TIME, number, wake)

    def missing_bindings(self) -> list[tuple[int, str, list[str]]]:
        """Return the executions with missing bindings, and these."""
        rows = self.session.select(NEEDING)
        if not rows:
            return []
        fenced = {id for (id,) in self.session.select(FENCED)}
        return [
            (number, name, self._sentences(needs))
            for number, needs, owner in sorted(rows)
            if owner is None or owner in fenced
            for name, _ in self.session.select(NAME, number)
        ]

    def needs(self, number: int) -> list[str]:
        """Return the missing bindings of an execution."""
        found: list[str] = []
        for (needs,) in self.session.select(NEEDS, number):
            found = self._sentences(needs)
        return found

    def _sentences(self, kept: bytes) -> list[str]:
        """Return the missing bindings of an execution; a damaged row is reported as one."""
        try:
            with self.session.damage_reports("what an execution needs"):
                return [str(each) for each in self.session.values.read(kept)]
        except StoreDamaged as damage:
            return [damage.what]

    def alive(self) -> list[str]:
        """Return the ids of the live workers, including this one."""
        ids = [id for id, _ in self.session.select(SEEN)]
        return [id for id in ids if id == self.session.worker or self._is_there(id)]

    # Cancellation and answers

    def cancel(self, number: int, error: str | None, cause: str | None) -> None:
        """Request the cancellation of an execution from the process that runs it."""
        self.session.write(CANCEL, number, encode([error, cause]))
        self.session.flush()

    def cancellations(self) -> list[Cancellation]:
        """Return the executions to cancel."""
        return [
            Cancellation(number, name, *self._reason(kept))
            for number, kept in self.session.select(CANCELLED)
            for name, status in self.session.select(NAME, number)
            if status in ("RUNNING", "PAUSED")
        ]

    def cancellation(self, number: int) -> tuple[str | None, str | None] | None:
        """Return error and cause of the requested cancellation of an execution, None without
        one.
        """
        found = self.session.read_one(CANCELLATION, number)
        return None if found is None else self._reason(found[0])

    def _reason(self, kept: bytes) -> tuple[str | None, str | None]:
        """Return error and cause of a cancellation; both None for a damaged row."""
        try:
            with self.session.damage_reports("why an execution is cancelled"):
                error, cause = self.session.values.read(kept)
                return error, cause
        except StoreDamaged as damage:
            return None, damage.what

    def answered_ids(self) -> Iterable[str]:
        """Return the ids of requests and tokens with unused answers."""
        return answered_ids(self.session)
