"""What all parts of a store share: the file, the clock and the bindings."""

from __future__ import annotations

import os
from typing import Self, cast

from asl.bindings import Bindings, check_forms
from asl.effects.clock import Clock
from asl.effects.driver import Driver
from asl.executions.execution_reader import ExecutionReader
from asl.executions.executor import Executor
from asl.stores.backend import StoreBackend
from asl.stores.executions import Stored
from asl.stores.session import Session, ThreadSessions

__all__ = ["StoreBase"]


class StoreBase:
    """An open store.

    Args:
        backend: Where the rows are.
        clock: The time of the executions.
        bindings: The bindings of every execution, as far as a run has no others.
    """

    def __init__(self, backend: StoreBackend, clock: Clock, bindings: Bindings) -> None:
        check_forms(bindings)
        self.clock = clock
        self._sessions = ThreadSessions(backend)
        self._bindings = bindings
        self._reader = ExecutionReader(self._sessions, clock.now)
        self._executor = Executor(self._reader, clock)
        self._driver = Driver(clock)

    @property
    def path(self) -> str | os.PathLike[str]:
        """The path of the file, or what names the store in messages."""
        return self._sessions.place

    @property
    def session(self) -> Session:
        """The store as this thread has it open."""
        return self._sessions.session

    def close(self) -> None:
        """Write what is left and close the file; a second time nothing happens.

        What other threads run comes to its end; they begin nothing more. Raises StoreError where
        it cannot be written; the file is closed all the same.
        """
        self._driver.close()
        self._sessions.close()

    def reopen(self) -> None:
        """Open the file again for this thread, as behind LeaseLost."""
        self._sessions.reopen()

    def __repr__(self) -> str:
        return f"<Store {self._sessions.place}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def get(self, name: str) -> Stored:
        """Return an execution by its name or its id; raises ExecutionNotFound."""
        return self._reader.get(name)

    def _given(self, bindings: Bindings) -> Bindings:
        """Return the bindings of a run: its own, and those of the store."""
        own = {name: given for name, given in bindings.items() if given is not None}
        given = cast("Bindings", self._bindings | own)
        beside = self._sessions.backend.checkpoints
        given["checkpoints"] = {"file": beside, **(given.get("checkpoints") or {})}
        return given
