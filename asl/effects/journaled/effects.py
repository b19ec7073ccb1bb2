"""Effects of an execution in a store: each is performed once, and its result recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asl.core.errors import StateError
from asl.core.values import Json, excerpt
from asl.effects.approval_process import ApprovalProcess
from asl.effects.callbacks import ActivityService
from asl.effects.caller import Account
from asl.effects.journaled.callbacks import (
    DurableCallback,
    JournaledCallbacks,
    durable_agent,
    new_callback,
)
from asl.effects.journaled.calls import JournaledCalls
from asl.effects.journaled.children import JournaledChildren
from asl.effects.journaled.execution import JournaledExecution, record_terms
from asl.effects.journaled.log import MachineLog, log_of
from asl.effects.journaled.requests import FAILED_NOTICES, JournaledRequests
from asl.effects.journaled.results import PATIENCE, JournaledResults
from asl.effects.local import LocalEffects
from asl.effects.persistence import Persistence
from asl.effects.service_agent import ServiceAgent
from asl.engine.agent import CallbackHandler
from asl.engine.checkpoints import Checkpoint
from asl.engine.frame import Frame
from asl.engine.journal import Journal
from asl.engine.journal_values import read_time
from asl.engine.pending_callback import ACTIVITY, TOKEN, PendingCallback
from asl.program import Step
from asl.states.approval_request import ApprovalRequest
from asl.states.calls import Handover, Invocation, Target, TargetCheck
from asl.states.effects import (
    CallEffect,
    CheckpointRequest,
    ChildWorkflow,
    DirectCalls,
    FanIn,
    FanOut,
    Record,
    RequestContent,
    ServiceCall,
)

__all__ = ["JournaledEffects", "journal_effects"]


class JournaledEffects:
    """Performs the effects of an execution in a store (protocol `Effects`).

    Args:
        inner: Performs effects without a recorded answer.
        answers: The recorded answers.
        requests: The approval requests.
        tasks: The callbacks.
        record: Takes the history records.
    """

    def __init__(
        self,
        inner: LocalEffects,
        answers: JournaledResults,
        requests: JournaledRequests,
        tasks: JournaledCallbacks,
        record: Callable[[Record], object],
    ) -> None:
        self.inner = inner
        self.answers, self.requests, self.tasks = answers, requests, tasks
        self.journal = answers.journal
        self.runtime, self.caller = inner.runtime, inner.caller
        self.record = record

    @property
    def direct(self) -> DirectCalls[Frame] | None:
        """The fast path of simple calls, None without one."""
        return None if self.inner.direct is None else self

    # Fast path of simple calls

    def begin(self, frame: Frame, step: Step, data: Json) -> Awaitable[Json] | None:
        """Start a call that needs only its parameters; None for other calls."""
        if not (
            self.answers.is_new and self.runtime.in_event_loop and self.caller.budget_gate is None
        ):
            return None
        log, journal, shares = log_of(frame), self.journal, self.answers.shares
        if shares:
            if not (log.must_commit or self.answers.is_free(log)):
                return None
        elif self.answers.own_commits == PATIENCE:
            return None
        else:
            self.answers.own_commits += 1
            self.answers.prepare(frame, log)
            journal.flush()
        try:
            asked = self.caller.begin(frame, step, data)
        except StateError:  # the full path records it, if the call raised it
            return None
        if asked is None:
            return None
        log.direct_call, log.side_data = frame.next_effect(log.path), {}
        if shares:
            self.answers.prepare(frame, log)
            if log.must_commit:
                return self._behind(log, journal.commit(True), asked)
            journal.commit_soon()
        journal.on_fail_point("effect.ready")
        return asked

    async def _behind(self, log: MachineLog, commit: Awaitable[None], answer: Any) -> Json:
        """Return the answer of a call after the entries before it are durable."""
        log.committing = True
        try:
            await commit
        except BaseException:
            answer.close()  # avoids the warning about a coroutine that was never awaited
            raise
        log.committing = False
        self.journal.on_fail_point("effect.ready")
        return await answer

    def accept_answer(
        self, frame: Frame, target: Target, answer: Json, account: Account | None = None
    ) -> Json:
        """Return a copy of an answer, which is recorded if the call started here."""
        log = log_of(frame)
        key, log.direct_call = log.direct_call, None
        if key is None:
            return self.caller.accept_answer(frame, target, answer, account)
        self.journal.on_fail_point("effect.done")
        try:
            result = self.caller.accept_answer(frame, target, answer, account)
        except StateError as error:
            self.answers.put(frame, log, key, "call", None, error)
            raise
        self.answers.put(frame, log, key, "call", result, None)
        return result

    def map_error(
        self, frame: Frame, target: Target, error: BaseException, account: Account | None = None
    ) -> StateError:
        """Return the error for an exception, recorded if the call began here; raise ours."""
        log = log_of(frame)
        key, log.direct_call = log.direct_call, None
        if log.committing:  # the agent was not called
            raise error
        blamed = self.caller.map_error(frame, target, error, account)
        if key is not None:
            self.answers.put(frame, log, key, "call", None, blamed)
        return blamed

    # Effects

    def call(self, frame: Frame, effect: CallEffect) -> Awaitable[Json]:
        """Call an agent once; a task may be answered while no process runs."""
        once = self.answers.perform_once
        match effect:
            case Invocation(target, _, _):
                metered = self.caller.budget_gate is not None and target.kind == "agent"
                return once(frame, "call", self.inner.call, effect, metered=metered)
            case Handover():
                return once(frame, "call", self._hand_over, effect)
            case TargetCheck():  # an agent that was bound at first is called later, or fails then
                return once(frame, "names", self.inner.call, effect)
            case ServiceCall():
                return once(frame, "call", self.inner.call, effect)

    async def timer(self, frame: Frame, when: float) -> None:
        """Return when the clock has reached *when*; a recorded timer returns immediately."""
        await self.answers.perform_once(frame, "sleep", self.inner.timer, when)

    async def child(self, frame: Frame, child: ChildWorkflow) -> Json:
        """Run an execution of another workflow, stored next to this one."""
        return await self.answers.perform_once(frame, "workflow", self.inner.child, child)

    async def checkpoint(self, frame: Frame, request: CheckpointRequest) -> Json:
        """Save the execution, once; the checkpoint is durable with the next commit."""
        made: list[Checkpoint] = []

        async def perform(frame: Frame) -> Json:
            made.append(await self.inner.save_checkpoint(frame, request))
            return made[0].record

        record = await self.answers.perform_once(frame, "checkpoint", perform)
        return made[0].data if made else request.leave(record)

    async def yield_(self, frame: Frame) -> None:
        """Record the position of a machine with a long computation."""
        await self.inner.yield_(frame)
        if frame.step.work is None:
            log = log_of(frame)
            log.stretch, log.has_start = log.records, True
            self.answers.put_position(frame, log)
            await self.journal.commit(self.answers.shares)

    async def fan_out(self, frame: Frame, fan: FanOut) -> FanIn:
        """Run the children of *fan*, each from its recorded position.

        Children run concurrently even if none waits, so that they share commits.
        """
        if fan.is_concurrent:
            await self.runtime.event_loop()
        log, run, before = log_of(frame), self.inner.fan_out, self.answers.stored_size
        joined: FanIn | None = None

        async def join(frame: Frame) -> None:
            nonlocal joined
            log.side_data = None  # the fork repeats its events
            log.forks = f"{frame.key}[", fan.limit > 0
            joined = await run(frame, fan)

        await self.answers.perform_once(frame, "fork", join)
        if joined is None:  # the fork had ended before: the outcomes of all children are recorded
            now = frame.now
            log.forks = f"{frame.key}[", True
            joined = await run(frame, fan)
            frame.now = now
        log.weight += self.answers.stored_size - before
        return joined

    async def request(self, frame: Frame, question: RequestContent) -> Json:
        """Request a decision, once; the request is durable before it is sent."""
        asked = self.runtime.new_request(frame, frame.next_effect(), question)
        journal = self.journal
        answer = journal.answers.pop(asked.key, None)
        known = journal.requests.pop(asked.key, None)
        if known is not None and self.requests.is_replaced(known, asked):
            answer = known = None
        if known is not None:
            known.failed_notices = dict(journal.answers.pop(asked.key + FAILED_NOTICES, ()))
        if answer is None and known is not None:
            answer = journal.decision(known)  # the decision may be newer than the journal's content
        if answer is not None:
            return await self._decided(frame, known or asked, answer)
        log = log_of(frame)
        if known is None:
            self.runtime.raise_if_expired()
            self.answers.prepare(frame, log)
            journal.put_request(asked)
            journal.on_fail_point("request.put")
            await journal.commit(self.answers.shares)
        else:  # without a position, because another process may answer now
            asked = known
        before = asked.received
        try:
            decision = await self.inner.await_decision(frame, asked)
        except StateError as error:
            self.answers.put(frame, log, asked.key, asked.kind, None, error)
            raise
        else:
            self.answers.put(frame, log, asked.key, asked.kind, decision, None)
            return decision
        finally:
            journal.put_request(asked, asked.received is not before)

    async def _decided(self, frame: Frame, request: ApprovalRequest, answer: Json) -> Json:
        """Return a recorded decision, and repeat the events before it."""
        asking = ApprovalProcess(self.caller, frame, request)
        request.notices_sent = 2**62  # no notification is needed any more
        await asking.begin()
        with self.journal.damage_reports():
            time = read_time(answer[1])
        over = await asking.catch_up(time)
        if over is not None:
            return await asking.apply_final_notice(over)
        if self.journal.take_answer(
            request.id
        ):  # the decision was made without the present spending
            with self.journal.damage_reports():
                now, decision = answer[1:3]
                frame.now = read_time(now)
            frame.show_usage(None)
            self.answers.put(frame, log_of(frame), request.key, request.kind, decision, None)
        else:
            decision = self.answers.recorded_answer(request.kind, request.key, answer, frame)
        with self.journal.damage_reports():
            _check_decision(decision)
        asking.record_decision(decision, frame.now)
        return decision

    # Task tokens

    async def _hand_over(self, frame: Frame, request: Handover) -> Json:
        task = self.journal.tasks.get(frame.key)
        agent = await self._answers(request.target, task)
        if agent is None:
            return await self.inner.call(frame, request)
        return await self._awaited(frame, request, agent)

    async def _answers(
        self, target: Target, task: PendingCallback | None
    ) -> CallbackHandler | ActivityService | None:
        """Return the agent of a task that is answered by token; None if the call itself returns the
        answer.

        Workers answer activities without a binding, and tasks that an earlier process handed over.
        """
        try:
            agent = self.caller.find(target)
        except StateError:
            if target.is_activity or (task is not None and task.taken_at is not None):
                return ActivityService(target.name)
            raise
        if isinstance(agent, CallbackHandler):
            return agent
        polled = agent.service if isinstance(agent, ServiceAgent) else None
        if isinstance(polled, ActivityService):
            return polled
        is_polled = self.runtime.current_services().is_polled
        if target.is_activity and is_polled is not None and await is_polled(target, bool(task)):
            return ActivityService(target.name)
        return None

    async def _awaited(
        self, frame: Frame, request: Handover, agent: CallbackHandler | ActivityService
    ) -> Json:
        options = request.options
        kind = TOKEN if isinstance(agent, CallbackHandler) else ACTIVITY
        task = await self.tasks.open_callback(
            frame, new_callback(frame, request, kind, self.runtime.now())
        )
        if options is not None:
            options.start = task.created
        kept = DurableCallback(self.tasks, task, options)
        answers = durable_agent(self.caller, kept, agent)
        try:
            with self.tasks.settle(task):
                return await self.caller.invoke(
                    frame, request.target, request.payload, options, answers
                )
        finally:
            frame.now = self.runtime.now() if kept.ended is None else kept.ended


def journal_effects(inner: LocalEffects, journal: Journal, frame: Frame) -> JournaledEffects:
    """Attach a journal: return effects that are performed once.

    Args:
        inner: Performs the effects.
        journal: Journal of the execution.
        frame: Its top machine.
    """
    record_terms(journal, frame.execution)
    answers = JournaledResults(journal, frame.execution, inner.caller)
    machines = JournaledExecution(answers, inner, frame)
    requests, tasks = JournaledRequests(answers), JournaledCallbacks(answers)
    children = JournaledChildren(answers, tasks)
    inner.runtime.persistence = Persistence(
        True, machines, JournaledCalls(answers), requests, children
    )
    return JournaledEffects(inner, answers, requests, tasks, machines.emit)


def _check_decision(decision: Json) -> None:
    """Raise KeyError or TypeError for a decision without its record."""
    if type(decision["record"]) is not dict:
        raise TypeError(f"the record of a decision cannot be {excerpt(decision['record'])}")
