"""The runtime context of an execution: clock, deadline, event loop and services."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, Self, TypeAlias

from asl.core.diagnostics import did_you_mean
from asl.core.errors import StateError
from asl.core.values import Json
from asl.effects.clock import Clock
from asl.effects.driver import EventLoopRequest
from asl.effects.middleware import Effect, Middleware, Proceed, perform
from asl.effects.persistence import TRANSIENT, Persistence
from asl.effects.services import Services
from asl.effects.suspension import SuspensionMonitor
from asl.effects.task_tokens import AnswerRecorder, TokenWait
from asl.engine.agent import Agent, Call, Find
from asl.engine.checkpoints import Checkpoint
from asl.engine.events import Event
from asl.engine.exception_mapping import is_cancellation
from asl.engine.execution import Execution, Identity
from asl.engine.frame import Frame
from asl.engine.journal import Journal
from asl.engine.pending_callback import PendingCallback
from asl.engine.records import ADVANCED
from asl.engine.result import Result
from asl.engine.usage import ExecutionSpending
from asl.program import Program
from asl.states.approval_request import ApprovalRequest
from asl.states.effects import RequestContent
from asl.states.errors import BudgetOverrun, ExecutionTimeout, Suspension
from asl.states.map_data import Bucket, ObjectFault

if TYPE_CHECKING:
    import asyncio

__all__ = ["MAX_NESTED", "ExecuteFunction", "Listener", "OpenFork", "RuntimeContext", "find_bucket"]

Listener: TypeAlias = Callable[[Event], None]
"""Receives the events of an execution."""


COUNTED: Final = sys.version_info >= (3, 13)
"""Whether a task counts its cancellations without those undone: a failed task group leaves its own
among them until then."""
MAX_NESTED: Final = 16
"""Maximum depth of executions that start one another (Specification 1.2)."""


MONTH = 30 * 86_400.0
"""Seconds to a deadline beyond which no call of an agent is expected to reach it."""


class OpenFork(Protocol):
    """A fork whose children run."""

    @property
    def failure(self) -> BaseException | None:
        """Exception that ends the fork before its children, None without one."""
        ...

    @property
    def held_results(self) -> Iterable[Json]:
        """The results so far that are in memory."""
        ...

    def spread_soon(self) -> None:
        """Start more workers once the current one yields to the event loop."""
        ...


class ExecuteFunction(Protocol):
    """Runs an execution from start to end (`asl.effects.run.execute`)."""

    def __call__(
        self,
        program: Program,
        data: Json,
        find: Find,
        clock: Clock,
        identity: Identity,
        *,
        buckets: Mapping[str, Bucket],
        listener: Listener | None,
        in_event_loop: bool,
        services: Services,
        parent: RuntimeContext,
        within: Frame | None,
        counted: ExecutionSpending,
        begins: Callable[[Execution], object] | None,
        journal: Journal | None,
    ) -> Coroutine[Any, Any, Result]:
        """Return the result, also of a failed workflow."""
        ...


class RuntimeContext:
    """Time, event loop and end of one execution (`asl.states.effects.Runtime`).

    All performers of the execution's effects share it.
    """

    # As with an execution: slots for attributes of every instance.
    __slots__ = (
        "__dict__",
        "buckets",
        "checkpoints",
        "checks_end",
        "clock",
        "execute",
        "holds",
        "in_event_loop",
        "now",
    )  # fmt: skip
    now: Callable[[], float]
    """Returns the current time in epoch seconds."""
    execute: ExecuteFunction
    """Runs the executions that this one starts."""
    loop: asyncio.AbstractEventLoop
    """Event loop for requests from threads."""
    persistence: Persistence = TRANSIENT
    """The persistence of the execution."""
    services: Services | None = None
    """Services of the run; None until the first use."""
    depth = 0
    """Number of enclosing executions."""
    first: RuntimeContext | None = None
    """Context of the execution with which the run began, None for this one."""
    deadline: float | None = None
    """Epoch second at which the execution times out, None for never."""
    holds: bool
    """Whether resources have to be closed."""
    middleware: Sequence[Middleware] = ()
    """User code around each effect, outermost first."""
    expired = False
    checks_end: bool
    """Whether user code may have suppressed the end of a part of the execution."""
    forks: tuple[OpenFork, ...] = ()
    pending: tuple[tuple[str, ApprovalRequest], ...] = ()
    """Approval requests without a decision, each with the key of the waiting effect."""
    awaited: tuple[tuple[str, PendingCallback], ...] = ()
    """Callbacks without a process, each with the key of the waiting effect."""
    wake: float | None = None
    """Epoch second at which a suspended wait is over, None for none."""
    checkpoints: tuple[Checkpoint, ...]
    """Saved checkpoints."""
    threads: asyncio.Semaphore | None = None
    """Limits the plain functions that run concurrently."""
    _timer: asyncio.TimerHandle | None = None
    _closing: tuple[Agent, ...] = ()

    def init(
        self,
        execute: ExecuteFunction,
        clock: Clock,
        buckets: Mapping[str, Bucket] = MappingProxyType({}),
        in_event_loop: bool = False,
    ) -> Self:
        """Set the attributes of every instance and return it."""
        self.execute = execute
        self.clock = clock
        self.now = clock.now
        self.buckets = buckets
        self.in_event_loop = in_event_loop
        self.checks_end, self.holds, self.checkpoints = COUNTED, False, ()
        return self

    def start_within(self, outer: RuntimeContext) -> None:
        """Share the resources of the run with *outer*, which started this execution."""
        self.first, self.depth = outer.first or outer, outer.depth + 1
        self.checks_end = True  # an enclosing fork may have failed

    def current_services(self) -> Services:
        """Return the services of the run."""
        if self.services is None:
            # Threads may call concurrently: all get the first instance.
            services: Services = vars(self).setdefault("services", Services())
            return services
        return self.services

    @property
    def suspension(self) -> SuspensionMonitor | None:
        """Monitor of waiting branches; None if they wait in the process."""
        return None if self.services is None else self.services.suspension

    def open_token(
        self, call: Call, kept: AnswerRecorder | None = None
    ) -> AbstractContextManager[TokenWait]:
        """Keep the token of a call open while the block runs.

        Args:
            call: The call.
            kept: Records answers before their senders get a reply; None to record nothing.
        """
        return self.current_services().task_token_service.open_token(call, self.clock, kept)

    def bucket(self, name: str) -> Bucket:
        """Return a bound bucket.

        Raises:
            ObjectFault: There is none of this name.
        """
        return find_bucket(self.buckets, name)

    def has_service(self, name: str) -> bool:
        """Return whether another process performs requests of this service."""
        return self.services is not None and name in self.services.remote

    async def event_loop(self) -> asyncio.AbstractEventLoop:
        """Return the running event loop, requesting one from the driver if there is none."""
        if not self.in_event_loop:
            await EventLoopRequest()
            self.enter_event_loop()
        return _running_loop()

    def enter_event_loop(self) -> None:
        """Continue on the running event loop."""
        self.in_event_loop = True
        if self.deadline is not None:
            self.keep_time()
        for fork in self.forks:
            fork.spread_soon()
        self.persistence.execution.enter_event_loop()

    def keep_time(self) -> None:
        """Let the event loop end the execution at its deadline."""
        assert self.deadline is not None
        self.checks_end = self.checks_end or self.is_due_soon
        self._timer = _cancel_at(self.deadline - self.now(), self._expire)
        self.holds = True

    @property
    def is_due_soon(self) -> bool:
        """Return whether the deadline may interrupt agents."""
        return self.deadline is not None and self.deadline - self.now() < MONTH

    def _expire(self, task: asyncio.Task[Any]) -> None:
        self.expired = True
        task.cancel()

    def raise_if_expired(self) -> None:
        """Raise ExecutionTimeout if the time of the execution is over."""
        if self.deadline is not None and self.now() > self.deadline:
            raise ExecutionTimeout

    def raise_if_ended(self, frame: Frame) -> None:
        """Raise the end of this part of the execution that user code has suppressed.

        Call it after user code if `checks_end` is set. The code may have caught its cancellation
        and answered, or blocked the event loop beyond the deadline. Only on an event loop.
        """
        if self.deadline is not None and (self.expired or frame.now > self.deadline):
            raise ExecutionTimeout
        if frame.is_stopped() or (COUNTED and self.is_cancelled()):
            from asyncio import CancelledError

            raise CancelledError

    def is_cancelled(self) -> bool:
        """Return whether the running task was cancelled; only on an event loop."""
        from asyncio import current_task

        task = current_task()
        return task is not None and task.cancelling() > 0

    def is_over(self) -> bool:
        """Return whether a failure or the deadline ends a part of the execution."""
        failures = (fork.failure for fork in self.forks)
        own = (StateError, BudgetOverrun, ExecutionTimeout)
        return self.expired or any(isinstance(each, own) for each in failures)

    def ends(self, stop: BaseException) -> bool:
        """Return whether an exception ends a part of the execution, and neither the process nor by
        a pause.
        """
        if isinstance(stop, StateError | BudgetOverrun | ExecutionTimeout):
            return True
        return self.is_over() and not isinstance(stop, Suspension)

    async def close(self) -> None:
        """Close the resources of agents: processes, connections, threads."""
        if self._timer is not None:
            self._timer.cancel()
        self.persistence.execution.close()
        self.clock.real_begins()
        try:
            for agent in self._closing:
                await agent.close()
        finally:
            self.clock.real_ends()

    async def within_middleware(
        self, frame: Frame, effect: Effect, last: Proceed, limit: int
    ) -> Json:
        """Return the answer to an effect within the middleware of the run.

        Args:
            frame: The machine.
            effect: The effect.
            last: Performs the effect.
            limit: Maximum size of an answer in bytes.

        Raises:
            AslError: Middleware is at fault.
            StateError: Middleware refused the effect, or the effect failed.
        """
        await self.event_loop()

        async def proceed(effect: Effect) -> Json:
            try:
                self._catch_up(frame)
            except BaseException as end:  # the end of this part is no `Exception`; others propagate
                if is_cancellation(end):  # user code may catch it repeatedly
                    raise RuntimeError("this part of the execution has ended") from None
                raise
            return await last(effect)

        try:
            answer = await perform(self.middleware, effect, proceed, limit)
        except Exception:  # a timeout that has passed takes precedence
            self._catch_up(frame)
            raise
        self._catch_up(frame)
        return answer

    def _catch_up(self, frame: Frame) -> None:
        """Advance a machine to the current time; raise the end of its part of the execution, if
        any.
        """
        frame.now = max(frame.now, self.now())
        if self.checks_end:
            self.raise_if_ended(frame)

    async def pause(self, seconds: float) -> None:
        """Wait on the clock of the execution."""
        await self.event_loop()
        import asyncio

        await asyncio.sleep(seconds)

    def advance(
        self, frame: Frame, what: str, details: dict[str, Json], time: float | None = None
    ) -> None:
        """Record that a request was accepted.

        Args:
            frame: The machine.
            what: `Submitted` or `Started`.
            details: Details of the event.
            time: Time in epoch seconds, None for now.
        """
        frame.emit(
            (
                ADVANCED,
                self.now() if time is None else time,
                frame,
                frame.visit,
                frame.step,
                what,
                details,
            )
        )

    def new_request(self, frame: Frame, key: str, question: RequestContent) -> ApprovalRequest:
        """Return a new request with this key.

        Its time is now, even after a long recovery: the time for an answer starts when approvers
        can see the request.
        """
        now, execution = self.now(), frame.execution
        kind, body, plan = question
        if self.deadline is not None:  # after it no answer counts
            plan = {**plan, "deadline": self.deadline - now}
        return ApprovalRequest.make(
            frame.execution_id, key, kind, body, plan, now, execution.redrives
        )

    def wait_for(self, execution: Result, key: str) -> NoReturn:
        """Suspend the effect of *key* until *execution* continues.

        Raises:
            Suspension: Always.
        """
        self.pending += tuple((key, asked) for asked in execution.waits.asked)
        self.awaited += tuple((key, task) for task in execution.waits.tasks)
        raise Suspension

    def forget_requests(self, within: str) -> None:
        """Drop the pending requests whose keys begin with *within*."""
        self.pending = tuple(each for each in self.pending if not each[0].startswith(within))
        self.awaited = tuple(each for each in self.awaited if not each[0].startswith(within))

    def close_later(self, agent: Agent) -> None:
        """Register an agent to close at the end."""
        first = self.first or self
        if agent.has_resources and agent not in first._closing:
            first._closing += (agent,)
            first.holds = True


def find_bucket(buckets: Mapping[str, Bucket], name: str) -> Bucket:
    """Return the bucket of a name.

    Raises:
        ObjectFault: There is none.
    """
    if name not in buckets:
        hint = did_you_mean(name, buckets)
        raise ObjectFault(
            f"no bucket {name!r} is mapped{f' ({hint})' if hint else ''}: run with "
            f"buckets={{{name!r}: FOLDER}}, or --bucket {name}=FOLDER on the command line"
        )
    return buckets[name]


def _running_loop() -> asyncio.AbstractEventLoop:
    from asyncio import get_running_loop

    return get_running_loop()


def _cancel_at(delay: float, expire: Callable[[asyncio.Task[Any]], None]) -> asyncio.TimerHandle:
    from asyncio import current_task

    task = current_task()
    assert task is not None
    return _running_loop().call_later(max(0.0, delay), expire, task)
