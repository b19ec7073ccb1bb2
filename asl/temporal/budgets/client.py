"""The shared budgets of a queue, for its workers and clients.

Any process that uses them runs their workflows, in a worker of a task queue of their own: those of
executions wait for them, and must not take their places.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from contextlib import suppress
from datetime import timedelta
from math import inf
from typing import Any, Final, cast
from uuid import uuid4

from temporalio.client import Client, WithStartWorkflowOperation, WorkflowExecutionStatus
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from asl.core.values import Json
from asl.temporal.budgets.workflow import (
    BUDGET,
    EXCHANGE,
    VALUE,
    BudgetStart,
    BudgetWorkflow,
    ExchangeMessage,
    Grant,
)
from asl.temporal.payloads import unpack

__all__ = ["BudgetClient"]

LOST: Final = timedelta(seconds=1)
"""Time after which another process runs a workflow instead of one that has died."""
SOON: Final = 0.1
"""Seconds after which a budget that continues in a new run is tried again."""
LOOK: Final = 30.0
"""Seconds between two looks at a workflow with old reservations."""


class BudgetClient:
    """The shared budgets of a queue.

    Args:
        client: The client.
        queue: The task queue of the executions.
    """

    def __init__(self, client: Client, queue: str) -> None:
        self._client = client
        self._prefix = f"{queue}-budget-"
        """Beginning of the ids of their workflows."""
        self._queue = f"{queue}-budgets"
        self._worker: asyncio.Task[None] | None = None
        self._looks: dict[str, float] = {}
        """Times of the last looks at workflows."""

    async def exchange(self, name: str, message: ExchangeMessage) -> Json:
        """Change a budget.

        Args:
            name: Name of the budget.
            message: The change.

        Returns:
            The budget, for one that holds it.
        """
        grant = await self._granted(name, message)
        if grant is None:
            return None
        ended = await self._ended(grant["silent"], time.monotonic() - LOOK)
        if ended:
            grant = await self._granted(name, {**message, "ended": ended})
            assert grant is not None  # it waits for its turn
        return unpack(grant["value"])

    async def _granted(self, name: str, message: ExchangeMessage) -> Grant | None:
        self._serve()
        while True:
            start: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
                BUDGET,
                BudgetStart(),
                id=f"{self._prefix}{name}",
                task_queue=self._queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )
            found: Grant | None = await self._client.execute_update_with_start_workflow(
                EXCHANGE, message, start_workflow_operation=start
            )
            if found is not None or not message["holds"]:
                return found
            await asyncio.sleep(SOON)

    async def _ended(self, names: Collection[str], before: float) -> list[str]:
        """Return the workflows that have ended, of those that were not looked at since a time."""
        ended = []
        for name in names:
            if self._looks.get(name, -LOOK) < before:
                self._looks[name] = time.monotonic()
                if not await self._is_open(name):
                    ended.append(name)
        return ended

    async def _is_open(self, name: str) -> bool:
        try:
            found = await self._client.get_workflow_handle(name).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        return found.status is WorkflowExecutionStatus.RUNNING

    # All budgets

    async def values(self) -> dict[str, Json]:
        """Return all budgets of the queue by name."""
        self._serve()
        query = f"WorkflowType = '{BUDGET}' AND ExecutionStatus = 'Running'"
        found = {}
        async for each in self._client.list_workflows(query):
            if each.task_queue == self._queue:
                packed = await self._client.get_workflow_handle(each.id).query(VALUE)
                found[each.id.removeprefix(self._prefix)] = unpack(cast("str", packed))
        return found

    async def release_ended(self) -> list[str]:
        """Release the reservations of workflows that have ended without releasing them.

        Returns:
            The names of the budgets that had some.
        """
        released = []
        for name in sorted(await self.values()):
            message = ExchangeMessage(
                holder=uuid4().hex,
                workflow="",
                number=0,
                recorded=0,
                change={},
                holds=True,
                ended=[],
                now=time.time(),
            )
            grant = await self._granted(name, message)
            ended = [] if grant is None else await self._ended(grant["silent"], inf)
            await self._granted(name, {**message, "ended": ended, "holds": False})
            if ended:
                released.append(name)
        return released

    # Worker

    def _serve(self) -> None:
        """Run the workflows of budgets in this process, too."""
        if self._worker is None or self._worker.done():
            worker = Worker(
                self._client,
                task_queue=self._queue,
                workflows=[BudgetWorkflow],
                workflow_runner=UnsandboxedWorkflowRunner(),
                sticky_queue_schedule_to_start_timeout=LOST,
            )
            self._worker = asyncio.create_task(worker.run())

    async def close(self) -> None:
        """Stop the worker of this process."""
        if self._worker is not None:
            self._worker.cancel()
            with suppress(asyncio.CancelledError):
                await self._worker
            self._worker = None
