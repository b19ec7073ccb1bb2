"""Layer 2: a compiled workflow. Built once by the compiler, never changed afterwards."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from asl.core.errors import StateError
from asl.core.profile import Profile
from asl.core.values import Json
from asl.expr.frame import Evaluate

__all__ = [
    "AfterTransition",
    "Catcher",
    "Choose",
    "ComputeBlocks",
    "DocumentScope",
    "EntryEvents",
    "Finish",
    "Machine",
    "MachineOf",
    "Program",
    "Retrier",
    "Step",
    "Work",
]

Choose: TypeAlias = Callable[[Json, Any], "tuple[Step | None, Json]"]
"""A pure state that decides where to go: `(raw input, frame) -> (next step, output)`."""

Work: TypeAlias = Callable[[Json, Any], Awaitable[Json]]
"""What a state asks of the world: `(raw input, frame) -> raw result`."""

AfterTransition: TypeAlias = Callable[[Any], Awaitable[None]]
"""What happens between two states: `(frame)`, which stands at the second one."""

EntryEvents: TypeAlias = Callable[
    [str, str, Collection[str], Json], "Iterator[tuple[str, dict[str, Json]]]"
]
"""What a dialect tells of a state that is entered: types of events with their details.

It takes the name and the type of the state, the names of the states beside it, and the input.
"""

ComputeBlocks: TypeAlias = Callable[[Json, Any], Mapping[str, Any]]
"""`(what a document is given, frame) -> its blocks of which something is computed`; raises
StateError."""

Finish: TypeAlias = Callable[[Json, Json, Any], Json]
"""`(raw input, raw result, frame) -> output`; assigns the state's variables."""


class Retrier(NamedTuple):
    """One entry of `Retry`; times in seconds (Specification 4.3)."""

    matches: Callable[[StateError], bool]
    interval: float = 1.0
    max_attempts: int = 3
    backoff_rate: float = 2.0
    max_delay: float | None = None
    jitter: str = "NONE"


class Catcher(NamedTuple):
    """One entry of `Catch` (Specification 4.4)."""

    matches: Callable[[StateError], bool]
    output: Callable[[Json, Json, Any], Json]
    """`(raw input, error output, frame) -> output`; assigns the catcher's variables."""
    next: "Step"


@dataclass(slots=True, eq=False, repr=False)
class Step:
    """One state, ready to run. Exactly one of `transform`, `choose` and `work` is set.

    A pure state has `transform` (output only; it goes on with `next`) or `choose`. A state that
    reaches the world has `work`, a `finish` unless its result is its output, and may have retriers
    and catchers. `next` is None where the machine ends. The compiler links steps after making
    them; nothing changes later.
    """

    name: str
    type: str
    pointer: str
    siblings: "Mapping[str, Step]" = field(default_factory=dict)
    """The states of the same machine."""
    transform: Evaluate | None = None
    choose: Choose | None = None
    forks: bool = False
    """Whether its work has parts, of which history tells (`asl.states.base.StateType`)."""
    machines: tuple[str, ...] = ()
    """The fields that hold the machines within."""
    label: str | None = None
    """What a template calls the end that this state is (Specification 9.2)."""
    resource: str | None = None
    """The `Resource` of a Task; history names a task's events by it."""
    payload: Evaluate | None = None
    """What a Task hands over: raw input to parameters; history evaluates it again."""
    limits: Callable[[Json, Any], Any] | None = None
    """The limits of a Task's call by its raw input (`asl.states.calls.CallOptions`); history
    evaluates it again."""
    details: Evaluate | None = None
    """What the event with which a call begins says besides, by the raw input."""
    items: Evaluate | None = None
    """The items a Map begins with, by its raw input; history evaluates it again."""
    tolerant: bool = False
    """Whether a Map says how many failures it bears."""
    work: Work | None = None
    call: Any = None
    """Whom a Task calls with nothing but its payload (`asl.states.calls.Target`), so that a host
    may `begin` the call instead of the work."""
    finish: Finish | None = None
    next: "Step | None" = None
    route: "Callable[[Json, Json, Any], Step | None] | None" = None
    """Where a state that has worked goes instead of `next`: `(raw input, raw result, frame)`."""
    retriers: tuple[Retrier, ...] = ()
    catchers: tuple[Catcher, ...] = ()
    hooks: Mapping[str, Any] | None = None
    """Emitted events by `enter`, `exit`, `error` (`asl.states.blocks.events.EventHook`)."""
    feedback: Callable[[Json, Any], dict[str, Json] | None] | None = None
    """What people are asked about a Task that has succeeded, by its raw input; None for nothing."""
    redact: Any = None
    """Hides what no event may show of a Task's data (`asl.states.blocks.audit.Redaction`)."""
    fill: "Callable[[Json], Mapping[str, Machine]] | None" = None
    """The machines of an Include by their pointers, for the values that the data has filled in;
    history looks their states up."""
    progress: Callable[[Json, Any], Any] | None = None
    """How the progress of a Map or a Parallel is told (`asl.states.blocks.progress.Tracking`), by
    its raw input; history evaluates it again."""
    budget: Callable[[Json, Any], Any] | None = None
    """What one visit may spend (`budget_limits.Limits`), by its raw input."""

    def __repr__(self) -> str:
        return f"<{self.type} {self.name!r}>"


@dataclass(frozen=True, slots=True, eq=False)
class DocumentScope:
    """What the blocks of an included document say of its own states (8, 9)."""

    document: Mapping[str, Json]
    tools: Callable[[Json, Any], Any] | None = None
    """Its `DefaultTools` (`asl.states.blocks.tool_policy.ToolRules`), by the execution input."""
    settle: ComputeBlocks | None = None
    """Computes the blocks that others read, None where all of them are written."""
    budget: Callable[[Json, Any], Any] | None = None
    """What one visit of it may spend (`budget_limits.Limits`), by what it is given."""
    blocks: Mapping[str, Any] = field(default_factory=dict)
    """Those blocks, while it runs."""
    limits: Any = None
    """And what it may spend."""

    @property
    def has_tools(self) -> bool:
        """Whether it says anything of tools."""
        return self.tools is not None or "ToolCategories" in self.document

    def entered(self, data: Json, frame: Any) -> "DocumentScope":
        """Return it for a visit that is given *data*; raises StateError for what does not fit."""
        if self.settle is None and self.budget is None:
            return self
        return replace(
            self,
            blocks={} if self.settle is None else self.settle(data, frame),
            limits=None if self.budget is None else self.budget(data, frame),
        )

    def block(self, name: str) -> Mapping[str, Json] | None:
        """Return a block of the document, None where it has none."""
        own: Mapping[str, Json] | None = self.blocks.get(name)
        return self.document.get(name) if own is None else own


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """One `StartAt` with its `States`: the workflow itself, a branch or an iteration."""

    start: Step
    steps: Mapping[str, Step]
    pointer: str
    scope: DocumentScope | None = None
    """What holds in an included document beside what holds around it."""
    filled: Json = None
    """The values that the data of a run has filled in, in an included document."""


MachineOf: TypeAlias = Callable[[Mapping[str, Json]], Machine]
"""The machine of an Include by the arguments of a run; raises StateError("States.TemplateError")
for arguments that do not fit."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Program:
    """A compiled workflow."""

    machine: Machine
    profile: Profile
    name: str
    timeout: float | None = None
    """Seconds that one execution may take, None for no bound."""
    machines: Mapping[str, Machine] = field(default_factory=dict)
    """Every machine of the workflow by the JSON Pointer of its object."""
    document: Mapping[str, Json] = field(default_factory=dict)
    """What was compiled."""
    budget: Callable[[Json, Any], Any] | None = None
    """What one execution may spend, by its input."""
    budgeted: bool = False
    """Whether it, or a state of it, has a budget."""
    entry_events: EntryEvents | None = None
    """What a history tells of a state that is entered, besides."""
    has_hooks: bool = False
    """Whether a state of it emits events."""
    has_channels: bool = False
    """Whether it, or a document that it includes, has channels for events."""
    may_open_channels: bool = False
    """Whether a document that it includes may have some."""
    tracks_progress: bool = False
    """Whether progress follows from its history."""
    tools: Callable[[Json, Any], Any] | None = None
    """Default rules of tools by the execution input (`asl.states.blocks.tool_policy.ToolRules`)."""
    settle: "ComputeBlocks | None" = None
    """Computes the blocks of the document that others read, None where all of them are written."""
    after_transition: AfterTransition | None = None
    """What happens after each transition of the top machine: automatic checkpoints."""

    def __repr__(self) -> str:
        return f"<Program {self.name!r}, profile {self.profile.name}>"

    def forked(self, step: Step, index: int | str) -> Machine | None:
        """Return the machine of a branch or an iteration of a state, None if it is not known."""
        for holder in step.machines:
            for pointer in (f"{step.pointer}/{holder}", f"{step.pointer}/{holder}/{index}"):
                if pointer in self.machines:
                    return self.machines[pointer]
        return None
