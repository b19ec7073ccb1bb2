"""The frame: the state of one running machine, as its states, expressions and effects see it."""

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
from asl.states.blocks.progress import ReportedProgress
from asl.states.effects import ABSENT, DistributedRun, Effects, Record
from asl.states.map_data import MapEntry

__all__ = ["NO_VARIABLES", "Frame"]

NO_VARIABLES: dict[str, Json] = {}
"""Shared and never changed: a machine's variables are replaced as a whole."""


class Frame:
    """A running machine; strictly sequential (protocol `asl.states.effects.ExpressionFrame`).

    `visit` counts the states that this machine has entered and never restarts, so that `(path,
    visit)` identifies a visit for ever. `variables` holds the machine's own variables over those of
    the enclosing machines; it is replaced, never changed.
    """

    # As with an execution: slots for attributes of every machine, and no `__init__`.
    __slots__ = (
        "__dict__",
        "data",
        "effects",
        "entered",
        "execution",
        "fork_origin",
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
    """State, visit and ordinal of the parent's effect that forked this machine."""
    fork_origin: Origin
    """Origin of the machines that this one is forking."""
    item: Json
    entered: float
    """Time at which the current effect was entered; a retry does not enter again."""
    source = ""
    """Source of an item of a distributed Map."""
    _usage: UsageTotals | None = None
    random_draws = (-1, 0)
    """Visit of the last random draw, and the number of draws in it."""
    _performed = (-1, 0)
    """Visit of the last counted effect, and its ordinal."""
    _replay: WorkMeter | None = None
    """Work of repeated evaluations, None for a running machine."""
    spending: Account | None = None
    """Account of the latest visit with a budget."""
    fork_accounts: tuple[Origin, list[Account]] | None = None
    """Origin of the machines forked last, and the accounts around them."""
    partial_answer: str | None = None
    """Streamed text of the latest agent that may not be shown yet; None without such text."""
    progress: ReportedProgress | None = None
    """Reported progress of the latest visit."""
    destinations: Mapping[str, Any] | None = None
    """Computed paths of block outputs in the output of the latest visit
    (`asl.states.blocks.base.Destination`)."""
    parameter_values: Json = None
    """Parameter values computed from data, in the machine of an included document."""
    scope: DocumentScope | None = None
    """Block settings of an included document, in the frame of its machine."""
    stops_children = False
    """Whether the forked machines are being stopped."""
    log: Any = None
    """Journal state of the machine (`asl.effects.journaled.log.MachineLog`)."""
    _attempts: tuple[int, dict[int, tuple[int, float]]] = (-1, {})
    """Visit of the last retry, and `attempts` in it."""
    checkpoint_progress = (-1, 0, 0.0)
    """State of automatic checkpoints: visit of the last check, transitions since the latest
    checkpoint, and its time."""
    resumed: tuple[int, Json] | None = None
    """Visit at which the machine resumed from a checkpoint, and the checkpoint's id."""

    def init(
        self,
        execution: Execution,
        effects: "Effects[Frame]",
        step: Step,
        data: Json,
        now: float,
        variables: dict[str, Json] = NO_VARIABLES,
    ) -> Self:
        """Set the attributes of every machine, at the start of *step*, and return it."""
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
        """Return the frame of a machine that this one forks, at its first state."""
        made = Frame()
        made.execution, made.effects, made.step = self.execution, self.effects, machine.start
        made.data, made.now, made.variables = data, self.now, self.variables
        made.visit, made.entered = 0, self.now
        made.parent, made.origin = self, self.fork_origin
        made.index, made.item = index, item
        return made

    def begin_fork(self) -> None:
        """Mark the current effect as a fork, before its first child is created."""
        self.fork_origin = self.step, self.visit, self.ordinal

    def is_stopped(self) -> bool:
        """Whether a fork that contains this machine is being stopped."""
        around = self.parent
        while around is not None:
            if around.stops_children:
                return True
            around = around.parent
        return False

    def selector_frame(self) -> "Frame":
        """Return the frame in which `ItemSelector` is evaluated: the item, in the parent's
        state.
        """
        at = self.frame_at(-1, self.variables, self.now, self.usage)
        at._replay = None
        if self.parent is not None:
            at.step, at.entered = self.parent.step, self.parent.entered
            at._attempts = at.visit, self.parent.attempts
        return at

    def frame_at(
        self,
        visit: int,
        variables: dict[str, Json],
        now: float,
        usage: UsageTotals,
        retries: int = 0,
    ) -> "Frame":
        """Return this frame as of *visit*, to run pure states or expressions again."""
        at = Frame().init(self.execution, self.effects, self.step, None, now, variables)
        at.parent, at.index, at.item, at.visit = self.parent, self.index, self.item, visit
        if self.parent is not None:
            at.origin = self.origin
        at._usage, at.resumed, at._replay = usage, self.resumed, WorkMeter()
        at._attempts = visit, {0: (retries, 0.0)}
        return at

    @property
    def work(self) -> WorkMeter:
        """Work of all evaluations since the state was entered, or since its effect ended."""
        if self._replay is not None:
            return self._replay
        return self.execution.work or self.execution.meter()

    @property
    def emit(self) -> Callable[[Record], object]:
        """Function that takes one history record; without influence on the machine."""
        return self.execution.emit

    def run(
        self, machine: Machine, label: str, express: bool, pure: bool, emits: bool
    ) -> DistributedRun:
        """Start a run of a distributed Map.

        Args:
            machine: Machine of the child executions.
            label: Label of the run in ids.
            express: Whether the children are express executions.
            pure: Whether the children perform no effects.
            emits: Whether the children emit events of blocks.
        """
        from asl.engine.map_run import MapRun

        return MapRun(self, machine, label, express, pure, emits)

    def open_channels(self, scope: DocumentScope) -> None:
        """Open the channels of a document that the current state includes, if it has any."""
        delivery = self.execution.delivery
        if delivery is not None:
            delivery.open((*self.place, self.step.name), scope.block)

    def child_listener(self) -> Any:
        """Return the listener of an execution that the current state starts, None without one."""
        within = getattr(self.execution.listener, "within", None)
        return None if within is None else within((*self.place, self.step.name))

    def note(self, event: str, details: dict[str, Json]) -> None:
        """Record an event of the current state in the history."""
        self.execution.emit((NOTED, self.now, self, self.visit, self.step, event, details))

    def describe(self) -> dict[str, Json]:
        """Return AWS's description of the machine's execution, without its result."""
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
        """Id of the execution."""
        return self.execution.id

    @property
    def workflow(self) -> str:
        """Name of the workflow."""
        return self.execution.workflow

    @property
    def path(self) -> str:
        """Path of forks from the top machine to this one, such as `/Each@12.0[17]`."""
        if self.parent is None:
            return ""
        step, visit, ordinal = self.origin
        return f"{self.parent.path}/{escape(step.name)}@{visit}.{ordinal}[{self.index}]"

    @property
    def place(self) -> tuple[str | int, ...]:
        """The same path as names of states and indices of branches or items, outermost first."""
        if self.parent is None:
            return ()
        return (*self.parent.place, self.origin[0].name, self.index)

    @property
    def scopes(self) -> list[DocumentScope]:
        """Block settings of the enclosing included documents, outermost first."""
        around = [] if self.parent is None else self.parent.scopes
        return around if self.scope is None else [*around, self.scope]

    @property
    def requestor(self) -> str | None:
        """Who started the execution, None if unknown."""
        return self.execution.requestor

    @property
    def key(self) -> str:
        """Key of the current effect; it identifies answers, children and requests."""
        return f"{self.visit_key}.{self.ordinal}"

    @property
    def visit_key(self) -> str:
        """Key of the current visit; the same for all of its effects."""
        return f"{self.path}/{escape(self.step.name)}@{self.visit}"

    @property
    def ordinal(self) -> int:
        """Number of effects of the visit counted before the current one."""
        visit, ordinal = self._performed
        return ordinal if visit == self.visit else 0

    def count_effect(self) -> int:
        """Count an effect of the visit and return its ordinal."""
        visit, ordinal = self._performed
        ordinal = ordinal + 1 if visit == self.visit else 0
        self._performed = self.visit, ordinal
        return ordinal

    def next_effect(self, path: str | None = None) -> str:
        """Count an effect of the visit and return its key.

        Args:
            path: Path of the machine if known, else None.
        """
        ordinal = self.count_effect()
        path = self.path if path is None else path
        return f"{path}/{escape(self.step.name)}@{self.visit}.{ordinal}"

    def show_usage(self, usage: UsageTotals | None) -> None:
        """Set the usage that expressions see, as of a recorded answer; None for the current
        usage.
        """
        self._usage = usage

    def position(self) -> dict[str, Json]:
        """Return the position of the machine at the beginning of its visit, as JSON."""
        position: dict[str, Json] = {
            "state": self.step.name,
            "visit": self.visit,
            "data": self.data,
            "variables": self.variables,
            "now": self.now,
        }
        if self.begins_execution:
            position["started"] = self.execution.started
        if self.checkpoint_progress[0] >= 0:
            position["unsaved"] = list(self.checkpoint_progress)
        if self.resumed is not None and self.resumed[0] == self.visit:
            position["checkpoint"] = self.resumed[1]
        return position

    @property
    def begins_execution(self) -> bool:
        """Whether it is the machine of a child execution of a distributed Map."""
        return self.parent is not None and self.execution is not self.parent.execution

    def interrupted_position(self, failed: bool) -> dict[str, Json]:
        """Return the position from which a machine that was interrupted in a visit continues.

        A failed state starts again without counted retries; finished children of a fork are reused.
        A state that was interrupted continues with the current effect.

        Args:
            failed: Whether the state has failed.
        """
        position = self.position()
        position["again"] = True
        if failed:  # a redrive starts it again
            position.pop("started", None)
        if self._performed[0] == self.visit:
            forked = getattr(self, "fork_origin", None) == (self.step, self.visit, self.ordinal)
            position["ordinal"] = self.ordinal + (failed and not forked)
        if not failed and self.retries:
            position["attempts"] = [[index, *made] for index, made in self.attempts.items()]
        return position

    def discard(self) -> None:
        """Discard the results of forked machines: a redrive performs the state from its beginning
        (AWS).
        """
        self.fork_origin = self.step, self.visit, -1

    def restore(self, position: Json) -> None:
        """Restore the machine at a position."""
        state = position["state"]  # None if nothing is left to do
        self.step = None if state is None else self.step.siblings[state]  # type: ignore[assignment]
        self.data, self.variables = position["data"], position["variables"]
        self.visit, self.now = position["visit"], position["now"]
        if "started" in position:
            self.execution.started = position["started"]
        if "again" in position:
            self.now = max(self.now, self.execution.redriven or 0.0)
        if "ordinal" in position:
            self._performed = self.visit, position["ordinal"] - 1
        if "attempts" in position:
            attempts = {index: (made, delay) for index, made, delay in position["attempts"]}
            self._attempts = self.visit, attempts
        if "unsaved" in position:
            visit, transitions, latest = position["unsaved"]
            self.checkpoint_progress = visit, transitions, latest
        if "checkpoint" in position:
            self.resumed = self.visit, position["checkpoint"]

    @property
    def token(self) -> str:
        """Task token of the current attempt, the same when the execution is repeated."""
        again = (self.execution.redrives,) if self.execution.redrives else ()
        return digest(self.execution.id, self.visit_key, self.retries, *again)

    @property
    def child_name(self) -> str:
        """Name of the execution that the current attempt starts; unique, and the same after a
        redrive.
        """
        execution = self.execution
        return f"{execution.name}.{digest(execution.id, self.visit_key, self.retries)[:12]}"

    @property
    def usage(self) -> UsageTotals:
        """Totals of the execution; in a replayed frame those at that time."""
        return self._usage or self.execution.usage

    def price(self, model: str) -> Decimal | None:
        """Return the price of one input token of *model*, None if it is unknown."""
        price = self.execution.prices.get(model)
        return None if price is None else price.input

    def entropy(self) -> int:
        """Return 128 bits that depend only on the execution, the visit and the number of the
        draw.
        """
        visit, draws = self.random_draws
        self.random_draws = self.visit, draws + 1 if visit == self.visit else 1
        return int(digest(self.execution.id, self.path, *self.random_draws)[:32], 16)

    def reported_usage(self, result: Json) -> CallUsage:
        """Return the usage that a raw result reports."""
        return reported_usage(result if type(result) is dict else {}, self.execution.prices)

    def account(self, state: str, result: Json) -> CallUsage:
        """Count the usage that an agent reports in its raw result, and return it."""
        used = self.execution.account(state, result)
        if used.fault is not None:
            self.note("UsageWarning", {"reason": f"{used.fault} is no usage, so it is ignored"})
        return used

    def remaining_budgets(self) -> dict[str, dict[str, Json]]:
        """Return the remaining amounts of limits, by `workflow` and `state`."""
        ledger = self.execution.ledger
        return {"workflow": {}, "state": {}} if ledger is None else ledger.remaining_budgets(self)

    @property
    def attempts(self) -> dict[int, tuple[int, float]]:
        """Number of retries and last delay of each retrier in this visit, by its index."""
        visit, attempts = self._attempts
        if visit != self.visit:
            attempts = {}
            self._attempts = self.visit, attempts
        return attempts

    @property
    def retries(self) -> int:
        """Number of retries of the current visit by all retriers."""
        visit, attempts = self._attempts
        return sum(made for made, _ in attempts.values()) if visit == self.visit else 0

    def context(self, root: str, at: StateView) -> Json:
        """Return one member of the context object (Specification 3.10).

        Raises:
            KeyError: There is no such member.
        """
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
    """Return a hash of 64 hexadecimal digits that identifies something within an execution."""
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
