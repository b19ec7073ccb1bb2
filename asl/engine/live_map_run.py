"""Map Runs under way: counts, child executions, and limits that change while they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from asl.core.errors import StateError
from asl.core.values import Json
from asl.states.effects import FanOut, StateFrame
from asl.states.map_data import ItemSource, Tolerance

__all__ = ["MAX_LISTED", "ChildSummary", "LiveMapRun", "MapRunMonitor", "StatusCounts"]

MAX_LISTED: Final = 10_000
"""Maximum number of child executions of a run that are listed."""


class StatusCounts:
    """Numbers of items or child executions by status."""

    __slots__ = ("aborted", "failed", "started", "succeeded", "timed_out")

    def __init__(self) -> None:
        self.started = self.succeeded = self.failed = self.timed_out = self.aborted = 0

    @property
    def running(self) -> int:
        """The number of those that have started and not ended."""
        return self.started - self.succeeded - self.failed - self.timed_out - self.aborted


class ChildSummary(NamedTuple):
    """A child execution: its name, status, and times in epoch seconds."""

    name: str
    status: str
    started: float
    ended: float | None = None


class LiveMapRun:
    """A Map Run that is under way.

    Args:
        arn: ARN of the run.
        execution: Id of the execution.
        workflow_id: Id of the workflow of its children.
        express: Whether its children are express executions.
        started: Start in epoch seconds.
        tolerance: Its tolerated failures, which `update` changes.
        weights: Numbers of items of children with batches.
        source: Its items.
    """

    def __init__(
        self,
        arn: str,
        execution: str,
        workflow_id: str,
        express: bool,
        started: float,
        tolerance: Tolerance,
        weights: Mapping[int, int],
        source: ItemSource,
    ) -> None:
        self.arn = arn
        self.execution = execution
        self.workflow_id = workflow_id
        self.express = express
        self.started = started
        self.tolerance = tolerance
        self.on_progress: Callable[[LiveMapRun], object] = _ignore
        """Called at the end of each child."""
        self.items = StatusCounts()
        self.executions = StatusCounts()
        self.children: dict[int, ChildSummary] = {}
        """The first child executions, by index."""
        self._weights = weights
        self._source = source
        self._fan_out: FanOut | None = None

    @property
    def total(self) -> int | None:
        """The number of all items; None while it is not known."""
        return self._source.length

    @property
    def max_concurrency(self) -> int:
        """Maximum number of concurrent children."""
        return 0 if self._fan_out is None else self._fan_out.limit

    def update(
        self, concurrency: int | None, count: float | None, percentage: float | None
    ) -> None:
        """Change the limits of the run; None leaves one as it is.

        Args:
            concurrency: Maximum number of concurrent children.
            count: Tolerated number of failed items.
            percentage: Tolerated percentage of failed items.
        """
        if count is not None:
            self.tolerance.count = count
        if percentage is not None:
            self.tolerance.percentage = percentage
        if concurrency is not None and self._fan_out is not None:
            self._fan_out.limit = concurrency
            self._fan_out.widen()

    @property
    def limits(self) -> tuple[int, float, float | None]:
        """The limits that `update` changes, in its order."""
        return self.max_concurrency, self.tolerance.count, self.tolerance.percentage

    def count_children(self, fan: FanOut) -> FanOut:
        """Return a fan-out that counts its children here."""
        child, ended, failed, aborted = fan.child, fan.on_end, fan.on_failure, fan.on_abort
        assert ended is not None

        def next_child(index: int) -> StateFrame | None:
            made = child(index)
            if made is not None:
                self._start(made)
            return made

        def on_end(child: StateFrame, value: Json) -> None:
            self._end(child, "SUCCEEDED")
            ended(child, value)

        def on_failure(child: StateFrame, error: StateError) -> StateError | None:
            self._end(child, "TIMED_OUT" if error.name == "States.Timeout" else "FAILED")
            return failed(child, error)

        def on_abort(child: StateFrame) -> None:
            self._end(child, "ABORTED")
            aborted(child)

        self._fan_out = FanOut(
            fan.length,
            next_child,
            fan.limit,
            on_failure=on_failure,
            on_end=on_end,
            on_abort=on_abort,
            series=fan.series,
            held_results=fan.held_results,
            has_timeout=fan.has_timeout,
        )
        return self._fan_out

    def _start(self, child: StateFrame) -> None:
        index = child.index
        self.executions.started += 1
        self.items.started += self._weights.get(index, 1)
        if len(self.children) < MAX_LISTED:
            name = f"{self.arn.rpartition(':')[2]}-{index}"
            self.children[index] = ChildSummary(name, "RUNNING", child.now)

    def _end(self, child: StateFrame, status: str) -> None:
        index = child.index
        if self._fan_out is not None and self._fan_out.series is not None:
            self._start(child)  # pure children share one frame
        for counts, weight in ((self.executions, 1), (self.items, self._weights.get(index, 1))):
            name = status.lower()
            setattr(counts, name, getattr(counts, name) + weight)
        known = self.children.get(index)
        if known is not None:
            self.children[index] = known._replace(status=status, ended=child.now)
        self.on_progress(self)


def _ignore(run: LiveMapRun) -> None:
    """Do nothing."""


class MapRunMonitor(Protocol):
    """Follows the Map Runs of executions."""

    def begin(self, run: LiveMapRun) -> None:
        """Follow a run, which has not started children yet."""
        ...

    def end(self, run: LiveMapRun, status: str) -> None:
        """Stop following a run that has ended with a status."""
        ...
