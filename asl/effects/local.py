"""Effects in this process, in real or virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Final, Self

from asl.core.errors import StateError
from asl.core.values import Json
from asl.core.work import STEP
from asl.effects.agent_caller import AgentCaller
from asl.effects.approval_process import ApprovalProcess, BudgetApprovalProcess
from asl.effects.callbacks import CallbackAgent
from asl.effects.checkpoints import OWN, make_checkpoint, store_checkpoint
from asl.effects.child_runner import run_child
from asl.effects.clock import VirtualClock
from asl.effects.fork import MANY, Fork, relaxed_gc
from asl.effects.middleware import Effect, effect_of
from asl.effects.runtime import RuntimeContext
from asl.effects.suspension import SuspensionMonitor
from asl.effects.time_limits import interpret_in_time
from asl.engine.agent import CallbackHandler
from asl.engine.checkpoints import Checkpoint, CheckpointNames
from asl.engine.events import CREATED, PAUSED
from asl.engine.execution import Execution
from asl.engine.frame import Frame
from asl.engine.interpreter import interpret
from asl.engine.records import WHOLE
from asl.engine.truncation import MAX_HELD, ValueSizes, bound_records, bound_values
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
from asl.states.errors import BudgetOverrun, Suspension

__all__ = ["MAX_BUILT", "LocalEffects", "bound_memory"]

MAX_BUILT: Final = MAX_HELD
"""Bytes of new values after which the memory is checked."""
_HINT: Final = "let a distributed Map write them with ResultWriter, or return less from each item"


def bound_memory(runtime: RuntimeContext, execution: Execution, now: float, limit: int) -> None:
    """Drop history that takes too much memory.

    Raises:
        StateError: States.DataLimitExceeded; the results of items take too much memory.
    """
    bound_records(execution, now)
    work = execution.work
    if work is None or work.built <= MAX_BUILT:
        return
    work.built = 0
    bound_values(execution, now)
    most = max(limit, MAX_HELD)
    if not ValueSizes(most).add(chain.from_iterable(fork.held_results for fork in runtime.forks)):
        cause = f"the results of items take more than {most} bytes: {_HINT}"
        raise StateError("States.DataLimitExceeded", cause)


class LocalEffects:
    """Performs the effects of one execution (protocol `asl.states.effects.Effects`)."""

    __slots__ = ("__dict__", "caller", "direct", "record", "runtime")

    machine: Callable[[Frame], Awaitable[Json]] = staticmethod(interpret)
    """Runs the machine of a child."""

    def init(
        self, runtime: RuntimeContext, caller: AgentCaller, record: Callable[[Record], object]
    ) -> Self:
        """Set the attributes of every instance and return it."""
        self.runtime = runtime
        self.caller = caller
        self.record = record
        self.direct: DirectCalls[Frame] | None = caller
        """The fast path of simple calls, None with middleware."""
        return self

    @cached_property
    def timed_machine(self) -> Callable[[Frame], Awaitable[Json]]:
        """Runs the machine of a child with a time limit."""
        return partial(interpret_in_time, self.runtime)

    # Life cycle

    def tell(self, frame: Frame, event: str) -> None:
        """Record an event of the execution."""
        frame.emit((WHOLE, self.runtime.now(), frame, 0, None, event, {}))

    def suspend(self, frame: Frame) -> None:
        """Record the pause of the execution, unless the latest event is the pause."""
        if not self.runtime.persistence.execution.is_paused():
            self.tell(frame, PAUSED)

    # Calls

    def call(self, frame: Frame, effect: CallEffect) -> Awaitable[Json]:
        """Call an agent, a resource or a service, or hand over a task; return the raw result."""
        match effect:
            case Invocation(target, payload, options):
                return self.caller.invoke(frame, target, payload, options)
            case Handover():
                return self._hand_over(frame, effect)
            case ServiceCall(service, payload):
                target = Target("service", service, frame.step.name, is_helper=True)
                agent = self.runtime.current_services().service(service)
                return self.caller.invoke(frame, target, payload, None, agent)
            case TargetCheck(targets):
                return self._look_up(frame, targets)

    async def _hand_over(self, frame: Frame, request: Handover) -> Json:
        """Hand over a request and wait for its answer.

        Agents that answer immediately (a mock, the worker of an activity, a handler that waits for
        a `.sync` job itself) accept the request with the call.
        """
        target = request.target
        agent = self.caller.find(target)
        if isinstance(agent, CallbackHandler):
            self.runtime.close_later(agent.agent)
            agent = CallbackAgent(self.caller, agent.agent)
        elif not agent.is_internal:
            self.runtime.advance(frame, "Started" if target.is_activity else "Submitted", {})
        return await self.caller.invoke(frame, target, request.payload, request.options, agent)

    async def _look_up(self, frame: Frame, targets: Sequence[Target]) -> None:
        """Find every agent.

        Raises:
            StateError: States.AgentNotFound for the first one that is missing.
        """
        self.caller.count_effect(frame)
        for target in targets:
            self.caller.find(target)

    # Time

    async def timer(self, frame: Frame, when: float) -> None:
        """Return when the clock has reached *when*."""
        self.caller.count_effect(frame)
        if self.runtime.middleware:

            async def sleep(effect: Effect) -> None:
                await self._sleep_until(frame, when)

            effect = effect_of(frame, "timer", "", when)
            await self.runtime.within_middleware(frame, effect, sleep, self.caller.limit)
        else:
            await self._sleep_until(frame, when)

    async def _sleep_until(self, frame: Frame, when: float) -> None:
        runtime = self.runtime
        suspension = runtime.suspension
        if suspension is not None and suspension.is_long(when):
            await self._park(suspension, when)
        if when > runtime.now():
            await runtime.pause(when - runtime.now())
        else:  # endless retries without a delay stay cancellable
            await self.yield_(frame)
        frame.now = max(when, runtime.now())

    async def _park(self, suspension: SuspensionMonitor, when: float) -> None:
        """Return when the clock has reached *when*.

        Raises:
            Suspension: Every branch of the execution waits.
        """
        runtime = self.runtime
        try:
            while when > runtime.now():
                await suspension.wait("", when)
        except Suspension:
            runtime.wake = when if runtime.wake is None else min(runtime.wake, when)
            raise

    async def yield_(self, frame: Frame) -> None:
        """Let others run, and end an execution whose time is over."""
        runtime = self.runtime
        execution = frame.execution.outermost
        frame.execution.count_work()
        if runtime.deadline is not None and isinstance(runtime.clock, VirtualClock):
            runtime.clock.work(execution.work_since_yield * STEP)
        execution.work_since_yield = 0
        if runtime.in_event_loop:
            await runtime.pause(0)
        frame.now = runtime.now()
        runtime.raise_if_expired()
        bound_memory(runtime, execution, frame.now, self.caller.limit)

    # Forks

    async def fan_out(self, frame: Frame, fan: FanOut) -> FanIn:
        """Run the children of *fan* and return their results.

        Raises:
            StateError: A child failed beyond the tolerated failures.
            BudgetOverrun: The budget of an outer state is exhausted.
        """
        runtime = self.runtime
        self.caller.count_effect(frame)
        frame.begin_fork()
        fork = Fork(frame, fan, runtime, self.timed_machine if fan.has_timeout else self.machine)
        runtime.forks += (fork,)
        try:
            if fork.at_once < MANY:
                return await fork.join(runtime.in_event_loop)
            with relaxed_gc:
                return await fork.join(runtime.in_event_loop)
        except BudgetOverrun as stop:
            self._cut_off(frame)
            if stop.frame is not frame or stop.visit != frame.visit:
                raise
            raise stop.error from None
        except StateError:
            self._cut_off(frame)
            raise
        finally:
            runtime.forks = tuple(each for each in runtime.forks if each is not fork)
            frame.stops_children = False
            frame.now = runtime.now()

    def _cut_off(self, frame: Frame) -> None:
        """Close the requests of the children of a failed fork."""
        self.runtime.forget_requests(f"{frame.key}[")
        self.runtime.persistence.execution.abandon_children(frame, self.runtime.now())

    # Approvals

    async def request(self, frame: Frame, question: RequestContent) -> Json:
        """Request a decision, from the handler of the run or later."""
        return await self.await_decision(
            frame, self.runtime.new_request(frame, frame.next_effect(), question)
        )

    async def await_decision(self, frame: Frame, request: ApprovalRequest) -> Json:
        """Return the decision on a request."""
        kind = BudgetApprovalProcess if request.kind == "budget" else ApprovalProcess
        asking = kind(self.caller, frame, request)
        if not self.runtime.middleware:
            return await asking.decision()

        async def ask(effect: Effect) -> Json:
            return await asking.decision()

        effect = effect_of(frame, "request", request.kind, request.view)
        return await self.runtime.within_middleware(frame, effect, ask, self.caller.limit)

    async def decide(self, frame: Frame, key: str, question: RequestContent) -> Json:
        """Request a decision about the whole execution.

        Args:
            frame: The machine whose call needs it.
            key: Key of the request within the execution.
            question: The question.
        """

        def new() -> ApprovalRequest:
            now, execution = self.runtime.now(), frame.execution
            return ApprovalRequest.make(frame.execution_id, key, *question, now, execution.redrives)

        async def ask(request: ApprovalRequest) -> Json:
            return await self.await_decision(frame, request)

        return await self.runtime.persistence.requests.decide(frame, key, ask, new)

    # Checkpoints and child executions

    @cached_property
    def names(self) -> CheckpointNames:
        """Names of the saved checkpoints of the execution."""
        return CheckpointNames((each.id, each.name) for each in self.runtime.checkpoints)

    async def checkpoint(self, frame: Frame, request: CheckpointRequest) -> Json:
        """Save the execution and return the data of the next state."""
        frame.next_effect()
        return (await self.save_checkpoint(frame, request)).data

    async def save_checkpoint(self, frame: Frame, request: CheckpointRequest) -> Checkpoint:
        """Return a new checkpoint after saving it in its storage.

        Raises:
            StateError: States.Runtime for an unknown storage, States.TaskFailed if it fails.
        """
        checkpoint = make_checkpoint(self.names, frame, request, self.runtime.now())
        self.names.take(checkpoint.id, checkpoint.name)  # others may be saved meanwhile
        try:
            await self._store(frame, checkpoint)
        except BaseException:  # raised again: the name is free
            self.names.free(checkpoint.id)
            raise
        self.runtime.checkpoints += (checkpoint,)
        frame.note(CREATED, checkpoint.record["checkpoint"])
        self.runtime.persistence.execution.put_checkpoint(checkpoint)
        return checkpoint

    async def _store(self, frame: Frame, checkpoint: Checkpoint) -> None:
        """Save a checkpoint in its storage, here or on a worker, unless it is the execution's."""
        if checkpoint.storage == OWN:
            return
        if self.runtime.has_service("checkpoints"):
            await self.call(frame, ServiceCall("checkpoints", checkpoint.to_json()))
        else:
            storages = self.runtime.current_services().storages
            store_checkpoint(storages, checkpoint.to_json())

    async def child(self, frame: Frame, child: ChildWorkflow) -> Json:
        """Run an execution of another workflow."""
        self.caller.count_effect(frame)
        if not self.runtime.middleware:
            return await run_child(self.caller, frame, child)

        async def run(effect: Effect) -> Json:
            return await run_child(self.caller, frame, child._replace(data=effect.payload))

        effect = effect_of(frame, "child", child.workflow, child.data)
        return await self.runtime.within_middleware(frame, effect, run, self.caller.limit)
