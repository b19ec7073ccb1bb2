"""The Map Runs of registered state machines, as resources of the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from asl.engine.live_map_run import LiveMapRun, StatusCounts
from asl.stores.resources import Resource, find_resource, list_resources, put_resource
from asl.stores.session import Session

__all__ = ["MAP_RUN", "MapRuns", "counts_of"]

MAP_RUN: Final = "mapRun"
"""Kind of the resource."""


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

    def begin(self, run: LiveMapRun) -> None:
        """Store a run; limits that were changed while it was not running are applied."""
        session = self._session()
        known = find_resource(session, run.arn)
        if known is None:
            number = 1 + len(list_resources(session, MAP_RUN, run.execution))
            known = Resource(run.arn, MAP_RUN, run.execution, number, {"startDate": run.started})
        else:
            limits = known.body
            run.update(
                limits["maxConcurrency"],
                limits["toleratedFailureCount"],
                limits["toleratedFailurePercentage"],
            )
        self.live[run.arn] = run
        self._put(known, run, "RUNNING", None)

    def end(self, run: LiveMapRun, status: str) -> None:
        """Store the end of a run; an empty status is that of a run that will continue."""
        self.live.pop(run.arn, None)
        known = find_resource(self._session(), run.arn)
        if known is not None:
            self._put(known, run, status or "RUNNING", self._now() if status else None)

    def _put(self, known: Resource, run: LiveMapRun, status: str, ended: float | None) -> None:
        body: dict[str, Any] = {
            **known.body,
            "status": status,
            "stopDate": ended,
            "workflowId": run.workflow_id,
            "express": run.express,
            "maxConcurrency": run.max_concurrency,
            "toleratedFailureCount": _finite(run.tolerance.count),
            "toleratedFailurePercentage": run.tolerance.percentage,
            "itemCounts": counts_of(run.items, run.total),
            "executionCounts": counts_of(run.executions, None),
            "children": [[*child] for child in run.children.values()],
        }
        put_resource(self._session(), known._replace(body=body))


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
