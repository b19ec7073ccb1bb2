"""The protocol of storage backends: a file, memory, or an installed backend."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Final, Protocol, TypeAlias

from asl.engine.checkpoints import Storage
from asl.stores.statements import Change, Row, Select, Values

__all__ = ["FAIL_POINTS", "Computed", "StoreBackend", "StoreConnection", "Write"]

FAIL_POINTS: Final = ("commit.begin", "commit.written", "commit.done")
"""Points of a transaction at which tests kill the process; see `StoreConnection.reached`."""

Computed: TypeAlias = "Callable[..., Iterable[Write]]"
"""Computes changes from rows read within the same transaction."""
Write: TypeAlias = "tuple[Change | Computed, Values]"
"""A change, or a function that computes changes, with its values."""


class StoreConnection(Protocol):
    """A connection of one thread; raises StoreError, and StoreDamaged for damaged rows."""

    on_fail_point: Callable[[str], object]
    """Called at each of `FAIL_POINTS`, for tests that end a process there."""

    @property
    def refusal(self) -> str | None:
        """Why the store is read-only; None if it can be written."""
        ...

    @property
    def is_usable(self) -> bool:
        """Whether thread and process are those that connected."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        ...

    def select(self, statement: Select, values: Values = ()) -> list[Row]:
        """Return the rows of a query."""
        ...

    def scan(self, statement: Select, values: Values = ()) -> Iterator[Row]:
        """Yield the rows of a query one by one."""
        ...

    def trace(self, place: int, number: int, first: int) -> list[tuple[int, int]]:
        """Return number and place of steps of one execution, from the last one back to *first*.

        It ends at a missing step.

        Args:
            place: Place of the last step.
            number: Number of the last step.
            first: Number of the first step.
        """
        ...

    def commit(self, writes: Iterable[Write], check: Callable[[], object] | None) -> None:
        """Make changes in their order, atomically and durably.

        Args:
            writes: The changes.
            check: Called within the transaction before the first change; may raise. None for no
                check.
        """
        ...

    def transaction(
        self, writes: Callable[[], Iterable[Write]], check: Callable[[], object] | None
    ) -> AbstractContextManager[None]:
        """Return a transaction: its changes apply to the state that is read within it.

        Args:
            writes: Returns the changes, at the end.
            check: As for `commit`.
        """
        ...

    def version(self) -> tuple[int, int]:
        """Return two counters: of writes by others, and of writes by this connection."""
        ...

    def change_marker(self) -> object:
        """Return a cheap value that usually changes with each write of any process."""
        ...

    def lock(self, number: int) -> bool:
        """Take a lock that ends with this process; return False if another one holds it."""
        ...

    def unlock(self, number: int) -> None:
        """Release a lock, if it is held."""
        ...

    def is_locked(self, number: int) -> bool:
        """Return whether another connection holds a lock."""
        ...

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy all committed content into a new file (`Store.backup`).

        Raises:
            StoreError: The file exists or cannot be written.
        """
        ...

    def faults(self) -> Iterator[str]:
        """Yield a sentence about each fault of the storage itself."""
        ...

    def close(self) -> None:
        """Close the connection and release its locks; closing it twice does nothing."""
        ...


class StoreBackend(Protocol):
    """The storage of a store; one object for all threads of a process.

    `place` names it in messages. A factory of backends is registered as an entry point of the group
    `asl.stores`; it takes the part after the colon in `NAME:PLACE`.
    """

    @property
    def place(self) -> str | os.PathLike[str]:
        """Path of the file, or the name of the store in messages."""
        ...

    @property
    def checkpoints(self) -> str | Storage:
        """Storage `file` of checkpoints: a folder, or a storage."""
        ...

    def connect(self) -> StoreConnection:
        """Return a new connection for the calling thread.

        Raises:
            StoreError: The store cannot be opened.
        """
        ...

    def faults(self) -> Iterator[str]:
        """Yield a sentence about each fault that prevents connecting or reading."""
        ...
