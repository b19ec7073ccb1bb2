"""Shared budgets of a store: what the executions in it spend together, in all processes."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

from asl.core.values import Json, encoded
from asl.engine.pools import without

if TYPE_CHECKING:
    from asl.stores.sqlite import SqliteStore

__all__ = ["StoreBudgets"]


class StoreBudgets:
    """Protocol `asl.engine.pools.SharedBudgets`: each change is a transaction."""

    def __init__(self, file: SqliteStore) -> None:
        self.file = file

    def change(self, name: str, make: Callable[[Json], Json]) -> None:
        """Replace a shared budget by what *make* returns for it; raises StoreError."""
        file = self.file
        with file.transaction():
            found = file.rows("SELECT body FROM tab WHERE name = ?", name)
            kept = file.unpacked(found[0][0]) if found else None
            body = file.packed(encoded(make(kept)))
            file.write("INSERT OR REPLACE INTO tab (name, body) VALUES (?, ?)", name, body)

    def leave(self, execution: str, spent: Decimal, now: float) -> None:
        """Release the reservations of an execution that ends without running."""
        for (name,) in self.file.rows("SELECT name FROM tab"):
            self.change(name, lambda kept: without(kept, execution, spent, now))
