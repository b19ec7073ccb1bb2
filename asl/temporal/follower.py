"""Follows an execution whose workflow runs on any worker."""

from __future__ import annotations

import time
from math import inf
from threading import Event
from typing import Final

from asl.effects.runtime import Listener
from asl.engine.execution import Execution
from asl.executions.execution_reader import EventFeed
from asl.stores.errors import ExecutionWaits
from asl.stores.executions import ENDED, StoredExecution
from asl.temporal.reader import TemporalReader

__all__ = ["ExecutionFollower"]

QUICK: Final = 0.1
SLOW: Final = 1.0
"""Shortest and longest seconds between two looks at an execution."""
UNSERVED: Final = 2.0
"""Seconds after which a caller asks whether a worker makes the calls."""


class ExecutionFollower:
    """Waits until an execution ends or pauses, and reports its events.

    Args:
        reader: The copies of executions.
        name: The execution.
        listener: Receives its events; None for none.
        calls_agents: Whether this process makes the calls of the execution.
    """

    def __init__(
        self, reader: TemporalReader, name: str, listener: Listener | None, *, calls_agents: bool
    ) -> None:
        self._reader = reader
        self._name = name
        self._calls_agents = calls_agents
        self._listener = None if listener is None else self._own(listener)
        self._feed = None if listener is None else EventFeed(reader, name)
        self._stopped = Event()

    def _own(self, listener: Listener) -> Listener:
        """Return the listener of this execution, which may differ between executions."""
        if not hasattr(listener, "of"):
            return listener
        stored = self._reader.get(self._name)
        execution: Execution = self._reader.execution(stored, self._reader.program(stored))
        own: Listener = listener.of(execution)
        return own

    def follow(self) -> None:
        """Return when the execution has ended or waits for answers, or `stop` was called.

        Raises:
            ExecutionWaits: It waits for calls that no worker makes.
        """
        begun = last = time.monotonic()
        while not self._stopped.is_set():
            stored = self._reader.get(self._name)
            self._report()
            if self._has_ended(stored) or self._waits_for_answers(stored):
                return
            now = time.monotonic()
            if now - last > UNSERVED:
                last = now
                self._require_worker()
            self._stopped.wait(min(SLOW, QUICK + (now - begun) / 50))

    def stop(self) -> None:
        """End `follow`, from another thread."""
        self._stopped.set()

    def _report(self) -> None:
        """Report the new events."""
        if self._feed is not None and self._listener is not None:
            for event in self._feed.new_events():
                self._listener(event)

    def _has_ended(self, stored: StoredExecution) -> bool:
        """Return whether an execution and its workflow have ended.

        A copy that was replayed here may be ahead of the worker, which then has to go on.
        """
        if stored.status not in ENDED:
            return False
        root = self._reader.root(self._name)
        return self._reader.client.describe(root).close_time is not None

    def _waits_for_answers(self, stored: StoredExecution) -> bool:
        """Return whether an execution is paused until people or tasks answer."""
        reader = self._reader
        if stored.status != "PAUSED" or (stored.wake or inf) <= reader.now():
            return False
        raw = reader.client.describe(stored.name).raw_description
        if raw.HasField("pending_workflow_task"):  # it has not seen all answers
            return False
        return bool(reader.open_requests(stored) or reader.pending_callbacks(stored))

    def _require_worker(self) -> None:
        """Check that a worker makes the calls of the execution.

        Raises:
            ExecutionWaits: There is none.
        """
        reader, name = self._reader, self._name
        needs = reader.missing_bindings(name) if self._calls_agents else reader.needs(name)
        if needs:
            raise ExecutionWaits(
                f"the execution {self._name!r} waits ({'; '.join(needs)}): start 'asl worker "
                f"--store {self._reader.client.address} --agents FILE'"
            )
