"""The frame: what one machine in flight is, as its states, expressions and effects see it."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Self

from asl.core.pointers import escape
from asl.core.values import Json, compact
from asl.core.work import WorkMeter
from asl.engine.execution import Execution
from asl.engine.limits import Account, Origin
from asl.engine.records import NOTED
from asl.engine.usage import CallUsage, UsageTotals, reported_usage
from asl.expr.frame import StateView
from asl.expr.times import format_timestamp
from asl.program import DocumentScope, Machine, Step
from asl.states.blocks.progress import Told
from asl.states.effects import ABSENT, DistributedRun, Effects, MapEntry, Record

__all__ = ["NO_VARIABLES", "Frame"]

NO_VARIABLES: dict[str, Json] = {}
"""Never changed: a machine's variables are replaced."""


class Frame:
    """One machine in flight; strictly sequential (protocol `asl.states.effects.Frame`).

    `visit` counts the states that this machine has entered and never restarts, so that
    `(path, visit)` names a state's visit for ever. `variables` holds the machine's own variables
    over those of the machines around it; it is replaced, never changed.
    """

    # As with an execution: slots for what every machine has, and no `__init__`.
    __slots__ = (
        "__dict__",
        "data",
        "effects",
        "entered",
        "execution",
        "forking",
        "index",
        "item",
        "now",
        "origin",
        "parent",
        "step",
        "variables",
        "visit",
    )
    execution: Execution
    effects: "Effects[Frame]"
    step: Step
    data: Json
    now: float
    variables: dict[str, Json]
    visit: int
    parent: "Frame | None"
    index: int
    origin: Origin
    """The state, visit and ordinal of the parent in which this machine was forked."""
    forking: Origin
    """The origin of the machines that this one forks now."""
    item: Json
    entered: float
    """When the effect under way was entered; a retry does not enter again."""
    source = ""
    """Where the item of a distributed Map comes from."""
    _usage: UsageTotals | None = None
    draws = (-1, 0)
    """The visit of the last random draw, and how many there were in it."""
    _performed = (-1, 0)
    """The visit of the last effect that was counted, and its ordinal."""
    _replay: WorkMeter | None = None
    """The work of evaluations that are made again, None for a machine that runs."""
    spending: Account | None = None
    """What the latest visit with a budget has spent."""
    around: tuple[Origin, list[Account]] | None = None
    """The origin of the machines forked last, and the accounts around these."""
    partial_answer: str | None = None
    """What the latest agent has said piece by piece, while it may not be shown; None for nothing
    of that kind."""
    progress: Told | None = None
    """What was told of the progress of the latest visit."""
    destinations: Mapping[str, Any] | None = None
    """Where the latest visit puts what its blocks put into its output, as far as that is computed
    (`asl.states.blocks.base.Destination`)."""
    filled: Json = None
    """The values that the data has filled in, in the machine of an included document."""
    scope: DocumentScope | None = None
    """What the blocks of an included document say, in the frame of its machine."""
    stops_children = False
    """Whether the machines that this one has forked are being stopped."""
    log: Any = None
    """What a host that keeps a journal remembers of the machine."""
    _tried: tuple[int, dict[int, tuple[int, float]]] = (-1, {})
    """The visit of the last retry, and `attempts` in it."""
    unsaved = (-1, 0, 0.0)
    """The visit at which automatic checkpoints were last thought of, the transitions since the
    latest of them, and when that was."""
    resumed: tuple[int, Json] | None = None
    """The visit with which the machine went on from a checkpoint, and what that is called."""

    def init(
        self,
        execution: Execution,
        effects: "Effects[Frame]",
        step: Step,
        data: Json,
        now: float,
        variables: dict[str, Json] = NO_VARIABLES,
    ) -> Self:
        """Stand at *step*, and return it."""
        self.execution = execution
        self.effects = effects
        self.step = step
        self.data = data
        self.now = now
        self.variables = variables
        self.visit = self.index = 0
        self.parent = None
        self.item = ABSENT
        self.entered = now
        return self

    def child(self, index: int, machine: Machine, data: Json, item: Json = ABSENT) -> "Frame":
        """Return the frame of a machine that this one forks, standing at its start."""
        made = Frame()
        made.execution, made.effects, made.step = self.execution, self.effects, machine.start
        made.data, made.now, made.variables = data, self.now, self.variables
        made.visit, made.entered = 0, self.now
        made.parent, made.origin = self, self.forking
        made.index, made.item = index, item
        return made

    def begin_fork(self) -> None:
        """Say that the effect under way is a fork; it is, before its first child is made."""
        self.forking = self.step, self.visit, self.ordinal

    def is_stopped(self) -> bool:
        """Whether a fork is being stopped that this machine belongs to."""
        around = self.parent
        while around is not None:
            if around.stops_children:
                return True
            around = around.parent
        return False

    def selector_frame(self) -> "Frame":
        """Return this machine as an `ItemSelector` sees it: its item, in its parent's state."""
        at = self.replayed(-1, self.variables, self.now, self.usage)
        at._replay = None
        if self.parent is not None:
            at.step, at.entered = self.parent.step, self.parent.entered
            at._tried = at.visit, self.parent.attempts
        return at

    def replayed(
        self,
        visit: int,
        variables: dict[str, Json],
        now: float,
        usage: UsageTotals,
        retries: int = 0,
    ) -> "Frame":
        """Return this frame as it was at *visit*, to run pure states or expressions again."""
        at = Frame().init(self.execution, self.effects, self.step, None, now, variables)
        at.parent, at.index, at.item, at.visit = self.parent, self.index, self.item, visit
        if self.parent is not None:
            at.origin = self.origin
        at._usage, at.resumed, at._replay = usage, self.resumed, WorkMeter()
        at._tried = visit, {0: (retries, 0.0)}
        return at

    @property
    def work(self) -> WorkMeter:
        """The work of all evaluations since the state was entered, or since its effect ended."""
        if self._replay is not None:
            return self._replay
        return self.execution.work or self.execution.meter()

    @property
    def emit(self) -> Callable[[Record], object]:
        """Take one history record; observation only."""
        return self.execution.emit

    def run(
        self, machine: Machine, label: str, express: bool, pure: bool, tells: bool
    ) -> DistributedRun:
        """Begin a run of a distributed Map whose children run *machine*.

        *pure* says that they reach no world, *tells* that what they tell follows from what they do.
        """
        from asl.engine.map_run import MapRun

        return MapRun(self, machine, label, express, pure, tells)

    def open_channels(self, scope: DocumentScope) -> None:
        """Open the channels of a document that the present state includes, if it has any."""
        delivery = self.execution.delivery
        if delivery is not None:
            delivery.open((*self.place, self.step.name), scope.block)

    def listening(self) -> Any:
        """Return who listens to an execution that the present state starts, None for nobody."""
        within = getattr(self.execution.listener, "within", None)
        return None if within is None else within((*self.place, self.step.name))

    def note(self, event: str, details: dict[str, Json]) -> None:
        """Put an event of the present state into the history."""
        self.execution.emit((NOTED, self.now, self, self.visit, self.step, event, details))

    def describe(self) -> dict[str, Json]:
        """Return what AWS tells of the machine's execution, apart from what it came to."""
        execution = self.execution
        return {
            "ExecutionArn": execution.id,
            "Input": compact(execution.input),
            "InputDetails": {"Included": True},
            "Name": execution.name,
            "RedriveCount": execution.redrives,
            "StartDate": format_timestamp(execution.started),
            "StateMachineArn": execution.workflow_id,
            "StopDate": format_timestamp(self.now),
        }

    @property
    def execution_id(self) -> str:
        """The id of the execution that the machine belongs to."""
        return self.execution.id

    @property
    def workflow(self) -> str:
        """The name of the workflow."""
        return self.execution.workflow

    @property
    def path(self) -> str:
        """The path of forks from the top machine down to this one: `/Each@12.0[17]`."""
        if self.parent is None:
            return ""
        step, visit, ordinal = self.origin
        return f"{self.parent.path}/{escape(step.name)}@{visit}.{ordinal}[{self.index}]"

    @property
    def place(self) -> tuple[str | int, ...]:
        """The same as names of states and indices of branches or items, outermost first."""
        if self.parent is None:
            return ()
        return (*self.parent.place, self.origin[0].name, self.index)

    @property
    def scopes(self) -> list[DocumentScope]:
        """What the documents say that are included around, the outermost first."""
        around = [] if self.parent is None else self.parent.scopes
        return around if self.scope is None else [*around, self.scope]

    @property
    def requestor(self) -> str | None:
        """Who has started the execution, None where nobody said."""
        return self.execution.requestor

    @property
    def key(self) -> str:
        """The key of the effect under way; it names answers, children and requests."""
        return f"{self.visit_key}.{self.ordinal}"

    @property
    def visit_key(self) -> str:
        """The key of the visit under way; the same for all of its effects."""
        return f"{self.path}/{escape(self.step.name)}@{self.visit}"

    @property
    def ordinal(self) -> int:
        """How many effects of the visit were counted before the one under way."""
        visit, ordinal = self._performed
        return ordinal if visit == self.visit else 0

    def count_effect(self) -> int:
        """Count an effect of the visit and return its ordinal."""
        visit, ordinal = self._performed
        ordinal = ordinal + 1 if visit == self.visit else 0
        self._performed = self.visit, ordinal
        return ordinal

    def next_effect(self, path: str | None = None) -> str:
        """Count an effect of the visit and return its key; *path* is the machine's, if known."""
        ordinal = self.count_effect()
        path = self.path if path is None else path
        return f"{path}/{escape(self.step.name)}@{self.visit}.{ordinal}"

    def show_usage(self, usage: UsageTotals | None) -> None:
        """Let expressions see what the execution had spent when a recorded answer came."""
        self._usage = usage

    def position(self) -> dict[str, Json]:
        """Return where the machine stands, at the beginning of its visit, as JSON."""
        position: dict[str, Json] = {
            "state": self.step.name,
            "visit": self.visit,
            "data": self.data,
            "variables": self.variables,
            "now": self.now,
        }
        if self.unsaved[0] >= 0:
            position["unsaved"] = list(self.unsaved)
        if self.resumed is not None and self.resumed[0] == self.visit:
            position["checkpoint"] = self.resumed[1]
        return position

    def interrupted_position(self, failed: bool) -> dict[str, Json]:
        """Return from where the machine can go on though it was cut off in the middle of a visit.

        A state that has failed is tried anew, and counts no retries; the children of a fork keep
        what they came to. A state that was cut off goes on with the effect under way.
        """
        position = self.position()
        position["again"] = True
        if self._performed[0] == self.visit:
            forked = getattr(self, "forking", None) == (self.step, self.visit, self.ordinal)
            position["ordinal"] = self.ordinal + (failed and not forked)
        if not failed and self.retries:
            position["attempts"] = [[index, *made] for index, made in self.attempts.items()]
        return position

    def discard(self) -> None:
        """Keep nothing of what the state has forked: redriven, it does all of it again (AWS)."""
        self.forking = self.step, self.visit, -1

    def restore(self, position: Json) -> None:
        """Stand where the machine stood when *position* was taken."""
        state = position["state"]  # None where nothing is left to do
        self.step = None if state is None else self.step.siblings[state]  # type: ignore[assignment]
        self.data, self.variables = position["data"], position["variables"]
        self.visit, self.now = position["visit"], position["now"]
        if "again" in position:
            self.now = max(self.now, self.execution.redriven or 0.0)
        if "ordinal" in position:
            self._performed = self.visit, position["ordinal"] - 1
        if "attempts" in position:
            attempts = {index: (made, delay) for index, made, delay in position["attempts"]}
            self._tried = self.visit, attempts
        if "unsaved" in position:
            visit, transitions, latest = position["unsaved"]
            self.unsaved = visit, transitions, latest
        if "checkpoint" in position:
            self.resumed = self.visit, position["checkpoint"]

    @property
    def token(self) -> str:
        """The task token of the attempt under way, the same when the execution is repeated."""
        again = (self.execution.redrives,) if self.execution.redrives else ()
        return digest(self.execution.id, self.visit_key, self.retries, *again)

    @property
    def child_name(self) -> str:
        """The name of the execution that the attempt under way starts: no other has the same.

        After a redrive it is still that one, which goes on.
        """
        execution = self.execution
        return f"{execution.name}.{digest(execution.id, self.visit_key, self.retries)[:12]}"

    @property
    def usage(self) -> UsageTotals:
        """Totals of the whole execution; as they were then, in a frame that replays."""
        return self._usage or self.execution.usage

    def price(self, model: str) -> Decimal | None:
        """Return the price of one input token of *model*, None if it is not known."""
        price = self.execution.prices.get(model)
        return None if price is None else price.input

    def entropy(self) -> int:
        """Return 128 bits that depend on the execution, the visit and the draw alone."""
        visit, draws = self.draws
        self.draws = self.visit, draws + 1 if visit == self.visit else 1
        return int(digest(self.execution.id, self.path, *self.draws)[:32], 16)

    def reported(self, result: Json) -> CallUsage:
        """Return the usage that a raw result reports."""
        return reported_usage(result if type(result) is dict else {}, self.execution.prices)

    def account(self, state: str, result: Json) -> CallUsage:
        """Count the usage that an agent reports in its raw result, and return it."""
        used = self.execution.account(state, result)
        if used.fault is not None:
            self.note("UsageWarning", {"reason": f"{used.fault} is no usage, so it is ignored"})
        return used

    def remaining(self) -> dict[str, dict[str, Json]]:
        """Return what may still be spent, by `workflow` and `state`."""
        ledger = self.execution.ledger
        return {"workflow": {}, "state": {}} if ledger is None else ledger.remaining(self)

    @property
    def attempts(self) -> dict[int, tuple[int, float]]:
        """The retries of each retrier in this visit and its last delay, by its position."""
        visit, attempts = self._tried
        if visit != self.visit:
            attempts = {}
            self._tried = self.visit, attempts
        return attempts

    @property
    def retries(self) -> int:
        """How often the present visit has been retried, all retriers together."""
        visit, attempts = self._tried
        return sum(made for made, _ in attempts.values()) if visit == self.visit else 0

    def context(self, root: str, at: StateView) -> Json:
        """Return one member of the context object (Specification 3.10); KeyError if absent."""
        given = self.execution.context
        return _CONTEXT[root](self, at) if given is None else given[root]


def _execution(frame: Frame, at: StateView) -> Json:
    execution = frame.execution
    found: dict[str, Json] = {
        "Id": execution.id,
        "Input": execution.input,
        "Name": execution.name,
        "RoleArn": execution.role,
        "StartTime": format_timestamp(execution.started),
    }
    if execution.counts_redrives:
        found["RedriveCount"] = execution.redrives
        if execution.redriven is not None:
            found["RedriveTime"] = format_timestamp(execution.redriven)
    if execution.program.profile.agent_native:
        found["Cost"] = float(frame.usage.cost)
        found["TokensUsed"] = frame.usage.tokens
    return found


def _state(frame: Frame, at: StateView) -> Json:
    # A pure state is entered and left in the same instant.
    in_effect = frame.step.work is not None and frame.step.name == at.state
    entered = frame.entered if in_effect else frame.now
    found: dict[str, Json] = {"Name": at.state, "EnteredTime": format_timestamp(entered)}
    if at.effect:
        found["RetryCount"] = frame.retries
    return found


def _state_machine(frame: Frame, at: StateView) -> Json:
    return {"Id": frame.execution.workflow_id, "Name": frame.execution.workflow}


def _task(frame: Frame, at: StateView) -> Json:
    if not at.effect:
        raise KeyError("Task")
    return {"Token": frame.token}


def digest(*parts: object) -> str:
    """Return a hash, in 64 hexadecimal digits, of what identifies something within an execution."""
    from hashlib import sha256

    return sha256("\n".join(map(str, parts)).encode()).hexdigest()


def _map(frame: Frame, at: StateView) -> Json:
    """The innermost Map's item, also inside the states of the iteration (register C-21)."""
    machine: Frame | None = frame
    while machine is not None and machine.execution is frame.execution:
        if machine.item is not ABSENT:
            return {"Item": _item(machine)}
        machine = machine.parent
    raise KeyError("Map")


def _item(machine: Frame) -> dict[str, Json]:
    found: dict[str, Json] = {"Index": machine.index, "Value": machine.item}
    if type(machine.item) is MapEntry:
        found["Key"], found["Value"] = machine.item
    if machine.source:
        found["Source"] = machine.source
    return found


def _checkpoint(frame: Frame, at: StateView) -> Json:
    if frame.resumed is None or frame.resumed[0] != frame.visit:
        raise KeyError("Checkpoint")
    return frame.resumed[1]


_CONTEXT: Mapping[str, Callable[[Frame, StateView], Json]] = MappingProxyType(
    {
        "Execution": _execution,
        "State": _state,
        "StateMachine": _state_machine,
        "Task": _task,
        "Map": _map,
        "Checkpoint": _checkpoint,
    }
)
