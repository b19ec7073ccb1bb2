"""The workflow that runs an execution."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, Final

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError, is_cancelled_exception

from asl.bindings import Bindings
from asl.core.errors import AslError, StateError
from asl.core.values import Json, compact
from asl.effects.delivery import DeferredSink
from asl.engine.result import Result
from asl.stores.executions import ENDED
from asl.temporal.answers import apply_answer, apply_token_answer
from asl.temporal.budgets.in_workflows import WorkflowBudgets
from asl.temporal.claims import WorkflowClaim, continue_in_new_run, must_leave
from asl.temporal.independent import ExecutionStarter
from asl.temporal.payloads import (
    ANSWER,
    CANCEL,
    EXECUTION,
    LISTED,
    ROLL,
    STATE,
    TOKEN,
    AnswerMessage,
    CancelMessage,
    Memo,
    StartMessage,
    TokenMessage,
    pack,
)
from asl.temporal.remote import CallGate, RemoteActivities, RemoteNotifier, send_remotely
from asl.temporal.sizes import check_length
from asl.temporal.slices import Slicer
from asl.temporal.workflow_store import SHORTEST, WorkflowClock, WorkflowStore

__all__ = ["ExecutionWorkflow"]

CHILDREN: Final = 1000
"""Number of the latest children of a Map Run that readers see."""
LONG: Final = 60.0
"""Seconds from which on lists show a waiting execution as paused, which costs two events."""


@workflow.defn(name=EXECUTION, sandboxed=False)
class ExecutionWorkflow:
    """Runs one execution to its end, with its children."""

    on_start: ClassVar[Callable[[ExecutionWorkflow], object] | None] = None
    """Receives each workflow, for those who replay a history."""
    listeners: ClassVar[list[Callable[[str, Result], object]]] = []
    """Receive the task queue and the result of each execution that ends or pauses here."""

    @workflow.init
    def __init__(self, start: StartMessage) -> None:
        info = workflow.info()
        self.name = info.workflow_id
        if ExecutionWorkflow.on_start is not None:
            ExecutionWorkflow.on_start(self)
        self._budgets = WorkflowBudgets(self._is_leaving)
        self.store = WorkflowStore(WorkflowClock(), self._budgets)
        self._refusal: AslError | None = None
        """Why the execution cannot begin."""
        try:
            self.store.begin(self.name, start, info.workflow_start_time)
        except AslError as error:
            self._refusal = error
        self._given = start.get("bindings", "{}")
        self._slicer = Slicer(must_leave, self._given)
        self._gate = CallGate(self._is_leaving)
        self._starter: ExecutionStarter | None = ExecutionStarter(self._gate, self._given)
        self._activities = RemoteActivities(self._gate, workflow.memo().get("activities", ()))
        self._sink = DeferredSink()
        self._channels = (RemoteNotifier(),)
        self._bindings: Bindings = {"sinks": {"*": self._sink}} | json.loads(self._given)
        """The bindings of the execution in the workflow; all others are those of workers."""
        self._claim: WorkflowClaim | None = None
        self._open_ids: Sequence[str] = ()
        """Ids of the open requests and tokens while nothing runs."""
        self._is_paused = False
        """Whether lists show it as paused: it waits for answers, or for a long time."""
        self._shown = _shown(workflow.memo())
        """The memo as lists show it."""
        self._changes = 0
        """Number of answers so far."""
        self._cancellation: CancelMessage | None = None

    @workflow.run
    async def run(self, start: StartMessage) -> RawValue:
        """Run the execution and return its output, with the order of its keys.

        Raises:
            ApplicationError: It failed; the type is the name of the error.
        """
        if self._refusal is not None:
            raise _refusal(self._refusal)
        tasks = [asyncio.create_task(self._show()), asyncio.create_task(self._budgets.send_late())]
        try:
            result = await self._work()
            await self._send()
        except BaseException as stop:  # raised again: a cancellation aborts the execution first
            if not is_cancelled_exception(stop):  # an eviction may close it anywhere
                raise
            reason = workflow.cancellation_reason()
            if reason is None:
                raise
            given = self._cancellation or CancelMessage(error=None, cause=reason or None)
            self.store.executor.abort(self.name, given["error"], given["cause"])
            await self._budgets.send()
            raise
        for task in tasks:
            task.cancel()
        if result.status == "SUCCEEDED":
            return _output(result.output)
        workflow.upsert_memo({"status": result.status, "error": result.error})
        raise ApplicationError(
            result.cause or "", type=result.error or result.status, non_retryable=True
        )

    async def _show(self) -> None:
        """Show in the memo, for lists, for which answers the execution waits."""
        while True:
            await workflow.wait_condition(lambda: self._memo() != self._shown)
            self._shown = self._memo()
            workflow.upsert_memo(self._shown)

    def _memo(self) -> Memo:
        if self._claim is not None:
            found = _memo("RUNNING", self._claim.suspension.ids)
        else:
            found = _memo("PAUSED" if self._is_paused else "RUNNING", self._open_ids)
        if self._activities.names:
            found["activities"] = sorted(self._activities.names)
        return found

    async def _work(self) -> Result:
        """Run the execution until it ends; in between it waits for people, tokens and time."""
        while True:
            seen = self._changes
            self._claim = self._new_claim()
            executor = self.store.executor
            result = await executor.resume(self.name, self._bindings, True, None, self._claim)
            self._report(result)
            await self._hand_over()
            if result.status in ENDED:
                return result
            await self._send()
            if self._is_leaving():
                return self._continue_as_new()
            await self._wait(seen, result)

    def _new_claim(self) -> WorkflowClaim:
        return WorkflowClaim(
            self.store.clock.now,
            self._gate,
            self._slicer,
            channels=self._channels,
            starter=self._starter,
            budgets=self._budgets,
            activities=self._activities,
        )

    async def _hand_over(self) -> None:
        """Let workflows of their own continue executions that have become independent."""
        for stored in self.store.independent(self.name):
            if self._starter is not None:
                await self._starter.hand_over(stored, self.store.take(stored))

    async def _send(self) -> None:
        """Send what has been collected: events for channels, and changes of shared budgets."""
        while self._sink.waiting:
            await send_remotely(self._sink.take())
        await self._budgets.send()

    def _report(self, result: Result) -> None:
        """Report a result to the listeners of this process."""
        if not workflow.unsafe.is_replaying():
            for listener in [*ExecutionWorkflow.listeners]:
                listener(workflow.info().task_queue, result)

    def _is_leaving(self) -> bool:
        """Return whether the next effect belongs to a new run; slices are of one run."""
        return must_leave() and not self._slicer.running

    def _continue_as_new(self) -> Result:
        """Continue the execution in a new run, with its content as the input; return only the
        result of an execution that is too large for that.
        """
        content = pack(self.store.brief_export(self.name))
        try:
            check_length(content, "the execution, to continue it in a new run,")
            message = StartMessage(content=content, bindings=self._given)
            if runs := self.store.map_runs_of(self.name, 0):
                message["map_runs"] = pack(runs)
            continue_in_new_run(message)
        except StateError as error:
            self.store.executor.fail(self.name, error.name, error.cause)
            result = self.store.result(self.name)
            self._report(result)
            return result

    async def _wait(self, seen: int, result: Result) -> None:
        """Return when there is an answer, or the time of the execution has come."""
        ids = [each["requestId"] for each in result.pending]
        self._open_ids = [*ids, *(each["taskToken"] for each in result.pending_callbacks)]
        self._claim = None
        seconds = self.store.seconds_until_due(self.name, result)
        self._is_paused = bool(self._open_ids) or seconds is None or seconds >= LONG
        timeout = None if seconds is None else timedelta(seconds=max(SHORTEST, seconds))
        with suppress(asyncio.TimeoutError):
            await workflow.wait_condition(
                lambda: self._changes != seen or self._is_leaving(), timeout=timeout
            )

    # Messages

    @workflow.update(name=ANSWER)
    def answer(self, message: AnswerMessage) -> str:
        """Record an answer to a request; return the record as JSON text.

        Raises:
            ApplicationError: The answer is refused.
        """
        record = self._record(partial(apply_answer, self.store, message), message["request"])
        return compact(record)

    @workflow.update(name=TOKEN)
    def answer_token(self, message: TokenMessage) -> None:
        """Record an answer to a task token, or a heartbeat.

        Raises:
            ApplicationError: The token is not open.
        """
        self._record(partial(apply_token_answer, self.store, message), message["token"])

    @workflow.signal(name=ANSWER)
    def receive_answer(self, message: AnswerMessage) -> None:
        """Record an answer that its sender has judged, as no worker was there."""
        with suppress(ApplicationError):
            self._record(partial(apply_answer, self.store, message), message["request"])

    @workflow.signal(name=TOKEN)
    def receive_token_answer(self, message: TokenMessage) -> None:
        """Record an answer to a task token that its sender has judged."""
        with suppress(ApplicationError):
            self._record(partial(apply_token_answer, self.store, message), message["token"])

    def _record(self, apply: Callable[[], Json], id: str) -> Json:
        """Record an answer to a request or a token, and continue the branch that waits for it.

        Raises:
            ApplicationError: It is refused.
        """
        try:
            record = apply()
        except AslError as refusal:
            raise _refusal(refusal) from None
        self.store.session.flush()
        self._changes += 1
        if self._claim is not None:
            self._claim.suspension.wake([id])
        return record

    @workflow.signal(name=CANCEL)
    def cancel(self, message: CancelMessage) -> None:
        """Record why the execution is cancelled; the cancellation of the workflow follows."""
        self._cancellation = message

    @workflow.signal(name=ROLL)
    def roll(self) -> None:
        """Wake a waiting workflow, which continues on the current version of the workers."""

    @workflow.query(name=STATE)
    def state(self) -> str:
        """Return the packed execution."""
        return pack(self.content())

    def content(self) -> Json:
        """Return the exported execution, and its Map Runs as `mapRuns`."""
        (content,) = self.store.export([self.name])
        if runs := self.store.map_runs_of(self.name, CHILDREN):
            content["mapRuns"] = runs
        return content


def _output(value: Json) -> RawValue:
    """Return the output of an execution; converters would sort its keys."""
    return RawValue(Payload(metadata={"encoding": b"json/plain"}, data=compact(value).encode()))


def _refusal(error: AslError) -> ApplicationError:
    """Return the failure for an error of ours."""
    return ApplicationError(str(error), type=type(error).__name__, non_retryable=True)


def _memo(status: str, ids: Iterable[str]) -> Memo:
    """Return what lists show of an execution."""
    waits = [*ids]
    return Memo(status=status, waits=waits[:LISTED], more=len(waits) > LISTED)


def _shown(memo: Mapping[str, Any]) -> Memo:
    """Return what lists show at the start of a run."""
    found = Memo(
        status=memo.get("status", "RUNNING"),
        waits=memo.get("waits", []),
        more=memo.get("more", False),
    )
    if "activities" in memo:
        found["activities"] = memo["activities"]
    return found
