"""A memory of the user's own, whose exceptions fail the states that use it."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from asl.core.errors import StateError
from asl.core.values import copy_result
from asl.engine.exception_mapping import map_exceptions
from asl.engine.memory import Memory, MemoryEntry

__all__ = ["CustomMemory"]

MAX_ENTRIES: Final = 100_000
"""Entries of a namespace, or that a search finds."""
MAX_BYTES: Final = 16 * 1024 * 1024
"""Bytes of the values that one request reads, as compact JSON."""
LAST_TIME: Final = 253_402_300_799
"""The last second of the year 9999."""


class CustomMemory:
    """Wrapper of an object with the methods of `asl.engine.memory.Memory`.

    Any exception becomes StateError("States.MemoryNotConfigured"), except StateError.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory: Any = memory
        self.remote = bool(getattr(memory, "remote", False))
        if hasattr(memory, "search"):
            self.search = self._search

    def get(self, namespace: str, key: str, now: float) -> MemoryEntry | None:
        """Return an entry, None without one."""
        with _failing():
            return _entry(self.memory.get(namespace, key, now))[0]

    def entries(self, namespace: str, now: float) -> Iterable[MemoryEntry]:
        """Return all entries of a namespace, the latest first."""
        with _failing():
            return _entries(self.memory.entries(namespace, now))

    def change(
        self,
        namespace: str,
        key: str,
        now: float,
        make: Callable[[MemoryEntry | None], MemoryEntry | None],
    ) -> None:
        """Replace an entry by the result of *make*."""
        ours: list[BaseException] = []

        def made(known: MemoryEntry | None) -> MemoryEntry | None:
            known, _ = _entry(known)
            try:
                return make(known)
            except BaseException as error:  # an error of the runtime, not of the memory
                ours.append(error)
                raise

        with _failing(ours):
            self.memory.change(namespace, key, now, made)

    def _search(
        self, namespace: str, words: Sequence[str], now: float, most: int
    ) -> Iterable[MemoryEntry]:
        with _failing():
            return _entries(self.memory.search(namespace, words, now, most))


def _entry(found: Any, left: int = MAX_BYTES) -> tuple[MemoryEntry | None, int]:
    """Return the entry that a memory returned.

    Raises:
        TypeError: The value is not an entry.
    """
    if found is None:
        return None, left
    if not all(hasattr(found, field) for field in MemoryEntry._fields):
        raise TypeError(f"{type(found).__name__} is not a MemoryEntry")
    if type(found.key) is not str:
        raise TypeError(f"the key of an entry is {type(found.key).__name__}, not str")
    for time in (found.written, found.expires):
        if type(time) not in (int, float) and not (time is None and time is found.expires):
            raise TypeError(f"a time of an entry is {type(time).__name__}, not float")
    if not 0 <= found.written <= LAST_TIME:
        raise ValueError("an entry was written before 1970 or after 9999")
    sizes: list[int] = []
    try:
        value = copy_result(found.value, left, found.key, sizes.append)
    except StateError:
        raise ValueError(f"its values have more than {MAX_BYTES} bytes") from None
    return MemoryEntry(found.key, value, found.written, found.expires), left - sum(sizes)


def _entries(found: Iterable[Any]) -> list[MemoryEntry]:
    entries = []
    left = MAX_BYTES
    for number, each in enumerate(found):
        if number == MAX_ENTRIES:
            raise ValueError(f"it has more than {MAX_ENTRIES} entries: add a method 'search'")
        entry, left = _entry(each, left)
        if entry is not None:
            entries.append(entry)
    return entries


def _failing(ours: Sequence[BaseException] = ()) -> AbstractContextManager[None]:
    return map_exceptions(_unusable, lambda error: any(error is each for each in ours))


def _unusable(text: str) -> StateError:
    cause = f"the memory that was given cannot be used: {text}"
    return StateError("States.MemoryNotConfigured", cause)
