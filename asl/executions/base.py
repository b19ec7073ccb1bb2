"""The common part of a store: sessions, clock and bindings."""

from __future__ import annotations

import os
from typing import ClassVar, Self, cast

from asl.bindings import Bindings, check_forms
from asl.effects.clock import Clock
from asl.effects.driver import Driver
from asl.executions.execution_reader import ExecutionReader
from asl.executions.executor import Executor
from asl.executions.map_runs import MapRuns
from asl.stores.executions import StoredExecution
from asl.stores.session import Session, ThreadSessions

__all__ = ["StoreBase"]


class StoreBase:
    """An open store.

    Args:
        sessions: The sessions of its threads.
        clock: Clock of the executions.
        bindings: Default bindings of every execution.
    """

    runs_elsewhere: ClassVar[bool] = False
    """Whether a service leaves the executions to workers of other processes."""

    def __init__(self, sessions: ThreadSessions, clock: Clock, bindings: Bindings) -> None:
        check_forms(bindings)
        self.clock = clock
        self._sessions = sessions
        self._bindings = bindings
        self._reader = ExecutionReader(self._sessions, clock.now)
        self._executor = Executor(self._reader, clock)
        self._driver = Driver(clock)

    @property
    def path(self) -> str | os.PathLike[str]:
        """Path of the file, or the name of the store in messages."""
        return self._sessions.place

    @property
    def session(self) -> Session:
        """The session of this thread."""
        return self._sessions.session

    @property
    def reader(self) -> ExecutionReader:
        """The reader of documents, inputs and histories."""
        return self._reader

    def refresh_map_run(self, arn: str) -> None:
        """Do nothing: this store holds the Map Runs that it lists."""

    @property
    def map_runs(self) -> MapRuns:
        """The Map Runs that run in this process."""
        return self._executor.map_runs

    def notify(self) -> None:
        """Wake the runners of this process."""
        self._executor.notify()

    def close(self) -> None:
        """Write pending changes and close the store; closing it twice does nothing.

        Runs in other threads end normally; they cannot start another one.

        Raises:
            StoreError: The pending changes cannot be written. The store is closed anyway.
        """
        self._driver.close()
        self._sessions.close()

    def reopen(self) -> None:
        """Open the store again for this thread, for instance after LeaseLost."""
        self._sessions.reopen()

    def __repr__(self) -> str:
        return f"<Store {self._sessions.place}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def get(self, name: str) -> StoredExecution:
        """Return an execution by its name or its id.

        Raises:
            ExecutionNotFound: There is none.
        """
        return self._reader.get(name)

    def _given(self, bindings: Bindings) -> Bindings:
        """Return the bindings of a run merged with those of the store."""
        own = {name: given for name, given in bindings.items() if given is not None}
        given = cast("Bindings", self._bindings | own)
        beside = self._sessions.backend.checkpoints
        given["checkpoints"] = {"file": beside, **(given.get("checkpoints") or {})}
        return given
