"""What an execution runs on: its clock and deadline, the event loop, and what the run offers."""

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
from asl.states.effects import Question
from asl.states.errors import BudgetOverrun, ExecutionTimeout, Suspension
from asl.states.map_data import Bucket, ObjectFault

if TYPE_CHECKING:
    import asyncio

__all__ = ["MAX_NESTED", "Execute", "Listener", "OpenFork", "RuntimeContext"]

Listener: TypeAlias = Callable[[Event], None]
"""Takes the events of an execution."""


COUNTED: Final = sys.version_info >= (3, 13)
"""Whether the cancellations that a task counts are those not taken back: until then a
task group that has failed leaves its own among them."""
MAX_NESTED: Final = 16
"""How deep executions may start one another, in whichever way (Specification 1.2)."""


MONTH = 30 * 86_400.0
"""Seconds to a deadline within which no call of an agent lasts until then."""


class OpenFork(Protocol):
    """A fork whose children run."""

    @property
    def failure(self) -> BaseException | None:
        """What ends it before its children have ended."""
        ...

    @property
    def held(self) -> Iterable[Json]:
        """The results so far that are held in memory."""
        ...

    def spread_soon(self) -> None:
        """Start more workers once the present one gives up the event loop."""
        ...


class Execute(Protocol):
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
        """Return the result; a failed workflow is one, too."""
        ...


class RuntimeContext:
    """The time, the event loop and the ends of one execution (`asl.states.effects.Runtime`).

    It is shared by all that performs the effects of the execution.
    """

    # As with an execution: slots for what every one has.
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
    """The epoch second that it is."""
    execute: Execute
    """Runs the executions that this one starts."""
    loop: asyncio.AbstractEventLoop
    """On which those wait that threads ask for."""
    persistence: Persistence = TRANSIENT
    """The persistence of the execution."""
    services: Services | None = None
    """The services of the run; None until they are needed."""
    depth = 0
    """How many executions have started one another down to this one."""
    first: RuntimeContext | None = None
    """That of the execution with which the run began, None for that one itself."""
    deadline: float | None = None
    """The epoch second at which the execution times out, None for never."""
    holds: bool
    """Whether there is anything to close."""
    middleware: Sequence[Middleware] = ()
    """Code of the user around each effect, the outermost first."""
    expired = False
    checks_end: bool
    """Whether foreign code may have suppressed the end of a part of the execution."""
    forks: tuple[OpenFork, ...] = ()
    pending: tuple[tuple[str, ApprovalRequest], ...] = ()
    """What people were asked and have not decided, each with the key of the effect that waits."""
    awaited: tuple[tuple[str, PendingCallback], ...] = ()
    """The same for tasks that are answered by token without a process."""
    wake: float | None = None
    """The epoch second at which a suspended wait of the execution is over, None for none."""
    checkpoints: tuple[Checkpoint, ...]
    """What the execution has saved."""
    threads: asyncio.Semaphore | None = None
    """Limits the plain functions that run at the same time."""
    _timer: asyncio.TimerHandle | None = None
    _closing: tuple[Agent, ...] = ()

    def init(
        self,
        execute: Execute,
        clock: Clock,
        buckets: Mapping[str, Bucket] = MappingProxyType({}),
        in_event_loop: bool = False,
    ) -> Self:
        """Set what each one has, and return it."""
        self.execute = execute
        self.clock = clock
        self.now = clock.now
        self.buckets = buckets
        self.in_event_loop = in_event_loop
        self.checks_end, self.holds, self.checkpoints = COUNTED, False, ()
        return self

    def start_within(self, outer: RuntimeContext) -> None:
        """Serve an execution that one of *outer* has started: share what belongs to the run."""
        self.first, self.depth = outer.first or outer, outer.depth + 1
        self.checks_end = True  # a fork that has failed may stand around that

    def serving(self) -> Services:
        """Return what the run offers to its states."""
        if self.services is None:
            # Threads may ask at the same time: what is made first is for all.
            services: Services = vars(self).setdefault("services", Services())
            return services
        return self.services

    @property
    def suspension(self) -> SuspensionMonitor | None:
        """Where branches wait that need no process, None where they wait in the process."""
        return None if self.services is None else self.services.suspension

    def waiting(
        self, call: Call, kept: AnswerRecorder | None = None
    ) -> AbstractContextManager[TokenWait]:
        """Keep the token of a call open at the desk of the run while the block runs.

        What comes is kept by *kept* before anybody is thanked for it.
        """
        return self.serving().desk.waiting(call, self.clock, kept)

    def bucket(self, name: str) -> Bucket:
        """Return the bucket that the user has mapped; raises ObjectFault if there is none."""
        if name not in self.buckets:
            hint = did_you_mean(name, self.buckets)
            raise ObjectFault(
                f"no bucket {name!r} is mapped{f' ({hint})' if hint else ''}: run with "
                f"buckets={{{name!r}: FOLDER}}, or --bucket {name}=FOLDER on the command line"
            )
        return self.buckets[name]

    async def event_loop(self) -> asyncio.AbstractEventLoop:
        """Return the running event loop, asking the driver for one at the first need."""
        if not self.in_event_loop:
            await EventLoopRequest()
            self.enter_event_loop()
        return _running_loop()

    def enter_event_loop(self) -> None:
        """Go on under the event loop that is running now."""
        self.in_event_loop = True
        if self.deadline is not None:
            self.keep_time()
        for fork in self.forks:
            fork.spread_soon()
        self.persistence.execution.enter_event_loop()

    def keep_time(self) -> None:
        """End the execution at its deadline, from now on by the event loop."""
        assert self.deadline is not None
        self.checks_end = self.checks_end or self.is_due_soon
        self._timer = _cancel_at(self.deadline - self.now(), self._expire)
        self.holds = True

    @property
    def is_due_soon(self) -> bool:
        """Whether agents may have to be interrupted for the deadline."""
        return self.deadline is not None and self.deadline - self.now() < MONTH

    def _expire(self, task: asyncio.Task[Any]) -> None:
        self.expired = True
        task.cancel()

    def raise_if_expired(self) -> None:
        """Raise ExecutionTimeout if the time of the execution is over."""
        if self.deadline is not None and self.now() > self.deadline:
            raise ExecutionTimeout

    def raise_if_ended(self, at: Frame) -> None:
        """Raise what ends this part of the execution, though foreign code has kept it back.

        To be asked wherever such code has run and the execution `heeds` anything.
        Code may catch its cancellation, and answer; or hold up the event loop for so long that the
        deadline could not come. Only on an event loop.
        """
        if self.deadline is not None and (self.expired or at.now > self.deadline):
            raise ExecutionTimeout
        if at.is_stopped() or (COUNTED and self.is_cancelled()):
            from asyncio import CancelledError

            raise CancelledError

    def is_cancelled(self) -> bool:
        """Return whether the running task was cancelled; only on an event loop."""
        from asyncio import current_task

        task = current_task()
        return task is not None and task.cancelling() > 0

    def is_over(self) -> bool:
        """Whether a failure, or the end of its time, ends a part of the execution."""
        failures = (fork.failure for fork in self.forks)
        own = (StateError, BudgetOverrun, ExecutionTimeout)
        return self.expired or any(isinstance(each, own) for each in failures)

    def ends(self, stop: BaseException) -> bool:
        """Whether what flies out of a part of the execution is its end: neither that of the
        process nor a pause."""
        if isinstance(stop, StateError | BudgetOverrun | ExecutionTimeout):
            return True
        return self.is_over() and not isinstance(stop, Suspension)

    async def close(self) -> None:
        """End what agents still hold: processes, connections, threads."""
        if self._timer is not None:
            self._timer.cancel()
        self.persistence.execution.close()
        self.clock.real_begins()
        try:
            for agent in self._closing:
                await agent.close()
        finally:
            self.clock.real_ends()

    async def within_middleware(self, at: Frame, effect: Effect, last: Proceed, limit: int) -> Json:
        """Return the answer to an effect that *last* performs within the middleware of the run.

        Raises:
            AslError: Middleware is at fault.
            StateError: It refused the effect, or the effect failed.
        """
        await self.event_loop()

        async def proceed(effect: Effect) -> Json:
            try:
                self._catch_up(at)
            except BaseException as end:  # what ends this part is no `Exception`; the rest flies on
                if is_cancellation(end):  # code that catches it may do so without end
                    raise RuntimeError("this part of the execution has ended") from None
                raise
            return await last(effect)

        try:
            answer = await perform(self.middleware, effect, proceed, limit)
        except Exception:  # a timeout that has passed by then comes before this failure
            self._catch_up(at)
            raise
        self._catch_up(at)
        return answer

    def _catch_up(self, at: Frame) -> None:
        """Let a machine be at the present; raises what ends this part of the execution by then."""
        at.now = max(at.now, self.now())
        if self.checks_end:
            self.raise_if_ended(at)

    async def pause(self, seconds: float) -> None:
        """Let time pass on the clock of the execution."""
        await self.event_loop()
        import asyncio

        await asyncio.sleep(seconds)

    def advance(
        self, at: Frame, what: str, details: dict[str, Json], time: float | None = None
    ) -> None:
        """Record that a request was taken, now or at another *time*."""
        at.emit(
            (ADVANCED, self.now() if time is None else time, at, at.visit, at.step, what, details)
        )

    def new_request(self, at: Frame, key: str, question: Question) -> ApprovalRequest:
        """Return a new request by its key.

        It is made now, also where what led to it has happened long before: the time for an answer
        begins when people can see it.
        """
        now, execution = self.now(), at.execution
        kind, body, plan = question
        if self.deadline is not None:  # when it has passed, no answer counts
            plan = {**plan, "deadline": self.deadline - now}
        return ApprovalRequest.make(at.execution_id, key, kind, body, plan, now, execution.redrives)

    def wait_for(self, execution: Result, key: str) -> NoReturn:
        """Pause until *execution*, which the effect of *key* awaits, goes on.

        Raises:
            Suspension: Always.
        """
        self.pending += tuple((key, asked) for asked in execution.waits.asked)
        self.awaited += tuple((key, task) for task in execution.waits.tasks)
        raise Suspension

    def forget_requests(self, within: str) -> None:
        """Drop the pending requests whose keys begin so."""
        self.pending = tuple(each for each in self.pending if not each[0].startswith(within))
        self.awaited = tuple(each for each in self.awaited if not each[0].startswith(within))

    def close_later(self, agent: Agent) -> None:
        """Remember what has to be closed."""
        first = self.first or self
        if agent.holds and agent not in first._closing:
            first._closing += (agent,)
            first.holds = True


def _running_loop() -> asyncio.AbstractEventLoop:
    from asyncio import get_running_loop

    return get_running_loop()


def _cancel_at(delay: float, expire: Callable[[asyncio.Task[Any]], None]) -> asyncio.TimerHandle:
    from asyncio import current_task

    task = current_task()
    assert task is not None
    return _running_loop().call_later(max(0.0, delay), expire, task)
