"""Layer 2: a compiled workflow, built once by the compiler and never changed."""

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
"""A pure state that selects its successor: `(raw input, frame) -> (next step, output)`."""

Work: TypeAlias = Callable[[Json, Any], Awaitable[Json]]
"""The effect of a state: `(raw input, frame) -> raw result`."""

AfterTransition: TypeAlias = Callable[[Any], Awaitable[None]]
"""Hook between two states: `(frame)`, at the second one."""

EntryEvents: TypeAlias = Callable[
    [str, str, Collection[str], Json], "Iterator[tuple[str, dict[str, Json]]]"
]
"""Events of a dialect for an entered state: types of events with their details.

It takes the name and the type of the state, the names of the states of its machine, and the input.
"""

ComputeBlocks: TypeAlias = Callable[[Json, Any], Mapping[str, Any]]
"""`(input, frame) -> blocks with computed fields`; raises StateError."""

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

    A pure state has `transform` (output only; `next` follows) or `choose`. A state with an effect
    has `work`, a `finish` unless its result is its output, and may have retriers and catchers.
    `next` is None if the machine ends. The compiler links steps after creating them; nothing
    changes later.
    """

    name: str
    type: str
    pointer: str
    siblings: "Mapping[str, Step]" = field(default_factory=dict)
    """All states of the same machine, by name."""
    transform: Evaluate | None = None
    choose: Choose | None = None
    forks: bool = False
    """Whether its work has parts with history events (`asl.states.base.StateType`)."""
    machines: tuple[str, ...] = ()
    """Fields that contain machines."""
    label: str | None = None
    """Label of this end state in a template (Specification 9.2)."""
    resource: str | None = None
    """`Resource` of a Task, on which the names of its history events depend."""
    payload: Evaluate | None = None
    """Payload of a Task by its raw input; history evaluates it again."""
    limits: Callable[[Json, Any], Any] | None = None
    """The limits of a Task's call by its raw input (`asl.states.calls.CallOptions`); history
    evaluates it again."""
    details: Evaluate | None = None
    """Additional details of the event at the start of a call, by the raw input."""
    items: Evaluate | None = None
    """Items of a Map by its raw input; history evaluates it again."""
    tolerant: bool = False
    """Whether a Map has a tolerated failure count or percentage."""
    work: Work | None = None
    call: Any = None
    """Target of a Task that only passes its payload (`asl.states.calls.Target`), so that effects
    may `begin` the call instead of the work."""
    finish: Finish | None = None
    next: "Step | None" = None
    route: "Callable[[Json, Json, Any], Step | None] | None" = None
    """Successor in place of `next` after the work: `(raw input, raw result, frame)`."""
    retriers: tuple[Retrier, ...] = ()
    catchers: tuple[Catcher, ...] = ()
    hooks: Mapping[str, Any] | None = None
    """Emitted events by `enter`, `exit`, `error` (`asl.states.blocks.events.EventHook`)."""
    feedback: Callable[[Json, Any], dict[str, Json] | None] | None = None
    """Feedback request after a successful Task, by its raw input; None for none."""
    redact: Any = None
    """Redaction of a Task's data in events (`asl.states.blocks.audit.Redaction`)."""
    fill: "Callable[[Json], Mapping[str, Machine]] | None" = None
    """Machines of an Include by their pointers, for the values of its open parameters; history
    looks up their states."""
    progress: Callable[[Json, Any], Any] | None = None
    """Tracking of the progress of a Map or a Parallel (`asl.states.blocks.progress.Tracking`), by
    its raw input; history evaluates it again."""
    budget: Callable[[Json, Any], Any] | None = None
    """Limits of one visit (`budget_limits.Limits`), by its raw input."""

    def __repr__(self) -> str:
        return f"<{self.type} {self.name!r}>"


@dataclass(frozen=True, slots=True, eq=False)
class DocumentScope:
    """Block settings of an included document for its own states (8, 9)."""

    document: Mapping[str, Json]
    tools: Callable[[Json, Any], Any] | None = None
    """Its `DefaultTools` (`asl.states.blocks.tool_policy.ToolRules`), by the execution input."""
    settle: ComputeBlocks | None = None
    """Computes the blocks that are read as a whole, None if all are constant."""
    budget: Callable[[Json, Any], Any] | None = None
    """Limits of one visit (`budget_limits.Limits`), by its input."""
    blocks: Mapping[str, Any] = field(default_factory=dict)
    """The computed blocks, during a visit."""
    limits: Any = None
    """The limits, during a visit."""

    @property
    def has_tools(self) -> bool:
        """Whether it has rules or categories of tools."""
        return self.tools is not None or "ToolCategories" in self.document

    def with_input(self, data: Json, frame: Any) -> "DocumentScope":
        """Return the scope of a visit with its input.

        Raises:
            StateError: A computed value is invalid.
        """
        if self.settle is None and self.budget is None:
            return self
        return replace(
            self,
            blocks={} if self.settle is None else self.settle(data, frame),
            limits=None if self.budget is None else self.budget(data, frame),
        )

    def block(self, name: str) -> Mapping[str, Json] | None:
        """Return a block of the document, None without one."""
        own: Mapping[str, Json] | None = self.blocks.get(name)
        return self.document.get(name) if own is None else own


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """One `StartAt` with its `States`: the workflow itself, a branch or an iteration."""

    start: Step
    steps: Mapping[str, Step]
    pointer: str
    scope: DocumentScope | None = None
    """Block settings of an included document, in addition to the enclosing ones."""
    filled: Json = None
    """Values of parameters computed from data, in an included document."""


MachineOf: TypeAlias = Callable[[Mapping[str, Json]], Machine]
"""Returns the machine of an Include for the arguments of a run; raises
StateError("States.TemplateError") for invalid arguments."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Program:
    """A compiled workflow."""

    machine: Machine
    profile: Profile
    name: str
    timeout: float | None = None
    """Time limit of one execution in seconds, None for none."""
    machines: Mapping[str, Machine] = field(default_factory=dict)
    """Every machine of the workflow by the JSON Pointer of its object."""
    document: Mapping[str, Json] = field(default_factory=dict)
    """The compiled document."""
    budget: Callable[[Json, Any], Any] | None = None
    """Limits of one execution, by its input."""
    budgeted: bool = False
    """Whether the document or a state has a budget."""
    entry_events: EntryEvents | None = None
    """Additional history events for an entered state, None for none."""
    has_hooks: bool = False
    """Whether a state emits events."""
    has_channels: bool = False
    """Whether the document, or an included one, has channels for events."""
    may_open_channels: bool = False
    """Whether an included document may have channels."""
    tracks_progress: bool = False
    """Whether the history contains progress."""
    tools: Callable[[Json, Any], Any] | None = None
    """Default rules of tools by the execution input (`asl.states.blocks.tool_policy.ToolRules`)."""
    settle: "ComputeBlocks | None" = None
    """Computes the blocks that are read as a whole, None if all are constant."""
    after_transition: AfterTransition | None = None
    """Hook after each transition of the top machine, for automatic checkpoints."""

    def __repr__(self) -> str:
        return f"<Program {self.name!r}, profile {self.profile.name}>"

    def forked_machine(self, step: Step, index: int | str) -> Machine | None:
        """Return the machine of a branch or an iteration of a state, None if it is unknown."""
        for holder in step.machines:
            for pointer in (f"{step.pointer}/{holder}", f"{step.pointer}/{holder}/{index}"):
                if pointer in self.machines:
                    return self.machines[pointer]
        return None
