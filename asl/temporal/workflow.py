"""The workflow that runs an execution."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import ClassVar, NoReturn

from temporalio import workflow
from temporalio.exceptions import ApplicationError, is_cancelled_exception

from asl.compiler import compile_workflow
from asl.core.errors import AslError
from asl.core.values import Json
from asl.documents.loading import resolve_profile
from asl.engine.result import Result
from asl.executions.approvals import record_answer
from asl.stores.executions import ENDED, StoredExecution
from asl.temporal.claims import WorkflowClaim, has_long_history
from asl.temporal.payloads import (
    ANSWER,
    CANCEL,
    EXECUTION,
    STATE,
    TOKEN,
    AnswerMessage,
    CancelMessage,
    StartMessage,
    TokenMessage,
    pack,
    unpack,
)
from asl.temporal.remote import CallGate
from asl.temporal.slices import Slicer
from asl.temporal.workflow_store import WorkflowClock, WorkflowStore

__all__ = ["ExecutionWorkflow"]


@workflow.defn(name=EXECUTION, sandboxed=False)
class ExecutionWorkflow:
    """Runs one execution to its end, with its children."""

    on_start: ClassVar[Callable[[ExecutionWorkflow], object] | None] = None
    """Receives each workflow, for those who replay a history."""

    def __init__(self) -> None:
        if ExecutionWorkflow.on_start is not None:
            ExecutionWorkflow.on_start(self)
        self.store = WorkflowStore(WorkflowClock())
        self.name = ""
        self._slicer = Slicer(has_long_history)
        self._gate = CallGate(self._is_leaving)
        self._claim: WorkflowClaim | None = None
        self._changes = 0
        """Number of answers so far."""
        self._cancellation: CancelMessage | None = None

    @workflow.run
    async def run(self, start: StartMessage) -> Json:
        """Run the execution and return its output.

        Raises:
            ApplicationError: It failed; the type is the name of the error.
        """
        try:
            self._open(start)
        except AslError as error:
            raise _refusal(error) from None
        try:
            result = await self._work()
        except BaseException as stop:
            if not is_cancelled_exception(stop):
                raise
            given = self._cancellation or CancelMessage(error=None, cause=None)
            self.store.executor.abort(self.name, given["error"], given["cause"])
            raise
        self._describe()
        if result.status == "SUCCEEDED":
            return result.output
        raise ApplicationError(
            result.cause or "", type=result.error or result.status, non_retryable=True
        )

    def _open(self, start: StartMessage) -> None:
        """Create the execution, or take over the one of an earlier run.

        Raises:
            AslError: The document has errors.
        """
        self.name = workflow.info().workflow_id
        if "content" in start:
            self.store.import_execution(unpack(start["content"]))
            return
        program = compile_workflow(
            start["document"], resolve_profile(start["profile"]), start["workflow"]
        )
        self.store.executor.record(
            self.name, program, start["input"], start["express"], start["requestor"]
        )
        self.store.session.flush()

    async def _work(self) -> Result:
        """Run the execution until it ends; in between it waits for people, tokens and time."""
        while True:
            seen = self._changes
            self._claim = WorkflowClaim(self.store.clock.now, self._gate, self._slicer)
            executor = self.store.executor
            result = await executor.resume(self.name, {}, True, None, self._claim)
            self._claim = None
            if result.status in ENDED:
                return result
            self._describe()
            if self._is_leaving():
                self._continue_as_new()
            await self._wait(seen, result)

    def _is_leaving(self) -> bool:
        """Return whether the next effect belongs to a new run; slices are of one run."""
        return has_long_history() and not self._slicer.running

    def _continue_as_new(self) -> NoReturn:
        """Continue the execution in a new run, with its content as the input."""
        content = self.store.brief_export(self.name)
        workflow.continue_as_new(StartMessage(content=pack(content)))

    async def _wait(self, seen: int, result: Result) -> None:
        """Return when there is an answer, or the time of the execution has come."""
        seconds = self.store.seconds_until_due(self.name, result)
        timeout = None if seconds is None else timedelta(seconds=seconds)
        with suppress(asyncio.TimeoutError):
            await workflow.wait_condition(lambda: self._changes != seen, timeout=timeout)

    def _stored(self) -> StoredExecution:
        return self.store.get(self.name)

    def _describe(self) -> None:
        """Show the status of the execution in the memo, for lists."""
        stored = self._stored()
        workflow.upsert_memo({"status": stored.status})

    # Messages

    @workflow.update(name=ANSWER)
    def answer(self, message: AnswerMessage) -> Json:
        """Record an answer to a request; return the record, None while more are needed.

        Raises:
            ApplicationError: The answer is refused.
        """
        try:
            record = record_answer(
                self.store.session, message["request"], message["answer"], message["given"]
            )
        except AslError as refusal:
            raise _refusal(refusal) from None
        self._arrived(message["request"])
        return record

    @workflow.update(name=TOKEN)
    def answer_token(self, message: TokenMessage) -> None:
        """Record an answer to a task token, or a heartbeat.

        Raises:
            ApplicationError: The token is not open.
        """
        tokens, token = self.store.tokens, message["token"]
        try:
            if message.get("heartbeat"):
                tokens.send_task_heartbeat(token)
            elif "failure" in message:
                tokens.send_task_failure(token, *message["failure"])
            else:
                tokens.send_task_success(token, message["output"])
        except AslError as refusal:
            raise _refusal(refusal) from None
        self._arrived(token)

    def _arrived(self, id: str) -> None:
        """Continue the branch that waits for a request or a token."""
        self.store.session.flush()
        self._changes += 1
        if self._claim is not None:
            self._claim.suspension.wake([id])

    @workflow.signal(name=CANCEL)
    def cancel(self, message: CancelMessage) -> None:
        """Record why the execution is cancelled; the cancellation of the workflow follows."""
        self._cancellation = message

    @workflow.query(name=STATE)
    def state(self) -> str:
        """Return the packed execution."""
        (content,) = self.store.export([self.name])
        return pack(content)


def _refusal(error: AslError) -> ApplicationError:
    """Return the failure for an error of ours."""
    return ApplicationError(str(error), type=type(error).__name__, non_retryable=True)
