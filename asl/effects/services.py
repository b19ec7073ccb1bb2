"""The services of a run for its states, and the executions that they have started."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from asl.core.errors import StateError
from asl.core.lazy import shared_cached_property
from asl.core.values import Json
from asl.effects.child_execution import ChildStore, StartRequest
from asl.effects.delivery import Sinks
from asl.effects.memory_service import MemoryService
from asl.effects.middleware import Middleware
from asl.effects.suspension import SuspensionMonitor
from asl.effects.task_tokens import TaskTokens
from asl.effects.tool_registry import OperatorPolicy, ToolRegistry
from asl.engine.agent import Agent, Call, Find
from asl.engine.checkpoints import Storage
from asl.engine.definitions import AgentDefinition, NoDefinitions
from asl.engine.frame import Frame
from asl.engine.live_map_run import MapRunMonitor
from asl.engine.memory import Memory
from asl.engine.pools import SharedBudgets
from asl.engine.result import Result
from asl.engine.tools import ListTools
from asl.engine.usage import ExecutionSpending, Price
from asl.program import Program
from asl.states.calls import Target
from asl.states.errors import Suspension

if TYPE_CHECKING:
    from asyncio import Task
    from decimal import Decimal

__all__ = ["ChildOutcome", "MapItem", "Notify", "OnMissing", "Services"]

OnMissing: TypeAlias = Callable[[str], object]
"""Takes a sentence on a missing binding."""
Notify: TypeAlias = Callable[[str, dict[str, Json], dict[str, Json]], object]
"""Takes `(kind, request, details)`: a request, a reminder or an escalation; may be async."""


class ChildOutcome(NamedTuple):
    """The end of a child of a distributed Map that ran elsewhere."""

    value: Json
    error: StateError | None
    """Why it failed; None if it succeeded."""
    spent: ExecutionSpending


class MapItem(NamedTuple):
    """The item for which an execution runs, as `$$.Map.Item` shows it."""

    number: int
    value: Json
    source: str


class Services:
    """The services of one run, for all of its executions.

    Args:
        program: Program of the first execution.
        tokens: The caller's task token service, None without one.
        workflows: Programs that states may start, by name or ARN; None for none.
    """

    without_mocks: Callable[[], Find]
    """Returns `find`."""

    prices: Mapping[str, Price] | None = None
    """Prices of models."""

    pools: Mapping[str, Decimal] = MappingProxyType({})
    """Amount of money in each pool."""

    shared_budgets: SharedBudgets | None = None
    """Storage of shared budgets; None for that of the process."""

    approvals: Agent | None = None
    """Handler of approval requests, which may defer the decision; None without one."""

    storages: Mapping[str, Storage] = MappingProxyType({})
    """Further storages of checkpoints, by name."""

    memory: Mapping[str, Memory] = MappingProxyType({})
    """The caller's memories, by the backends that documents name."""

    channels: Sequence[Notify] = ()
    """Send the notifications of approval requests."""

    request_link: Callable[[str], str] | None = None
    """Returns the URL of the page of a request by its id; None if not configured."""

    sinks: Sinks = MappingProxyType({})
    """Sinks of channels."""

    suspension: SuspensionMonitor | None = None
    """Monitor of waiting branches; None if they wait in the process."""

    on_missing: OnMissing | None = None
    """Records a missing binding; None to fail the state instead."""

    child_store: ChildStore | None = None
    """Store of the started executions, None without one."""

    run_elsewhere: Callable[[Frame], Awaitable[ChildOutcome | None]] | None = None
    """Runs a child of a distributed Map elsewhere, or returns None to run it here; None to run all
    here."""

    start_elsewhere: Callable[[Program, StartRequest], Awaitable[bool]] | None = None
    """Starts an execution that no state waits for elsewhere, and returns whether its name was
    free; None to run it here."""

    check_output: Callable[[Json], object] | None = None
    """Checks that the output of the first execution can be recorded, and raises
    StateError("States.DataLimitExceeded") if not; None without such a limit."""

    is_polled: Callable[[Target, bool], Awaitable[bool]] | None = None
    """Returns whether workers that poll perform an activity, given whether its task is open; None
    if only an activity without a binding is polled for."""

    map_item: MapItem | None = None
    """The item of the first execution, if it is a child that runs elsewhere."""

    map_runs: MapRunMonitor | None = None
    """Follows the Map Runs of the executions; None without a monitor."""

    registered_program: Callable[[str], Program | None] | None = None
    """Returns the program of the registered state machine of an ARN; None without a registry."""

    registered_elsewhere: Callable[[str, Call], Awaitable[Program | None]] | None = None
    """Returns it for a call from a registry that another process can reach; None to use
    `registered_program`."""

    aws: Callable[[Target], Agent | None] | None = None
    """Returns the agent that performs a resource by calls of AWS's services; None if these calls
    are not switched on."""

    policy: OperatorPolicy | None = None
    """The operator's policy, None without one."""

    middleware: Sequence[Middleware] = ()
    """User code around each effect, outermost first."""

    boxes: Mapping[str, ListTools] = MappingProxyType({})
    """The caller's tools, by name."""

    definitions: Callable[[Mapping[str, Json]], Mapping[str, AgentDefinition]] = staticmethod(
        lambda document: NoDefinitions
    )
    """Returns the agents that a document defines, by their names."""

    remote: Mapping[str, Agent] = MappingProxyType({})
    """Agents that perform requests of services elsewhere: `memory`, `items`, `objects`,
    `checkpoints`, `tokens` of executions that this process does not hold."""

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
        """All executions that states have started, by id."""
        self.left: set[Task[Result]] = set()
        """Detached executions that have not ended."""

    def missing_binding(self, error: StateError) -> StateError | Suspension:
        """Return the exception for a missing binding: *error*, or the suspension of an execution
        that another process with the binding can continue.
        """
        if self.on_missing is None:
            return error
        self.on_missing(error.cause or str(error))
        return Suspension()

    @shared_cached_property
    def find(self) -> Find:
        """Resolves the targets of started executions to the agents and resources of the run,
        without its mocks, which belong to the states of one document.
        """
        return self.without_mocks()

    def service(self, name: str) -> Agent:
        """Return the service of this name for blocks."""
        if name in self.remote:
            return self.remote[name]
        assert name == "memory"
        return self.memory_service

    @shared_cached_property
    def memory_service(self) -> MemoryService:
        """The memory of the run."""
        return MemoryService(self.memory)

    @shared_cached_property
    def tools(self) -> ToolRegistry:
        """The tools of the run and their call counts."""
        return ToolRegistry(self.boxes)

    @shared_cached_property
    def task_token_service(self) -> TaskTokens:
        """The task token service of the run: the caller's, or one of its own."""
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

    # Started executions

    def start(self, id: str, work: Coroutine[Any, Any, Result]) -> Task[Result]:
        """Start an execution as a task of the running event loop."""
        from asyncio import create_task

        self.started[id] = task = create_task(work, name="asl-execution")
        return task

    def leave(self, execution: Task[Result]) -> None:
        """Detach an execution; the run still waits for its end."""
        self.left.add(execution)
        execution.add_done_callback(self._forget)

    def count(self, execution: Task[Result]) -> None:
        """Count an execution as a branch of its own."""
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
        """Wait for the detached executions and those that they detach.

        Args:
            cut: Whether to cancel them instead.
        """
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
