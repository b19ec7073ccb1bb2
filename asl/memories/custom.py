"""A memory of the user's own: foreign code, whose failures are those of the states that ask it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from asl.core.errors import StateError
from asl.engine.memory import Memory, MemoryEntry

__all__ = ["CustomMemory"]


class CustomMemory:
    """Protocol `asl.engine.memory.Memory`, by an object that has its methods.

    Whatever it raises is StateError("States.MemoryNotConfigured"), unless it is a StateError.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory: Any = memory
        self.remote = bool(getattr(memory, "remote", False))
        if hasattr(memory, "search"):
            self.search = self._search

    def get(self, namespace: str, key: str, now: float) -> MemoryEntry | None:
        """Return an entry, None where there is none."""
        with _failing():
            return _entry(self.memory.get(namespace, key, now))

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
        """Replace an entry by what *make* makes of it."""
        ours: list[BaseException] = []

        def made(known: MemoryEntry | None) -> MemoryEntry | None:
            known = _entry(known)
            try:
                return make(known)
            except BaseException as error:  # ours, not of the memory that was given
                ours.append(error)
                raise

        with _failing(ours):
            self.memory.change(namespace, key, now, made)

    def _search(
        self, namespace: str, words: Sequence[str], now: float, most: int
    ) -> Iterable[MemoryEntry]:
        with _failing():
            return _entries(self.memory.search(namespace, words, now, most))


def _entry(found: Any) -> MemoryEntry | None:
    """Return what a memory gave for an entry; raises TypeError for what is none."""
    if found is not None and not all(hasattr(found, field) for field in MemoryEntry._fields):
        raise TypeError(f"{type(found).__name__} is no MemoryEntry")
    entry: MemoryEntry | None = found
    return entry


def _entries(found: Iterable[Any]) -> list[MemoryEntry]:
    return [entry for each in found if (entry := _entry(each)) is not None]


@contextmanager
def _failing(ours: Sequence[BaseException] = ()) -> Iterator[None]:
    try:
        yield
    except StateError:
        raise
    except Exception as error:  # foreign code: anything it raises is its failure
        if error in ours:
            raise
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        cause = f"the memory that was given cannot be used: {said}"
        raise StateError("States.MemoryNotConfigured", cause) from error
