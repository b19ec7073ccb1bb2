"""Shared budgets of a store: what the executions in it spend together, in all processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING

from asl.core.values import Json, encoded
from asl.engine.execution import ZERO
from asl.engine.pools import without
from asl.engine.written import read_usage

if TYPE_CHECKING:
    from asl.stores.sqlite import SqliteStore

__all__ = ["StoreBudgets"]

ENDED = (
    "SELECT ended, usage FROM execution WHERE workflow = ? AND name = ? "
    "AND status IN ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'ABORTED') AND ended IS NOT NULL"
)


def _charged(spending: Json) -> Decimal:
    """Return what an execution counts as having spent, by what it has written of that."""
    usage, _, _, *ledger = spending
    assumed = ledger[0].get("assumed", {}) if ledger else {}
    return read_usage(usage).cost + Decimal(assumed.get("MaxCost", 0))


class StoreBudgets:
    """Protocol `asl.engine.pools.SharedBudgets`: each change is a transaction."""

    def __init__(self, file: SqliteStore) -> None:
        self.file = file

    def change(self, name: str, make: Callable[[Json], Json]) -> None:
        """Replace a shared budget by what *make* returns for it; raises StoreError."""
        file = self.file
        with file.transaction():
            found = file.rows("SELECT body FROM tab WHERE name = ?", name)
            kept = self._without_ended(file.unpacked(found[0][0])) if found else None
            body = file.packed(encoded(make(kept)))
            file.write("INSERT OR REPLACE INTO tab (name, body) VALUES (?, ?)", name, body)

    def _without_ended(self, kept: Json) -> Json:
        """Return a shared budget without what executions that have ended still hold of it."""
        held = {tuple(entry.split(":")[:8]) for entry in kept["open"]}
        for parts in held:
            for ended, usage in self.file.rows(ENDED, *parts[6:]) if len(parts) == 8 else ():
                spent = ZERO if usage is None else _charged(self.file.unpacked(usage))
                kept = without(kept, ":".join(parts), spent, ended)
        return kept

    def release_ended(self) -> Iterator[str]:
        """Release what executions that have ended still hold; yields the budgets concerned."""
        for (name,) in self.file.rows("SELECT name FROM tab WHERE name NOT LIKE 'Tools %'"):
            ((body,),) = self.file.rows("SELECT body FROM tab WHERE name = ?", name)
            held = self.file.unpacked(body)["open"]
            if self._without_ended({"spent": {}, "open": held})["open"] != held:
                self.change(name, lambda kept: kept)
                yield name

    def leave(self, execution: str, spent: Decimal, now: float) -> None:
        """Release the reservations of an execution that ends without running."""
        for (name,) in self.file.rows("SELECT name FROM tab"):
            self.change(name, lambda kept: without(kept, execution, spent, now))
