"""Tabs of a store: what the executions in it spend together, in all processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from asl.core.values import Json, encoded

if TYPE_CHECKING:
    from asl.stores.sqlite import SqliteStore

__all__ = ["StoreTabs"]


class StoreTabs:
    """Protocol `asl.engine.tabs.Tabs`: each change is a transaction."""

    def __init__(self, file: SqliteStore) -> None:
        self.file = file

    def change(self, name: str, make: Callable[[Json], Json]) -> None:
        """Replace a tab by what *make* makes of it; raises StoreError."""
        file = self.file
        with file.transaction():
            found = file.rows("SELECT body FROM tab WHERE name = ?", name)
            kept = file.unpacked(found[0][0]) if found else None
            body = file.packed(encoded(make(kept)))
            file.write("INSERT OR REPLACE INTO tab VALUES (?, ?)", name, body)
