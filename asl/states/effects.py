"""What a state may ask of the world, and the frame through which it asks.

The interpreter and the state types know these protocols only. Whoever implements `Effects` answers:
in memory, on a virtual clock, on disk or inside another engine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from asl.core.errors import StateError
from asl.core.values import Json
from asl.expr.frame import Frame as ExpressionFrame
from asl.program import DocumentScope, Machine, Step
from asl.states.calls import Handover, Invocation, Lookup, Target
from asl.states.map_data import Bucket

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
    "ItemSource",
    "MapEntry",
    "Question",
    "Record",
    "Runtime",
    "ServiceCall",
    "StateFrame",
]

ABSENT: Json = object()
"""Stands where there is nothing, and no JSON value could say so: a raw result, an item."""

F = TypeVar("F", contravariant=True)
"""The frames that effects take: those of the engine have more than states see."""

Record: TypeAlias = tuple[Any, ...]
"""One entry of the flat history: `(kind, time, frame, visit, step, ...)`."""


class Question(NamedTuple):
    """What people are asked. Both parts are JSON, so that a store can keep them."""

    kind: str
    """`approval`."""
    body: Mapping[str, Json]
    """What they are shown; it holds all by which an answer is judged."""
    plan: Mapping[str, Json]
    """What happens without an answer; times in seconds after the request was made."""


class ServiceCall(NamedTuple):
    """A request to what the run itself offers, such as its `memory`."""

    service: str
    payload: Json


CallEffect: TypeAlias = Invocation | Handover | Lookup | ServiceCall


class ChildWorkflow(NamedTuple):
    """An execution of another workflow that a state starts and waits for."""

    workflow: str
    """The id of the workflow among those that the run may start."""
    name: str
    """The name of the execution."""
    data: Json
    timeout: float | None
    """Seconds that it may take, None for no limit but its own."""


class CheckpointRequest(NamedTuple):
    """What a machine saves of itself, so that its execution can be resumed there."""

    name: str | None
    """None for an automatic checkpoint, which the host names."""
    storage: str
    lifetime: float
    """Seconds for which it is kept; infinite for ever."""
    next: str | None
    """The state at which it is resumed, None where the machine ends."""
    leave: Callable[[Json], Json]
    """Takes the record; returns the data to go on with, and sets the variables."""


class Workload(Protocol):
    """The work of an execution, as effects see it."""

    busy: int
    """Steps of work since others could run."""

    @property
    def redrives(self) -> int:
        """How often the execution went on after its end."""
        ...

    @property
    def whole(self) -> Workload:
        """The execution that this one belongs to, as an iteration of a distributed Map does."""
        ...

    def count_work(self) -> bool:
        """Count what evaluations have spent as work; return whether others are to run now."""
        ...

    def count_items(self, count: int) -> None:
        """Count items of a Map; raises StateError (States.Runtime) for too many."""
        ...

    def count_received(self, size: int) -> None:
        """Count the bytes of a value that came from outside."""
        ...


class StateFrame(ExpressionFrame, Protocol):
    """The running machine as state types and effects see it."""

    effects: Effects[Any]
    step: Step
    data: Json
    visit: int
    now: float
    item: Json
    index: int
    entered: float
    """When the state under way was entered; a retry does not enter again."""
    origin: tuple[Step, int, int]
    """The state, visit and ordinal of the parent in which this machine was forked."""
    progress: Any
    """Progress of the latest visit (`asl.states.blocks.progress.ReportedProgress`)."""
    partial_answer: str | None
    """What the latest agent has said piece by piece, while it may not be shown; None for nothing
    of that kind."""
    destinations: Mapping[str, Any] | None
    """Where the latest visit puts what its blocks put into its output, as far as that is computed
    (`asl.states.blocks.base.Destination`)."""
    filled: Json
    scope: DocumentScope | None
    """What the blocks of an included document say, in the frame of its machine."""
    stops_children: bool
    """Whether the machines that this one has forked are being stopped."""
    unsaved: tuple[int, int, float]
    """The visit at which automatic checkpoints were last thought of, the transitions since the
    latest of them, and when that was."""

    @property
    def parent(self) -> StateFrame | None:
        """The machine that has forked this one, None for the top one."""
        ...

    @property
    def execution(self) -> Workload:
        """The work of the execution that the machine belongs to."""
        ...

    def is_stopped(self) -> bool:
        """Whether a fork is being stopped that this machine belongs to."""
        ...

    def open_channels(self, scope: DocumentScope) -> None:
        """Open the channels of a document that the present state includes, if it has any.

        Raises StateError for one that nobody serves.
        """
        ...

    def listening(self) -> Any:
        """Return who listens to an execution that the present state starts, None for nobody."""
        ...

    def describe(self) -> dict[str, Json]:
        """Return what AWS tells of the machine's execution, apart from what it came to."""
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
        """Who has started the execution, None where nobody said."""
        ...

    @property
    def key(self) -> str:
        """The key of the effect under way: names its answer, its children and its request."""
        ...

    @property
    def visit_key(self) -> str:
        """The key of the visit under way, the same for all of its effects."""
        ...

    def count_effect(self) -> int:
        """Count an effect of the visit and return its ordinal."""
        ...

    def next_effect(self, path: str | None = None) -> str:
        """Count an effect of the visit and return its key; *path* is the machine's, if known."""
        ...

    @property
    def token(self) -> str:
        """The task token of the attempt under way: no other attempt has the same."""
        ...

    @property
    def child_name(self) -> str:
        """The name of the execution that the attempt under way starts: no other has the same."""
        ...

    @property
    def retries(self) -> int:
        """How often the present visit has been retried, all retriers together."""
        ...

    def begin_fork(self) -> None:
        """Say that the effect under way is a fork; it is, before its first child is made."""
        ...

    def child(self, index: int, machine: Machine, data: Json, item: Json = ABSENT) -> StateFrame:
        """Return the frame of a machine that this one forks."""
        ...

    def run(
        self, machine: Machine, label: str, express: bool, pure: bool, emits: bool
    ) -> DistributedRun:
        """Begin a run of a distributed Map whose children run *machine*.

        *pure* says that they reach no world, *emits* that what they tell follows from all they do.
        """
        ...

    def note(self, event: str, details: dict[str, Json]) -> None:
        """Put an event of the present state into the history, in AWS's words."""
        ...

    def reported(self, result: Json) -> Any:
        """Return the usage that a raw result reports (`asl.engine.usage.CallUsage`)."""
        ...

    def account(self, state: str, result: Json) -> object:
        """Count the usage that an agent reports in its raw result."""
        ...

    def remaining(self) -> dict[str, dict[str, Json]]:
        """Return what may still be spent, by `workflow` and `state`."""
        ...

    def selector_frame(self) -> StateFrame:
        """Return this machine as an `ItemSelector` sees it: its item, in its parent's state."""
        ...

    @property
    def emit(self) -> Callable[[Record], object]:
        """Take one history record; observation only."""
        ...


# Forks


class MapEntry(NamedTuple):
    """One member of an object over which a Map runs."""

    key: str
    value: Json

    @property
    def input(self) -> Json:
        """What an iteration gets for it, where nothing else is said (AWS)."""
        return {"Key": self.key, "Value": self.value}


class ItemSource(Protocol):
    """The items of a distributed Map, drawn one by one."""

    name: str
    """Where the item drawn last comes from, in AWS's words."""
    length: int | None
    """How many there are; None while only the end, where it is set, can show it."""

    def __iter__(self) -> Iterator[Json]: ...

    def close(self) -> None:
        """Read no more."""
        ...


class FanOut:
    """Children that one state starts. They are made when a worker takes them, never before."""

    __slots__ = (
        "aborted", "child", "ended", "failed", "held", "length", "limit", "series", "timed",
    )  # fmt: skip

    def __init__(
        self,
        length: int | None,
        child: Callable[[int], StateFrame | None],
        limit: int = 0,
        *,
        failed: Callable[[StateFrame, StateError], StateError | None] = lambda frame, error: error,
        ended: Callable[[StateFrame, Json], object] | None = None,
        aborted: Callable[[StateFrame], object] = lambda frame: None,
        series: Iterator[StateFrame] | None = None,
        held: Iterable[Json] = (),
        timed: bool = False,
    ) -> None:
        self.length = length
        """How many there are; None where that shows only when `child` returns None."""
        self.child = child
        """Makes the children in their order. What it raises is the failure of the whole."""
        self.limit = limit
        """How many may be in flight at once; 0 for no limit."""
        self.failed = failed
        """Takes the failure of a child; returns that of the whole, None where it is tolerated."""
        self.ended = ended
        """Takes a child's output as soon as it is there; None: the fork keeps them all."""
        self.aborted = aborted
        """Takes a child that is given up because the whole has failed."""
        self.series = series
        """The same children, where they reach no world and leave no records: nobody would do
        anything while one waits, so they run one after the other as they come from here."""
        self.held = held
        """The results so far that are held in memory, where the fork does not keep them."""
        self.timed = timed
        """Whether they are executions that may take only so long."""

    @property
    def together(self) -> bool:
        """Whether several children may be in flight at once, and do anything meanwhile."""
        return self.series is None and self.limit != 1 and self.length not in (0, 1)


class FanIn:
    """What a fan came to: values in order, `ABSENT` for each tolerated failure.

    They are not there where the fan took them itself.
    """

    __slots__ = ("failed", "values")

    def __init__(self, values: list[Json], failed: int) -> None:
        self.values = values
        self.failed = failed


class DistributedRun(Protocol):
    """One run of a distributed Map: its name, and the executions that are its children."""

    arn: str
    id: str
    pure: bool
    """Whether its children reach no world and tell nobody anything."""
    begun: int
    """How many children have begun, where they are not pure."""

    def selected(self, index: int, item: Json, source: str) -> StateFrame:
        """Return the state's own machine as `ItemSelector` sees it with an item."""
        ...

    def child(self, index: int, data: Json, item: Json, source: str) -> StateFrame:
        """Return the frame of a child execution, standing at its start."""
        ...

    def children(self, source: ItemSource) -> Iterator[StateFrame]:
        """Yield a child for each item, which is its input; pure ones share a frame.

        At its end the length of the source is known.
        """
        ...

    def with_end_reports(self, fan: FanOut, source: ItemSource) -> FanOut:
        """Return a fan of which is told how each child has ended, where anybody wants to know."""
        ...

    def shown(self, child: StateFrame, error: StateError) -> str:
        """Return what may be said of the failure of a child outside of it."""
        ...

    def pause(self) -> None:
        """Tell them that those which have not ended wait for people."""
        ...


# Effects


class Runtime(Protocol):
    """What effects are performed with: the clock, and what the run has at hand."""

    def now(self) -> float:
        """Return the epoch second that it is."""
        ...

    def bucket(self, name: str) -> Bucket:
        """Return the bucket that the user has mapped; raises ObjectFault if there is none."""
        ...

    def ends(self, stop: BaseException) -> bool:
        """Whether what flies out of a part of the execution is its end: neither that of the
        process nor a pause."""
        ...


class DirectCalls(Protocol[F]):
    """A short way for Tasks that need nothing but an agent's answer.

    Between the three methods the interpreter awaits the agent itself.
    """

    def begin(self, at: F, step: Step, data: Json) -> Awaitable[Json] | None:
        """Call the agent of a Task that has a `call`, given its raw input.

        Returns what the agent is awaited by, with nothing in between: `answered` takes what comes
        of it, `blamed` what it raises. None where there is more to do; the work does it.
        """
        ...

    def accept_answer(self, at: F, target: Target, answer: Json) -> Json:
        """Return the raw result that an agent's answer is."""
        ...

    def map_error(self, at: F, target: Target, error: BaseException) -> StateError:
        """Return what an exception of an agent is to its state; raises one that is not its own."""
        ...


class Effects(Protocol[F]):
    """Performs what states ask of the world.

    Each method returns the answer or raises StateError, and sets `at.now` to the time of it.
    A coroutine may be closed instead of awaited to its end: the execution is given up then.
    """

    @property
    def runtime(self) -> Runtime:
        """The clock, and what the run has at hand."""
        ...

    @property
    def direct(self) -> DirectCalls[F] | None:
        """The short way for simple calls, None where every call goes through `call`."""
        ...

    def call(self, at: F, effect: CallEffect) -> Awaitable[Json]:
        """Call an agent, a resource or a service, or hand a task over; return the raw result."""
        ...

    def timer(self, at: F, when: float) -> Awaitable[None]:
        """Return when the clock has reached *when* (epoch seconds)."""
        ...

    def request(self, at: F, question: Question) -> Awaitable[Json]:
        """Return the decision on an approval request, made by an approver or automatic.

        Raises Suspension while there is no decision.
        """
        ...

    def child(self, at: F, child: ChildWorkflow) -> Awaitable[Json]:
        """Run another workflow as an execution of its own and return its output.

        Raises the error that it failed with, Suspension while it waits for people.
        """
        ...

    def fan_out(self, at: F, fan: FanOut) -> Awaitable[FanIn]:
        """Run the children of *fan*; the first failure beyond the tolerated ones is raised."""
        ...

    def checkpoint(self, at: F, saving: CheckpointRequest) -> Awaitable[Json]:
        """Save the execution and return the data to go on with."""
        ...

    def yield_(self, at: F) -> Awaitable[None]:
        """Let others run, and stay cancellable: called after every bounded stretch of work."""
        ...

    def record(self, record: Record) -> object:
        """Take an entry of the history; observation only."""
        ...
