"""The quota of events in the history of an execution, counted as AWS counts them."""

from collections.abc import Callable

from asl.engine.events import HistoryFull
from asl.engine.records import (
    ABORTED,
    AGAIN,
    BROKEN,
    CAUGHT,
    EXITED,
    FAILED,
    RETRIED,
    STRETCH,
)
from asl.program import Step
from asl.states.effects import ABSENT, Record, StateFrame

__all__ = ["HistoryCounter"]

ENDS = 2
"""The first and the last event of an execution."""


class HistoryCounter:
    """Counts the events that the records of an execution produce.

    Each record counts as the maximum number of its events, which is cheap. The events themselves
    are counted once that sum exceeds the quota.
    """

    __slots__ = ("count_events", "left", "limit", "take")

    def __init__(
        self,
        most: int,
        take: Callable[[Record], object],
        count_events: Callable[[], int | None] | None,
    ) -> None:
        self.limit = most
        self.take = take
        """Receives the counted records."""
        self.left = most - ENDS
        self.count_events = count_events
        """Returns the number of events in the history, None if it is full; None for an execution
        without a history."""

    def emit(self, record: Record) -> None:
        """Count a record and pass it on."""
        self.take(record)
        if record:
            self.left -= _events_of(record)

    def room(self) -> int:
        """Return the number of pure states that fit in the history."""
        if self.left < ENDS and self.count_events is not None:
            self.recount()
        return max(0, self.left) // 2

    def check(self) -> None:
        """Check that the events of the records fit.

        Raises:
            HistoryFull: They do not.
        """
        if self.left < 0 and self.count_events is not None:
            self.recount()
        if self.left < 0:
            raise self.error()

    def error(self) -> HistoryFull:
        """Return the error of an execution whose history is full."""
        cause = f"The execution reached the maximum number of history events ({self.limit})."
        return HistoryFull(cause)

    def recount(self) -> None:
        """Count the actual events of the history."""
        assert self.count_events is not None
        count = self.count_events()
        self.left = -1 if count is None else self.limit - 1 - count


def _events_of(record: Record) -> int:
    """Return the maximum number of events of a record."""
    kind, _, frame, visit, step = record[:5]
    if kind == STRETCH:
        length: int = record[9]
        count = 2 * length + (_is_iteration(frame) if visit == length else 0)
        if step is None:
            return count + _is_iteration(frame)
        return count if step.work is None else count + 1 + _begun(step)
    if kind == EXITED:
        ends = step.type == "Task" or step.forks
        last = record[9] is None and _is_iteration(frame)
        return 1 + (ends and record[5] is not ABSENT) + last
    if kind == AGAIN:
        return _begun(step)
    if kind == RETRIED:
        return 0
    if kind == CAUGHT:
        return int(step.forks)
    if kind in (FAILED, ABORTED):
        return 2
    return 4 if kind == BROKEN else 1


def _begun(step: Step) -> int:
    """Return the number of events at the start of an attempt."""
    if step.forks:
        return 1
    return 2 if step.type == "Task" else 0


def _is_iteration(frame: StateFrame) -> bool:
    """Return whether a machine has events for its start and its end."""
    parent = frame.parent
    if parent is None or parent.execution is not frame.execution:
        return False
    return frame.origin[0].type == "Map"
