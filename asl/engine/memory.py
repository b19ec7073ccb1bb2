"""What is remembered: values by namespace and key, for Memory blocks and caches (8.4, 8.7)."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from asl.core.values import Json

__all__ = ["Entry", "Memory", "ProcessMemory"]


class Entry(NamedTuple):
    """One value that is remembered; times in epoch seconds."""

    key: str
    value: Json
    written: float
    expires: float | None
    """When it is forgotten, None for never."""


class Memory(Protocol):
    """Where values are kept. An entry that has expired at *now* does not exist.

    What cannot be reached raises StateError("States.MemoryNotConfigured").
    """

    def get(self, namespace: str, key: str, now: float) -> Entry | None:
        """Return an entry, None where there is none."""
        ...

    def entries(self, namespace: str, now: float) -> Iterable[Entry]:
        """Return all entries of a namespace, the latest first."""
        ...

    def change(
        self, namespace: str, key: str, now: float, make: Callable[[Entry | None], Entry | None]
    ) -> None:
        """Replace an entry by what *make* makes of it; None keeps it as it is. Nobody else writes
        meanwhile."""
        ...


class ProcessMemory:
    """A memory that ends with its process."""

    def __init__(self) -> None:
        self.namespaces: dict[str, dict[str, Entry]] = {}

    def get(self, namespace: str, key: str, now: float) -> Entry | None:
        """Return an entry, None where there is none."""
        entry = self.namespaces.get(namespace, {}).get(key)
        return None if entry is None or _expired(entry, now) else entry

    def entries(self, namespace: str, now: float) -> list[Entry]:
        """Return all entries of a namespace, the latest first."""
        kept = self.namespaces.get(namespace, {})
        for key in [key for key, entry in kept.items() if _expired(entry, now)]:
            del kept[key]
        return sorted(kept.values(), key=lambda entry: entry.written)[::-1]

    def change(
        self, namespace: str, key: str, now: float, make: Callable[[Entry | None], Entry | None]
    ) -> None:
        """Replace an entry by what *make* makes of it."""
        entry = make(self.get(namespace, key, now))
        if entry is not None:
            kept = self.namespaces.setdefault(namespace, {})
            kept.pop(key, None)
            kept[key] = entry


def _expired(entry: Entry, now: float) -> bool:
    return entry.expires is not None and entry.expires <= now
