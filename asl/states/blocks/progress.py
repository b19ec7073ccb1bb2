"""Progress: percentages and milestones of states (Specification 8.13).

The agent of a Task reports its progress. That of a Map, a Parallel or the workflow is derived from
the history when events are read (`asl.engine.progress`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from math import isfinite
from typing import Any, Final, NamedTuple, TypeAlias

from asl.core.diagnostics import Finding, Severity
from asl.core.errors import ExpressionFault, StateError
from asl.core.values import Json, is_number
from asl.expr.frame import ExpressionFrame as ExpressionFrame
from asl.expr.paths import parse_reference_path
from asl.expr.templates import SUFFIX
from asl.expr.times import format_timestamp
from asl.program import Finish
from asl.states.base import Compiler, Node
from asl.states.blocks.base import Attempt, Block, Destination, Perform, compile_fields
from asl.states.effects import StateFrame
from asl.states.iteration import is_distributed
from asl.states.machines import nested_machines
from asl.states.schemas import foreign_fields
from asl.states.settings import BlockSettings

__all__ = [
    "EMITTED",
    "PROGRESS",
    "REACHED",
    "Follow",
    "Milestone",
    "ProgressPlan",
    "ReportedProgress",
    "Track",
    "Tracking",
    "check_streaming",
    "compile_following",
    "compile_tracking",
    "document_tracking",
    "evaluate_progress_path",
    "follow_progress",
    "parse_milestones",
    "progress_destination",
    "reported_progress",
    "store_progress",
    "store_streamed_progress",
]

UPDATED: Final = "ProgressUpdated"
REACHED: Final = "MilestoneReached"
EMITTED: Final = "EventEmitted"
"""The type of the record of a custom event."""
OF_STREAMING: Final = {"ProgressPath": "Path", "Milestones": "Milestones"}
"""The fields of Streaming, and the equal ones of Progress."""
COMPUTED_FIELDS: Final = ("Enabled", "Emit", "HeartbeatOnUpdate")
"""The fields of a Task that may be computed, except milestones."""


class Milestone(NamedTuple):
    """A percentage that is reported once."""

    at: float
    name: str | None
    emit: str | None
    """The name of an additional custom event."""

    def events(self) -> Iterator[tuple[str, dict[str, Json]]]:
        """Yield its events."""
        named = {} if self.name is None else {"name": self.name}
        yield REACHED, {"at": self.at, **named}
        if self.emit is not None:
            yield EMITTED, {"type": self.emit, "on": "milestone", "data": {"at": self.at, **named}}


class ProgressPlan(NamedTuple):
    """The reports of progress in a visit of a Task."""

    milestones: tuple[Milestone, ...]
    emit: str | None
    """The name of an additional custom event for each update."""
    silent: bool
    """Whether updates are not reported."""
    heartbeat: bool
    """Whether an update is a heartbeat."""


class ReportedProgress(NamedTuple):
    """The reported progress of a visit."""

    visit: int
    update: Json
    """The latest progress object; None before the first one."""
    reached: tuple[float, ...]
    """The reached milestones."""


def reported_progress(frame: StateFrame) -> ReportedProgress:
    """Return the reported progress of the current visit."""
    told: ReportedProgress | None = frame.progress
    return (
        ReportedProgress(frame.visit, None, ())
        if told is None or told.visit != frame.visit
        else told
    )


def report_progress(
    frame: StateFrame, plan: ProgressPlan, percentage: float, message: str, now: float
) -> None:
    """Record an update and the milestones it reaches, except those of 100 percent."""
    told = reported_progress(frame)
    due = [each for each in plan.milestones if 0 < each.at <= min(percentage, 100)]
    _tell(frame, plan, told, percentage, message, now, [each for each in due if each.at < 100])


def _tell(
    frame: StateFrame,
    plan: ProgressPlan,
    reported: ReportedProgress,
    percentage: float,
    message: str,
    now: float,
    due: Iterable[Milestone],
) -> None:
    new = [each for each in due if each.at not in reported.reached]
    before = None if reported.update is None else reported.update["milestone"]
    names = [each.name or each.emit for each in new]
    started = frame.entered
    left = None
    if percentage > 0:
        left = round((now - started) * (100 - percentage) / percentage, 3)
    details: dict[str, Json] = {
        "percentage": percentage,
        "milestone": names[-1] if names else before,
        "message": message,
        "startedAt": format_timestamp(started),
        "updatedAt": format_timestamp(now),
        "estimatedRemaining": left,
    }
    frame.progress = ReportedProgress(
        frame.visit, details, reported.reached + tuple(each.at for each in new)
    )
    if not plan.silent:
        frame.note(UPDATED, details)
    if plan.emit is not None:
        frame.note(EMITTED, {"type": plan.emit, "on": "progress", "data": details})
    _reach(frame, new)


def _reach(frame: StateFrame, milestones: Iterable[Milestone]) -> None:
    for milestone in milestones:
        for event, details in milestone.events():
            frame.note(event, details)


def clamp(percentage: Json) -> float | None:
    """Return a reported percentage, limited to 0 to 100; None for no number."""
    share: float | None = None
    if is_number(percentage) and (type(percentage) is int or isfinite(percentage)):
        share = max(0, min(100, percentage))
    return share


def _settings(compiler: Compiler) -> Compiler:
    """Return a compiler of the block, with the progress fields of the block Streaming."""
    streaming, block = compiler.state.get("Streaming", {}), compiler.compiler_at("Progress")
    besides = {
        own + suffix: streaming[name + suffix]
        for name, own in OF_STREAMING.items()
        for suffix in ("", SUFFIX)
        if name + suffix in streaming and {own, own + SUFFIX}.isdisjoint(block.state)
    }
    if besides:
        block.state = {**besides, **block.state}
    return block


def follow_progress(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the progress reports of a Task, from its entry to its success."""
    block = _settings(compiler)
    if not block.state and "Progress" not in compiler.state:
        return inner
    plan_of = _planned(block, compiler.name)

    async def perform(attempt: Attempt) -> Json:
        frame, plan = attempt.frame, plan_of(attempt)
        if plan is None:
            return await inner(attempt)
        told = reported_progress(frame)
        if frame.retries == 0:
            entered = [each for each in plan.milestones if each.at == 0]
            frame.progress = ReportedProgress(frame.visit, None, tuple(each.at for each in entered))
            _reach(frame, entered)
        attempt.set_call_attribute("progress", plan)
        result = await inner(attempt)
        told = reported_progress(frame)
        last = [each for each in plan.milestones if each.at == 100]
        if told.update is not None:
            _tell(frame, plan, told, 100, told.update["message"], frame.now, last)
        else:
            _reach(frame, last)
        return result

    return perform


def _planned(block: Compiler, state: str) -> Callable[[Attempt], ProgressPlan | None]:
    values, milestones = compile_fields(block, COMPUTED_FIELDS), block.template("Milestones")
    prefix, jsonata = "Progress.", block.jsonata

    def plan(attempt: Attempt) -> ProgressPlan | None:
        data, frame = attempt.data, attempt.frame
        found = BlockSettings(values(data, frame), jsonata, prefix, state)
        if not found.flag("Enabled", absent=True):
            return None
        written = [] if milestones is None else milestones(data, frame)
        if next(_faults(written), None) is not None:
            raise StateError("States.Runtime", f"state '{state}': Progress.Milestones do not fit")
        emit = found.values.get("Emit")
        name = None if type(emit) is bool else found.name("Emit")
        beats = found.flag("HeartbeatOnUpdate")
        return ProgressPlan(tuple(parse_milestones(written)), name, emit is False, beats)

    return plan


def parse_milestones(written: Json) -> Iterator[Milestone]:
    """Yield the milestones of a valid list."""
    for each in written:
        emit = each.get("Emit")
        yield Milestone(
            each["At"], each.get("Name"), each.get("Name") if emit is True else emit or None
        )


def _faults(written: Json) -> Iterator[tuple[int, str, str]]:
    """Yield index, field and fault of wrong milestones, beyond their schema."""
    if type(written) is not list or not all(type(each) is dict for each in written):
        yield 0, "", "milestones must be a list of objects"
        return
    for index, each in enumerate(written):
        if not is_number(each.get("At")) or not 0 <= each["At"] <= 100:
            yield index, "At", "a milestone must be at a percentage from 0 to 100"
            return
        if each.get("Emit") is True and "Name" not in each:
            yield (
                index,
                "Emit",
                "the event has no name: set 'Emit' to a name, or add 'Name'",
            )
    for index, (one, other) in enumerate(pairwise(written), 1):
        if one["At"] >= other["At"]:
            message = f"milestones must ascend: {other['At']:g} follows {one['At']:g}"
            yield index, "At", message


def progress_destination(compiler: Compiler) -> Destination:
    """Compile the output path of the final progress."""
    return Destination(_settings(compiler), "Path", "Progress.")


def evaluate_progress_path(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the evaluation of a computed path of the progress."""
    return progress_destination(compiler).evaluate_before(inner)


def store_progress(compiler: Compiler) -> Finish | None:
    """Compile the insertion of the final progress into the output; None without a path."""
    block = _settings(compiler).state
    if {"Path", "Path.$"}.isdisjoint(block) or block.get("Enabled") is False:
        return None
    target = progress_destination(compiler)

    def store(output: Json, result: Json, frame: ExpressionFrame) -> Json:
        told = reported_progress(frame)  # type: ignore[arg-type]  # it is the frame of a state
        return output if told.update is None else target.insert(output, told.update, frame)

    return store


def store_streamed_progress(compiler: Compiler) -> Finish | None:
    """Compile the same for a state that has `Streaming`, unless it has `Progress`, too."""
    return None if "Progress" in compiler.state else store_progress(compiler)


# --------------------------------------------------------------------------------------------
# Maps and Parallels


class Tracking(NamedTuple):
    """The derivation of the progress of a Map or a Parallel from that of its parts."""

    milestones: tuple[Milestone, ...]
    emit: str | None
    silent: bool
    each: bool
    """Whether the progress of each part is reported as well."""
    by: str
    """`completed`, `progress`, `average`, `minimum` or `weighted`; `states` of a document."""
    states: tuple[tuple[str, ...], ...] = ()
    """The names of the states in each branch, at any depth."""
    distributed: bool = False
    """Whether the parts are child executions."""
    open: bool = False
    """Whether the number of parts is known only at the end: they are read, or in batches."""
    weights: Mapping[str, float] | None = None
    """The weights of states of an included document."""
    whole: float = 0
    """Its 100 percent: the sum of the weights, or the number of its states."""


Track: TypeAlias = Callable[[Json, Any], Tracking | None]
"""`(raw input, frame) -> tracking`, None without progress; raises StateError."""
Follow: TypeAlias = Callable[[Json, StateFrame], bool]
"""`(raw input, frame)`: whether the progress of a visit is reported; raises StateError."""


def compile_tracking(compiler: Compiler) -> Track | None:
    """Compile the tracking of a Map or a Parallel; None without progress."""
    block: Mapping[str, Json] = compiler.state.get("Progress", {"Enabled": False})
    if block.get("Enabled") is False:
        return None
    settled, effective, state = (
        compiler.computed_block("Progress"),
        compiler.input(),
        compiler.state,
    )
    if settled is None:
        written = _tracking(block, state)
        return lambda raw, frame: written

    def track(raw: Json, frame: Any) -> Tracking | None:
        block = settled(effective(raw, frame), frame)
        return None if block.get("Enabled") is False else _tracking(block, state)

    return track


def compile_following(compiler: Compiler) -> Follow:
    """Compile the test for progress, made by a Map or a Parallel before its parts."""
    track, effective = compile_tracking(compiler), compiler.input()
    if track is None:
        return lambda raw, frame: False
    target, tracked = progress_destination(compiler), track

    def follow(raw: Json, frame: StateFrame) -> bool:
        followed = tracked(raw, frame) is not None
        if followed:
            target.settle(effective(raw, frame), frame)
        return followed

    return follow


def _tracking(block: Mapping[str, Json], state: Mapping[str, Json]) -> Tracking:
    emit = block.get("Emit", True)
    branches = state.get("Branches")
    return Tracking(
        tuple(parse_milestones(block.get("Milestones", ()))),
        emit if type(emit) is str else None,
        emit is False,
        block.get("PerItem", block.get("PerBranch")) is True,
        block.get("AggregateBy", "completed")
        if branches is None
        else block.get("Aggregation", "average"),
        tuple(tuple(_states(branch)) for branch in branches or ()),
        branches is None and _distributed(state),
        not state.keys().isdisjoint(("ItemReader", "ItemBatcher")),
    )


def document_tracking(block: Mapping[str, Json], states: int) -> Tracking | None:
    """Return the tracking of an included document with this number of states."""
    if block.get("Enabled") is False:
        return None
    weights = block.get("WeightedProgress") or None
    whole = block.get("TotalStates", states) if weights is None else sum(weights.values())
    return Tracking((), None, False, False, "states", weights=weights, whole=whole)


def _states(machine: Mapping[str, Json]) -> Iterator[str]:
    for name, state in machine["States"].items():
        yield name
        for _, inner in nested_machines(state):
            yield from _states(inner)


def record_counts(frame: StateFrame, completed: int, failed: int) -> None:
    """Record the final counts of a Map or a Parallel for its output."""
    update = {
        "total": completed + failed,
        "completed": completed,
        "inProgress": 0,
        "pending": 0,
        "failed": failed,
        "percentage": 100,
    }
    frame.progress = ReportedProgress(frame.visit, update, ())


# --------------------------------------------------------------------------------------------
# Checking


def _check(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    block, kind = node.value["Progress"], str(node.value.get("Type"))
    others = foreign_fields("blocks:Progress", kind)
    for field in block:
        if field.removesuffix(".$") in others:
            message = f"{field!r} has no effect on a {kind}"
            yield Finding("V-PRG-01", message, node.at("Progress", field), at_key=True)
    yield from _check_milestones(block, node, "Progress")
    yield from _check_path(block, "Path", node, "Progress")


def check_streaming(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    """Yield the findings on the progress fields of Streaming."""
    block, progress = node.value["Streaming"], node.value.get("Progress")
    yield from _check_milestones(block, node, "Streaming")
    yield from _check_path(block, "ProgressPath", node, "Streaming")
    for name, own in OF_STREAMING.items():
        if name in block and type(progress) is dict and own in progress:
            message = f"{name!r} has no effect next to '{own}' of 'Progress'"
            yield Finding("V-PRG-01", message, node.at("Streaming", name), at_key=True)


def _check_milestones(block: Mapping[str, Json], node: Node, name: str) -> Iterator[Finding]:
    written = block.get("Milestones", [])
    for index, each in enumerate(written if type(written) is list else ()):
        if type(each) is dict and each.keys().isdisjoint(("At", "At.$")):
            place = node.at(name, "Milestones", index)
            yield Finding("V-PRG-01", "'At' is missing", place, at_key=True)
    if not _is_list_of_numbers(written):
        return  # reported by the schema, or computed
    for index, field, message in _faults(written):
        yield Finding("V-PRG-01", message, node.at(name, "Milestones", index, field))


def _is_list_of_numbers(written: Json) -> bool:
    return type(written) is list and all(
        type(each) is dict and is_number(each.get("At")) and 0 <= each["At"] <= 100
        for each in written
    )


def _check_path(block: Mapping[str, Json], field: str, node: Node, name: str) -> Iterator[Finding]:
    target = block.get(field)
    if type(target) is not str or node.is_computed(target):
        return
    pointer = node.at(name, field)
    try:
        path = parse_reference_path(target)
    except ExpressionFault as fault:
        yield Finding("V-PRG-01", fault.message, pointer, fault.hint)
        return
    if path.root != "$" or not path.segments:
        message = f"{field!r} must be the path of a member, not {target!r}"
        yield Finding("V-PRG-01", message, pointer, "a path such as $.progress")


def _check_workflow(block: Mapping[str, Json]) -> Iterator[Finding]:
    weights = block.get("WeightedProgress")
    if type(weights) is dict and weights and all(each == 0 for each in weights.values()):
        message = "no state has a weight above 0"
        yield Finding("V-PRG-01", message, "/Progress/WeightedProgress")
    if type(weights) is dict and "TotalStates" in block:
        message = "'TotalStates' has no effect next to 'WeightedProgress'"
        place = "/Progress/TotalStates"
        yield Finding("V-PRG-01", message, place, severity=Severity.WARNING, at_key=True)


def _distributed(state: Mapping[str, Json]) -> bool:
    processor = "ItemProcessor" if "ItemProcessor" in state else "Iterator"
    return type(state.get(processor)) is dict and is_distributed(state, processor)


PROGRESS = Block(
    "Progress",
    _check,
    _check_workflow,
    lacks=("Milestones.$", "WeightedProgress.$"),
)
