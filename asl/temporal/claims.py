"""The claim of a workflow on an execution of its store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NoReturn

from temporalio import workflow

from asl.bindings import ResolvedBindings
from asl.effects.services import MapItem, Notify
from asl.effects.suspension import SuspensionMonitor
from asl.temporal.budgets.in_workflows import WorkflowBudgets
from asl.temporal.independent import ExecutionStarter
from asl.temporal.remote import (
    CallGate,
    RemoteActivities,
    RemoteBuckets,
    remote_agents,
    remote_services,
)
from asl.temporal.sizes import check_size
from asl.temporal.slices import Slicer

__all__ = ["LONG", "MAX_EVENTS", "WorkflowClaim", "continue_in_new_run", "must_leave"]

LONG: Final = 1.0
"""Seconds from which on a wait is one of the workflow, between two stretches of the execution."""
MAX_EVENTS = 4000
"""Number of history events after which a workflow continues as a new run."""


def must_leave() -> bool:
    """Return whether the next effect belongs to a new run: the history of this one is long, or
    another version of the workers is the current one.
    """
    info = workflow.info()
    return (
        info.is_continue_as_new_suggested()
        or info.is_target_worker_deployment_version_changed()
        or info.get_current_history_length() > MAX_EVENTS
    )


def continue_in_new_run(message: Mapping[str, Any]) -> NoReturn:
    """Continue the workflow in a new run, on the current version of the workers."""
    has_versions = workflow.info().get_current_deployment_version() is not None
    behavior = workflow.ContinueAsNewVersioningBehavior
    workflow.continue_as_new(
        message, initial_versioning_behavior=behavior.AUTO_UPGRADE if has_versions else None
    )


class WorkflowClaim:
    """The claim of a workflow on an execution (protocol `asl.executions.executor.Claim`).

    Args:
        now: Returns the time of the workflow.
        gate: Admits its calls.
        slicer: Runs the children of distributed Maps; None to run them in the workflow.
        item: The item of the execution, if it is such a child.
        channels: Notify people of requests.
        starter: Starts executions for which no state waits; None to run them in the workflow.
        budgets: Budgets that the execution shares with others; None for none.
        activities: Decides who performs activities; None for workers with a binding.
    """

    elsewhere = ("agents", "resources", "mocks", "tools", "memory", "buckets")
    """Kinds of bindings of the workers."""

    def __init__(
        self,
        now: Callable[[], float],
        gate: CallGate,
        slicer: Slicer | None = None,
        item: MapItem | None = None,
        channels: Sequence[Notify] = (),
        starter: ExecutionStarter | None = None,
        budgets: WorkflowBudgets | None = None,
        activities: RemoteActivities | None = None,
    ) -> None:
        self.suspension = SuspensionMonitor(now, LONG)
        self._gate = gate
        self._slicer = slicer
        self._item = item
        self._channels = channels
        self._starter = starter
        self._budgets = budgets
        self._activities = activities

    def prepare(self, bound: ResolvedBindings) -> ResolvedBindings:
        """Return bindings that call activities, and let branches wait in place."""
        services = bound.services
        services.suspension, services.map_item = self.suspension, self._item
        if self._item is None:  # a slice of items has one limit for all outputs
            services.check_output = partial(check_size, what="the output")
        if self._slicer is not None:
            services.run_elsewhere = self._slicer.run
        if self._starter is not None:
            services.start_elsewhere = self._starter.start
            services.registered_elsewhere = self._starter.machines.program
        if self._activities is not None:
            services.is_polled = self._activities.is_polled
        if self._budgets is not None:
            services.pools = self._budgets.pools(services.pools)
        services.remote = remote_services(self._gate)
        services.channels = self._channels
        find = remote_agents(services, self._gate)
        services.without_mocks = lambda: find
        return bound._replace(find=find, buckets=RemoteBuckets())

    def needs(self) -> Sequence[str]:
        """Return nothing: a call waits for a worker that has its binding."""
        return ()
