"""The registry of a queue: registered state machines and other resources that servers share.

A workflow holds them. Any process that uses them runs it, in a worker of its own queue, and has a
copy of them in its store in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, TypeVar, cast

from temporalio.client import (
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from asl.stores.errors import StoreConflict, StoreError
from asl.temporal.client import TemporalClient
from asl.temporal.payloads import pack, unpack
from asl.temporal.registry_workflow import (
    CHANGES,
    COMMIT,
    CONFLICT,
    FULL,
    REGISTRY,
    Changes,
    CommitMessage,
    RegistryStart,
    RegistryWorkflow,
    ResourceRow,
)

__all__ = ["Registry"]

T = TypeVar("T")
PATIENCE: Final = 20.0
"""Seconds to wait for the workflow."""
LOST: Final = timedelta(seconds=1)
"""Time after which another process runs the workflow instead of one that has died."""


class Registry:
    """The resources that servers of a queue share.

    Args:
        client: The client.
        apply: Receives changes of other processes.
    """

    def __init__(self, client: TemporalClient, apply: Callable[[Changes], None]) -> None:
        self._client = client
        self._apply = apply
        self._name = f"{client.address.queue}-registry"
        """Name of its workflow and of its queue."""
        self._version = -1
        self._handle: WorkflowHandle[RegistryWorkflow, None] | None = None
        self._worker: asyncio.Task[None] | None = None

    def pull(self) -> None:
        """Apply the changes of other processes.

        Raises:
            StoreError: The server cannot be reached.
        """
        found = self._client.run(self._answered(self._changes()))
        self._version = found["version"]
        self._apply(found)

    def push(self, rows: list[ResourceRow], documents: dict[str, str]) -> None:
        """Send changes.

        Args:
            rows: The changed resources.
            documents: Texts of the documents that they refer to, by hash.

        Raises:
            StoreConflict: Another process has changed one of them since the last `pull`.
            StoreError: The registry is full, or the server cannot be reached.
        """
        message = CommitMessage(
            base=max(0, self._version), resources=pack(rows), documents=pack(documents)
        )
        version = self._client.run(self._answered(self._commit(message)))
        if version == self._version + 1:  # nothing of others is between
            self._version = version

    async def _answered(self, request: Coroutine[Any, Any, T]) -> T:
        """Return the answer to a request.

        Raises:
            StoreError: The workflow does not answer, or cannot.
        """
        try:
            return await asyncio.wait_for(request, PATIENCE)
        except (TimeoutError, WorkflowQueryFailedError) as error:
            raise StoreError(
                f"the registry {self._name!r} of {self._client.address} does not answer: look at "
                f"its workflow on the page of Temporal ({error or 'in time'})"
            ) from None

    async def _changes(self) -> Changes:
        handle = await self._opened()
        answer = await handle.query(CHANGES, self._version)
        return cast("Changes", unpack(answer))

    async def _commit(self, message: CommitMessage) -> int:
        handle = await self._opened()
        try:
            answer = await handle.execute_update(COMMIT, message)
        except WorkflowUpdateFailedError as error:
            raise self._refusal(error) from None
        return cast("int", answer)

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
        if self._handle is None:
            client = self._client.raw
            handle = await client.start_workflow(
                REGISTRY,
                RegistryStart(),
                id=self._name,
                task_queue=self._name,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )
            worker = Worker(
                client,
                task_queue=self._name,
                workflows=[RegistryWorkflow],
                workflow_runner=UnsandboxedWorkflowRunner(),
                sticky_queue_schedule_to_start_timeout=LOST,
            )
            self._worker = asyncio.create_task(worker.run())
            self._handle = client.get_workflow_handle_for(RegistryWorkflow.run, handle.id)
        return self._handle

    def close(self) -> None:
        """Stop the worker of this process."""
        if self._worker is not None:
            self._client.run(self._stop(self._worker))
            self._worker = self._handle = None

    async def _stop(self, worker: asyncio.Task[None]) -> None:
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker
