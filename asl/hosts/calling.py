"""Calling agents: what they get and give, their time, and what becomes of their errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from asl.core.errors import NotJson, StateError, cause_for, lost
from asl.core.values import Json, handed_over, plain_copy, received
from asl.engine.agent import Agent, Call, Find
from asl.engine.blame import alone, described, is_cancellation, is_fault, is_own, named
from asl.engine.execution import USAGE_KEYS
from asl.hosts.life import LivingHost
from asl.hosts.services import Services
from asl.program import Step
from asl.states.blocks.budget import Amounts
from asl.states.calls import Options, Target
from asl.states.errors import HeartbeatMissed, Raised, Suspended
from asl.states.host import Frame

if TYPE_CHECKING:
    import asyncio

    from asl.hosts.agent_turn import AgentTurn
    from asl.hosts.meter import Meter
    from asl.hosts.tokens import TaskTokens

__all__ = ["Account", "CallingHost"]

REPORTED = frozenset({"progress", "stream"})
"""What a host is told of a call on which the agent may report."""
MAX_THREADS = 64
"""Plain functions that may run at the same time, each in a thread of its own; those that wait for a
tool do not count."""

Account: TypeAlias = Callable[[str, Json], object]
"""Counts the usage that a raw result reports, by the name of the state."""


class CallingHost(LivingHost):
    """Calls the agents of one execution."""

    __slots__ = ("find", "limit", "meter")
    find: Find
    """Returns the agent for a target; raises StateError("States.AgentNotFound")."""
    limit: int
    """Bytes that an agent's answer may have."""
    services: Services | None = None
    """What the run offers to its states beside agents, if anybody has asked for it."""
    meter: Meter | None
    """Watches over what agents spend, where anything limits it."""
    _threads: asyncio.Semaphore | None = None

    def serving(self) -> Services:
        """Return what the run offers to its states."""
        if self.services is None:
            from asl.hosts.services import Services

            # Threads may ask at once: what is made first is for all.
            services: Services = vars(self).setdefault("services", Services())
            return services
        return self.services

    def _desk(self) -> TaskTokens:
        return self.serving().desk

    def count_effect(self, at: Frame) -> None:
        """Count an effect, so that the keys of what it leads to are those that a store has."""
        at.count_effect()

    def invoke(
        self,
        at: Frame,
        target: Target,
        payload: Json,
        options: Options | None = None,
        agent: Agent | None = None,
        account: Account | None = None,
    ) -> Coroutine[Any, Any, Json]:
        """Call an agent; whatever it raises becomes an error of the state.

        What the agent gets and what it returns are copies: neither side can change the other's.
        *agent* is the one to call, otherwise it is found. *account* counts the usage that it
        reports, by the name of the state; otherwise the machine does.
        """
        self.count_effect(at)
        if agent is None:
            if self.meter is not None and target.kind == "agent":
                return self.meter.call(at, target, payload, options)
            agent = self.find(target)
        return self.ask_agent(at, target, payload, options, agent, account)

    async def ask_agent(
        self,
        at: Frame,
        target: Target,
        payload: Json,
        options: Options | None,
        agent: Agent,
        account: Account | None,
    ) -> Json:
        """Call this agent, whatever limits the calls of agents."""
        own = handed_over(payload, self.limit, target.label)
        call = Call(at, target, options)
        turn = None if agent.direct is not None else self.turn(call)
        try:
            if turn is not None:
                answer = await turn.run(partial(self._answer, agent, own, call, options))
            elif options is None or REPORTED.isdisjoint(options.blocks):
                try:
                    answer = await self._ask(agent, own, call, options)
                finally:
                    call.end()
            else:
                answer = await self._followed(call, options)(agent, own, call, options)
        except Suspended:  # it is made again, and reports then what it has used
            raise
        except BaseException as error:  # foreign code; what is not its own flies on
            if call.usage is not None:
                (account or at.account)(target.state, call.usage)
                if call.answered and self.meter is not None:
                    self.meter.take_late_answer(at, call)
            if is_fault(error) and not _is_foreign(agent):
                raise
            blamed = self.blamed(at, target, error, account)
            raise blamed from cause_for(blamed, error)
        return self.answered(at, target, answer, account)

    async def _answer(
        self, agent: Agent, payload: Json, call: Call, options: Options | None
    ) -> Json:
        """Return the answer to a call that is part of a turn."""
        if options is None or REPORTED.isdisjoint(options.blocks):
            return await self._ask_and_end(agent, payload, call, options)
        return await self._followed(call, options)(agent, payload, call, options)

    def turn(self, call: Call) -> AgentTurn | None:
        """Return the turn that a call begins, None where no tool of it needs consent."""
        return None

    def begin(self, at: Frame, step: Step, data: Json) -> Awaitable[Json] | None:
        """Call an agent that needs nothing but its parameters, where nothing limits the call."""
        if self.meter is not None or not self.in_event_loop:
            return None
        # What is called out of a slot is loaded first: as a method it would be looked up at length.
        target, find, payload = step.call, self.find, step.payload
        direct = find(target).direct
        if direct is None:
            return None
        assert payload is not None  # where there is a call
        return direct(handed_over(payload(data, at), self.limit, target.label))

    def answered(
        self, at: Frame, target: Target, answer: Json, account: Account | None = None
    ) -> Json:
        """Return a copy of what an agent answered, and count the usage that it reports."""
        now = self.now
        at.now = now()
        result = plain_copy(answer)  # nearly always enough
        if result is None:
            try:
                count = at.execution.count_received
                result = received(answer, self.limit, target.label, count)
            except (StateError, NotJson) as error:
                failure = lost(named(error, target))  # with what it says of its usage
                raise failure from cause_for(failure, error)
        if type(result) is dict and not USAGE_KEYS.isdisjoint(result):
            (account or at.account)(target.state, result)
        if self.heeds and self.in_event_loop:
            self.heed(at)
        return result

    def blamed(
        self, at: Frame, target: Target, error: BaseException, account: Account | None = None
    ) -> StateError:
        """Return what an exception of an agent is to its state; raises one that is not its own."""
        at.now = self.now()
        error = alone(error)
        if is_own(error):
            raise error
        blamed = named(error, target) if isinstance(error, StateError | NotJson) else None
        if blamed is not None and blamed.usage is not None:
            (account or at.account)(target.state, blamed.usage)
        if self.heeds and self.in_event_loop:
            self.heed(at)
        if blamed is not None:
            return blamed
        # The agent is foreign code: anything it raises is its failure, and so is a cancellation
        # that nobody asked for.
        if not is_cancellation(error):
            return Raised("States.TaskFailed", described(error))
        if self.in_event_loop and self.is_cancelled():
            raise error
        return Raised("States.TaskFailed", "the agent cancelled itself")

    def _ask(
        self, agent: Agent, payload: Json, call: Call, options: Options | None
    ) -> Awaitable[Json]:
        if agent.holds:
            self._keep(agent)
        if options is not None and options.limited:
            return self._in_time(agent, payload, call, options)
        call.attach(sleep=self._sleep, tokens=self._desk)
        return self.reach(agent, payload, call)

    async def _ask_and_end(
        self, agent: Agent, payload: Json, call: Call, options: Options | None
    ) -> Json:
        try:
            return await self._ask(agent, payload, call, options)
        finally:
            call.end()

    def unshown(self, at: Frame, said: str | None) -> None:
        """Remember what an agent has said that may not be shown yet."""
        at.said = said

    def progressed(self, at: Frame) -> None:
        """Take note of the progress of a call; this host keeps nothing."""

    def used(self, at: Frame, used: Amounts) -> None:
        """Take note of what a call counts as for its state; this host keeps nothing."""

    async def admitted(self, at: Frame) -> None:
        """Take note of a call that is about to be made; this host keeps nothing."""

    def _followed(self, call: Call, options: Options) -> Callable[..., Awaitable[Json]]:
        """Return what gets an answer and passes on what is reported before it."""
        answer: Callable[..., Awaitable[Json]] = self._ask_and_end
        if "progress" in options.blocks:
            from asl.hosts.reporting import Reports

            answer = partial(Reports(self, call, options.blocks["progress"]).follow, answer)
        if "stream" in options.blocks:
            from asl.hosts.streaming import Stream

            answer = partial(Stream(self, call, options.blocks["stream"]).follow, answer)
        return answer

    def reach(self, agent: Agent, payload: Json, call: Call) -> Awaitable[Json]:
        """Have an agent answer, in the way that it needs."""
        call.agent = agent
        answer: Awaitable[Json]
        if agent.blocking or agent.real or not self.in_event_loop:
            answer = self._reach(agent, payload, call)
        else:
            answer = agent.answer(payload, call)  # foreign code
        if self.meter is None or not self.in_event_loop:
            return answer
        from asl.hosts.late_answers import await_answer

        return await_answer(answer, call)

    async def _reach(self, agent: Agent, payload: Json, call: Call) -> Json:
        if agent.blocking:
            asks = agent.takes_call and self.services is not None and bool(self.services.boxes)
            if not (self.in_event_loop or self.forks or self.is_due_soon or asks):
                return agent.answer(payload, call)
            return await self._in_thread(agent, payload, call)
        if agent.needs_loop and not self.in_event_loop:
            await self.event_loop()
        if not agent.real:
            return await agent.answer(payload, call)
        self.clock.real_begins()
        try:
            return await agent.answer(payload, call)
        finally:
            self.clock.real_ends()

    async def _in_thread(self, agent: Agent, payload: Json, call: Call) -> Json:
        loop = self.loop = await self.event_loop()
        from asyncio import Semaphore

        from asl.hosts.threads import Slot, run_in_thread

        first = self.first or self
        if first._threads is None:
            first._threads = Semaphore(MAX_THREADS)
        slot = call.slot = Slot(first._threads)
        try:
            await slot.take()
            self.clock.real_begins()
            try:
                return await run_in_thread(loop, agent.answer, payload, call)
            finally:
                self.clock.real_ends()
        finally:
            slot.end()

    async def _in_time(self, agent: Agent, payload: Json, call: Call, options: Options) -> Json:
        """Call with the limits of the state; they count from the agent's start."""
        loop = await self.event_loop()
        from asyncio import timeout

        from asl.hosts.limits import has_passed, punctual

        # What the run offers itself needs no sign of life, until a worker takes a task (AWS).
        first_beat = options.heartbeat if _is_foreign(agent) else None
        if options.began is None:  # further calls of the same attempt have what is left
            options.began = self.now()
        try:
            async with timeout(options.left(self.now())) as whole, timeout(first_beat) as pulse:

                def renew() -> None:
                    if not (call.cancelled or options.heartbeat is None or pulse.expired()):
                        pulse.reschedule(loop.time() + options.heartbeat)

                call.attach(
                    sleep=self._sleep,
                    tokens=self._desk,
                    beat=lambda: loop.call_soon_threadsafe(renew),
                )
                answer = self.reach(agent, payload, call)
                return await (answer if agent.keeps_time else punctual(answer, whole, pulse))
        except TimeoutError:
            if has_passed(whole):
                cause = options.cause("answer", options.timeout)
                raise lost(Raised("States.Timeout", cause)) from None
            if pulse.expired():
                cause = options.cause("sign of life", options.heartbeat)
                raise lost(HeartbeatMissed(cause)) from None
            raise


def _is_foreign(agent: Agent) -> bool:
    from asl.hosts.services import Service

    return not isinstance(agent, Service)
