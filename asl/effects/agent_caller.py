"""Calls of agents: payload and answer, time limits, usage and errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from asl.core.errors import NotJson, StateError, cause_for, mark_usage_unknown
from asl.core.values import Json, copy_for_agent, copy_result, plain_copy
from asl.effects.agent_turn import AgentTurn
from asl.effects.caller import Account, BudgetGate
from asl.effects.middleware import Effect, Proceed, effect_of
from asl.effects.persistence import Persistence
from asl.effects.policy_levels import needs_consent
from asl.effects.progress_reporter import ProgressReporter
from asl.effects.runtime import RuntimeContext
from asl.effects.service_agent import ServiceAgent
from asl.effects.streaming import Stream
from asl.effects.task_tokens import TaskTokens
from asl.effects.threads import Slot, call_soon, run_in_thread
from asl.effects.time_limits import await_in_time, has_expired
from asl.engine.agent import Agent, Call, Find, ToolBroker
from asl.engine.definitions import AgentDefinition
from asl.engine.exception_mapping import (
    describe_exception,
    is_cancellation,
    is_control_flow,
    is_fault,
    make_portable,
    normalize_error,
    unwrap_group,
)
from asl.engine.frame import Frame
from asl.engine.turns import TurnPlace
from asl.engine.usage import usage_of_failure
from asl.expr.agent_answers import USAGE_KEYS
from asl.program import Step
from asl.states.calls import CallOptions, Target
from asl.states.errors import HeartbeatMissed, RaisedError, Suspension

if TYPE_CHECKING:
    import asyncio

__all__ = ["AgentCaller", "await_answer"]

TURNS: Final = 16
"""Turns of the event loop that a cancelled call may take to deliver a completed answer."""
PATIENCE: Final = 0.05
"""Seconds that it may take from a thread, a process or a connection."""


async def await_answer(answer: Awaitable[Json], call: Call) -> Json:
    """Await an answer; a cancelled call records the usage of an answer that has already arrived.

    The answer is awaited in a task of its own, so that a cancellation reaches the agent only after
    it could return a completed answer.
    """
    from asyncio import CancelledError, ensure_future, shield

    task = ensure_future(_carried(answer))
    try:
        return await shield(task)
    except CancelledError:
        if not task.done():
            agent = call.agent
            outside = agent is not None and (agent.blocking or agent.waits_outside)
            await _finish(task, outside)
        usage = None if task.cancelled() else _usage(task)
        if usage is not None:
            call.usage, call.is_complete = usage, True
        raise


async def _carried(answer: Awaitable[Json]) -> Json:
    """Await an answer; exceptions of user code are made portable."""
    try:
        return await answer
    except BaseException as error:  # user code: a task cannot carry every class
        raise make_portable(error) from error.__cause__


def _usage(task: asyncio.Future[Json]) -> Mapping[str, Json] | None:
    """Return the usage reported with an answer or an error."""
    error = task.exception()
    if error is None:
        return usage_of_failure(task.result())
    return error.usage if isinstance(error, StateError) else None


async def _finish(task: asyncio.Future[Json], outside: bool) -> None:
    """Wait for the end of a task, which is cancelled after its last turn.

    Args:
        task: The task.
        outside: Whether its answer comes from outside of the event loop.
    """
    from asyncio import CancelledError, sleep, wait

    try:
        if outside:
            await wait((task,), timeout=PATIENCE)
        for _ in range(TURNS):
            if not task.done():
                await sleep(0)
    except CancelledError:  # the time is over
        pass
    task.cancel()
    while not task.done():
        try:
            await wait((task,))
        except CancelledError:
            task.cancel()


REPORTED = frozenset({"progress", "stream"})
"""Blocks that use reports of a running agent."""
MAX_THREADS = 64
"""Maximum number of plain functions in threads at the same time, without those that wait for a
tool."""


class AgentCaller:
    """Calls the agents of one execution (protocol `asl.engine.agent.Performer`)."""

    __slots__ = ("__dict__", "budget_gate", "find", "limit", "now", "runtime")
    runtime: RuntimeContext
    find: Find
    """Returns the agent for a target; raises StateError("States.AgentNotFound")."""
    limit: int
    """Maximum size of an agent's answer in bytes."""
    budget_gate: BudgetGate | None
    """Enforces budgets; None without limits."""

    def init(self, runtime: RuntimeContext, find: Find, limit: int) -> Self:
        """Set the attributes of every caller and return it."""
        self.runtime = runtime
        self.now = runtime.now
        self.find = find
        self.limit = limit
        self.budget_gate = None
        return self

    @property
    def persistence(self) -> Persistence:
        """The persistence of the execution."""
        return self.runtime.persistence

    def pause(self, seconds: float) -> Awaitable[None]:
        """Wait on the clock of the execution."""
        return self.runtime.pause(seconds)

    def task_token_service(self) -> TaskTokens:
        """Return the task token service of the run."""
        return self.runtime.current_services().task_token_service

    def count_effect(self, frame: Frame) -> None:
        """Count an effect, unless the journal counts it."""
        if not self.persistence.durable:
            frame.count_effect()

    def invoke(
        self,
        frame: Frame,
        target: Target,
        payload: Json,
        options: CallOptions | None = None,
        agent: Agent | None = None,
        account: Account | None = None,
    ) -> Coroutine[Any, Any, Json]:
        """Call an agent; any exception becomes an error of the state.

        Payload and answer are copied, so that neither side can change the other's data.

        Args:
            frame: The calling machine.
            target: The agent or resource.
            payload: Parameters of the call.
            options: Limits and block values of the state.
            agent: Agent to call; None to look it up.
            account: Counts the reported usage, by name of the state; None for the machine's own.
        """
        self.count_effect(frame)
        if agent is None:
            if self.budget_gate is not None and target.kind == "agent":
                return self.budget_gate.call(frame, target, payload, options)
            agent = self.find(target)
        return self.ask_agent(frame, target, payload, options, agent, account)

    def ask_agent(
        self,
        frame: Frame,
        target: Target,
        payload: Json,
        options: CallOptions | None,
        agent: Agent,
        account: Account | None,
    ) -> Coroutine[Any, Any, Json]:
        """Call an agent without the budget gate; arguments as for `invoke`."""
        if not self.runtime.middleware:
            return self._ask_agent(frame, target, payload, options, agent, account)

        async def ask(effect: Effect) -> Json:
            return await self._ask_agent(frame, target, effect.payload, options, agent, account)

        return self._ask_within(frame, target, payload, ask)

    async def _ask_within(self, frame: Frame, target: Target, payload: Json, ask: Proceed) -> Json:
        """Return a checked copy of the middleware's answer."""
        effect = effect_of(frame, target.kind, target.name, payload)
        answer = await self.runtime.within_middleware(frame, effect, ask, self.limit)
        return copy_result(answer, self.limit, target.label, frame.execution.count_received)

    async def _ask_agent(
        self,
        frame: Frame,
        target: Target,
        payload: Json,
        options: CallOptions | None,
        agent: Agent,
        account: Account | None,
    ) -> Json:
        own = copy_for_agent(payload, self.limit, target.label)
        call = Call(frame, target, options)
        turn = None if agent.direct is not None or agent.limits_itself else self._turn(call)
        try:
            if turn is not None:
                answer = await turn.run(partial(self._answer, agent, own, call, options))
            elif options is None or agent.limits_itself or REPORTED.isdisjoint(options.blocks):
                try:
                    answer = await self._ask(agent, own, call, options)
                finally:
                    call.end()
            else:
                answer = await self._followed(call, options)(agent, own, call, options)
        except Suspension:  # the call is repeated, and reports its usage then
            raise
        except BaseException as error:  # user code; other exceptions propagate
            if call.usage is not None:
                (account or frame.account)(target.state, call.usage)
                if call.is_complete and self.budget_gate is not None:
                    self.budget_gate.take_late_answer(frame, call)
            if agent.is_internal and is_fault(error):
                raise
            blamed = self.map_error(frame, target, error, account)
            raise blamed from cause_for(blamed, error)
        return self.accept_answer(frame, target, answer, account)

    async def _answer(
        self, agent: Agent, payload: Json, call: Call, options: CallOptions | None
    ) -> Json:
        """Return the answer to a call that may be part of a turn."""
        if options is None or REPORTED.isdisjoint(options.blocks):
            return await self._ask_and_end(agent, payload, call, options)
        return await self._followed(call, options)(agent, payload, call, options)

    def _turn(self, call: Call) -> AgentTurn | None:
        """Return the turn of a call, None if none of its tools needs consent."""
        if call.place is not None or not needs_consent(self.runtime, call.at, call.tool_rules):
            return None
        turn = AgentTurn(self, call)
        call.place = TurnPlace(turn, None)
        return turn

    def begin(self, frame: Frame, step: Step, data: Json) -> Awaitable[Json] | None:
        """Start a call of an agent that needs only its parameters, if nothing limits the call.

        Returns:
            An awaitable of the answer; None if the call needs the full path.
        """
        if self.budget_gate is not None or not self.runtime.in_event_loop:
            return None
        # A function in a slot is loaded first, which avoids the lookup as a method.
        target, find, payload = step.call, self.find, step.payload
        direct = find(target).direct
        if direct is None:
            return None
        assert payload is not None  # only with a call
        return direct(copy_for_agent(payload(data, frame), self.limit, target.label))

    def accept_answer(
        self, frame: Frame, target: Target, answer: Json, account: Account | None = None
    ) -> Json:
        """Return a copy of an agent's answer, and count the usage that it reports.

        Raises:
            StateError: The answer is not a JSON value, or is too large.
        """
        now = self.now
        frame.now = now()
        result = plain_copy(answer)  # nearly always enough
        if result is None:
            try:
                count = frame.execution.count_received
                result = copy_result(answer, self.limit, target.label, count)
            except (StateError, NotJson) as error:
                failure = mark_usage_unknown(
                    normalize_error(error, target)
                )  # with its reported usage
                raise failure from cause_for(failure, error)
        if type(result) is dict and not USAGE_KEYS.isdisjoint(result):
            (account or frame.account)(target.state, result)
        runtime = self.runtime
        if runtime.checks_end and runtime.in_event_loop:
            runtime.raise_if_ended(frame)
        return result

    def map_error(
        self, frame: Frame, target: Target, error: BaseException, account: Account | None = None
    ) -> StateError:
        """Return the error of the state for an exception of an agent.

        Raises:
            BaseException: The exception itself, if it is not the agent's.
        """
        frame.now = self.now()
        error = unwrap_group(error)
        if is_control_flow(error):
            raise error
        blamed = normalize_error(error, target) if isinstance(error, StateError | NotJson) else None
        if blamed is not None and blamed.usage is not None:
            (account or frame.account)(target.state, blamed.usage)
        if self.runtime.checks_end and self.runtime.in_event_loop:
            self.runtime.raise_if_ended(frame)
        if blamed is not None:
            return blamed
        # The agent is user code: any exception is its failure, and so is a cancellation
        # that it raised itself.
        if not is_cancellation(error):
            return RaisedError("States.TaskFailed", describe_exception(error))
        if self.runtime.in_event_loop and self.runtime.is_cancelled():
            raise error
        return RaisedError("States.TaskFailed", "the agent cancelled itself")

    def _ask(
        self, agent: Agent, payload: Json, call: Call, options: CallOptions | None
    ) -> Awaitable[Json]:
        if agent.has_resources:
            self.runtime.close_later(agent)
        if options is not None and options.is_limited and not agent.limits_itself:
            return self._in_time(agent, payload, call, options)
        call.attach(self)
        return self.reach(agent, payload, call)

    async def _ask_and_end(
        self, agent: Agent, payload: Json, call: Call, options: CallOptions | None
    ) -> Json:
        try:
            return await self._ask(agent, payload, call, options)
        finally:
            call.end()

    def _followed(self, call: Call, options: CallOptions) -> Callable[..., Awaitable[Json]]:
        """Return a function that gets an answer and forwards the reports before it."""
        answer: Callable[..., Awaitable[Json]] = self._ask_and_end
        if "progress" in options.blocks:
            answer = partial(
                ProgressReporter(self, call, options.blocks["progress"]).follow, answer
            )
        if "stream" in options.blocks:
            answer = partial(Stream(self, call, options.blocks["stream"]).follow, answer)
        return answer

    def reach(self, agent: Agent, payload: Json, call: Call) -> Awaitable[Json]:
        """Return the answer of an agent, called as its kind requires."""
        call.agent = agent
        answer: Awaitable[Json]
        if agent.blocking or agent.waits_outside or not self.runtime.in_event_loop:
            answer = self._reach(agent, payload, call)
        else:
            answer = self._answered_by(agent, payload, call)
        if self.budget_gate is None or not self.runtime.in_event_loop:
            return answer
        return await_answer(answer, call)

    async def _reach(self, agent: Agent, payload: Json, call: Call) -> Json:
        runtime = self.runtime
        if agent.blocking:
            services = runtime.services
            asks = agent.takes_call and services is not None and bool(services.boxes)
            if not (runtime.in_event_loop or runtime.forks or runtime.is_due_soon or asks):
                return agent.answer(payload, call)
            return await self._in_thread(agent, payload, call)
        if agent.needs_loop and not runtime.in_event_loop:
            await runtime.event_loop()
        if not agent.waits_outside:
            return await self._answered_by(agent, payload, call)
        runtime.clock.real_begins()
        try:
            return await agent.answer(payload, call)
        finally:
            runtime.clock.real_ends()

    def _answered_by(self, agent: Agent, payload: Json, call: Call) -> Awaitable[Json]:
        """Return the awaitable of an agent's answer: user code, or a service of the run."""
        if isinstance(agent, ServiceAgent):
            return agent.service.serve(self.runtime, payload, call)
        answer: Awaitable[Json] = agent.answer(payload, call)
        return answer

    def remember(self, frame: Frame, request: Json) -> Json:
        """Perform a memory request of an agent without waiting."""
        return self.runtime.current_services().memory_service.do(frame, request, self.now())

    def definition(self, call: Call) -> AgentDefinition | None:
        """Return how the document of a call defines the agent; None if it does not."""
        document = call.at.execution.program.document
        return self.runtime.current_services().definitions(document).get(call.target.name)

    def broker(self, call: Call) -> ToolBroker:
        """Return the tools of a call; their modules are loaded with the first one."""
        from asl.effects.tools.dispatcher import ToolDispatcher

        agent = call.agent
        return ToolDispatcher(
            self, call, agent is not None and (agent.waits_outside or agent.blocking)
        )

    async def _in_thread(self, agent: Agent, payload: Json, call: Call) -> Json:
        runtime = self.runtime
        loop = runtime.loop = await runtime.event_loop()
        from asyncio import Semaphore

        first = runtime.first or runtime
        if first.threads is None:
            first.threads = Semaphore(MAX_THREADS)
        slot = call.slot = Slot(first.threads)
        try:
            await slot.take()
            runtime.clock.real_begins()
            try:
                return await run_in_thread(loop, agent.answer, payload, call)
            finally:
                runtime.clock.real_ends()
        finally:
            slot.end()

    async def _in_time(self, agent: Agent, payload: Json, call: Call, options: CallOptions) -> Json:
        """Call with the limits of the state, which count from the agent's start."""
        loop = await self.runtime.event_loop()
        from asyncio import timeout

        # Services of the run need no heartbeat until a worker takes the task (AWS).
        first_beat = None if agent.is_internal else options.heartbeat
        self.persistence.calls.begin_attempt(call, options)
        if options.start is None:  # further calls of the same attempt have the remaining time
            options.start = self.now()
        try:
            async with (
                timeout(options.remaining(self.now())) as whole,
                timeout(first_beat) as pulse,
            ):

                def renew() -> None:
                    if not (call.cancelled or options.heartbeat is None or pulse.expired()):
                        pulse.reschedule(loop.time() + options.heartbeat)

                call.attach(self, lambda: call_soon(loop, renew))
                answer = self.reach(agent, payload, call)
                return await (
                    answer if agent.applies_timeout else await_in_time(answer, whole, pulse)
                )
        except TimeoutError:
            if has_expired(whole):
                cause = options.cause("answer", options.timeout)
                raise mark_usage_unknown(RaisedError("States.Timeout", cause)) from None
            if pulse.expired():
                cause = options.cause("sign of life", options.heartbeat)
                raise mark_usage_unknown(HeartbeatMissed(cause)) from None
            raise
