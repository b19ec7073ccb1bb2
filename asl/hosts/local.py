"""The in-memory host: one process, real or virtual time, nothing recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from asl.core.diagnostics import did_you_mean
from asl.core.errors import StateError
from asl.core.values import Json
from asl.core.work import STEP
from asl.engine.agent import Call, Find, Messenger
from asl.engine.events import CREATED, PAUSED
from asl.engine.execution import UNSPENT, Spent
from asl.engine.frame import Frame as EngineFrame
from asl.engine.interpreter import interpret
from asl.engine.records import ADVANCED, WHOLE
from asl.engine.result import Result
from asl.hosts.calling import CallingHost
from asl.hosts.clock import Clock, VirtualClock
from asl.hosts.fork import MANY, Fork
from asl.hosts.memory_bounds import bound_memory
from asl.hosts.services import Started
from asl.hosts.timed import interpret_in_time
from asl.program import Program
from asl.states.calls import Request, Target
from asl.states.decisions import Asked
from asl.states.errors import Exhausted, Expired, Suspended
from asl.states.forks import Fan, Joined
from asl.states.host import Child, Frame, Host, Question, Saving
from asl.states.objects import Bucket, ObjectFault

if TYPE_CHECKING:
    from asl.engine.awaited import Awaited
    from asl.engine.checkpoints import Checkpoint, Names
    from asl.engine.journal import Journal
    from asl.engine.ledger import Ledger
    from asl.hosts.agent_turn import AgentTurn
    from asl.hosts.broker import Broker
    from asl.hosts.children import Begun
    from asl.hosts.jobs import Ending, Job
    from asl.hosts.parking import Parking

__all__ = ["LocalHost"]


class LocalHost(CallingHost):
    """Performs the effects of one execution (protocol `asl.states.host.Host`)."""

    __slots__ = ("buckets", "checkpoints")
    buckets: Mapping[str, Bucket]
    checkpoints: tuple[Checkpoint, ...]
    """What the execution has saved."""
    depth = 0
    """How many executions have started one another down to this one."""
    machine = staticmethod(interpret)
    """Runs one machine."""
    timed_machine = staticmethod(interpret_in_time)
    """Runs one that may take only so long."""
    pending: tuple[tuple[str, Asked], ...] = ()
    """What people were asked and have not decided, each with the key of the effect that waits."""
    awaited: tuple[tuple[str, Awaited], ...] = ()
    """The same of tasks that are answered by their token while nobody runs."""

    def init(
        self,
        find: Find,
        clock: Clock,
        limit: int,
        buckets: Mapping[str, Bucket] = MappingProxyType({}),
        in_event_loop: bool = False,
    ) -> Self:
        """Set what every host has, and return it."""
        self.find = find
        self.clock = clock
        self.now = clock.now
        self.meter = None
        self.limit = limit
        self.buckets = buckets
        self.in_event_loop = in_event_loop
        self.deadline = None
        self.holds = False
        self.checkpoints = ()
        return self

    def started_by(self, host: LocalHost) -> None:
        """Serve an execution that one of *host* has started: share what belongs to the run."""
        self.first, self.depth = host.first or host, host.depth + 1
        self.heeds = True  # a fork that has failed may stand around that

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

    # Effects

    async def sleep_until(self, at: Frame, when: float) -> None:
        """Return when the clock has reached *when*."""
        self.count_effect(at)
        parking = None if self.services is None else self.services.parking
        if parking is not None and parking.is_long(when):
            await self._park(parking, when)
        if when > self.now():
            await self._sleep(when - self.now())
        else:  # endless retries without a delay stay cancellable, too
            await self.tick(at)
        at.now = max(when, self.now())

    async def _park(self, parking: Parking, when: float) -> None:
        """Return when the clock has reached *when*; raises Suspended once every branch waits."""
        try:
            while when > self.now():
                await parking.wait("", when)
        except Suspended:
            self.wake = when if self.wake is None else min(self.wake, when)
            raise

    async def tick(self, at: Frame) -> None:
        """Let others run, and end an execution whose time is over."""
        execution: Any = at.execution
        if self.deadline is not None and isinstance(self.clock, VirtualClock):
            self.clock.work(execution.busy * STEP)
        execution.busy = 0
        if self.in_event_loop:
            await self._sleep(0)
        at.now = self.now()
        self.insist_on_time()
        bound_memory(self, execution.whole, at.now)

    async def fork(self, at: Frame, fan: Fan) -> Joined:
        """Run the children of *fan* and join them."""
        self.count_effect(at)
        at.begin_fork()
        parking = None if self.services is None else self.services.parking
        run = self.timed_machine if fan.timed else self.machine
        fork = Fork(at, fan, self.now, run, self.is_over, parking)
        self.forks += (fork,)
        try:
            if fork.at_once < MANY:
                return await fork.join(self.in_event_loop)
            from asl.hosts.garbage import rarely

            with rarely:
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
            at.stops = False
            at.now = self.now()

    def cut_off(self, at: Frame) -> None:
        """Ask nobody any more for the children of a fork that has failed."""
        within = f"{at.key}["
        self.pending = tuple(each for each in self.pending if not each[0].startswith(within))
        self.awaited = tuple(each for each in self.awaited if not each[0].startswith(within))

    def is_over(self) -> bool:
        """Whether a failure, or the end of its time, ends a part of the execution."""
        failures = (fork.failure for fork in self.forks)
        own = (StateError, Exhausted, Expired)
        return self.expired or any(isinstance(each, own) for each in failures)

    def ends(self, stop: BaseException) -> bool:
        """Whether what flies out of a part of the execution is its end: neither that of the
        process nor a pause."""
        if isinstance(stop, StateError | Exhausted | Expired):
            return True
        return self.is_over() and not isinstance(stop, Suspended)

    async def ask(self, at: Frame, question: Question) -> Json:
        """Ask people: the handler of the run, or whoever answers later."""
        return await self.inquire(at, self.request(at, question))

    def request(self, at: Frame, question: Question) -> Asked:
        """Return a new request, which is an effect of the visit.

        It is made now, also where what led to it has happened long before: the time for an answer
        begins when people can see it.
        """
        return self.request_by(at, at.next_effect(), question)

    def request_by(self, at: Frame, key: str, question: Question) -> Asked:
        """Return a new request by its key."""
        from asl.states.decisions import Asked

        now = self.now()
        kind, body, plan = question
        if self.deadline is not None:  # when it has passed, nobody is asked any more
            plan = {**plan, "deadline": self.deadline - now}
        return Asked.make(at.execution_id, key, kind, body, plan, now, self._redrives(at))

    @staticmethod
    def _redrives(at: Any) -> int:
        """Return how often the execution of a machine went on after its end."""
        redrives: int = at.execution.redrives
        return redrives

    async def inquire(self, at: Frame, asked: Asked) -> Json:
        """Bring a request to its decision."""
        from asl.hosts.asking import Asking, QuietAsking

        kind = QuietAsking if asked.kind == "budget" else Asking
        return await kind(self, at, asked).decision()

    # The turns of agents that need consent to their tool calls

    def turn(self, call: Call) -> AgentTurn | None:
        """Return the turn that a call begins, None where no tool of it needs consent."""
        from asl.hosts.rights import needs_consent

        if call.place is not None or not needs_consent(self, call.at, call.tool_rules):
            return None
        from asl.hosts.agent_turn import AgentTurn, TurnPlace

        turn = AgentTurn(self, call)
        call.place = TurnPlace(turn, None)
        return turn

    def begin_turn(self, turn: AgentTurn) -> Mapping[str, int]:
        """Return how many events of a turn the history has, by what they are about."""
        return {}

    def pause_turn(self, turn: AgentTurn, noted: Mapping[str, int]) -> None:
        """Take note that a turn is paused; this host keeps nothing."""

    async def awaits_consent(self, turn: AgentTurn) -> bool:
        """Whether a turn was paused, and people have not decided since."""
        return False

    async def consent(self, turn: AgentTurn, key: str, question: Question) -> Json:
        """Ask people for consent to a tool call within the effect under way."""
        from asl.hosts.asking import ToolAsking

        return await ToolAsking(self, turn, self.request_by(turn.at, key, question)).decision()

    def withdraw(self, turn: AgentTurn) -> None:
        """Close the requests of a turn that has ended: nothing depends on them any more."""
        within = turn.key + "!"
        self.pending = tuple(each for each in self.pending if not each[0].startswith(within))

    def recorded(self, key: str) -> Json:
        """Return what was recorded within the effect under way; this host keeps nothing."""
        return None

    async def record(self, at: Frame, key: str, value: Json) -> None:
        """Record something within the effect under way; this host keeps nothing."""

    def told(self, asked: Asked) -> None:
        """Remember which notices were sent, and which of them failed; this host keeps nothing."""

    def recorded_decision(self, asked: Asked) -> Json:
        """Return the decision that people have recorded elsewhere; this host has no other place."""
        return None

    async def decide(self, at: Frame, key: str, question: Question) -> Json:
        """Ask people about the execution as a whole; *key* names the request among its own."""
        from asl.states.decisions import Asked

        asked = Asked.make(at.execution_id, key, *question, self.now(), self._redrives(at))
        return await self.inquire(at, asked)

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

    def wait_for(self, execution: Result, key: str) -> NoReturn:
        """Pause, as an execution does whose answer the effect of the *key* awaits."""
        self.pending += tuple((key, asked) for asked in execution.waits.asked)
        self.awaited += tuple((key, task) for task in execution.waits.tasks)
        raise Suspended

    async def start(self, at: Frame, child: Child) -> Json:
        """Run an execution of another workflow."""
        from asl.hosts.children import run_child

        self.count_effect(at)
        return await run_child(self, at, child)

    def begin_child(self, at: Frame, child: Child, find: Callable[[], Program]) -> Begun:
        """Return an execution of the workflow that *find* gives, which is kept nowhere."""
        from asl.hosts.children import Begun

        return Begun(find(), child.data)

    def begin_started(self, at: Frame, program: Program, child: Started) -> Begun | None:
        """Return an execution that a state starts by name, which is kept nowhere."""
        from asl.hosts.children import Begun

        return Begun(program, child.data)

    async def await_job(self, call: Call, job: Job) -> Ending:
        """Return the result of a job, or the answer to the token of its state."""
        from asl.hosts.jobs import await_job

        return await await_job(self, call, job)

    def detach(self, begun: Begun) -> None:
        """Let a job outlive the execution that has started it; here nothing does."""

    def counted(self, child: Child) -> Spent:
        """Return what of a child's spending was counted already: nothing."""
        return UNSPENT

    def count(self, child: Child, spent: Spent) -> None:
        """Remember what of a child's spending is counted; this host keeps nothing."""

    def keep_spending(self) -> None:
        """Remember what the execution has spent; this host keeps nothing."""

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

    async def resolve(self, at: Frame, targets: Sequence[Target]) -> None:
        """Find every agent; raises StateError("States.AgentNotFound") for the first that lacks."""
        self.count_effect(at)
        for target in targets:
            self.find(target)
