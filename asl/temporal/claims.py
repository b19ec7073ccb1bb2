"""The claim of a workflow on an execution of its store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from temporalio import workflow

from asl.bindings import ResolvedBindings
from asl.effects.services import MapItem
from asl.effects.suspension import SuspensionMonitor
from asl.temporal.remote import CallGate, remote_agents
from asl.temporal.slices import Slicer

__all__ = ["LONG", "MAX_EVENTS", "WorkflowClaim", "has_long_history"]

LONG: Final = 1.0
"""Seconds from which on a wait is one of the workflow, between two stretches of the execution."""
MAX_EVENTS = 4000
"""Number of history events after which a workflow continues as a new run."""


def has_long_history() -> bool:
    """Return whether the history of this run is so long that the next effect belongs to a new
    run.
    """
    info = workflow.info()
    return info.is_continue_as_new_suggested() or info.get_current_history_length() > MAX_EVENTS


class WorkflowClaim:
    """The claim of a workflow on an execution (protocol `asl.executions.executor.Claim`).

    Args:
        now: Returns the time of the workflow.
        gate: Admits its calls.
        slicer: Runs the children of distributed Maps; None to run them in the workflow.
        item: The item of the execution, if it is such a child.
    """

    def __init__(
        self,
        now: Callable[[], float],
        gate: CallGate,
        slicer: Slicer | None = None,
        item: MapItem | None = None,
    ) -> None:
        self.suspension = SuspensionMonitor(now, LONG)
        self._gate = gate
        self._slicer = slicer
        self._item = item

    def prepare(self, bound: ResolvedBindings) -> ResolvedBindings:
        """Return bindings that call activities, and let branches wait in place."""
        services = bound.services
        services.suspension, services.map_item = self.suspension, self._item
        if self._slicer is not None:
            services.run_elsewhere = self._slicer.run
        find = remote_agents(services, self._gate)
        services.without_mocks = lambda: find
        return bound._replace(find=find)

    def needs(self) -> Sequence[str]:
        """Return nothing: a call waits for a worker that has its binding."""
        return ()
