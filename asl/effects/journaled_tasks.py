"""Answers by task token in an execution that is kept: what was handed over is so once.

The answer may come from any process, at any time before the state times out. The execution is
suspended meanwhile, unless somebody of this run could answer: a desk that the caller gave, or a
state that answers tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asl.core.values import Json
from asl.effects.agent_caller import AgentCaller
from asl.effects.callbacks import Callback, Polled, shown
from asl.effects.clock import WallClock
from asl.effects.tokens import Wait
from asl.engine.agent import Agent, Call, Messenger
from asl.engine.awaited import TOKEN, Awaited
from asl.states.calls import Options
from asl.states.errors import Expired, HeartbeatMissed, Raised, Reported, Suspended

if TYPE_CHECKING:
    from asyncio import Future

    from asl.effects.journal_keeping import JournalKeeping

__all__ = ["KeptCallback", "KeptPolled", "KeptTask", "kept_agent"]

LOOK = 1.0
"""Seconds between two looks at what other processes have answered, where this one waits."""


class KeptTask:
    """A task that a journal keeps, on its way to its answer."""

    ended: float | None = None
    """When its answer came or its time was over, None for just now."""

    def __init__(self, keeping: JournalKeeping, task: Awaited, options: Options | None) -> None:
        self.kept_by = keeping
        self.task = task
        self.options = options

    def given(self) -> bool:
        """Whether the answer is there; raises the failure of a task whose time is over."""
        keeping, task = self.kept_by, self.task
        runtime = keeping.runtime
        if task.outcome is not None:
            self.ended = task.outcome[0]
            return True
        now, due, end = runtime.now(), task.due, runtime.deadline
        if end is not None and end <= now and (due is None or end <= due):
            raise Expired
        if due is None or now < due:
            return False
        self.ended, task.status = due, "timeout"
        options = self.options
        assert options is not None
        if task.missed:
            raise HeartbeatMissed(options.cause("sign of life", options.heartbeat))
        raise Raised("States.Timeout", options.cause("answer", options.timeout))

    async def heard(self, wait: Wait) -> Json:
        """Return the answer; raises Suspended where nobody of this run gives it."""
        from asyncio import sleep

        await sleep(0)  # what the handler has answered by itself comes now
        keeping, task = self.kept_by, self.task
        runtime = keeping.runtime
        while not (wait.answer.done() or self.has_come()):
            parking = runtime.serving().parking
            if parking is not None:
                try:
                    await parking.wait(task.token, task.due, wait.answer)
                except Suspended:
                    runtime.awaited += ((task.key, task),)
                    raise
            elif runtime.serving().answerable():
                await self.until_something(wait.answer)
            else:
                runtime.awaited += ((task.key, task),)
                raise Suspended
        return task.answer()

    def has_come(self) -> bool:
        """Whether the answer is there, also from another process; raises as `given` does."""
        if self.task.outcome is None:
            self.kept_by.journal.look(self.task)
        return self.given()

    async def until_something(self, *others: Future[Any]) -> None:
        """Return when one of *others* is done, or it is time to look for the answer."""
        from asyncio import FIRST_COMPLETED
        from asyncio import wait as first_of

        runtime, due = self.kept_by.runtime, self.task.due
        times = [] if due is None else [max(0.0, due - runtime.now())]
        if isinstance(runtime.clock, WallClock):
            times.append(LOOK)
        await first_of(others, timeout=min(times, default=None), return_when=FIRST_COMPLETED)

    def keep(self, answer: Json, failure: Reported | None) -> None:
        """Keep what was answered at the desk of this run before anybody is thanked for it."""
        keeping, task = self.kept_by, self.task
        runtime = keeping.runtime
        failed = None if failure is None else [failure.name, failure.cause]
        task.outcome, task.status = [runtime.now(), answer, failed], "answered"
        keeping.journal.put_outcome(task)
        keeping.journal.flush()

    def signed(self) -> None:
        """Keep a sign of life that came at the desk of this run."""
        self.task.beat = self.kept_by.runtime.now()
        self.kept_by.journal.put_sign(self.task)


class KeptCallback(Callback, KeptTask):
    """A handler that passes a request on, once, and the wait for the answer to its token."""

    keeps_time = True

    def __init__(
        self, keeping: JournalKeeping, task: Awaited, options: Options | None, handler: Agent
    ) -> None:
        Callback.__init__(self, keeping.caller, handler)
        KeptTask.__init__(self, keeping, task, options)

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Call the handler if nobody has, and return the answer to the token."""
        assert call is not None
        keeping, task, details = self.kept_by, self.task, {}
        runtime, caller = keeping.runtime, keeping.caller
        with runtime.serving().desk.waiting(call, runtime.clock, self) as wait:
            known = task.taken is not None
            if not (known or self.given()):
                details = shown(await caller.reach(self.handler, payload, call), caller.limit)
            runtime.advance(call.at, "Submitted", details)
            if known:
                self.given()  # a limit that has passed is no matter of the event loop's timers
            else:
                keeping.journal.look(task)
                task.taken = runtime.now()
                keeping.journal.put_sign(task)
            return await self.heard(wait)


class KeptPolled(Polled, KeptTask):
    """An activity whose workers ask for its tasks, at the desk of the run or of the store."""

    keeps_time = True

    def __init__(
        self, keeping: JournalKeeping, task: Awaited, options: Options | None, activity: str
    ) -> None:
        Polled.__init__(self, activity)
        KeptTask.__init__(self, keeping, task, options)
        self.told = False

    async def serve(self, caller: AgentCaller, payload: Json, call: Call) -> Json:
        """Offer the task to the workers and return what the one who takes it answers."""
        keeping, task = self.kept_by, self.task
        runtime = keeping.runtime
        desk = runtime.serving().desk

        def begun(worker: str | None) -> None:
            call.heartbeat()
            task.taken = task.beat = runtime.now()
            task.worker = worker
            keeping.journal.put_sign(task)
            self.tell(call)

        with desk.waiting(call, runtime.clock, self) as wait:
            self.tell(call)
            if not self.given() and task.taken is None:
                desk.offer(self.activity, wait, payload, begun)
            try:
                return await self.heard(wait)
            finally:
                self.tell(call)

    def tell(self, call: Call) -> None:
        """Say once that a worker has taken the task."""
        task = self.task
        if task.taken is not None and not self.told:
            self.told = True
            details: dict[str, Json] = {} if task.worker is None else {"workerName": task.worker}
            self.kept_by.runtime.advance(call.at, "Started", details, task.taken)


def kept_agent(
    keeping: JournalKeeping, task: Awaited, options: Options | None, agent: Messenger | Polled
) -> KeptCallback | KeptPolled:
    """Return who brings a kept task to its answer."""
    if isinstance(agent, Messenger):
        return KeptCallback(keeping, task, options, agent.agent)
    if task.kind == TOKEN:  # it was handed over: nobody is called
        return KeptCallback(keeping, task, options, agent)
    return KeptPolled(keeping, task, options, agent.activity)
