"""A connection to the workflow that holds the registered resources of a queue."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, TypeVar, cast

from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from asl.stores.errors import StoreConflict, StoreError
from asl.temporal.payloads import unpack
from asl.temporal.registry.audit_workflow import AuditWorkflow
from asl.temporal.registry.workflow import (
    CHANGES,
    COMMIT,
    CONFLICT,
    FULL,
    REGISTRY,
    Changes,
    CommitMessage,
    RegistryStart,
    RegistryWorkflow,
)

__all__ = ["RegistryConnection"]

T = TypeVar("T")
PATIENCE: Final = 20.0
"""Seconds to wait for the workflow."""
LOST: Final = timedelta(seconds=1)
"""Time after which another process runs the workflow instead of one that has died."""


class RegistryConnection:
    """Requests to a registry, all on one event loop, which also runs its workflow.

    Args:
        client: The client.
        queue: Task queue of the executions.
    """

    def __init__(self, client: Client, queue: str) -> None:
        self._client = client
        self._name = f"{queue}-registry"
        """Name of the workflow and of its queue."""
        self._handle: WorkflowHandle[RegistryWorkflow, None] | None = None
        self._worker: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()

    async def changes(self, since: int) -> Changes:
        """Return what has changed since a version.

        Raises:
            StoreError: The workflow does not answer, or cannot.
        """
        handle = await self._answered(self._opened())
        return cast("Changes", unpack(await self._answered(handle.query(CHANGES, since))))

    async def commit(self, message: CommitMessage) -> int:
        """Make changes and return their version.

        Raises:
            StoreConflict: Another process has changed one of the resources.
            StoreError: The registry is full, or the workflow does not answer.
        """
        handle = await self._answered(self._opened())
        try:
            return cast("int", await self._answered(handle.execute_update(COMMIT, message)))
        except WorkflowUpdateFailedError as error:
            raise self._refusal(error) from None

    async def close(self) -> None:
        """Stop the worker of this process."""
        if self._worker is not None:
            self._worker.cancel()
            with suppress(asyncio.CancelledError):
                await self._worker
            self._worker = self._handle = None

    async def _answered(self, request: Coroutine[Any, Any, T]) -> T:
        """Return the answer to a request.

        Raises:
            StoreError: The workflow does not answer, or cannot.
        """
        try:
            return await asyncio.wait_for(request, PATIENCE)
        except (TimeoutError, WorkflowQueryFailedError) as error:
            target = self._client.service_client.config.target_host
            raise StoreError(
                f"the registry {self._name!r} of {target} does not answer: look at "
                f"its workflow on the page of Temporal ({error or 'in time'})"
            ) from None

    def _refusal(self, error: WorkflowUpdateFailedError) -> StoreError:
        cause = error.cause
        kind = cause.type if isinstance(cause, ApplicationError) else None
        if kind == CONFLICT:
            return StoreConflict(f"{cause} was changed at the same time: send the request again")
        if kind == FULL:
            return StoreError(
                f"the registry {self._name!r} is full ({cause}): delete state machines or versions"
            )
        return StoreError(f"the registry {self._name!r} refuses the change: {cause}")

    async def _opened(self) -> WorkflowHandle[RegistryWorkflow, None]:
        """Start the workflow if there is none, and a worker for it in this process."""
        async with self._opening:
            return self._handle or await self._started()

    async def _started(self) -> WorkflowHandle[RegistryWorkflow, None]:
        handle = await self._client.start_workflow(
            REGISTRY,
            RegistryStart(),
            id=self._name,
            task_queue=self._name,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )
        worker = Worker(
            self._client,
            task_queue=self._name,
            workflows=[RegistryWorkflow, AuditWorkflow],
            workflow_runner=UnsandboxedWorkflowRunner(),
            sticky_queue_schedule_to_start_timeout=LOST,
        )
        self._worker = asyncio.create_task(worker.run())
        self._handle = self._client.get_workflow_handle_for(RegistryWorkflow.run, handle.id)
        return self._handle
