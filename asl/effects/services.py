"""What a run offers to its own states: task tokens to answer, activities, workflows to start."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from asl.core.errors import StateError
from asl.core.once import once
from asl.core.values import Json
from asl.effects.middleware import Middleware
from asl.engine.agent import Agent, Call, Find, Tokens
from asl.engine.checkpoints import Storage
from asl.engine.memory import Memory
from asl.engine.pools import SharedBudgets
from asl.engine.result import Result
from asl.engine.tools import Offers
from asl.engine.usage import Price
from asl.program import Program
from asl.states.calls import Target
from asl.states.effects import Child
from asl.states.errors import Raised, Suspended

if TYPE_CHECKING:
    from asyncio import Task
    from decimal import Decimal

    from asl.effects.agent_caller import AgentCaller
    from asl.effects.children import Begun
    from asl.effects.delivery import Sinks
    from asl.effects.operator_policy import OperatorPolicy
    from asl.effects.parking import Parking
    from asl.effects.remembering import Remembering
    from asl.effects.rights import Toolroom
    from asl.effects.tokens import TaskTokens

Lacking: TypeAlias = Callable[[str], object]
"""Takes a sentence on what is not bound."""
Notify: TypeAlias = Callable[[str, dict[str, Json], dict[str, Json]], object]
"""Takes `(kind, request, details)`: a request, a reminder of it, an escalation; maybe async."""


class Keeper(Protocol):
    """Keeps the executions that a kept one starts."""

    @property
    def tokens(self) -> Tokens:
        """Where the task tokens of all that is kept are answered."""
        ...

    def child(self, journal: Any, key: str, child: Child, find: Callable[[], Program]) -> Begun:
        """Begin an execution that a state starts and waits for, or find it begun.

        *journal* is that of the execution that starts it, *key* that of the effect, *find* gives
        the workflow.
        """
        ...

    def started(self, journal: Any, key: str, program: Program, child: Started) -> Begun | None:
        """Do it for one that goes by a name of its own; None where another one has that."""
        ...

    def detach(self, journal: Any, child: Any) -> None:
        """Make an execution independent of the one that has started it, by their journals."""
        ...


__all__ = ["Keeper", "Notify", "Service", "Services", "Started", "refusal"]


class Started(NamedTuple):
    """An execution that a state starts by name."""

    name: str
    data: Json
    express: bool
    awaited: bool
    """Whether the state waits for its end; otherwise it is an execution of its own."""
    requestor: str | None
    """Who has started the whole."""


_OWN = re.compile(r"arn:[^:]*:states:[^:]*:[^:]*:(?:aws-sdk:sfn|states):(\w+)")
_STARTS = ("startExecution", "startSyncExecution")
_ANSWERS = ("sendTaskSuccess", "sendTaskFailure", "sendTaskHeartbeat")


class Services:
    """The services of one run, for all of its executions.

    *tokens* is the desk that the caller gave, *workflows* are the programs that states may start,
    by name or ARN; both None if the caller gave none. *program* is the one that the run began with.
    """

    without_mocks: Callable[[], Find]
    """Returns `find`."""

    prices: Mapping[str, Price] | None = None
    """The prices of models, as for the run itself."""

    pools: Mapping[str, Decimal] = MappingProxyType({})
    """How much there is in each pool of money."""

    tabs: SharedBudgets | None = None
    """Where it is kept what several executions spend together, None for the process."""

    approvals: Agent | None = None
    """Answers for people, or leaves it for later."""

    storages: Mapping[str, Storage] = MappingProxyType({})
    """Where checkpoints can be put beside the execution itself, by name."""

    memory: Mapping[str, Memory] = MappingProxyType({})
    """What the caller gave to remember things in, by the backends that documents name."""

    notify: Notify | None = None
    """Tells people what they are asked."""

    request_link: Callable[[str], str] | None = None
    """Returns the address of the page of a request by its id, where one is configured."""

    sinks: Sinks = MappingProxyType({})
    """What takes the events of channels."""

    parking: Parking | None = None
    """Where branches wait that need no process, None where they wait in the process."""

    lacking: Lacking | None = None
    """Notes that something is not bound here, None where the state fails for it."""

    keeper: Keeper | None = None
    """Keeps the executions that this one starts, where it is kept itself."""

    policy: OperatorPolicy | None = None
    """What the operator allows every document, None for anything."""

    middleware: Sequence[Middleware] = ()
    """Code of the caller around each effect, the outermost first."""

    boxes: Mapping[str, Offers] = MappingProxyType({})
    """What tells of the tools that the caller gave, by their names."""

    def __init__(
        self,
        program: Program | None = None,
        tokens: TaskTokens | None = None,
        workflows: Mapping[str, Program] | None = None,
    ) -> None:
        self.program = program
        self.tokens = tokens
        self.workflows = workflows
        self.started: dict[str, Task[Result]] = {}
        """All executions that states have started, by their ids."""
        self.left: set[Task[Result]] = set()
        """Those among them that nobody waits for, and that have not ended."""

    def missing(self, error: StateError) -> StateError | Suspended:
        """Return what to raise where something is not bound: *error*, or the suspension of an
        execution that goes on where it is bound."""
        if self.lacking is None:
            return error
        self.lacking(error.cause or str(error))
        return Suspended()

    def agent(self, target: Target) -> Agent | None:
        """Return what serves a resource that nobody else is bound to, if there is such a thing."""
        if target.is_activity:
            from asl.effects.callbacks import Polled

            return None if self.tokens is None else Polled(target.name)
        own = _OWN.fullmatch(target.base)
        if own is None:
            return None
        if own[1] in _STARTS and self.workflows is not None:
            from asl.effects.nested import Start

            return Start(self, target)
        if own[1] in _ANSWERS:
            from asl.effects.callbacks import Answer

            return Answer(own[1])
        return None

    @once
    def find(self) -> Find:
        """Resolves the targets of executions that are started: to the agents and resources of the
        run, and to none of its mocks, which go by the states of one document."""
        return self.without_mocks()

    def service(self, name: str) -> Agent:
        """Return what blocks ask for by this name."""
        assert name == "memory"
        return self.remembering

    @once
    def remembering(self) -> Remembering:
        """What the run remembers."""
        from asl.effects.remembering import Remembering

        return Remembering(self.memory)

    @once
    def tools(self) -> Toolroom:
        """The tools of the run, and how often they were used."""
        from asl.effects.rights import Toolroom

        return Toolroom(self.boxes)

    @once
    def desk(self) -> TaskTokens:
        """The desk of the run's task tokens: one of its own, if the caller gave none."""
        if self.tokens is not None:
            return self.tokens
        from asl.effects.tokens import TaskTokens

        return TaskTokens()

    def answerable(self) -> bool:
        """Whether the caller, or a state of the run, could answer a token."""
        programs = [self.program, *(self.workflows or {}).values()]
        return self.tokens is not None or any(
            ":aws-sdk:sfn:sendTask" in (step.resource or "")
            for program in programs
            if program is not None
            for machine in program.machines.values()
            for step in machine.steps.values()
        )

    # Executions that states start

    def start(self, id: str, work: Coroutine[Any, Any, Result]) -> Task[Result]:
        """Start an execution as a task of the running event loop."""
        from asyncio import create_task

        self.started[id] = task = create_task(work, name="asl-execution")
        return task

    def leave(self, execution: Task[Result]) -> None:
        """Let an execution run on by itself; the run ends when it has ended, too."""
        self.left.add(execution)
        execution.add_done_callback(self._forget)

    def count(self, execution: Task[Result]) -> None:
        """Let an execution wait or work independently of the state that has started it."""
        if self.parking is not None:
            self.parking.enter()
            execution.add_done_callback(self.parking.leave)

    def _forget(self, execution: Task[Result]) -> None:
        if not execution.cancelled() and execution.exception() is None:
            self.left.discard(execution)

    def results(self) -> Iterator[Result]:
        """Yield what became of the executions that came to an end."""
        for execution in self.started.values():
            if not execution.cancelled() and execution.exception() is None:
                yield execution.result()

    async def settle(self, cut: bool) -> None:
        """Wait for the executions that were left, and for those that they leave; or *cut* them."""
        left = self.left
        if not left:
            return
        from asyncio import FIRST_COMPLETED, wait

        try:
            while left and not cut:
                with nullcontext() if self.parking is None else self.parking.standing_by():
                    done, _ = await wait(left, return_when=FIRST_COMPLETED)
                for execution in done:
                    execution.result()
        finally:
            for execution in left:
                execution.cancel()
            if left:
                await wait(left)


class Service(Agent):
    """Something that the run itself offers, reached as an agent.

    It says by itself when it has taken a request, and an exception in it is no failure of a task.
    """

    needs_loop = True

    async def serve(self, caller: AgentCaller, payload: Json, call: Call) -> Json:
        """Answer a call that *caller* performs."""
        raise NotImplementedError


def refusal(call: Call, service: str, code: str, message: str) -> Raised:
    """Return the error of a request that AWS refuses, worded as by *service* (recorded).

    *service* is `StepFunctions` for the integration of its own, `Sfn` for that of AWS's SDK.
    """
    request = uuid_of(call, "request")
    if service == "Sfn":
        details = f"Service: Sfn, Status Code: 400, Request ID: {request}"
    else:
        details = (
            f"Service: AWSStepFunctions; Status Code: 400; Error Code: {code}; "
            f"Request ID: {request}; Proxy: null"
        )
    return Raised(f"{service}.{code}Exception", f"{message} ({details})")


def uuid_of(call: Call, what: str) -> str:
    """Return an id for something that a call brings about: the same when it is repeated."""
    from hashlib import sha256

    digits = sha256(f"{call.token}\n{what}".encode()).hexdigest()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))
