"""The Map Runs of registered state machines, as resources of the store."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Final

from asl.engine.live_map_run import LiveMapRun, StatusCounts
from asl.stores.resources import Resource, find_resource, list_resources, put_resource
from asl.stores.session import Session

__all__ = ["LIMITS", "MAP_RUN", "MapRuns", "counts_of"]

MAP_RUN: Final = "mapRun"
"""Kind of the resource."""
LIMITS: Final = ("maxConcurrency", "toleratedFailureCount", "toleratedFailurePercentage")
"""The limits of a run that can be changed."""
LOOK: Final = 1.0
"""Seconds between two looks for changed limits."""
REST: Final = 5.0
"""Seconds between two storings of a run under way."""


class MapRuns:
    """Follows the Map Runs of one process (`asl.engine.live_map_run.MapRunMonitor`).

    Args:
        session: Returns the session of this thread.
        now: Returns the current time in epoch seconds.
    """

    def __init__(self, session: Callable[[], Session], now: Callable[[], float]) -> None:
        self._session = session
        self._now = now
        self.live: dict[str, LiveMapRun] = {}
        """The runs under way in this process, by ARN."""
        self._stored: dict[str, float] = {}
        """Time of the last storing of each."""
        self._version: int | None = None
        self._read = -inf
        """Version of the store and time at the last look for changed limits."""

    def begin(self, run: LiveMapRun) -> None:
        """Store a run; limits that were changed while it was not running are applied."""
        session = self._session()
        known = find_resource(session, run.arn)
        if known is None:
            number = 1 + len(list_resources(session, MAP_RUN, run.execution))
            known = Resource(run.arn, MAP_RUN, run.execution, number, {"startDate": run.started})
        else:
            run.update(*_limits(known))
        run.on_progress = self._progress
        self.live[run.arn] = run
        self._put(known, run, "RUNNING", None)

    def end(self, run: LiveMapRun, status: str) -> None:
        """Store the end of a run; an empty status is that of a run that will continue."""
        self.live.pop(run.arn, None)
        self._stored.pop(run.arn, None)
        known = find_resource(self._session(), run.arn)
        if known is not None:
            self._put(known, run, status or "RUNNING", self._now() if status else None)

    def apply_changes(self) -> None:
        """Apply the limits that other processes have changed, about once a second."""
        if not self.live or self._now() - self._read < LOOK:
            return
        version = self._session().foreign_version
        if version != self._version:
            self._version, self._read = version, self._now()
            for run in [*self.live.values()]:
                self._read_limits(run)

    def _read_limits(self, run: LiveMapRun) -> Resource | None:
        session = self._session()
        with session.reading_written():  # a child may be about to record its end
            known = find_resource(session, run.arn)
        if known is not None and _limits(known) != _stored_limits(run):
            run.update(*_limits(known))
        return known

    def _progress(self, run: LiveMapRun) -> None:
        """Store a run now and then, so that a crash loses little of what is known of it."""
        if self._now() - self._stored[run.arn] >= REST:
            known = self._read_limits(run)
            if known is not None:
                self._put(known, run, "RUNNING", None)

    def _put(self, known: Resource, run: LiveMapRun, status: str, ended: float | None) -> None:
        body: dict[str, Any] = {
            **known.body,
            "status": status,
            "stopDate": ended,
            "workflowId": run.workflow_id,
            "express": run.express,
            **dict(zip(LIMITS, _stored_limits(run), strict=True)),
            "itemCounts": counts_of(run.items, run.total),
            "executionCounts": counts_of(run.executions, None),
            "children": [[*child] for child in run.children.values()],
        }
        put_resource(self._session(), known._replace(body=body))
        if run.arn in self.live:
            self._stored[run.arn] = self._now()


def _limits(known: Resource) -> tuple[Any, ...]:
    return tuple(known.body[name] for name in LIMITS)


def _stored_limits(run: LiveMapRun) -> tuple[Any, ...]:
    concurrency, count, percentage = run.limits
    return concurrency, _finite(count), percentage


def _finite(count: float) -> int | None:
    return None if count == float("inf") else int(count)


def counts_of(counts: StatusCounts, total: int | None) -> dict[str, int]:
    """Return counts in AWS's form.

    Args:
        counts: The counts.
        total: Number of all items; None for that of the started ones.
    """
    whole = counts.started if total is None else max(total, counts.started)
    return {
        "pending": whole - counts.started,
        "running": counts.running,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "timedOut": counts.timed_out,
        "aborted": counts.aborted,
        "total": whole,
        "resultsWritten": 0,
    }
