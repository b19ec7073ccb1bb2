"""The audit log of the servers of a queue, in the history of a workflow."""

from __future__ import annotations

import asyncio
from typing import Final

from temporalio.api.enums.v1 import EventType, PendingWorkflowTaskState
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode

from asl.core.values import compact
from asl.stores.audit import AuditEntry
from asl.temporal.registry.audit_workflow import (
    BEGINNING,
    ENTRY,
    AuditStart,
    AuditWorkflow,
    read_entry,
)

__all__ = ["AuditLog"]

SIGNALED: Final = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
STARTED: Final = PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_STARTED
"""State in which a worker continues the workflow; the server adds signals to the history later."""
LOOK: Final = 0.02
LOOKS: Final = 100
"""Seconds between two looks at the workflow, and their maximum number: its worker may have died."""


class AuditLog:
    """Writes and reads the log; workers of the registry run its workflow.

    Args:
        client: The client.
        queue: Task queue of the executions.
    """

    def __init__(self, client: Client, queue: str) -> None:
        self._client = client
        self._name = f"{queue}-audit"
        """Name of the workflow."""
        self._queue = f"{queue}-registry"
        self._ended: dict[str, tuple[str, list[AuditEntry]]] = {}
        """The run before, and the entries, of each run that has ended."""

    async def add(self, entry: AuditEntry) -> None:
        """Add an entry."""
        await self._client.start_workflow(
            AuditWorkflow.run,
            BEGINNING,
            id=self._name,
            task_queue=self._queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal=ENTRY,
            start_signal_args=[compact([*entry[:6]])],
        )

    async def entries(self) -> list[AuditEntry]:
        """Return the entries that the server still has, the oldest first."""
        found: list[AuditEntry] = []
        try:
            latest = run = await self._latest_run()
            while run:
                before, entries = self._ended.get(run) or await self._read(run)
                if run != latest:
                    self._ended[run] = before, entries
                found = [*entries, *found]
                run = before
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # none yet, or deleted by now
                raise
        return found

    async def _latest_run(self) -> str:
        """Return the latest run, once its history has all entries that were added before."""
        for _ in range(LOOKS):
            found = await self._client.get_workflow_handle(self._name).describe()
            if found.raw_description.pending_workflow_task.state != STARTED:
                break
            await asyncio.sleep(LOOK)
        return found.run_id

    async def _read(self, run: str) -> tuple[str, list[AuditEntry]]:
        """Return the run before a run, empty for none, and its entries."""
        history = await self._client.get_workflow_handle(self._name, run_id=run).fetch_history()
        converter = self._client.data_converter
        first = history.events[0].workflow_execution_started_event_attributes
        start: AuditStart
        (start,) = await converter.decode(first.input.payloads, [AuditStart])
        entries = list[AuditEntry]()
        for event in history.events:
            if event.event_type == SIGNALED:
                given = event.workflow_execution_signaled_event_attributes.input.payloads
                (text,) = await converter.decode(given, [str])
                entry = read_entry(text, start)
                entries.append(entry)
                start = AuditStart(count=entry.id, hash=entry.hash.hex())
        return first.continued_execution_run_id, entries
