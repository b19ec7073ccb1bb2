"""Approval processes: the handler, notices, timeouts and the pause of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeAlias

from asl.core.errors import NotJson, StateError
from asl.core.values import Json, copy_foreign, copy_result
from asl.effects.caller import Caller
from asl.effects.services import Notify
from asl.effects.suspension import SuspensionMonitor
from asl.effects.threads import run_in_thread
from asl.effects.time_limits import await_in_time, has_expired
from asl.engine.agent import Agent, Call
from asl.engine.exception_mapping import (
    bounded_error,
    describe_exception,
    is_cancellation,
    is_control_flow,
    unwrap_group,
)
from asl.engine.frame import Frame
from asl.engine.journal_values import read_error
from asl.expr.times import format_timestamp
from asl.states.approval_answers import AUTHENTICATION, SYSTEM_USER, AnswerRefused
from asl.states.approval_notices import Notice
from asl.states.approval_request import ApprovalRequest
from asl.states.calls import Target
from asl.states.errors import ExecutionTimeout, RaisedError, Suspension

if TYPE_CHECKING:
    import asyncio

__all__ = ["ApprovalProcess", "BudgetApprovalProcess", "ToolApprovalProcess"]

ESCALATED = "ApprovalEscalated"
REQUESTED = "ApprovalRequested"
PATIENCE = 30.0
"""Seconds that sending one notification may take."""


NoteEvent: TypeAlias = Callable[[str, str, dict[str, Json], float], object]
"""Records an event of a turn: its subject, name, details and time."""


class ApprovalProcess:
    """One approval request until its decision.

    Its events depend only on the request and the time of the decision, so that a replay records the
    same ones.
    """

    def __init__(self, caller: Caller, frame: Frame, request: ApprovalRequest) -> None:
        self.caller = caller
        self.at = frame
        self.request = request
        self.number = 0
        """Number of notices so far, including the request itself."""
        self.notices: Iterator[Notice] = request.notices()
        self.notice: Notice | None = None
        """The next notice."""

    parks = True
    """Whether the branch may wait in place while other branches work."""

    async def decision(self) -> Json:
        """Return the decision.

        Raises:
            Suspension: There is none yet.
            StateError: The decision or its timeout fails the state.
        """
        await self.begin()
        over = await self.catch_up(self.caller.runtime.now())
        if over is not None:
            return await self.outcome_at_end(over)
        services = self.caller.runtime.services
        handler = None if services is None else services.approvals
        if handler is not None:
            try:
                decision = await self._asked(handler)
            except StateError:
                if self.request.status == "open":  # the handler's fault
                    self.at.now, self.request.status = self.caller.runtime.now(), "closed"
                raise
            if decision is not None:
                return decision
        if self.parks and services is not None and services.suspension is not None:
            return await self._parked(services.suspension)
        raise self._suspended()

    async def _parked(self, suspension: SuspensionMonitor) -> Json:
        """Wait for the decision while other branches work."""
        caller, asked = self.caller, self.request
        while True:
            recorded = caller.persistence.requests.recorded_decision(asked)
            if recorded is not None:
                _, given, decision, *_ = recorded
                self.record_decision(decision, max(given, self._now))
                return decision
            notice = self.notice
            try:
                due = None if notice is None else asked.created + notice.after
                await suspension.wait(asked.id, due)
            except Suspension:
                raise self._suspended() from None
            over = await self.catch_up(caller.runtime.now())
            if over is not None:
                return await self.outcome_at_end(over)

    def _suspended(self) -> Suspension:
        """Return the suspension until the decision."""
        self.caller.runtime.pending += ((self.request.key, self.request),)
        return Suspension()

    async def begin(self) -> None:
        """Record the request and send its notification."""
        asked = self.request
        self._reach(asked.created)
        details = {"requestId": asked.id, "prompt": asked.body["prompt"]}
        self._note(REQUESTED, {**details, "digest": asked.content_digest})
        channels = asked.body.get("notifications", {}).get("Channels", ())
        at_once = [each for each in channels if "OnlyAfter" not in each]
        await self._tell("request", {"channels": at_once} if at_once else {})
        self.notice = next(self.notices, None)

    @property
    def _now(self) -> float:
        """Epoch seconds of the latest event."""
        return self.at.now

    def _reach(self, time: float) -> None:
        """Set the time of the machine to that of the next event."""
        self.at.now = time

    def _note(self, event: str, details: dict[str, Json]) -> None:
        """Record an event about the request."""
        self.at.note(event, details)

    async def catch_up(self, now: float) -> Notice | None:
        """Apply the notices that are due; return the one that ends the wait, None if it is not
        due.
        """
        while (notice := self.notice) is not None and self.request.created + notice.after <= now:
            if notice.final:
                return notice
            await self._noted(notice)
        return None

    async def _noted(self, notice: Notice) -> None:
        self._reach(self.request.created + notice.after)
        if notice.event:
            self._note(notice.event, {"requestId": self.request.id, **notice.details})
        await self._tell("escalation" if notice.event else "reminder", notice.details)
        self.notice = next(self.notices, None)

    async def _tell(self, kind: str, details: dict[str, Json]) -> None:
        """Send a notification, unless an earlier process has, and record a failure."""
        self.number += 1
        asked, number = self.request, self.number
        if number > asked.notices_sent:
            now = self._now
            failure = await self._sent(kind, {**self._origin(now), **details})
            self._reach(now)
            asked.notices_sent = number
            if failure is not None:
                asked.failed_notices[number] = failure
            self.caller.persistence.requests.record_notices(asked)
        if number in asked.failed_notices:
            cause = asked.failed_notices[number]
            self._note("NotificationFailed", {"requestId": asked.id, "kind": kind, "cause": cause})

    def _origin(self, now: float) -> dict[str, Json]:
        """Return the time of a notification, and the workflow and execution of its request."""
        execution = self.at.execution
        origin: dict[str, Json] = {
            "time": format_timestamp(now),
            "workflow": execution.workflow,
            "execution": execution.name,
        }
        services = self.caller.runtime.services
        link = None if services is None else services.request_link
        return origin if link is None else {**origin, "link": link(self.request.id)}

    async def _sent(self, kind: str, details: dict[str, Json]) -> str | None:
        """Send a notification by every channel; return the causes of failures, None without one."""
        services, failures = self.caller.runtime.services, []
        for channel in () if services is None else services.channels:
            try:
                await self._in_time(channel, kind, dict(details))
            except BaseException as error:
                # The channel is user code: no exception of it may fail the execution.
                if self._is_end(error):
                    raise
                failures.append(describe_exception(error))
        return "; ".join(failures) or None

    async def _in_time(self, channel: Notify, kind: str, details: dict[str, Json]) -> None:
        """Call a channel, in a thread unless it is a coroutine function.

        Raises:
            TimeoutError: It takes too long.
        """
        runtime, view = self.caller.runtime, copy_foreign(self.request.view)
        loop = await runtime.event_loop()
        from asyncio import timeout

        runtime.clock.real_begins()
        try:
            async with timeout(PATIENCE) as limit:
                sending: object = (
                    channel(kind, view, details)
                    if _is_async(channel)
                    else await run_in_thread(loop, channel, kind, view, details)
                )
                if isawaitable(sending):
                    await await_in_time(sending, limit)
        except TimeoutError as late:
            if has_expired(limit):
                raise TimeoutError(f"not sent within {PATIENCE:g} s") from late
            raise
        finally:
            runtime.clock.real_ends()

    async def outcome_at_end(self, notice: Notice) -> Json:
        """Return the outcome at the end of the wait: an answer that was given in time, or the
        timeout's.

        An answer counts by the time at which it was given, even if it is read later.
        """
        recorded = self.caller.persistence.requests.recorded_decision(self.request)
        if recorded is None:
            return await self.apply_final_notice(notice)
        _, given, decision, *_ = recorded
        self.record_decision(decision, max(given, self._now))
        return decision

    async def apply_final_notice(self, notice: Notice) -> Json:
        """Apply the notice that ends the wait.

        Raises:
            StateError: It fails the state.
        """
        self._reach(self.request.created + notice.after)
        if notice.expires:
            self.request.status = "closed"
            raise ExecutionTimeout
        self._note(notice.event, {"requestId": self.request.id, **notice.details})
        if notice.event == ESCALATED:  # a level with an automatic approval is notified as well
            await self._tell("escalation", notice.details)
        self.request.status = "timeout"
        if notice.fails:
            cause = f"{self._subject}: no decision within {notice.after:g} s"
            raise StateError("States.Timeout", cause)
        return notice.decision

    @property
    def _subject(self) -> str:
        """Subject of the error without a decision."""
        return f"state '{self.request.body['state']}'"

    def record_decision(self, decision: Json, now: float) -> None:
        """Record the decision."""
        self._reach(now)
        record = decision["record"]
        keys = ("approval", "approver", SYSTEM_USER)
        details = {key: record[key] for key in keys if key in record}
        if AUTHENTICATION in decision:
            details[AUTHENTICATION] = decision[AUTHENTICATION]
        details["digest"] = decision.get("digest", self.request.digest)  # older stores keep none
        self._note("ApprovalDecided", {"requestId": self.request.id, **details})

    # Handlers

    async def _asked(self, handler: Agent) -> Json:
        """Call the handler until there is a decision; None if it defers."""
        asked = self.request
        while True:
            answer = await self._answer(handler)
            if isinstance(answer, Notice):
                return await self.outcome_at_end(answer)
            if answer is None:
                return None
            now = self.caller.runtime.now()
            try:
                verdict = asked.judge(answer, now, "handler")
            except AnswerRefused as refusal:
                name = "States.Permissions" if refusal.forbidden else "States.InvalidApproval"
                raise StateError(name, str(refusal)) from None
            if verdict.decision is not None:
                asked.received, asked.status = verdict.received, "answered"
                self.record_decision(verdict.decision, now)
                return verdict.decision
            if verdict.received == asked.received:
                return None  # without progress a repetition would not end
            asked.received = verdict.received

    async def _answer(self, handler: Agent) -> Any:
        """Return the handler's answer, or the notice that comes first and ends the wait."""
        if self.notice is None or (handler.blocking and not self.caller.runtime.in_event_loop):
            return await self._reached(handler)
        loop = await self.caller.runtime.event_loop()
        task = loop.create_task(self._reached(handler), name="asl-approval")
        try:
            return await self._first(task)
        finally:
            task.cancel()

    async def _first(self, task: asyncio.Task[Any]) -> Any:
        from asyncio import wait

        while (notice := self.notice) is not None:
            due = self.request.created + notice.after
            done, _ = await wait({task}, timeout=max(0.0, due - self.caller.runtime.now()))
            if done and self.caller.runtime.now() < due:
                break
            if notice.final:
                task.add_done_callback(_seen)
                return notice
            await self._noted(notice)
        return await task

    async def _reached(self, handler: Agent) -> Any:
        caller, at, state = self.caller, self.at, self.request.body["state"]
        call = Call(at, Target("approval", state, state), None)
        call.attach(caller)
        try:
            answer = await caller.reach(handler, self.request.view, call)
            return copy_result(answer, caller.limit, state)
        except NotJson as error:
            raise StateError("States.InvalidApproval", f"the answer is not JSON: {error}") from None
        except BaseException as raised:
            # The handler is user code: any exception is its failure.
            failure = unwrap_group(raised)
            if isinstance(failure, StateError):
                raise bounded_error(failure) from raised
            if self._is_end(failure):
                raise
            raise RaisedError("States.TaskFailed", describe_exception(failure)) from raised

    def _is_end(self, error: BaseException) -> bool:
        """Return whether an exception ends this part of the execution, or the process."""
        runtime = self.caller.runtime
        if is_cancellation(error):
            return runtime.in_event_loop and runtime.is_cancelled()
        return is_control_flow(error)


class BudgetApprovalProcess(ApprovalProcess):
    """A budget request, which has no events because no state makes it."""

    def _note(self, event: str, details: dict[str, Json]) -> None:
        """Do nothing: the request has no events."""


class ToolApprovalProcess(ApprovalProcess):
    """A request for consent to a tool call, as part of an agent's turn."""

    parks = False  # the turn as a whole parks

    def __init__(
        self, caller: Caller, frame: Frame, note: NoteEvent, request: ApprovalRequest
    ) -> None:
        super().__init__(caller, frame, request)
        self.note = note
        self.time = request.created

    @property
    def _now(self) -> float:
        return self.time

    def _reach(self, time: float) -> None:
        """Set the time of the next event; other requests may have advanced the machine further."""
        self.time = time

    def _note(self, event: str, details: dict[str, Json]) -> None:
        """Record an event about the request, once."""
        self.note(self.request.key, event, details, self.time)

    async def recorded_decision(self, answer: Json) -> Json:
        """Return a recorded decision.

        Args:
            answer: Kind, time, decision and error, in the journal's form.

        Raises:
            StateError: The recorded decision failed the call.
        """
        _, given, decision, error = answer[:4]
        await self.begin()
        over = await self.catch_up(given)
        if over is not None:
            return await self.apply_final_notice(over)
        if error is not None:
            raise read_error(error)
        self.record_decision(decision, given)
        return decision

    @property
    def _subject(self) -> str:
        return f"tool {self.request.body['tool']!r}"


def _is_async(channel: Notify) -> bool:
    """Return whether a channel is a coroutine function, or an object that is called as one."""
    return iscoroutinefunction(channel) or iscoroutinefunction(type(channel).__call__)


def _seen(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception of a late answer, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
