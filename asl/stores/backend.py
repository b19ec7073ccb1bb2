"""What a store needs of whatever keeps its rows: a file, memory, or a backend of somebody else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Final, Protocol, TypeAlias

from asl.engine.checkpoints import Storage
from asl.stores.statements import Change, Row, Select, Values

__all__ = ["FAIL_POINTS", "Computed", "StoreBackend", "StoreConnection", "Write"]

FAIL_POINTS: Final = ("commit.begin", "commit.written", "commit.done")
"""The instants of a transaction at which a process may die; see `Connection.reached`."""

Computed: TypeAlias = "Callable[..., Iterable[Write]]"
"""Returns changes by what it reads within the transaction that makes them."""
Write: TypeAlias = "tuple[Change | Computed, Values]"
"""A change, or what computes changes, with the values that are given to it."""


class StoreConnection(Protocol):
    """A backend as one thread has it open; raises StoreError, and StoreDamaged for damaged rows."""

    reached: Callable[[str], object]
    """Called at each of `FAIL_POINTS`, for tests that end a process there."""

    @property
    def refusal(self) -> str | None:
        """Why nothing can be written, though it can be read; None where it can be written."""
        ...

    @property
    def is_usable(self) -> bool:
        """Whether this is the thread, and the process, that has connected."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        ...

    def select(self, statement: Select, values: Values = ()) -> list[Row]:
        """Return the rows that a statement asks for."""
        ...

    def scan(self, statement: Select, values: Values = ()) -> Iterator[Row]:
        """Yield the rows that a statement asks for one by one: there may be many."""
        ...

    def trace(self, place: int, number: int, first: int) -> list[tuple[int, int]]:
        """Return number and place of steps of one execution, from one back to the number *first*.

        It ends where one is missing.

        Args:
            place: Where the last one stands.
            number: Its number.
            first: The number of the first one.
        """
        ...

    def commit(self, writes: Iterable[Write], check: Callable[[], object] | None) -> None:
        """Make changes in their order and make them durable: all or, where one fails, none.

        Args:
            writes: The changes.
            check: Called within the transaction before the first one; may raise. None for nothing.
        """
        ...

    def transaction(
        self, writes: Callable[[], Iterable[Write]], check: Callable[[], object] | None
    ) -> AbstractContextManager[None]:
        """Return a transaction: what is read within is what its changes are made to.

        Args:
            writes: Returns the changes, at the end.
            check: As for `commit`.
        """
        ...

    def version(self) -> tuple[int, int]:
        """Return two numbers of which the first changes whenever others have written, the second
        whenever this connection has."""
        ...

    def glance(self) -> object:
        """Return what changes when anybody writes; costs next to nothing, and may miss a change."""
        ...

    def lock(self, number: int) -> bool:
        """Take a lock that ends with this process; False where somebody else has it."""
        ...

    def unlock(self, number: int) -> None:
        """Leave a lock; nothing happens where it is not held."""
        ...

    def is_locked(self, number: int) -> bool:
        """Whether somebody else holds a lock."""
        ...

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy all that is committed into a new file (`Store.backup`); raises StoreError."""
        ...

    def faults(self) -> Iterator[str]:
        """Yield what is wrong with the storage itself, a sentence for each fault."""
        ...

    def close(self) -> None:
        """Close it and leave its locks; a second time nothing happens."""
        ...


class StoreBackend(Protocol):
    """Where the rows of a store are; one object for all threads of a process.

    `place` names it in messages. A factory of backends is registered as an entry point of the group
    `asl.stores`: it takes what stands behind the colon in `NAME:PLACE`.
    """

    @property
    def place(self) -> str | os.PathLike[str]:
        """The path of the file, or what names the store in messages."""
        ...

    @property
    def checkpoints(self) -> str | Storage:
        """Where the checkpoints of the storage `file` are kept: a folder, or a storage."""
        ...

    def connect(self) -> StoreConnection:
        """Return a new connection for the thread that calls; raises StoreError."""
        ...

    def faults(self) -> Iterator[str]:
        """Yield why it cannot be connected to, or read any further, a sentence for each fault."""
        ...
