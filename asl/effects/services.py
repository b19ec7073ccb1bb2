"""What a run offers to its states, and the executions that they have started."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from asl.core.cached_property import shared_cached_property
from asl.core.errors import StateError
from asl.core.values import Json
from asl.effects.child_execution import ChildStore
from asl.effects.delivery import Sinks
from asl.effects.memory_service import MemoryService
from asl.effects.middleware import Middleware
from asl.effects.suspension import SuspensionMonitor
from asl.effects.task_tokens import TaskTokens
from asl.effects.tool_registry import OperatorPolicy, ToolRegistry
from asl.engine.agent import Agent, Find
from asl.engine.checkpoints import Storage
from asl.engine.memory import Memory
from asl.engine.pools import SharedBudgets
from asl.engine.result import Result
from asl.engine.tools import ListTools
from asl.engine.usage import Price
from asl.program import Program
from asl.states.errors import Suspension

if TYPE_CHECKING:
    from asyncio import Task
    from decimal import Decimal

__all__ = ["Notify", "OnMissing", "Services"]

OnMissing: TypeAlias = Callable[[str], object]
"""Takes a sentence on what is not bound."""
Notify: TypeAlias = Callable[[str, dict[str, Json], dict[str, Json]], object]
"""Takes `(kind, request, details)`: a request, a reminder of it, an escalation; maybe async."""


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

    shared_budgets: SharedBudgets | None = None
    """The budgets that executions share; None for those of the process."""

    approvals: Agent | None = None
    """Answers for people, or leaves it for later."""

    storages: Mapping[str, Storage] = MappingProxyType({})
    """Further storages of checkpoints, by name."""

    memory: Mapping[str, Memory] = MappingProxyType({})
    """What the caller gave to remember things in, by the backends that documents name."""

    notify: Notify | None = None
    """Sends the notifications of approval requests."""

    request_link: Callable[[str], str] | None = None
    """Returns the address of the page of a request by its id, where one is configured."""

    sinks: Sinks = MappingProxyType({})
    """What takes the events of channels."""

    suspension: SuspensionMonitor | None = None
    """Where branches wait that need no process, None where they wait in the process."""

    on_missing: OnMissing | None = None
    """Notes that something is not bound here, None where the state fails for it."""

    child_store: ChildStore | None = None
    """Keeps the executions that this one starts, where it is kept itself."""

    policy: OperatorPolicy | None = None
    """What the operator allows every document, None for anything."""

    middleware: Sequence[Middleware] = ()
    """Code of the caller around each effect, the outermost first."""

    boxes: Mapping[str, ListTools] = MappingProxyType({})
    """The tools that the caller passed, by name."""

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
        """Those that run detached and have not ended."""

    def missing(self, error: StateError) -> StateError | Suspension:
        """Return what to raise where something is not bound: *error*, or the suspension of an
        execution that goes on where it is bound."""
        if self.on_missing is None:
            return error
        self.on_missing(error.cause or str(error))
        return Suspension()

    @shared_cached_property
    def find(self) -> Find:
        """Resolves the targets of executions that are started: to the agents and resources of the
        run, and to none of its mocks, which go by the states of one document."""
        return self.without_mocks()

    def service(self, name: str) -> Agent:
        """Return what blocks ask for by this name."""
        assert name == "memory"
        return self.memory_service

    @shared_cached_property
    def memory_service(self) -> MemoryService:
        """What the run remembers."""
        return MemoryService(self.memory)

    @shared_cached_property
    def tools(self) -> ToolRegistry:
        """The tools of the run, and how often they were used."""
        return ToolRegistry(self.boxes)

    @shared_cached_property
    def desk(self) -> TaskTokens:
        """The desk of the run's task tokens: one of its own, if the caller gave none."""
        if self.tokens is not None:
            return self.tokens
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
        if self.suspension is not None:
            self.suspension.enter()
            execution.add_done_callback(self.suspension.leave)

    def _forget(self, execution: Task[Result]) -> None:
        if not execution.cancelled() and execution.exception() is None:
            self.left.discard(execution)

    def results(self) -> Iterator[Result]:
        """Yield the results of the executions that have ended."""
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
                with nullcontext() if self.suspension is None else self.suspension.idle():
                    done, _ = await wait(left, return_when=FIRST_COMPLETED)
                for execution in done:
                    execution.result()
        finally:
            for execution in left:
                execution.cancel()
            if left:
                await wait(left)
