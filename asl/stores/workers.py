"""Workers of a store: which of them runs an execution, and what the others have for it.

A worker is one connection to the file. It holds a lock that ends with its process, and renews its
lease while it lives. One whose lock is free has died; one whose lease has run out may hang, so it
is fenced: its next commit is refused, and others go on with what it ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from asl.core.values import Json, encoded
from asl.stores.locks import lock_of

if TYPE_CHECKING:
    from asl.stores.sqlite import SqliteStore

__all__ = ["LEASE", "TABLES", "Cancellation", "Workers"]

LEASE = 15.0
"""Seconds after which a worker that has not renewed its lease is fenced."""

TABLES = """
    CREATE TABLE worker (
        id TEXT PRIMARY KEY,
        about BLOB NOT NULL,
        seen REAL NOT NULL,
        fenced INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE claim (
        execution INTEGER PRIMARY KEY,
        owner TEXT,
        needs BLOB,
        cancel BLOB,
        timer REAL
    );
    CREATE INDEX claim_owner ON claim (owner) WHERE owner IS NOT NULL;
    CREATE INDEX claim_needs ON claim (execution) WHERE needs IS NOT NULL;
    CREATE INDEX claim_cancel ON claim (execution) WHERE cancel IS NOT NULL;
"""

FORGOTTEN = (
    "DELETE FROM worker WHERE fenced = 1 "
    "AND id NOT IN (SELECT owner FROM claim WHERE owner IS NOT NULL)"
)
FREE = "(owner IS NULL OR owner IN (SELECT id FROM worker WHERE fenced = 1))"
PAUSED = "+status = 'PAUSED'"
"""The sign keeps SQLite from going through all that are paused instead of those that are due."""
_READY = (
    "SELECT number, name FROM execution LEFT JOIN claim ON execution = number WHERE parent IS NULL "
    f"AND needs IS NULL AND {FREE} AND"
)
NEW = f"{_READY} status = 'RUNNING' ORDER BY number LIMIT ?"
DUE = f"{_READY} {PAUSED} AND wake <= ? ORDER BY wake LIMIT ?"
_TOPS = (
    "WITH RECURSIVE above (number, parent) AS (SELECT number, parent FROM execution "
    f"WHERE {PAUSED} AND parent IS NOT NULL AND wake <= ? UNION "
    "SELECT e.number, e.parent FROM execution e JOIN above ON e.number = above.parent) "
    "SELECT above.number, name FROM above CROSS JOIN execution USING (number) "
    "LEFT JOIN claim ON execution = above.number WHERE above.parent IS NULL "
    f"AND {PAUSED} AND needs IS NULL AND {FREE} LIMIT ?"
)
"""The executions that have started one that is due."""
NEEDING = (
    "SELECT number, name, needs FROM claim CROSS JOIN execution ON execution = number "
    f"WHERE needs IS NOT NULL AND {FREE} ORDER BY number"
)
CANCELLED = (
    "SELECT number, name, cancel FROM claim CROSS JOIN execution ON execution = number "
    "WHERE cancel IS NOT NULL AND status IN ('RUNNING', 'PAUSED')"
)
OWN = (
    "INSERT INTO claim (execution, owner) VALUES (?, ?) "
    "ON CONFLICT (execution) DO UPDATE SET owner = excluded.owner"
)
TAKE_OVER = (
    "UPDATE claim SET owner = ? WHERE execution = ? AND owner IN "
    "(SELECT id FROM worker WHERE fenced = 1)"
)


class Cancellation(NamedTuple):
    """The cancellation of an execution that somebody has asked for."""

    number: int
    name: str
    error: str | None
    cause: str | None


class Workers:
    """The claims of one store, as one thread has it."""

    def __init__(self, file: SqliteStore) -> None:
        self.file = file

    # A worker's own life

    def register(self, id: str, about: Json, now: float) -> None:
        """Make this connection the worker *id*: its lock is held, its lease begins."""
        file = self.file
        file.insist_writable()
        file.locks.take(lock_of(id))
        file.write(FORGOTTEN)
        file.write("INSERT INTO worker (id, about, seen) VALUES (?, ?, ?)", id, encoded(about), now)
        file.flush()
        file.worker = id

    def renew(self, now: float) -> None:
        """Renew the lease with the next commit."""
        self.file.write("UPDATE worker SET seen = ? WHERE id = ?", now, self.file.worker)

    def leave(self) -> None:
        """End this worker: others may take what it has claimed."""
        file, id = self.file, self.file.worker
        if id is None:
            return
        file.write("UPDATE claim SET owner = NULL WHERE owner = ?", id)
        file.write("DELETE FROM worker WHERE id = ?", id)
        file.flush()
        file.worker = None
        file.locks.leave(lock_of(id))

    def fence(self, now: float) -> list[str]:
        """Fence the workers that have died or whose leases have run out; returns their ids."""
        lost = [
            id
            for id, seen in self.file.rows("SELECT id, seen FROM worker WHERE fenced = 0")
            if id != self.file.worker
            and (seen + LEASE < now or not self.file.locks.is_held(lock_of(id)))
        ]
        for id in lost:
            self.file.write("UPDATE worker SET fenced = 1 WHERE id = ?", id)
        self.file.flush()
        return lost

    # Claims

    def own(self, number: int) -> None:
        """Record with the next commit that this worker runs an execution whose lock it holds."""
        self.file.write(OWN, number, self.file.worker)

    def take_over(self, number: int) -> bool:
        """Claim what a fenced worker ran, whose lock it may still hold."""
        with self.file.transaction():
            changed = self.file.change(TAKE_OVER, self.file.worker, number)
        return changed == 1

    def is_owned(self, number: int) -> bool:
        """Whether another worker that lives runs an execution."""
        query = (
            "SELECT owner FROM claim JOIN worker ON id = owner "
            "WHERE execution = ? AND fenced = 0 AND owner IS NOT ?"
        )
        found = self.file.look(query, number, self.file.worker)
        return found is not None and self.file.locks.is_held(lock_of(found[0]))

    def is_fenced(self, number: int) -> bool:
        """Whether the worker that runs an execution is fenced."""
        query = "SELECT 1 FROM claim JOIN worker ON id = owner WHERE execution = ? AND fenced = 1"
        return self.file.look(query, number) is not None

    def release(self, number: int) -> None:
        """Record with the next commit that this worker runs an execution no more."""
        self.file.write(
            "UPDATE claim SET owner = NULL WHERE execution = ? AND owner = ?",
            number,
            self.file.worker,
        )

    def forget(self, number: int) -> None:
        """Forget with the next commit what is known of an execution that has ended."""
        self.file.write("DELETE FROM claim WHERE execution = ?", number)

    def ready(self, now: float, most: int) -> list[tuple[int, str]]:
        """Return executions that anybody may go on with: new ones, and paused ones that are due."""
        rows = self.file.rows
        found = [*rows(DUE, now, most), *rows(_TOPS, now, most), *rows(NEW, most)]
        return [*dict.fromkeys((number, name) for number, name in found)]

    def next_wake(self, now: float) -> float | None:
        """Return the epoch second, later than *now*, at which the next execution is due."""
        query = f"SELECT min(wake) FROM execution WHERE wake > ? AND {PAUSED}"
        ((wake,),) = self.file.rows(query, now)
        return wake  # type: ignore[no-any-return]

    # What executions lack

    def put_needs(self, number: int, needs: Sequence[str]) -> None:
        """Record with the next commit what is not bound that an execution needs; [] for nothing."""
        body = encoded([*needs]) if needs else None
        self.file.write(
            "INSERT INTO claim (execution, needs) VALUES (?, ?) "
            "ON CONFLICT (execution) DO UPDATE SET needs = excluded.needs",
            number,
            body,
        )

    def put_timer(self, number: int, wake: float | None) -> None:
        """Record with the next commit for which time a paused execution waits, None for none."""
        self.file.write(
            "INSERT INTO claim (execution, timer) VALUES (?, ?) "
            "ON CONFLICT (execution) DO UPDATE SET timer = excluded.timer",
            number,
            wake,
        )

    def needing(self) -> list[tuple[int, str, list[str]]]:
        """Return the executions that nobody runs, with what they need and no worker has bound."""
        return [
            (number, name, self.file.read(needs)) for number, name, needs in self.file.rows(NEEDING)
        ]

    def needs(self, number: int) -> list[str]:
        """Return what an execution needs and no worker has bound."""
        query = "SELECT needs FROM claim WHERE execution = ? AND needs IS NOT NULL"
        found: list[str] = []
        for (needs,) in self.file.rows(query, number):
            found = self.file.read(needs)
        return found

    def alive(self) -> list[str]:
        """Return the ids of the workers that live, this one among them."""
        ids = self.file.rows("SELECT id FROM worker WHERE fenced = 0 ORDER BY id")
        held = self.file.locks.is_held
        return [id for (id,) in ids if id == self.file.worker or held(lock_of(id))]

    # Cancelling, and answers

    def cancel(self, number: int, error: str | None, cause: str | None) -> None:
        """Ask whoever runs an execution to end it."""
        self.file.write(
            "INSERT INTO claim (execution, cancel) VALUES (?, ?) "
            "ON CONFLICT (execution) DO UPDATE SET cancel = excluded.cancel",
            number,
            encoded([error, cause]),
        )
        self.file.flush()

    def cancelled(self) -> list[Cancellation]:
        """Return the executions that are to be cancelled."""
        found = self.file.rows(CANCELLED)
        return [Cancellation(number, name, *self.file.read(kept)) for number, name, kept in found]

    def cancellation(self, number: int) -> tuple[str | None, str | None] | None:
        """Return error and cause with which an execution is to be cancelled, None if it is not."""
        query = "SELECT cancel FROM claim WHERE execution = ? AND cancel IS NOT NULL"
        with_these = self.file.look(query, number)
        return tuple(self.file.read(with_these[0])) if with_these else None

    def answered(self) -> Iterable[str]:
        """Return the ids of requests and tokens with answers that nobody has gone on with."""
        rows = self.file.rows("SELECT id FROM request WHERE status = 'answered' AND wake = 0")
        return [id for (id,) in rows]
