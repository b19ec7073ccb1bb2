"""A client of Temporal for code that blocks: its event loop runs in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from threading import Thread
from typing import Any, Final, TypeAlias, TypeVar

from temporalio.api.common.v1 import WorkflowExecution as ExecutionReference
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from asl.core.errors import AslError
from asl.core.values import Json
from asl.executions.errors import ExecutionNotFound, RequestNotFound
from asl.states.approval_answers import AnswerRefused
from asl.stores.errors import StoreError
from asl.temporal.addresses import TemporalAddress
from asl.temporal.payloads import EXECUTION, STATE, StartMessage
from asl.temporal.worker import connect
from asl.temporal.workflow import ExecutionWorkflow

__all__ = ["ListedExecution", "TemporalClient"]

T = TypeVar("T")
ListedExecution: TypeAlias = "tuple[WorkflowExecution, Mapping[str, Any]]"
"""A workflow and its memo."""
PATIENCE: Final = 10.0
"""Seconds to wait for a worker's answer to a query or an update."""
_REFUSALS: Final = {
    "AnswerRefused": AnswerRefused,
    "RequestNotFound": RequestNotFound,
    "ExecutionNotFound": ExecutionNotFound,
}


class TemporalClient:
    """Requests to a server about executions; any thread may call it.

    Args:
        address: The server, the namespace and the queue.

    Raises:
        AslError: The server cannot be reached.
    """

    def __init__(self, address: TemporalAddress) -> None:
        self.address = address
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="asl-temporal", daemon=True)
        self._thread.start()
        self._client: Client = self.run(connect(address))

    def close(self) -> None:
        """Close the connection."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the client's event loop; blocks the caller.

        Raises:
            AslError: The server refuses the request or cannot be reached.
        """
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except RPCError as error:
            raise _store_error(error, self.address) from None

    # Starts

    def start(self, name: str, message: StartMessage, *, again: bool = False) -> bool:
        """Start a workflow; return False if one of this name exists.

        Args:
            name: Name of the execution.
            message: The execution.
            again: Whether it replaces one that has ended.
        """
        return self.run(self._start(name, message, again))

    async def _start(self, name: str, message: StartMessage, again: bool) -> bool:
        reuse = WorkflowIDReusePolicy
        memo = {"status": "RUNNING", "workflow": message.get("workflow", "")}
        try:
            await self._client.start_workflow(
                EXECUTION,
                message,
                id=name,
                task_queue=self.address.queue,
                id_reuse_policy=reuse.ALLOW_DUPLICATE if again else reuse.REJECT_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                memo=memo,
            )
        except WorkflowAlreadyStartedError:
            return False
        return True

    # Read

    def describe(self, name: str) -> WorkflowExecution:
        """Return the description of a workflow.

        Raises:
            ExecutionNotFound: There is none.
        """
        return self.run(self._describe(name))

    async def _describe(self, name: str) -> WorkflowExecution:
        try:
            found = await self._client.get_workflow_handle(name).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise ExecutionNotFound(
                    f"there is no execution {name!r} in {self.address}"
                ) from None
            raise
        if found.workflow_type != EXECUTION:
            raise ExecutionNotFound(f"the workflow {name!r} is not an execution of documents")
        return found

    def list_runs(self, name: str) -> list[str]:
        """Return the ids of the runs of a workflow, the oldest first."""
        return self.run(self._runs(name))

    async def _runs(self, name: str) -> list[str]:
        quoted = name.replace("'", "''")
        found = self._client.list_workflows(f"WorkflowId = '{quoted}'")
        runs = [(each.start_time, each.run_id) async for each in found]
        return [run for _, run in sorted(runs)]

    def read_state(self, name: str, run: str) -> str:
        """Return the packed execution of a run: from a worker, or by a replay of its history."""
        return self.run(self._state(name, run))

    async def _state(self, name: str, run: str) -> str:
        handle = self._client.get_workflow_handle(name, run_id=run)
        try:
            found: str = await asyncio.wait_for(handle.query(STATE), PATIENCE)
        except (TimeoutError, RPCError, WorkflowQueryFailedError):  # no worker, or a large answer
            return await replayed_state(handle)
        return found

    def list_executions(self, query: str, limit: int) -> list[ListedExecution]:
        """Return the latest executions that meet a query, with their memos.

        Args:
            query: Further conditions in the server's language; empty for none.
            limit: Maximum number.
        """
        return self.run(self._list(query, limit))

    async def _list(self, query: str, limit: int) -> list[ListedExecution]:
        whole = f"WorkflowType = '{EXECUTION}'" + (f" AND {query}" if query else "")
        found = self._client.list_workflows(whole, limit=limit)
        return [(each, await each.memo()) async for each in found]

    # Change

    def update(self, name: str, update: str, message: Json) -> Json:
        """Send an update to a workflow and return its answer.

        Raises:
            AslError: It is refused, or no worker answers.
        """
        return self.run(self._update(name, update, message))

    async def _update(self, name: str, update: str, message: Json) -> Json:
        handle = self._client.get_workflow_handle(name)
        try:
            return await asyncio.wait_for(handle.execute_update(update, message), PATIENCE)
        except TimeoutError:
            raise StoreError(
                f"no worker answers for {name!r}: start 'asl worker --store {self.address}'"
            ) from None
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError):
                kind = _REFUSALS.get(cause.type or "", AslError)
                raise kind(cause.message) from None
            raise

    def cancel(self, name: str, signal: str, message: Json) -> None:
        """Cancel a workflow, with the reason in a signal before."""
        self.run(self._cancel(name, signal, message))

    async def _cancel(self, name: str, signal: str, message: Json) -> None:
        handle = self._client.get_workflow_handle(name)
        await handle.signal(signal, message)
        await handle.cancel()

    def wait(self, name: str) -> None:
        """Return when a workflow has ended."""
        self.run(self._wait(name))

    async def _wait(self, name: str) -> None:
        try:
            await self._client.get_workflow_handle(name).result()
        except WorkflowFailureError:  # its failure is data
            return

    def delete(self, name: str) -> None:
        """Delete an ended workflow with its history."""
        self.run(self._delete(name))

    async def _delete(self, name: str) -> None:
        request = DeleteWorkflowExecutionRequest(
            namespace=self.address.namespace,
            workflow_execution=ExecutionReference(workflow_id=name),
        )
        await self._client.workflow_service.delete_workflow_execution(request)

    @property
    def raw(self) -> Client:
        """The client of the SDK, for workers on the same connection."""
        return self._client


async def replayed_state(handle: WorkflowHandle[Any, Any]) -> str:
    """Return the packed execution of a workflow, computed here from its history.

    Raises:
        StoreError: It has no history.
    """
    flows: list[ExecutionWorkflow] = []
    history = await handle.fetch_history()
    async with _watching(flows):
        replayer = Replayer(
            workflows=[ExecutionWorkflow], workflow_runner=UnsandboxedWorkflowRunner()
        )
        await replayer.replay_workflow(history)
    if not flows:
        raise StoreError(f"the history of {handle.id!r} cannot be read")
    return flows[-1].state()


@asynccontextmanager
async def _watching(flows: list[ExecutionWorkflow]) -> AsyncIterator[None]:
    """Collect the workflows that a replay makes."""
    ExecutionWorkflow.on_start = flows.append
    try:
        yield
    finally:
        ExecutionWorkflow.on_start = None


def _store_error(error: RPCError, address: TemporalAddress) -> StoreError:
    return StoreError(f"Temporal at {address} refuses the request: {error.message}")
