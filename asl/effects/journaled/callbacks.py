"""Callbacks of an execution in a store: each request is handed over once.

The answer may come from any process, at any time before the state times out. Meanwhile the
execution is suspended, unless a part of this run could answer: the caller's task token service, or
a state that answers tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from asl.core.errors import StateError
from asl.core.values import Json
from asl.effects.callbacks import ActivityService, visible_output
from asl.effects.caller import Caller
from asl.effects.child_execution import Job, JobAnswer, JobEnd
from asl.effects.clock import WallClock
from asl.effects.journaled.results import JournaledResults
from asl.effects.runtime import RuntimeContext
from asl.effects.service_agent import ServiceAgent
from asl.effects.task_tokens import TokenWait
from asl.engine.agent import Agent, Call, CallbackHandler
from asl.engine.frame import Frame
from asl.engine.pending_callback import TOKEN, PendingCallback
from asl.states.calls import CallOptions, Handover
from asl.states.errors import (
    CallbackError,
    ExecutionTimeout,
    HeartbeatMissed,
    RaisedError,
    Suspension,
)

if TYPE_CHECKING:
    from asyncio import Future

__all__ = ["DurableCallback", "DurableJob", "JournaledCallbacks", "durable_agent", "new_callback"]

LOOK = 1.0
"""Seconds between two checks for answers of other processes."""


class JournaledCallbacks:
    """The tasks of an execution that are answered by token, in its journal."""

    def __init__(self, answers: JournaledResults) -> None:
        self.answers = answers
        self.journal, self.runtime = answers.journal, answers.runtime

    async def open_callback(self, frame: Frame, task: PendingCallback) -> PendingCallback:
        """Return a task of the journal: the present one, or the new one after a commit."""
        known = self.journal.tasks.pop(frame.key, None)
        if known is not None:
            return known
        self.journal.put_task(task)
        self.journal.on_fail_point("request.put")
        await self.journal.commit(self.answers.shares)
        return task

    @contextmanager
    def settle(self, task: PendingCallback) -> Iterator[None]:
        """Record the outcome of a task when the block ends."""
        try:
            yield
        except StateError:
            task.status = "closed" if task.status == "open" else task.status
            raise
        finally:
            if task.outcome is not None:
                self.journal.take_answer(task.token)
            elif task.status != "open":
                self.journal.put_outcome(task)


class DurableCallback:
    """A task in a journal, until its answer."""

    ended: float | None = None
    """Time of its answer or timeout, None for now."""

    def __init__(
        self, tasks: JournaledCallbacks, task: PendingCallback, options: CallOptions | None
    ) -> None:
        self.journal, self.runtime = tasks.journal, tasks.runtime
        self.task = task
        self.options = options

    def is_answered(self) -> bool:
        """Return whether the answer is available.

        Raises:
            StateError: The task has timed out.
        """
        runtime, task = self.runtime, self.task
        if task.outcome is not None:
            self.ended = task.outcome[0]
            return True
        now, due, end = runtime.now(), task.due, runtime.deadline
        if end is not None and end <= now and (due is None or end <= due):
            raise ExecutionTimeout
        if due is None or now < due:
            return False
        self.ended, task.status = due, "timeout"
        options = self.options
        assert options is not None
        if task.is_heartbeat_due:
            raise HeartbeatMissed(options.cause("sign of life", options.heartbeat))
        raise RaisedError("States.Timeout", options.cause("answer", options.timeout))

    async def heard(self, wait: TokenWait) -> Json:
        """Return the answer.

        Raises:
            Suspension: No part of this run can answer.
        """
        from asyncio import sleep

        await sleep(0)  # an answer that the handler sent itself arrives now
        runtime, task = self.runtime, self.task
        while not (wait.answer.done() or self.has_come()):
            suspension = runtime.current_services().suspension
            if suspension is not None:
                try:
                    await suspension.wait(task.token, task.due, wait.answer)
                except Suspension:
                    runtime.awaited += ((task.key, task),)
                    raise
            elif runtime.current_services().answerable():
                await self.wait_for_any(wait.answer)
            else:
                runtime.awaited += ((task.key, task),)
                raise Suspension
        return task.answer()

    def has_come(self) -> bool:
        """Return whether the answer is available, also from another process.

        Raises:
            StateError: The task has timed out.
        """
        if self.task.outcome is None:
            self.journal.read_callback(self.task)
        return self.is_answered()

    async def wait_for_any(self, *others: Future[Any]) -> None:
        """Return when one of *others* is done, or the next check for the answer is due."""
        from asyncio import FIRST_COMPLETED
        from asyncio import wait as first_of

        runtime, due = self.runtime, self.task.due
        times = [] if due is None else [max(0.0, due - runtime.now())]
        if isinstance(runtime.clock, WallClock):
            times.append(LOOK)
        await first_of(others, timeout=min(times, default=None), return_when=FIRST_COMPLETED)

    def record_answer(self, answer: Json, failure: CallbackError | None) -> None:
        """Record an answer from this run before its sender gets a reply."""
        runtime, task = self.runtime, self.task
        failed = None if failure is None else [failure.name, failure.cause]
        task.outcome, task.status = [runtime.now(), answer, failed], "answered"
        self.journal.put_outcome(task)
        self.journal.flush()

    def record_heartbeat(self) -> None:
        """Record a heartbeat from this run."""
        self.task.last_heartbeat = self.runtime.now()
        self.journal.put_heartbeat(self.task)


class DurableCallbackAgent(Agent):
    """A handler that passes a request on, once, and the wait for the answer to its token."""

    needs_loop = applies_timeout = True

    def __init__(self, caller: Caller, callback: DurableCallback, handler: Agent) -> None:
        self.caller = caller
        self.kept = callback
        self.handler = handler

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Call the handler unless an earlier process did, and return the answer to the token."""
        assert call is not None
        caller, kept, task, details = self.caller, self.kept, self.kept.task, {}
        runtime = kept.runtime
        with runtime.open_token(call, kept) as wait:
            known = task.taken_at is not None
            if not (known or kept.is_answered()):
                details = visible_output(
                    await caller.reach(self.handler, payload, call), caller.limit
                )
            runtime.advance(call.at, "Submitted", details)
            if known:
                kept.is_answered()  # timers of the event loop do not handle a past deadline
            else:
                kept.journal.read_callback(task)
                task.taken_at = runtime.now()
                kept.journal.put_heartbeat(task)
            return await kept.heard(wait)


class DurableActivity:
    """An activity whose workers poll for its tasks, in this run or the store (protocol
    `Service`).
    """

    def __init__(self, callback: DurableCallback, activity: str) -> None:
        self.kept = callback
        self.activity = activity
        self.reported = False

    async def serve(self, runtime: RuntimeContext, payload: Json, call: Call) -> Json:
        """Offer the task to the workers and return the answer."""
        kept, task = self.kept, self.kept.task
        desk = runtime.current_services().task_token_service

        def begun(worker: str | None) -> None:
            call.heartbeat()
            task.taken_at = task.last_heartbeat = runtime.now()
            task.worker = worker
            kept.journal.put_heartbeat(task)
            self.record_start(call)

        with runtime.open_token(call, kept) as wait:
            self.record_start(call)
            if not kept.is_answered() and task.taken_at is None:
                desk.offer(self.activity, wait, payload, begun)
            try:
                return await kept.heard(wait)
            finally:
                self.record_start(call)

    def record_start(self, call: Call) -> None:
        """Record once that a worker has taken the task."""
        task = self.kept.task
        if task.taken_at is not None and not self.reported:
            self.reported = True
            details: dict[str, Json] = {} if task.worker is None else {"workerName": task.worker}
            self.kept.runtime.advance(call.at, "Started", details, task.taken_at)


def durable_agent(
    caller: Caller, callback: DurableCallback, target: CallbackHandler | ActivityService
) -> Agent:
    """Return the agent that brings a stored task to its answer."""
    if isinstance(target, CallbackHandler):
        return DurableCallbackAgent(caller, callback, target.agent)
    if callback.task.kind == TOKEN:  # the task was handed over before: no handler is called
        return DurableCallbackAgent(caller, callback, ServiceAgent(target))
    return ServiceAgent(DurableActivity(callback, target.activity), keeps_time=True)


class DurableJob:
    """A job of a stored execution: any process may answer, even while none runs it."""

    def __init__(self, callback: DurableCallback, job: Job) -> None:
        self.kept = callback
        self.execution = job.execution

    async def wait_for_end(self, call: Call) -> JobEnd:
        """Return the result of the job, or the answer to its token.

        If the job is suspended, the state is suspended as well.

        Raises:
            StateError: The state has timed out.
            Suspension: The job is suspended.
        """
        kept, execution = self.kept, self.execution
        runtime, task = kept.runtime, kept.task
        with runtime.open_token(call, kept) as token:
            token.on_heartbeat = _keep_time
            await self._either(token)
        if execution.done():
            result = execution.result()
            if task.outcome is None or task.outcome[0] > result.ended:
                if result.status == "PAUSED":
                    runtime.awaited += ((task.key, task),)
                elif task.outcome is None:
                    task.status = "closed"
                return result
        try:
            return JobAnswer(task.answer())
        except CallbackError as failure:
            return JobAnswer(None, failure)

    async def _either(self, token: TokenWait) -> None:
        """Return when the job has ended or is suspended, or the answer is available."""
        from asyncio import wait

        kept, execution = self.kept, self.execution
        runtime, task = kept.runtime, kept.task
        while not (token.answer.done() or kept.has_come() or execution.done()):
            suspension = runtime.current_services().suspension
            if suspension is None:
                await kept.wait_for_any(token.answer, execution)
                continue
            try:
                await suspension.wait(task.token, task.due, token.answer, execution)
            except Suspension:  # and so is the job
                await wait({execution})


def _keep_time() -> None:
    """Do nothing: a stored task measures its heartbeat timeout itself."""


def new_callback(frame: Frame, request: Handover, kind: str, created: float) -> PendingCallback:
    """Return a new callback."""
    target, options = request.target, request.options
    limits = (None, None) if options is None else (options.timeout, options.heartbeat)
    return PendingCallback(
        frame.token, frame.key, kind, target.name, target.state, request.payload, created, *limits
    )
