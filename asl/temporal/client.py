"""A client of Temporal for code that blocks: its event loop runs in a thread."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime
from threading import Thread
from traceback import walk_stack
from typing import Any, Final, NamedTuple, TypeVar, cast

from temporalio.api.common.v1 import WorkflowExecution as ExecutionReference
from temporalio.api.enums.v1 import PendingActivityState, TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import (
    DeleteWorkflowExecutionRequest,
    DescribeTaskQueueRequest,
)
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionDescription,
    WorkflowHistory,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from asl.core.errors import AslError
from asl.core.values import Json
from asl.effects.task_tokens import TaskDoesNotExist, TaskTimedOut
from asl.executions.errors import ExecutionNotFound, RequestNotFound
from asl.states.approval_answers import AnswerRefused
from asl.stores.errors import StoreError
from asl.temporal import sizes
from asl.temporal.addresses import TemporalAddress
from asl.temporal.claim_check import has_bucket
from asl.temporal.payloads import EXECUTION, MISSING, STATE, GivenBindings, Memo, StartMessage
from asl.temporal.queries import execution_query, quoted
from asl.temporal.worker import LIVE, connect, is_gone

__all__ = [
    *("ListedExecution", "TemporalClient", "WorkflowState"),
    *("await_library", "calls_back"),
]

T = TypeVar("T")
PATIENCE: Final = 3.0
"""Seconds to wait for a worker's answer to an update, before a signal is sent."""
LEAST: Final = 1.0
"""Seconds to wait for a worker's answer to a query, before the history is replayed here."""
SILENCE: Final = 60.0
"""Seconds after which a worker that does not answer is tried again."""
LOOK: Final = 0.1
DELETIONS: Final = 20
"""Seconds between two looks at a workflow that is deleted, and their number."""
CALLBACK: Final = 0.001
CALLBACKS: Final = 1000
"""Seconds between two looks at the threads of the SDK's library, and their number."""
ALIVE: Final = 75.0
"""Seconds since the last poll of a live worker: a poll lasts a minute."""
SPANS: Final = (3600.0, 86_400.0, 30 * 86_400.0)
"""Seconds before the end of a page in which executions are looked for first."""
_REFUSALS: Final = {
    each.__name__: each
    for each in (
        *(AnswerRefused, RequestNotFound, ExecutionNotFound),
        *(TaskDoesNotExist, TaskTimedOut),
    )
}


class ListedExecution(NamedTuple):
    """A workflow and its memo."""

    found: WorkflowExecution
    memo: Memo


class WorkflowState(NamedTuple):
    """What a copy of an execution is made of: one of the two.

    Attributes:
        packed: The packed execution, from a worker.
        history: The history to replay, where no worker answers.
    """

    packed: str | None
    history: WorkflowHistory | None


class TemporalClient:
    """Requests to a server about executions; any thread may call it.

    Args:
        address: The server, the namespace and the queue.

    Raises:
        AslError: The server cannot be reached.
    """

    def __init__(self, address: TemporalAddress) -> None:
        self.address = address
        self._silent_until = 0.0
        """Until when no worker is asked, in seconds of the monotonic clock."""
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="asl-temporal", daemon=True)
        self._thread.start()
        try:
            self._client: Client = self.run(connect(address))
        except BaseException:  # raised again, after the thread of the loop has ended
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; closing it twice does nothing."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        await_library()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the client's event loop; blocks the caller.

        Raises:
            StoreError: The server refuses the request or cannot be reached, or the store is closed.
        """
        if self._loop.is_closed():
            work.close()
            raise StoreError(f"{self.address}: the store is closed")
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except RPCError as error:
            raise self._store_error(error) from None

    def _store_error(self, error: RPCError) -> StoreError:
        if error.status is RPCStatusCode.UNAVAILABLE:
            return StoreError(
                f"cannot reach Temporal at {self.address}: start it, or try again when it is back "
                f"({error.message})"
            )
        if "size" in error.message and "limit" in error.message.lower():
            return StoreError(
                f"the document, the input or the answer is too large for Temporal at "
                f"{self.address} ({error.message}): put large data into a bucket and pass its place"
            )
        return StoreError(f"Temporal at {self.address} refuses the request: {error.message}")

    @property
    def raw(self) -> Client:
        """The client of the SDK, for workers on the same connection."""
        return self._client

    # Starts

    def start(self, name: str, message: StartMessage, memo: Memo, *, again: bool = False) -> bool:
        """Start a workflow; return False if one of this name exists.

        Args:
            name: Name of the execution.
            message: The execution.
            memo: What lists show of it.
            again: Whether it replaces one that has ended.
        """
        return self.run(self._start(name, message, memo, again))

    async def _start(self, name: str, message: StartMessage, memo: Memo, again: bool) -> bool:
        reuse = WorkflowIDReusePolicy
        memo["bucket"] = has_bucket(self._client.data_converter)
        size = sum(len(each) for each in message.values() if isinstance(each, str))
        if size > sizes.MAX_SIZE and not memo["bucket"]:
            raise StoreError(sizes.describe_excess(f"the execution {name!r} with its input", size))
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

    def describe(self, name: str) -> WorkflowExecutionDescription:
        """Return the description of a workflow.

        Raises:
            ExecutionNotFound: There is none.
        """
        return self.run(self._describe(name))

    async def _describe(self, name: str) -> WorkflowExecutionDescription:
        try:
            found = await self._client.get_workflow_handle(name).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise ExecutionNotFound(
                    f"there is no execution {name!r} in {self.address}"
                ) from None
            raise
        if found.workflow_type != EXECUTION:
            raise ExecutionNotFound(
                f"the workflow {name!r} in {self.address} is a {found.workflow_type!r}, not an "
                "execution of a document"
            )
        return found

    def list_runs(self, name: str) -> list[str]:
        """Return the ids of the runs of a workflow, the oldest first."""
        return self.run(self._runs(name))

    async def _runs(self, name: str) -> list[str]:
        found = self._client.list_workflows(f"WorkflowId = '{quoted(name)}'")
        runs = [(each.start_time, each.run_id) async for each in found]
        return [run for _, run in sorted(runs)]

    def given_bindings(self, name: str) -> GivenBindings:
        """Return the bindings that the latest run of an execution was started with."""
        return self.run(self._given_bindings(name))

    async def _given_bindings(self, name: str) -> GivenBindings:
        events = self._client.get_workflow_handle(name).fetch_history_events(page_size=1)
        first = await anext(aiter(events))
        payloads = first.workflow_execution_started_event_attributes.input.payloads
        (message,) = await self._client.data_converter.decode(payloads, [dict])
        found: GivenBindings = json.loads(message.get("bindings", "{}"))
        return found

    def read_state(self, name: str, run: str) -> WorkflowState:
        """Return the state of a run, from a worker or as the history to replay."""
        return self.run(self._state(name, run))

    async def _state(self, name: str, run: str) -> WorkflowState:
        handle = self._client.get_workflow_handle(name, run_id=run)
        if await self._answers():
            try:
                packed = await asyncio.wait_for(handle.query(STATE), LEAST)
                return WorkflowState(packed, None)
            except (RPCError, TimeoutError):
                self._silent_until = time.monotonic() + SILENCE
            except WorkflowQueryFailedError:  # the answer is too large for a query
                return WorkflowState(None, await handle.fetch_history())
        return WorkflowState(None, await handle.fetch_history())

    async def _answers(self) -> bool:
        """Return whether a worker may answer."""
        if time.monotonic() < self._silent_until:
            return False
        return bool(await self._pollers(TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW))

    def workers(self, *, activities: bool = False) -> list[str]:
        """Return the identities of the live workers.

        Args:
            activities: Whether those that call agents are meant, not those that run workflows.
        """
        kind = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
        if activities:
            kind = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
        return self.run(self._pollers(kind))

    async def _pollers(self, kind: TaskQueueType.ValueType) -> list[str]:
        request = DescribeTaskQueueRequest(
            namespace=self.address.namespace,
            task_queue=TaskQueue(name=self.address.queue),
            task_queue_type=kind,
        )
        found = await self._client.workflow_service.describe_task_queue(request)
        least = time.time() - ALIVE
        return [
            each.identity
            for each in found.pollers
            if each.last_access_time.ToNanoseconds() / 1e9 > least and not is_gone(each.identity)
        ]

    def waits(self, found: WorkflowExecutionDescription) -> list[str]:
        """Return a sentence about each reason why an open workflow makes no progress."""
        raw = found.raw_description
        problems = []
        if raw.HasField("pending_workflow_task"):
            attempts = raw.pending_workflow_task.attempt
            if attempts > 1:
                problems.append(
                    f"its workers fail to continue it: {attempts} attempts; after an upgrade, "
                    "start a worker of the version that it began with"
                )
            elif not self.workers():
                problems.append("no worker runs its workflow")
        pending = _scheduled(found)
        problems += [
            f"a call fails on its workers: {each.last_failure.message}"
            for each in pending
            if each.attempt > 1
        ]
        if pending and not problems and not self.workers(activities=True):
            problems.append(f"no worker makes its calls: {len(pending)}")
        return list(dict.fromkeys(problems))

    def missing_bindings(self, found: WorkflowExecutionDescription) -> list[str]:
        """Return why calls of a workflow wait for another worker, if only this process has any."""
        failures = [each.last_failure for each in _scheduled(found)]
        missing = [
            each.message for each in failures if each.application_failure_info.type == MISSING
        ]
        if not missing or any(each not in LIVE for each in self.workers(activities=True)):
            return []
        return list(dict.fromkeys(missing))

    # Lists

    def list_executions(
        self, condition: str = "", before: float | None = None, limit: int = 50
    ) -> list[ListedExecution]:
        """Return the latest executions that meet a condition, newest first.

        Args:
            condition: A condition in the server's language; empty for none.
            before: Only those that started before this epoch second.
            limit: Maximum number.
        """
        return self.run(self._list(condition, before, limit))

    async def _list(
        self, condition: str, before: float | None, limit: int
    ) -> list[ListedExecution]:
        """Look at ever longer spans of time: servers do not sort by the time of the start."""
        found: list[ListedExecution] = []
        end = before
        base = time.time() if before is None else before
        for span in (*SPANS, None):
            begin = None if span is None else base - span
            found += await self._within(condition, begin, end)
            if len(found) >= limit:
                break
            end = begin
        return found[:limit]

    async def _within(
        self, condition: str, begin: float | None, end: float | None
    ) -> list[ListedExecution]:
        """Return the executions whose latest run started within a span, newest first."""
        conditions = [condition] if condition else []
        if begin is not None:
            conditions.append(f"StartTime >= '{_time(begin)}'")
        if end is not None:
            conditions.append(f"StartTime < '{_time(end)}'")
        found = await self._query(conditions)
        closed = [each.found.id for each in found if each.found.close_time is not None]
        latest = await self._latest_runs(closed)
        found = [each for each in found if latest.get(each.found.id, "") in ("", each.found.run_id)]
        return sorted(found, key=lambda each: each.found.start_time, reverse=True)

    async def _query(self, conditions: Sequence[str]) -> list[ListedExecution]:
        query = execution_query(self.address.queue, conditions)
        return [
            ListedExecution(each, cast("Memo", await each.memo()))
            async for each in self._client.list_workflows(query, page_size=1000)
        ]

    async def _latest_runs(self, names: list[str]) -> dict[str, str]:
        """Return the latest run of each workflow that has several: it was restarted."""
        latest: dict[str, tuple[datetime, str]] = {}
        for begin in range(0, len(names), 100):
            listed = ", ".join(f"'{quoted(name)}'" for name in names[begin : begin + 100])
            for each in await self._query([f"WorkflowId IN ({listed})"]):
                run = each.found.start_time, each.found.run_id
                latest[each.found.id] = max(run, latest.get(each.found.id, run))
        return {name: run for name, (_, run) in latest.items()}

    def list_open(self) -> list[ListedExecution]:
        """Return the executions of the queue that have not ended."""
        return self.run(self._query(["ExecutionStatus = 'Running'"]))

    # Change

    def update(self, name: str, update: str, message: Json) -> Json:
        """Send an update to a workflow and return its answer.

        Raises:
            AslError: It is refused.
            TimeoutError: No worker answers.
        """
        return self.run(self._update(name, update, message))

    async def _update(self, name: str, update: str, message: Json) -> Json:
        if not await self._answers():
            raise TimeoutError
        handle = self._client.get_workflow_handle(name)
        try:
            return await asyncio.wait_for(handle.execute_update(update, message), PATIENCE)
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError):
                kind = _REFUSALS.get(cause.type or "", AslError)
                raise kind(cause.message) from None
            raise
        except TimeoutError:
            self._silent_until = time.monotonic() + SILENCE
            raise

    def signal(self, name: str, signal: str, message: Json) -> None:
        """Send a signal to a workflow."""
        self.run(self._client.get_workflow_handle(name).signal(signal, message))

    def cancel(self, name: str, signal: str, message: Json) -> None:
        """Cancel a workflow, with the reason in a signal before."""
        self.run(self._cancel(name, signal, message))

    async def _cancel(self, name: str, signal: str, message: Json) -> None:
        handle = self._client.get_workflow_handle(name)
        await handle.signal(signal, message)
        await handle.cancel()

    def delete(self, name: str) -> None:
        """Delete an ended workflow with all its runs."""
        self.run(self._delete(name))

    async def _delete(self, name: str) -> None:
        runs = {(await self._describe(name)).run_id, *await self._runs(name)}
        for run in runs:
            request = DeleteWorkflowExecutionRequest(
                namespace=self.address.namespace,
                workflow_execution=ExecutionReference(workflow_id=name, run_id=run),
            )
            await self._client.workflow_service.delete_workflow_execution(request)
        for _ in range(DELETIONS):
            try:
                await self._describe(name)
            except ExecutionNotFound:
                return
            await asyncio.sleep(LOOK)


def await_library() -> None:
    """Wait until no thread of the SDK's library is in Python.

    CPython up to 3.13 aborts if one is when the interpreter ends.
    """
    for _ in range(CALLBACKS):
        if not calls_back():
            return
        time.sleep(CALLBACK)


def calls_back() -> bool:
    """Return whether a thread schedules a callback on an event loop."""
    code = asyncio.BaseEventLoop.call_soon_threadsafe.__code__
    stacks = (walk_stack(frame) for frame in sys._current_frames().values())
    return any(frame.f_code is code for stack in stacks for frame, _ in stack)


def _time(seconds: float) -> str:
    """Return an epoch second in the server's language."""
    return datetime.fromtimestamp(max(0.0, seconds), UTC).isoformat()


def _scheduled(found: WorkflowExecutionDescription) -> list[PendingActivityInfo]:
    """Return the activities of a workflow that no worker performs now."""
    scheduled = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    return [each for each in found.raw_description.pending_activities if each.state == scheduled]
