"""The in-memory host: one process, real or virtual time, nothing recorded.

An execution starts on no event loop at all. The first effect that has to wait asks for one, and
the very same coroutine goes on there; so a run that never waits needs none and imports none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType, coroutine
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

from asl.core.diagnostics import did_you_mean
from asl.core.errors import NotJson, StateError
from asl.core.values import Json, handed_over, received
from asl.engine.agent import Agent, Call, Find, Messenger
from asl.engine.events import CREATED, PAUSED
from asl.engine.interpreter import interpret
from asl.engine.records import ADVANCED, WHOLE
from asl.hosts.clock import Clock
from asl.hosts.fork import Fork
from asl.states.host import (
    Child,
    Exhausted,
    Expired,
    Fan,
    Frame,
    HeartbeatMissed,
    Host,
    Joined,
    Options,
    Question,
    Raised,
    Reported,
    Request,
    Saving,
    Suspended,
    Target,
)
from asl.states.objects import Bucket, ObjectFault

if TYPE_CHECKING:
    import asyncio

    from asl.engine.awaited import Awaited
    from asl.engine.checkpoints import Checkpoint, Names
    from asl.engine.execution import Spent, Used
    from asl.engine.frame import Frame as EngineFrame
    from asl.engine.journal import Journal
    from asl.engine.ledger import Ledger
    from asl.engine.result import Result
    from asl.hosts.broker import Broker
    from asl.hosts.children import Begun
    from asl.hosts.meter import Meter
    from asl.hosts.services import Services, Started
    from asl.hosts.tokens import TaskTokens
    from asl.program import Program, Step
    from asl.states.decisions import Asked

__all__ = ["LocalHost", "bounded_text", "described", "drive"]

USAGE_KEYS = frozenset({"_tokens", "_usage", "_cost"})
"""The keys under which a raw result reports what it has used (Specification 7)."""
REPORTED = frozenset({"progress", "stream"})
"""What a host is told of a call on which the agent may report."""
MAX_CAUSE = 32_768
"""Characters of a cause, as with AWS."""
MAX_THREADS = 64
"""Plain functions that may run at the same time, each in a thread of its own."""

Account: TypeAlias = Callable[[str, Json], object]
"""Counts the usage that a raw result reports, by the name of the state."""
T = TypeVar("T")


class _EventLoopWanted:
    """What a coroutine yields to whoever drives it when it cannot go on without an event loop."""

    def __await__(self) -> Generator[Any, None, None]:
        yield self


def drive(work: Coroutine[Any, Any, T], clock: Clock) -> T:
    """Run a coroutine to its end, on an event loop only from the point where it asks for one."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # a coroutine's result is untyped here
    import asyncio

    found: list[T] = []
    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        runner.run(_resumed(work, found))
    return found[0]


async def _resumed(work: Coroutine[Any, Any, T], found: list[T]) -> None:
    """Come to the end beside the task: Python makes a text of a task's result, and drops it."""
    found.append(await _rest_of(work))


@coroutine
def _rest_of(work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    return (yield from work.__await__())


class LocalHost:
    """Performs the effects of one execution (protocol `asl.states.host.Host`)."""

    in_event_loop = False
    loop: asyncio.AbstractEventLoop
    """On which those wait that threads ask for."""
    deadline: float | None = None
    """The epoch second at which the execution times out, None for never."""
    expired = False
    _threads: asyncio.Semaphore | None = None
    _timer: asyncio.TimerHandle | None = None
    _closing: tuple[Agent, ...] = ()
    holds = False
    """Whether there is anything to close."""
    forks: tuple[Fork, ...] = ()
    depth = 0
    """How many executions have started one another down to this one."""
    machine = staticmethod(interpret)
    """Runs one machine."""
    services: Services | None = None
    """What the run offers to its states beside agents, if anybody has asked for it."""
    meter: Meter | None
    """Watches over what agents spend, where anything limits it."""
    pending: tuple[Asked, ...] = ()
    """What people were asked and have not decided."""
    awaited: tuple[Awaited, ...] = ()
    """The same of tasks that are answered by their token while nobody runs."""
    checkpoints: tuple[Checkpoint, ...] = ()
    """What the execution has saved."""
    first: LocalHost | None = None
    """The host of the execution with which the run began, None for that one itself."""

    def __init__(
        self,
        find: Find,
        clock: Clock,
        limit: int,
        buckets: Mapping[str, Bucket] = MappingProxyType({}),
    ) -> None:
        self.find = find
        self.clock = clock
        self.now = clock.now
        self.meter = None
        self.limit = limit
        """Bytes that an agent's answer may have."""
        self.buckets = buckets

    def started_by(self, host: LocalHost) -> None:
        """Serve an execution that one of *host* has started: share what belongs to the run."""
        self.first, self.depth = host.first or host, host.depth + 1

    # Life

    def watch(self, ledger: Ledger) -> None:
        """Hold the calls of agents against a ledger."""
        from asl.hosts.meter import Meter

        self.meter = Meter(self, ledger)

    def wait_with(self, other: Host) -> None:
        """Let calls wait for those of another execution as well, in one queue."""
        assert self.meter is not None
        assert isinstance(other, LocalHost)
        assert other.meter is not None
        self.meter.waiting = other.meter.waiting

    def keep(self, journal: Journal, frame: EngineFrame) -> None:
        """Keep the execution of a top machine; this host keeps nothing."""

    def leave(self, frame: EngineFrame, failed: bool) -> None:
        """Take note of a top machine that ended without success; this host keeps nothing."""

    def tell(self, frame: EngineFrame, event: str) -> None:
        """Put an event of the whole execution into the history."""
        frame.emit((WHOLE, self.now(), frame, 0, None, event, {}))

    def suspend(self, frame: EngineFrame) -> None:
        """Say that the execution is paused."""
        self.tell(frame, PAUSED)

    async def event_loop(self) -> asyncio.AbstractEventLoop:
        """Return the running event loop, asking the driver for one at the first need."""
        if not self.in_event_loop:
            await _EventLoopWanted()
            self.enter_event_loop()
        return _running_loop()

    def enter_event_loop(self) -> None:
        """Go on under the event loop that is running now."""
        self.in_event_loop = True
        if self.deadline is not None:
            self.keep_time()
        for fork in self.forks:
            fork.spread_soon()

    def keep_time(self) -> None:
        """End the execution at its deadline, from now on by the event loop."""
        assert self.deadline is not None
        self._timer = _cancel_at(self.deadline - self.now(), self._expire)
        self.holds = True

    def _expire(self, task: asyncio.Task[Any]) -> None:
        self.expired = True
        task.cancel()

    async def close(self) -> None:
        """End what agents still hold: processes, connections, threads."""
        if self._timer is not None:
            self._timer.cancel()
        self.clock.real_work += 1
        try:
            for agent in self._closing:
                await agent.close()
        finally:
            self.clock.real_work -= 1

    # Effects

    async def sleep_until(self, at: Frame, when: float) -> None:
        """Return when the clock has reached *when*."""
        if when > self.now():
            await self._sleep(when - self.now())
        else:  # endless retries without a delay stay cancellable, too
            await self.tick(at)
        at.now = max(when, self.now())

    async def _sleep(self, seconds: float) -> None:
        await self.event_loop()
        import asyncio

        await asyncio.sleep(seconds)

    async def pause(self, seconds: float) -> None:
        """Let time pass within an effect."""
        await self._sleep(seconds)

    async def tick(self, at: Frame) -> None:
        """Let others run, and end an execution whose time is over."""
        if self.in_event_loop:
            await self._sleep(0)
        at.now = self.now()
        if self.deadline is not None and at.now > self.deadline:
            raise Expired

    async def fork(self, at: Frame, fan: Fan) -> Joined:
        """Run the children of *fan* and join them."""
        at.begin_fork()
        fork = Fork(at, fan, self.now, self.machine, self.is_over)
        self.forks += (fork,)
        try:
            return await fork.join(self.in_event_loop)
        except Exhausted as stop:
            self.cut_off(at)
            if stop.frame is not at or stop.visit != at.visit:
                raise
            raise stop.error from None
        except StateError:
            self.cut_off(at)
            raise
        finally:
            self.forks = tuple(each for each in self.forks if each is not fork)
            at.now = self.now()

    def cut_off(self, at: Frame) -> None:
        """Ask nobody any more for the children of a fork that has failed."""
        within = f"{at.key}["
        self.pending = tuple(each for each in self.pending if not each.key.startswith(within))
        self.awaited = tuple(each for each in self.awaited if not each.key.startswith(within))

    def is_over(self) -> bool:
        """Whether a failure, or the end of its time, ends a part of the execution."""
        failures = (fork.failure for fork in self.forks)
        own = (StateError, Exhausted, Expired)
        return self.expired or any(isinstance(each, own) for each in failures)

    async def ask(self, at: Frame, question: Question) -> Json:
        """Ask people: the handler of the run, or whoever answers later."""
        return await self.inquire(at, self.request(at, question))

    def request(self, at: Frame, question: Question) -> Asked:
        """Return a new request, which is an effect of the visit."""
        from asl.states.decisions import Asked

        key = at.next_effect()
        kind, body, plan = question
        if self.deadline is not None:  # when it has passed, nobody is asked any more
            plan = {**plan, "deadline": self.deadline - at.now}
        return Asked(f"{at.execution_id}:{key}", key, kind, body, plan, at.now)

    async def inquire(self, at: Frame, asked: Asked) -> Json:
        """Bring a request to its decision."""
        from asl.hosts.asking import Asking

        return await Asking(self, at, asked).decision()

    def told(self, asked: Asked) -> None:
        """Remember which notices were sent, and which of them failed; this host keeps nothing."""

    async def decide(self, at: Frame, key: str, question: Question) -> Json:
        """Ask people about the execution as a whole; *key* names the request among its own."""
        from asl.hosts.meter import BudgetAsking
        from asl.states.decisions import Asked

        asked = Asked(f"{at.execution_id}:{key}", key, *question, self.now())
        return await BudgetAsking(self, at, asked).decision()

    def unshown(self, at: Frame, said: str | None) -> None:
        """Remember what an agent has said that may not be shown yet."""
        at.said = said

    def progressed(self, at: Frame) -> None:
        """Take note of the progress of a call; this host keeps nothing."""

    def used(self, at: Frame, used: Used) -> None:
        """Take note of what a call has used; this host keeps nothing."""

    @cached_property
    def names(self) -> Names:
        """The names of what the execution has saved."""
        from asl.engine.checkpoints import Names

        return Names((each.id, each.name) for each in self.checkpoints)

    async def save(self, at: Frame, saving: Saving) -> Json:
        """Save the execution and return the data to go on with."""
        at.next_effect()
        return self.saved(at, saving).data

    def saved(self, at: Any, saving: Saving) -> Checkpoint:
        """Return a new checkpoint, which is kept."""
        from asl.hosts.saving import saved

        checkpoint = saved(self, at, saving)
        self.checkpoints += (checkpoint,)
        at.note(CREATED, checkpoint.record["checkpoint"])
        return checkpoint

    def wait_for(self, execution: Result) -> NoReturn:
        """Pause, as an execution does whose answer is awaited."""
        self.pending += tuple(execution.asked)
        self.awaited += tuple(execution.tasks)
        raise Suspended

    async def start(self, at: Frame, child: Child) -> Json:
        """Run an execution of another workflow."""
        from asl.hosts.children import run_child

        return await run_child(self, at, child)

    def begin_child(self, at: Frame, child: Child, find: Callable[[], Program]) -> Begun:
        """Return an execution of the workflow that *find* gives, which is kept nowhere."""
        from asl.hosts.children import Begun

        return Begun(find(), child.data)

    def begin_started(self, at: Frame, program: Program, child: Started) -> Begun | None:
        """Return an execution that a state starts by name, which is kept nowhere."""
        from asl.hosts.children import Begun

        return Begun(program, child.data)

    def counted(self, child: Child) -> Spent | None:
        """Return what of a child's spending was counted already: nothing."""
        return None

    def count(self, child: Child, spent: Spent) -> None:
        """Remember what of a child's spending is counted; this host keeps nothing."""

    def bucket(self, name: str) -> Bucket:
        """Return the bucket that the user has mapped."""
        if name not in self.buckets:
            hint = did_you_mean(name, self.buckets)
            raise ObjectFault(
                f"no bucket {name!r} is mapped{f' ({hint})' if hint else ''}: run with "
                f"buckets={{{name!r}: FOLDER}}, or --bucket {name}=FOLDER on the command line"
            )
        return self.buckets[name]

    async def serve(self, at: Frame, service: str, payload: Json) -> Json:
        """Ask what the run itself offers."""
        target = Target("service", service, at.step.name, aside=True)
        agent = self.serving().service(service)
        return await self.invoke(at, target, payload, None, agent)

    def remember(self, at: Frame, request: Json) -> Json:
        """Carry out at once what an agent asks of the memory."""
        return self.serving().remembering.do(at, request, self.now())

    async def receive(self, at: Frame, request: Request) -> Json:
        """Hand a request over and wait for its answer.

        What answers at once (a mock, the worker of an activity, a handler that does the waiting of
        a `.sync` itself) has taken the request when it is called.
        """
        from asl.hosts.services import Service

        target = request.target
        agent = self.find(target)
        if isinstance(agent, Messenger):
            from asl.hosts.callbacks import Callback

            self._keep(agent.agent)
            agent = Callback(self, agent.agent)
        elif not isinstance(agent, Service):
            self.advance(at, "Started" if target.is_activity else "Submitted", {})
        return await LocalHost.invoke(self, at, target, request.payload, request.options, agent)

    def advance(
        self, at: Frame, what: str, details: dict[str, Json], time: float | None = None
    ) -> None:
        """Record that a request was taken, now or at another *time*."""
        at.emit(
            (ADVANCED, self.now() if time is None else time, at, at.visit, at.step, what, details)
        )

    def broker(self, call: Call) -> Broker:
        """Return the tools of a call."""
        from asl.hosts.broker import Broker

        agent = call.agent
        return Broker(self, call, agent is not None and (agent.real or agent.blocking))

    def serving(self) -> Services:
        """Return what the run offers to its states."""
        if self.services is None:
            from asl.hosts.services import Services

            self.services = Services()
        return self.services

    async def resolve(self, at: Frame, targets: Sequence[Target]) -> None:
        """Find every agent; raises StateError("States.AgentNotFound") for the first that lacks."""
        for target in targets:
            self.find(target)

    def _desk(self) -> TaskTokens:
        return self.serving().desk

    async def invoke(
        self,
        at: Frame,
        target: Target,
        payload: Json,
        options: Options | None = None,
        agent: Agent | None = None,
        account: Account | None = None,
    ) -> Json:
        """Call an agent; whatever it raises becomes an error of the state.

        What the agent gets and what it returns are copies: neither side can change the other's.
        *agent* is the one to call, otherwise it is found. *account* counts the usage that it
        reports, by the name of the state; otherwise the machine does.
        """
        if agent is None:
            if self.meter is not None and target.kind == "agent":
                return await self.meter.call(at, target, payload, options)
            agent = self.find(target)
        own = handed_over(payload, self.limit, target.label)
        try:
            if options is None or REPORTED.isdisjoint(options.blocks):
                answer = await self._ask(agent, own, Call(at, target, options), options)
            else:
                call = Call(at, target, options)
                answer = await self._followed(call, options)(agent, own, call, options)
        except BaseException as error:
            if _is_fault(error) and not _is_foreign(agent):
                raise
            raise self.blamed(at, target, error, account) from error
        return self.answered(at, target, answer, account)

    def begin(self, at: Frame, step: Step, data: Json) -> Awaitable[Json] | None:
        """Call an agent that needs nothing but its parameters, where nothing limits the call."""
        if self.meter is not None or not self.in_event_loop:
            return None
        target = step.call
        direct = self.find(target).direct
        if direct is None:
            return None
        payload = step.payload(data, at)  # type: ignore[misc]  # where there is a call, it is there
        return direct(handed_over(payload, self.limit, target.label))

    def answered(
        self, at: Frame, target: Target, answer: Json, account: Account | None = None
    ) -> Json:
        """Return a copy of what an agent answered, and count the usage that it reports."""
        at.now = self.now()
        try:
            result = received(answer, self.limit, target.label)
        except (StateError, NotJson) as error:
            raise _named(error, target) from error
        if type(result) is dict and not USAGE_KEYS.isdisjoint(result):
            (account or at.account)(target.state, result)
        return result

    def blamed(
        self, at: Frame, target: Target, error: BaseException, account: Account | None = None
    ) -> StateError:
        """Return what an exception of an agent is to its state; raises one that is not its own."""
        at.now = self.now()
        if isinstance(error, StateError | NotJson):
            named = _named(error, target)
            if named.usage is not None:
                (account or at.account)(target.state, named.usage)
            return named
        # The agent is foreign code: anything it raises is its failure.
        if _is_fault(error):
            return Raised("States.TaskFailed", described(error))
        # A cancellation that nobody asked for is, too; all else flies on.
        if self._cancelled_itself(error):
            return Raised("States.TaskFailed", "the agent cancelled itself")
        raise error

    def _cancelled_itself(self, error: BaseException) -> bool:
        """Whether an agent raised a cancellation that nobody had asked for."""
        if type(error).__name__ != "CancelledError":
            return False
        if not self.in_event_loop:
            return True
        from asyncio import current_task

        task = current_task()
        return task is not None and not task.cancelling()

    async def _ask(self, agent: Agent, payload: Json, call: Call, options: Options | None) -> Json:
        if agent.holds:
            self._keep(agent)
        try:
            if options is not None and options.limited:
                return await self._in_time(agent, payload, call, options)
            call.attach(sleep=self._sleep, tokens=self._desk)
            return await self.reach(agent, payload, call)
        finally:
            call.end()

    def _followed(self, call: Call, options: Options) -> Callable[..., Awaitable[Json]]:
        """Return what gets an answer and passes on what is reported before it."""
        answer: Callable[..., Awaitable[Json]] = self._ask
        if "progress" in options.blocks:
            from asl.hosts.reporting import Reports

            answer = partial(Reports(self, call, options.blocks["progress"]).follow, answer)
        if "stream" in options.blocks:
            from asl.hosts.streaming import Stream

            answer = partial(Stream(self, call, options.blocks["stream"]).follow, answer)
        return answer

    def _keep(self, agent: Agent) -> None:
        """Remember what has to be closed."""
        first = self.first or self
        if agent.holds and agent not in first._closing:
            first._closing += (agent,)
            first.holds = True

    async def reach(self, agent: Agent, payload: Json, call: Call) -> Json:
        """Have an agent answer, in the way that it needs."""
        call.agent = agent
        if agent.blocking:
            asks = agent.takes_call and self.services is not None and bool(self.services.boxes)
            if not (self.in_event_loop or self.forks or self.deadline or asks):
                return agent.answer(payload, call)
            return await self._in_thread(agent, payload, call)
        if agent.needs_loop and not self.in_event_loop:
            await self.event_loop()
        if not agent.real:
            return await agent.answer(payload, call)
        self.clock.real_work += 1
        try:
            return await agent.answer(payload, call)
        finally:
            self.clock.real_work -= 1

    async def _in_thread(self, agent: Agent, payload: Json, call: Call) -> Json:
        loop = self.loop = await self.event_loop()
        from asyncio import Semaphore

        from asl.hosts.threads import run_in_thread

        first = self.first or self
        if first._threads is None:
            first._threads = Semaphore(MAX_THREADS)
        async with first._threads:
            self.clock.real_work += 1
            try:
                return await run_in_thread(loop, agent.answer, payload, call)
            finally:
                self.clock.real_work -= 1

    async def _in_time(self, agent: Agent, payload: Json, call: Call, options: Options) -> Json:
        """Call with the limits of the state; they count from the agent's start."""
        loop = await self.event_loop()
        from asyncio import timeout

        waiting = True
        # What the run offers itself needs no sign of life, until a worker takes a task (AWS).
        first_beat = options.heartbeat if _is_foreign(agent) else None
        if options.began is None:  # further calls of the same attempt have what is left
            options.began = self.now()
        try:
            async with timeout(options.left(self.now())) as whole, timeout(first_beat) as pulse:

                def renew() -> None:
                    if waiting and options.heartbeat is not None and not pulse.expired():
                        pulse.reschedule(loop.time() + options.heartbeat)

                call.attach(
                    sleep=self._sleep,
                    tokens=self._desk,
                    beat=lambda: loop.call_soon_threadsafe(renew),
                )
                try:
                    return await self.reach(agent, payload, call)
                finally:
                    waiting = False
        except TimeoutError:
            if whole.expired():
                cause = options.cause("answer", options.timeout)
                raise Raised("States.Timeout", cause) from None
            if pulse.expired():
                raise HeartbeatMissed(options.cause("sign of life", options.heartbeat)) from None
            raise


def _is_fault(error: BaseException) -> bool:
    """Whether an exception is a fault of the code that raised it."""
    return isinstance(error, Exception | SystemExit) and not isinstance(error, StateError | NotJson)


def _is_foreign(agent: Agent) -> bool:
    from asl.hosts.services import Service

    return not isinstance(agent, Service)


def _running_loop() -> asyncio.AbstractEventLoop:
    from asyncio import get_running_loop

    return get_running_loop()


def _cancel_at(delay: float, expire: Callable[[asyncio.Task[Any]], None]) -> asyncio.TimerHandle:
    from asyncio import current_task

    task = current_task()
    assert task is not None
    return _running_loop().call_later(max(0.0, delay), expire, task)


def _named(error: StateError | NotJson, target: Target) -> StateError:
    """Give an agent's error a name and a cause that are texts of a bearable length."""
    if isinstance(error, NotJson):
        return Raised("States.TaskFailed", _text(f"{target.name} returned no JSON: {error}"))
    if isinstance(error, HeartbeatMissed):
        return error
    if target.by_token and error.name != "States.Timeout":
        return Reported(_text(error.name), _text(error.cause))
    name = "States.TaskFailed" if error.name is None else _text(error.name)
    named = Raised(name, _text(error.cause))
    named.usage = error.usage
    return named


def _text(value: object) -> str | None:
    if value is None:
        return None
    return bounded_text(value if isinstance(value, str) else repr(value))


def bounded_text(text: str) -> str:
    """Return a text as a cause may be."""
    return text[:MAX_CAUSE].encode("utf-8", "replace").decode()


def described(error: BaseException) -> str:
    """Return what an exception of foreign code says, in a bearable length."""
    name = type(error).__name__
    try:
        said = str(error)
    except Exception:  # foreign code again: even the text of its error may fail
        return name
    return bounded_text(f"{name}: {said}" if said else name)
