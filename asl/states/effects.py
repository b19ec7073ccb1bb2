"""Effects: the interactions of states with the world, and the frames of running machines.

The interpreter and the state types depend on these protocols only. An implementation of `Effects`
performs effects in memory, on a virtual clock, with a journal or inside another engine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from asl.core.errors import StateError
from asl.core.values import Json
from asl.expr.frame import ExpressionFrame as ExpressionFrame
from asl.program import DocumentScope, Machine, Step
from asl.states.calls import Handover, Invocation, Target, TargetCheck
from asl.states.map_data import Bucket, ItemSource, Tolerance

__all__ = [
    "ABSENT",
    "CallEffect",
    "CheckpointRequest",
    "ChildWorkflow",
    "DirectCalls",
    "DistributedRun",
    "Effects",
    "FanIn",
    "FanOut",
    "Record",
    "RequestContent",
    "Runtime",
    "ServiceCall",
    "StateFrame",
]

ABSENT: Json = object()
"""Marks a missing raw result or item; every JSON value could be a real one."""

F = TypeVar("F", contravariant=True)
"""The type of frames that an implementation of `Effects` takes; the engine's has more members."""

Record: TypeAlias = tuple[Any, ...]
"""One entry of the flat history: `(kind, time, frame, visit, step, ...)`."""


class RequestContent(NamedTuple):
    """The content of an approval request; JSON, so that a store can record it."""

    kind: str
    """`approval`, `tool` or `budget`."""
    body: Mapping[str, Json]
    """The request as approvers see it, with all that is needed to check an answer."""
    plan: Mapping[str, Json]
    """Timeouts, escalations and reminders; times in seconds after the request."""


class ServiceCall(NamedTuple):
    """A request to a service of the run, such as its `memory`."""

    service: str
    payload: Json


CallEffect: TypeAlias = Invocation | Handover | TargetCheck | ServiceCall


class ChildWorkflow(NamedTuple):
    """A child execution: another workflow that a state starts and waits for."""

    workflow: str
    """The id of the workflow in the registry of the run."""
    name: str
    """The name of the execution."""
    data: Json
    timeout: float | None
    """Maximum duration in seconds; None for no limit besides its own."""


class CheckpointRequest(NamedTuple):
    """A position of a machine to save, from which its execution can be resumed."""

    name: str | None
    """None for an automatic checkpoint; effects name it."""
    storage: str
    lifetime: float
    """Seconds until it expires; infinite for never."""
    next: str | None
    """The state to resume at; None if the machine ends."""
    leave: Callable[[Json], Json]
    """Takes the record of the checkpoint, sets the variables and returns the next data."""


class Workload(Protocol):
    """The work counters of an execution, as effects see them."""

    work_since_yield: int
    """Steps of work since the last yield to other tasks."""

    @property
    def redrives(self) -> int:
        """How often the execution was redriven."""
        ...

    @property
    def outermost(self) -> Workload:
        """The outermost execution; differs from this one in children of a distributed Map."""
        ...

    def count_work(self) -> bool:
        """Count the work of evaluations; return whether it is time to yield to other tasks."""
        ...

    def count_items(self, count: int) -> None:
        """Count items of a Map.

        Raises:
            StateError: States.Runtime for too many items.
        """
        ...

    def count_received(self, size: int) -> None:
        """Count the bytes of a value received from an effect."""
        ...


class StateFrame(ExpressionFrame, Protocol):
    """The frame of a running machine, as state types and effects see it."""

    effects: Effects[Any]
    step: Step
    data: Json
    visit: int
    now: float
    item: Json
    index: int
    entered: float
    """Time at which the current state was entered, in epoch seconds; unchanged by retries."""
    origin: tuple[Step, int, int]
    """The state, visit and ordinal of the parent in which this machine was forked."""
    progress: Any
    """Progress of the latest visit (`asl.states.blocks.progress.ReportedProgress`)."""
    partial_answer: str | None
    """The streamed answer of the latest agent while guardrails hold it back, otherwise None."""
    destinations: Mapping[str, Any] | None
    """Computed output paths of the latest visit's blocks (`asl.states.blocks.base.Destination`)."""
    parameter_values: Json
    scope: DocumentScope | None
    """The blocks of an included document, in the frame of its machine."""
    stops_children: bool
    """Whether the children of this machine are being stopped."""
    checkpoint_progress: tuple[int, int, float]
    """Automatic checkpoints: latest visit considered, transitions since the last one, its time."""

    @property
    def parent(self) -> StateFrame | None:
        """The parent machine; None for the top one."""
        ...

    @property
    def execution(self) -> Workload:
        """The work of the execution that the machine belongs to."""
        ...

    def is_stopped(self) -> bool:
        """Return whether a fork around this machine is being stopped."""
        ...

    def open_channels(self, scope: DocumentScope) -> None:
        """Open the event channels of a document included by the current state.

        Raises:
            StateError: No sink serves a channel.
        """
        ...

    def child_listener(self) -> Any:
        """Return the event listener for a child execution of the current state, or None."""
        ...

    def describe(self) -> dict[str, Json]:
        """Return the description of the execution as AWS words it, without its result."""
        ...

    @property
    def execution_id(self) -> str:
        """The id of the execution that the machine belongs to."""
        ...

    @property
    def workflow(self) -> str:
        """The name of the workflow."""
        ...

    @property
    def path(self) -> str:
        """The path of forks from the top machine down to this one: `/Each@12.0[17]`."""
        ...

    @property
    def place(self) -> tuple[str | int, ...]:
        """The same as names of states and indices of branches or items, outermost first."""
        ...

    @property
    def requestor(self) -> str | None:
        """The user who started the execution; None if unknown."""
        ...

    @property
    def key(self) -> str:
        """The key of the current effect, of its children and of its request."""
        ...

    @property
    def visit_key(self) -> str:
        """The key of the current visit, shared by all of its effects."""
        ...

    def count_effect(self) -> int:
        """Count an effect of the visit and return its ordinal."""
        ...

    def next_effect(self, path: str | None = None) -> str:
        """Count an effect of the visit and return its key; *path* is the machine's, if known."""
        ...

    @property
    def token(self) -> str:
        """The task token of the current attempt; unique."""
        ...

    @property
    def child_name(self) -> str:
        """The name of the child execution that the current attempt starts; unique."""
        ...

    @property
    def retries(self) -> int:
        """Number of retries in the current visit, of all retriers together."""
        ...

    def begin_fork(self) -> None:
        """Mark the current effect as a fork; called before its first child is made."""
        ...

    def child(self, index: int, machine: Machine, data: Json, item: Json = ABSENT) -> StateFrame:
        """Return the frame of a child machine."""
        ...

    def run(
        self, machine: Machine, label: str, express: bool, pure: bool, emits: bool
    ) -> DistributedRun:
        """Begin a run of a distributed Map.

        Args:
            machine: The machine of the children.
            label: The label in the ARNs of the children.
            express: Whether the children are express executions.
            pure: Whether the children have no effects.
            emits: Whether the events of the children depend on their whole history.
        """
        ...

    def note(self, event: str, details: dict[str, Json]) -> None:
        """Record an event of the current state, under its name in the history."""
        ...

    def reported_usage(self, result: Json) -> Any:
        """Return the usage reported in a raw result (`asl.engine.usage.CallUsage`)."""
        ...

    def account(self, state: str, result: Json) -> object:
        """Count the usage reported in a raw result."""
        ...

    def remaining_budgets(self) -> dict[str, dict[str, Json]]:
        """Return the remaining budgets by `workflow` and `state`."""
        ...

    def selector_frame(self) -> StateFrame:
        """Return the frame for `ItemSelector`: this item, in the state of the parent."""
        ...

    @property
    def emit(self) -> Callable[[Record], object]:
        """The function that appends a record to the history."""
        ...


# Forks


def _nothing() -> None:
    """Do nothing: the fan-out does not run."""


class FanOut:
    """The children that a state starts, each made when a worker takes it."""

    __slots__ = (
        "child",
        "has_timeout",
        "held_results",
        "length",
        "limit",
        "on_abort",
        "on_end",
        "on_failure",
        "series",
        "widen",
    )  # fmt: skip

    def __init__(
        self,
        length: int | None,
        child: Callable[[int], StateFrame | None],
        limit: int = 0,
        *,
        on_failure: Callable[[StateFrame, StateError], StateError | None] = lambda frame, error: (
            error
        ),
        on_end: Callable[[StateFrame, Json], object] | None = None,
        on_abort: Callable[[StateFrame], object] = lambda frame: None,
        series: Iterator[StateFrame] | None = None,
        held_results: Iterable[object] = (),
        has_timeout: bool = False,
    ) -> None:
        self.length = length
        """Number of children; None if `child` returns None after the last one."""
        self.child = child
        """Makes the children in order; an error of it fails the fan-out."""
        self.limit = limit
        """Maximum number of concurrent children; 0 for no limit."""
        self.on_failure = on_failure
        """Takes the error of a child; returns that of the fan-out, None for a tolerated one."""
        self.on_end = on_end
        """Takes the output of each child at its end; None to collect all of them in the fan-in."""
        self.on_abort = on_abort
        """Takes each child that is cancelled because the fan-out has failed."""
        self.series = series
        """The same children if they have no effects and leave no records; they run one after the
        other, as none of them ever waits."""
        self.held_results = held_results
        """The results so far in memory, if `ended` takes them."""
        self.has_timeout = has_timeout
        """Whether the children are executions with a maximum duration."""
        self.widen: Callable[[], object] = _nothing
        """Starts more children after `limit` was raised, while the fan-out runs."""

    @property
    def is_concurrent(self) -> bool:
        """Whether several children with effects may run concurrently."""
        return self.series is None and self.limit != 1 and self.length not in (0, 1)


class FanIn:
    """The outputs of a fan-out in order, `ABSENT` for each tolerated failure.

    There are no values if the fan-out has taken them (`FanOut.ended`).
    """

    __slots__ = ("failures", "values")

    def __init__(self, values: list[Json], failures: int) -> None:
        self.values = values
        self.failures = failures


class DistributedRun(Protocol):
    """A Map Run: the name of a run of a distributed Map, and its child executions."""

    arn: str
    id: str
    is_pure: bool
    """Whether its children have no effects and emit no events."""
    started_children: int
    """Number of started children, unless they are pure."""

    def item_selector_frame(self, index: int, item: Json, source: str) -> StateFrame:
        """Return the frame for `ItemSelector`: the machine of the state, with an item."""
        ...

    def child(self, index: int, data: Json, item: Json, source: str) -> StateFrame:
        """Return the frame of a child execution, at its first state."""
        ...

    def children(self, source: ItemSource) -> Iterator[StateFrame]:
        """Yield a child for each item, with the item as its input; pure children share a frame.

        Sets the length of the source at the end.
        """
        ...

    def with_end_reports(self, fan: FanOut, source: ItemSource) -> FanOut:
        """Return a fan-out that reports the end of each child to event listeners."""
        ...

    def monitored_fan_out(
        self,
        fan: FanOut,
        tolerance: Tolerance,
        weights: Mapping[int, int],
        source: ItemSource,
    ) -> FanOut:
        """Return a fan-out whose children are counted for the monitor of the execution, if any.

        Args:
            fan: The fan-out.
            tolerance: The tolerated failures.
            weights: Numbers of items of children with batches.
            source: The items.
        """
        ...

    def finish(self, status: str) -> None:
        """Report the end of the run to the monitor of the execution, if any."""
        ...

    def redacted_cause(self, child: StateFrame, error: StateError) -> str:
        """Return the error of a child as text, without redacted values."""
        ...

    def pause(self) -> None:
        """Report to event listeners that the unfinished children wait for approvals."""
        ...


# Effects


class Runtime(Protocol):
    """The clock and the resources of a run."""

    def now(self) -> float:
        """Return the current time in epoch seconds."""
        ...

    def bucket(self, name: str) -> Bucket:
        """Return the bucket with this name.

        Raises:
            ObjectFault: No bucket with this name is mapped.
        """
        ...

    def has_service(self, name: str) -> bool:
        """Return whether another process performs requests of this service."""
        ...

    def ends(self, stop: BaseException) -> bool:
        """Return whether an exception ends a part of the execution.

        The end of the process and a pause do not.
        """
        ...


class DirectCalls(Protocol[F]):
    """A fast path for Tasks without blocks, limits and budgets.

    Between the three methods the interpreter awaits the agent itself.
    """

    def begin(self, frame: F, step: Step, data: Json) -> Awaitable[Json] | None:
        """Call the agent of a Task that has a `call`.

        Args:
            frame: The frame of the machine.
            step: The Task.
            data: The raw input.

        Returns:
            The awaitable of the agent, for `accept_answer`; its exception is for `map_error`.
            None if the call needs more; the work of the step makes it then.
        """
        ...

    def accept_answer(self, frame: F, target: Target, answer: Json) -> Json:
        """Return the raw result from the answer of an agent."""
        ...

    def map_error(self, frame: F, target: Target, error: BaseException) -> StateError:
        """Return the error of the state for an exception of an agent; reraise others."""
        ...


class Effects(Protocol[F]):
    """The effects that states may have.

    Each method returns a result or raises StateError, and sets `at.now` to the time of it.
    A coroutine may be closed before its end; the execution is abandoned then.
    """

    @property
    def runtime(self) -> Runtime:
        """The clock and the resources of the run."""
        ...

    @property
    def direct(self) -> DirectCalls[F] | None:
        """The fast path for simple calls; None if every call goes through `call`."""
        ...

    def call(self, frame: F, effect: CallEffect) -> Awaitable[Json]:
        """Call an agent, a resource or a service, or hand over a task.

        Returns:
            The raw result.

        Raises:
            StateError: The call fails.
        """
        ...

    def timer(self, frame: F, when: float) -> Awaitable[None]:
        """Wait until the clock has reached *when*, in epoch seconds."""
        ...

    def request(self, frame: F, question: RequestContent) -> Awaitable[Json]:
        """Return the decision on an approval request, by an approver or automatic.

        Raises:
            Suspension: There is no decision yet.
            StateError: The request times out.
        """
        ...

    def child(self, frame: F, child: ChildWorkflow) -> Awaitable[Json]:
        """Run another workflow as a child execution and return its output.

        Raises:
            StateError: The child execution fails.
            Suspension: The child execution waits for approvals.
        """
        ...

    def fan_out(self, frame: F, fan: FanOut) -> Awaitable[FanIn]:
        """Run the children of a fan-out.

        Raises:
            StateError: The first failure that is not tolerated.
        """
        ...

    def checkpoint(self, frame: F, request: CheckpointRequest) -> Awaitable[Json]:
        """Save the execution and return the next data."""
        ...

    def yield_(self, frame: F) -> Awaitable[None]:
        """Yield to other tasks, and let a cancellation through; called after bounded work."""
        ...

    def record(self, record: Record) -> object:
        """Append a record to the history."""
        ...
