"""The stored form of entries as text, and their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from asl.core.json_text import read_data
from asl.core.values import compact
from asl.engine.memory import MemoryEntry

__all__ = ["MemoryRecord", "alive", "latest"]


class MemoryRecord(NamedTuple):
    """An entry, and a number that grows with the time of writing."""

    entry: MemoryEntry
    order: int

    def text(self) -> str:
        """Return the record as JSON, without the key."""
        entry = self.entry
        times = {"written": entry.written, "expires": entry.expires, "order": self.order}
        return compact({"value": entry.value, **times})

    @classmethod
    def read(cls, key: str, text: str | bytes) -> MemoryRecord:
        """Read the result of `text`.

        Raises:
            ValueError: The text has another form.
        """
        try:
            found = read_data(text.decode() if isinstance(text, bytes) else text)
            entry = MemoryEntry(key, found["value"], found["written"], found["expires"])
            return cls(entry, found["order"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"the value of {key!r} is not a memory entry") from error


def alive(record: MemoryRecord | None, now: float) -> MemoryEntry | None:
    """Return the entry of a record, None if it has expired."""
    if record is None or (record.entry.expires is not None and record.entry.expires <= now):
        return None
    return record.entry


def latest(records: Iterable[MemoryRecord], now: float) -> list[MemoryEntry]:
    """Return the entries that have not expired, latest first."""
    found = [record for record in records if alive(record, now) is not None]
    found.sort(key=lambda record: (record.entry.written, record.order), reverse=True)
    return [record.entry for record in found]
