"""The history of a running execution, read while it grows."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from asl.core.errors import StateError
from asl.engine.events import Event
from asl.engine.execution import Execution
from asl.engine.history import HistoryExpander
from asl.engine.history_quota import HistoryCounter
from asl.engine.records import each_record

__all__ = ["LiveHistory", "count_events", "existing_live_history", "open_live_history"]

RECENT: Final = 1000
"""Number of errors with known origin that remain after records have been dropped."""


class LiveHistory:
    """Reads the growing history of an execution."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.expander = HistoryExpander(execution)
        self.read = 0
        """Length of the flat history that has been read."""

    def new_events(self) -> Iterator[Event]:
        """Yield the events since the last call."""
        if not self.expander.count:
            yield self.expander.start()
        history = self.execution.history
        unread = each_record(history, self.read)
        self.read = len(history)
        for record in unread:
            yield from self.expander.feed(record)

    def skip(self, length: int) -> None:
        """Continue at *length*: the records before it are read, and some are dropped."""
        self.read = length
        origins = self.expander.origins
        self.expander.origins = dict(list(origins.items())[-RECENT:])

    def cause(self, error: StateError) -> str | None:
        """Return the cause for a catcher; for an error of the engine it names the state."""
        for _ in self.new_events():
            pass
        return self.expander.cause(error, *self.expander.origins[error])


def open_live_history(execution: Execution) -> LiveHistory:
    """Return the live history of an execution; the same one for every call."""
    follower = existing_live_history(execution)
    if follower is None:
        execution.complete(execution.history)
        follower = vars(execution)["follower"] = LiveHistory(execution)
    return follower


def existing_live_history(execution: Execution) -> LiveHistory | None:
    """Return the live history of an execution, None if it was not opened."""
    follower: LiveHistory | None = vars(execution).get("follower")
    return follower


def count_events(execution: Execution, *, exact: bool = True) -> None:
    """Count the events of the history from now on, if a quota limits them.

    Args:
        execution: The execution.
        exact: Whether the history itself can be counted when the quota is nearly reached.
    """
    most = execution.program.profile.quotas.history_events
    if most is not None and not execution.express:
        recount = partial(_events_in, execution) if exact else None
        execution.counter = HistoryCounter(most, execution.emit, recount)
        execution.emit = execution.counter.emit


def _events_in(execution: Execution) -> int | None:
    """Return the number of events in the history, None if it is full."""
    follower = open_live_history(execution)
    for _ in follower.new_events():
        pass
    return None if follower.expander.is_full else follower.expander.count
