"""What a state may ask of the world, and the frame through which it asks.

The interpreter and the state types know these protocols only. A host answers: in memory, on a
virtual clock, on disk or inside another engine.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json
from asl.expr.frame import Frame as ExpressionFrame
from asl.program import Machine, Scope, Step
from asl.states.objects import Bucket

__all__ = [
    "ABSENT",
    "Child",
    "Entry",
    "Exhausted",
    "Expired",
    "Fan",
    "Frame",
    "HeartbeatMissed",
    "Host",
    "Joined",
    "Options",
    "Part",
    "Question",
    "Raised",
    "Record",
    "Reported",
    "Request",
    "Run",
    "Saving",
    "Source",
    "Suspended",
    "Target",
    "is_function",
]

ABSENT: Json = object()
"""Stands in `Joined.values` where a tolerated child failed: no JSON value at all."""

Record: TypeAlias = tuple[Any, ...]
"""One entry of the flat history: `(kind, time, frame, visit, step, ...)`."""


class Raised(StateError):
    """An error that the document or an agent raised by name: its cause is passed on untouched."""


class Reported(Raised):
    """A failure that came by task token; it may lack its name and its cause."""


class HeartbeatMissed(StateError):
    """A missed heartbeat: reported as `States.Timeout`, matched by both names (register C-12)."""

    def __init__(self, cause: str | None) -> None:
        super().__init__("States.Timeout", cause)


class Suspended(BaseException):
    """The machine waits for people, and nothing of it needs to stay in memory meanwhile."""


class Expired(BaseException):
    """The execution's own time limit has passed; no catcher of the workflow may see this."""


class Exhausted(BaseException):
    """A state around has spent more than it may: it fails, whatever the machines in it catch."""

    def __init__(self, frame: "Frame", visit: int, error: StateError) -> None:
        super().__init__(error)
        self.frame = frame
        """The machine of that state."""
        self.visit = visit
        self.error = error


_INTEGRATION = re.compile(r"arn:[^:]*:states:[^:]*:[^:]*:([^:.]+)")
_ACTIVITY = re.compile(r"arn:[^:]*:states:[^:]*:[^:]*:activity:[^:]+")
_QUALIFIED = re.compile(r"(arn:[^:]*:lambda:[^:]*:[^:]*:function:[^:]+):[^:]+")
_INVOKE = re.compile(r"arn:[^:]*:states:[^:]*:[^:]*:lambda:invoke")
_FUNCTION = re.compile(r"arn:[^:]*:(?:lambda|\*)")
_PATTERNS = (".sync", ".sync:2", ".waitForTaskToken")


def is_function(name: str) -> bool:
    """Whether this is the ARN of a Lambda function, or a pattern of such."""
    return _FUNCTION.match(name) is not None


class Target:
    """Whom a state calls; one per state, made when the program is compiled."""

    __slots__ = ("aside", "base", "kind", "label", "name", "pattern", "state")

    def __init__(self, kind: str, name: str, state: str, *, aside: bool = False) -> None:
        self.kind = kind
        """`agent` or `resource`."""
        self.name = name
        self.state = state
        self.aside = aside
        """Whether it is called beside the agent of the state, so that no mock stands for it."""
        self.pattern = ""
        """The pattern of an integration: `.sync`, `.sync:2`, `.waitForTaskToken` or none."""
        self.base = name
        """The name without its integration pattern, or the function without its alias."""
        if kind == "resource":
            self.pattern = next((each for each in _PATTERNS if name.endswith(each)), "")
            function = _QUALIFIED.fullmatch(name)
            self.base = function[1] if function else name.removesuffix(self.pattern)
        service = _INTEGRATION.match(name) if kind == "resource" else None
        self.label = name if service is None else service.group(1)
        """The name in AWS's messages: that of an integration is its service (recorded)."""

    @property
    def is_activity(self) -> bool:
        """Whether workers ask for its tasks by themselves."""
        return self.kind == "resource" and _ACTIVITY.fullmatch(self.name) is not None

    @property
    def invokes(self) -> bool:
        """Whether it is asked to call the function that the request names."""
        return self.kind == "resource" and _INVOKE.fullmatch(self.base) is not None

    @property
    def by_token(self) -> bool:
        """Whether its answer comes by task token."""
        return self.pattern == ".waitForTaskToken" or self.is_activity


class Part(NamedTuple):
    """One of several calls that an attempt of a state makes; its timeout is that of them all."""

    key: str
    """Names the call: the same in every attempt of the visit."""
    attempt: int
    """1 for the first attempt."""
    began: float
    """When the attempt began."""


class Options:
    """What comes with one call beside its payload: limits, in seconds from the agent's start.

    *state* is the name for the cause of a timeout, None where a timeout has no cause.
    *credentials* are whatever the state's `Credentials` came to, None without them. *part* says
    which one of several calls of an attempt this is, None for the only one. `blocks` is what the
    agent blocks of the state hand over, by the names that `Call` has for it.
    """

    __slots__ = (
        "again", "began", "blocks", "credentials", "heartbeat", "part", "shared", "state", "timeout"
    )  # fmt: skip

    def __init__(
        self,
        timeout: float | None,
        heartbeat: float | None,
        state: str | None = None,
        credentials: Json = None,
        part: Part | None = None,
    ) -> None:
        self.timeout = timeout
        self.heartbeat = heartbeat
        self.state = state
        self.credentials = credentials
        self.part = part
        self.began = None if part is None else part.began
        """When the call began, None for now."""
        self.again = False
        """Whether the attempt may make the call again, in what is left of its time."""
        self.shared = False
        """Whether other calls have the same, so that nothing of it may be changed."""
        self.blocks: dict[str, Any] = {}

    def copy(self) -> "Options":
        """Return options that say the same."""
        made = Options(self.timeout, self.heartbeat, self.state, self.credentials, self.part)
        made.began, made.again, made.blocks = self.began, self.again, dict(self.blocks)
        return made

    @property
    def limited(self) -> bool:
        """Whether the call has a limit at all."""
        return self.timeout is not None or self.heartbeat is not None

    def left(self, now: float) -> float | None:
        """Return how many seconds a call may take from *now* on, None for no limit."""
        if self.timeout is None or self.began is None:
            return self.timeout
        return self.began + self.timeout - now

    def cause(self, what: str, seconds: float | None) -> str | None:
        """Return the cause of a timeout: *what* did not come within *seconds*."""
        if self.state is None:
            return None
        return f"state '{self.state}': no {what} within {seconds:g} s"


class Entry(NamedTuple):
    """One member of an object over which a Map runs."""

    key: str
    value: Json

    @property
    def input(self) -> Json:
        """What an iteration gets for it, where nothing else is said (AWS)."""
        return {"Key": self.key, "Value": self.value}


class Source(Protocol):
    """The items of a distributed Map, drawn one by one."""

    name: str
    """Where the item drawn last comes from, in AWS's words."""
    length: int | None
    """How many there are; None while only the end, where it is set, can show it."""

    def __iter__(self) -> Iterator[Json]: ...

    def close(self) -> None:
        """Read no more."""
        ...


class Request:
    """What is asked of somebody who answers later: by task token, or from within a job.

    *payload* goes to whom *target* names. The answer belongs to the token of the present attempt
    (`Frame.token`), so that a store can keep the request and the machine need not wait in memory.
    """

    __slots__ = ("options", "payload", "target")

    def __init__(self, target: Target, payload: Json, options: Options | None = None) -> None:
        self.target = target
        self.payload = payload
        self.options = options


class Question(NamedTuple):
    """What people are asked. Both parts are JSON, so that a store can keep them."""

    kind: str
    """`approval`."""
    body: Mapping[str, Json]
    """What they are shown; it holds all by which an answer is judged."""
    plan: Mapping[str, Json]
    """What happens without an answer; times in seconds after the request was made."""


class Child(NamedTuple):
    """An execution of another workflow that a state starts and waits for."""

    workflow: str
    """The id of the workflow among those that the run may start."""
    name: str
    """The name of the execution."""
    data: Json
    timeout: float | None
    """Seconds that it may take, None for no limit but its own."""


class Saving(NamedTuple):
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


class Fan:
    """Children that one state starts. They are made when a worker takes them, never before."""

    __slots__ = ("aborted", "child", "ended", "failed", "length", "limit", "series")

    def __init__(
        self,
        length: int | None,
        child: Callable[[int], "Frame | None"],
        limit: int = 0,
        *,
        failed: Callable[["Frame", StateError], StateError | None] = lambda frame, error: error,
        ended: Callable[["Frame", Json], object] | None = None,
        aborted: Callable[["Frame"], object] = lambda frame: None,
        series: "Iterator[Frame] | None" = None,
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


class Joined:
    """What a fan came to: values in order, `ABSENT` for each tolerated failure.

    They are not there where the fan took them itself.
    """

    __slots__ = ("failed", "values")

    def __init__(self, values: list[Json], failed: int) -> None:
        self.values = values
        self.failed = failed


class Run(Protocol):
    """One run of a distributed Map: its name, and the executions that are its children."""

    arn: str
    id: str
    pure: bool
    """Whether its children reach no world and tell nobody anything."""
    begun: int
    """How many children have begun, where they are not pure."""

    def selected(self, index: int, item: Json, source: str) -> "Frame":
        """Return the state's own machine as `ItemSelector` sees it with an item."""
        ...

    def child(self, index: int, data: Json, item: Json, source: str) -> "Frame":
        """Return the frame of a child execution, standing at its start."""
        ...

    def children(self, source: Source) -> "Iterator[Frame]":
        """Yield a child for each item, which is its input; pure ones share a frame.

        At its end the length of the source is known.
        """
        ...

    def told(self, fan: Fan, source: Source) -> Fan:
        """Return a fan of which is told how each child has ended, where anybody wants to know."""
        ...

    def shown(self, child: "Frame", error: StateError) -> str:
        """Return what may be said of the failure of a child outside of it."""
        ...

    def pause(self) -> None:
        """Tell them that those which have not ended wait for people."""
        ...


class Frame(ExpressionFrame, Protocol):
    """The running machine as a state type and a host see it."""

    host: "Host"
    step: Step
    data: Json
    visit: int
    now: float
    item: Json
    index: int
    entered: float
    """When the state under way was entered; a retry does not enter again."""
    progress: Any
    """What was told of the progress of the latest visit (`asl.states.blocks.progress.Told`)."""
    said: str | None
    """What the latest agent has said piece by piece, while it may not be shown; None for nothing
    of that kind."""
    destinations: Mapping[str, Any] | None
    """Where the latest visit puts what its blocks put into its output, as far as that is computed
    (`asl.states.blocks.base.Destination`)."""
    filled: Json
    scope: Scope | None
    """What the blocks of an included document say, in the frame of its machine."""
    unsaved: tuple[int, int, float]
    """The visit at which automatic checkpoints were last thought of, the transitions since the
    latest of them, and when that was."""

    def open_channels(self, scope: Scope) -> None:
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
    def place(self) -> "tuple[str | int, ...]":
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

    def child(self, index: int, machine: Machine, data: Json, item: Json = ABSENT) -> "Frame":
        """Return the frame of a machine that this one forks."""
        ...

    def run(self, machine: Machine, label: str, express: bool, pure: bool, tells: bool) -> Run:
        """Begin a run of a distributed Map whose children run *machine*.

        *pure* says that they reach no world, *tells* that what they tell follows from all they do.
        """
        ...

    def note(self, event: str, details: dict[str, Json]) -> None:
        """Put an event of the present state into the history, in AWS's words."""
        ...

    def reported(self, result: Json) -> Any:
        """Return the usage that a raw result reports (`asl.engine.execution.Used`)."""
        ...

    def account(self, state: str, result: Json) -> object:
        """Count the usage that an agent reports in its raw result."""
        ...

    def remaining(self) -> dict[str, dict[str, Json]]:
        """Return what may still be spent, by `workflow` and `state`."""
        ...

    def before_start(self) -> "Frame":
        """Return this machine as an `ItemSelector` sees it: its item, in its parent's state."""
        ...

    @property
    def emit(self) -> Callable[[Record], object]:
        """Take one history record; observation only."""
        ...


class Host(Protocol):
    """Performs effects. Each method returns the answer or raises StateError, and sets `at.now`."""

    async def resolve(self, at: Frame, targets: Sequence[Target]) -> None:
        """Make sure that every one of *targets* can be called, before the first is."""
        ...

    async def invoke(
        self, at: Frame, target: Target, payload: Json, options: Options | None = None
    ) -> Json:
        """Call an agent or a resource handler and return its raw result."""
        ...

    def begin(self, at: Frame, step: Step, data: Json) -> Awaitable[Json] | None:
        """Call the agent of a Task that has a `call`, given its raw input.

        Returns what the agent is awaited by, with nothing in between: `answered` takes what comes
        of it, `blamed` what it raises. None where the host has more to do; the work does it.
        """
        ...

    def answered(self, at: Frame, target: Target, answer: Json) -> Json:
        """Return the raw result that an agent's answer is."""
        ...

    def blamed(self, at: Frame, target: Target, error: BaseException) -> StateError:
        """Return what an exception of an agent is to its state; raises one that is not its own."""
        ...

    async def serve(self, at: Frame, service: str, payload: Json) -> Json:
        """Ask what the run itself offers, such as its `memory`."""
        ...

    def remember(self, at: Frame, request: Json) -> Json:
        """Carry out at once what an agent asks of the memory during its call; from any thread."""
        ...

    async def receive(self, at: Frame, request: Request) -> Json:
        """Hand a request over, record that it was taken, and return the answer when it comes."""
        ...

    async def ask(self, at: Frame, question: Question) -> Json:
        """Ask people and return their decision, or the automatic one (`asl.states.decisions`).

        Raises Suspended as long as there is none.
        """
        ...

    async def start(self, at: Frame, child: Child) -> Json:
        """Run another workflow as an execution of its own and return its output.

        Raises the error that it failed with, Suspended while it waits for people.
        """
        ...

    async def save(self, at: Frame, saving: Saving) -> Json:
        """Save the execution and return the data to go on with."""
        ...

    async def sleep_until(self, at: Frame, when: float) -> None:
        """Return when the clock has reached *when* (epoch seconds)."""
        ...

    async def fork(self, at: Frame, fan: Fan) -> Joined:
        """Run the children of *fan*; the first failure beyond the tolerated ones is raised."""
        ...

    def bucket(self, name: str) -> Bucket:
        """Return the bucket that the user has mapped; raises ObjectFault if there is none."""
        ...

    async def tick(self, at: Frame) -> None:
        """Stay cancellable: called after every bounded stretch of pure states."""
        ...
