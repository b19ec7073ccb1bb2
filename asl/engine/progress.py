"""The progress of Maps, Parallels and the workflow, derived from the history (8.13).

It is never stored: it is computed from the records, with the same result while the execution
runs, after its end and in any other process.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine import records as kinds
from asl.engine.document_blocks import document_block
from asl.engine.events import Event
from asl.engine.execution import Execution
from asl.engine.frame import Frame
from asl.engine.usage import NO_USAGE
from asl.program import Step
from asl.states.blocks.progress import (
    EMITTED,
    REACHED,
    UPDATED,
    Milestone,
    Track,
    Tracking,
    told_of,
)
from asl.states.blocks.progress import Told as SoFar
from asl.states.effects import ABSENT, Record

__all__ = ["ProgressEvent", "ProgressTracker", "progress_report"]

ProgressEvent = tuple["Frame | None", "Step | None", "int | None", str, dict[str, Json]]
"""An event to be told: `(machine, state, index of a part, type, details)`; no machine stands for
the workflow."""


class _Machine:
    """How far one child of a tracked state is."""

    __slots__ = ("current", "done", "ended", "states")

    def __init__(self, states: int) -> None:
        self.states = states
        self.done = 0
        """How many of its states are behind it."""
        self.current = 0.0
        """How far the present one is, in percent."""
        self.ended = False

    @property
    def percentage(self) -> float:
        if self.ended:
            return 100
        # A loop passes more states than there are.
        done = min(self.done, self.states - 1)
        return 100 * (done + min(self.current, 100) / 100) / self.states


class _Fork:
    """How far one visit of a tracked Map or Parallel is."""

    def __init__(self, frame: "Frame", step: Step, tracking: Tracking, total: int | None) -> None:
        self.frame = frame
        self.step = step
        self.place = (*frame.place, step.name)
        self.tracking = tracking
        self.total = total
        """How many parts there are, None while nobody knows."""
        self.parts: dict[int, _Machine] = {}
        """Those that have begun; of executions of their own those that have not ended."""
        self.running: set[int] = set()
        """Those that have begun and not ended."""
        self.succeeded: set[int] = set()
        """Those that have succeeded; not of executions of their own."""
        self.begun = 0
        self.completed = 0
        self.failed = 0
        self.shown: dict[int | None, int] = {}
        """The whole percentages that were told, by part; None for all together."""
        self.reached: set[float] = set()
        self.passed: set[str] = set()
        """The states behind an included document."""

    @property
    def ended(self) -> int:
        return self.completed + self.failed

    def part(self, index: int, states: int) -> _Machine:
        """Return a part; one that is not known yet begins now."""
        if index not in self.parts:
            self.parts[index] = _Machine(states)
            self.running.add(index)
            self.begun += 1
        return self.parts[index]

    def count_included_states(self, events: Sequence["Event"]) -> None:
        """Count the states of an included document that a record has left behind.

        Without weights these are those of its machine.
        """
        weights = self.tracking.weights
        for event in events if self.tracking.by == "states" else ():
            name = event.details.get("name")
            own = name in weights if weights is not None else event.path[:-2] == self.place
            if event.type.endswith("StateExited") and type(name) is str and own:
                self.passed.add(name)

    def end(self, index: int, kind: str) -> None:
        """Count the end of a part, by the kind of the record that tells of it."""
        self.parts[index].ended = True
        self.running.discard(index)
        if kind == kinds.BROKEN:
            self.failed += 1
        elif kind != kinds.ABORTED:
            self.completed += 1
            self.succeeded.add(index)
        if self.tracking.distributed:  # there may be very many
            self.succeeded.clear()
            del self.parts[index]

    def carry_over(self, before: "_Fork") -> None:
        """Take over what has succeeded: it is not done again where the state is redriven."""
        for index in before.succeeded:
            self.part(index, 1)
            self.end(index, kinds.EXITED)

    def percentage(self, weights: Mapping[str, float]) -> float | None:
        """Return how far all parts together are; None while nobody knows how many there are."""
        by = self.tracking.by
        if self.total is None:
            return None
        if by == "states":
            known = self.tracking.weights
            passed = sum(1 if known is None else known[name] for name in self.passed)
            return min(100, 100 * passed / self.tracking.whole) if self.tracking.whole else 100
        if by == "completed":
            return 100 * self.ended / self.total if self.total else 100
        if by == "progress":
            done: float = 100 * (self.begun - len(self.running))
            parts = self.parts
            done += sum(parts[index].percentage for index in self.running)
            return done / self.total if self.total else 100
        each = [
            self.parts[index].percentage if index in self.parts else 0
            for index in range(self.total)
        ]
        if not each:
            return 100
        if by == "minimum":
            return min(each)
        shares = [1.0] * self.total
        if by == "weighted":
            shares = [sum(weights.get(name, 1) for name in names) for names in self.tracking.states]
        whole = sum(shares)
        return sum(map(float.__mul__, map(float, each), shares)) / whole if whole else 100

    def mark(self, percentage: float | None) -> int:
        """Return what changes whenever there is something to tell.

        It is the whole percentage, or how often the number of ended parts has doubled.
        """
        return -1 - self.ended.bit_length() if percentage is None else int(percentage)

    def details(self, percentage: float | None) -> dict[str, Json]:
        """Return the progress object."""
        if self.tracking.by == "states":
            return {"percentage": round(percentage or 0, 3), "completed": len(self.passed)}
        return {
            "total": self.total,
            "completed": self.completed,
            "inProgress": self.begun - self.ended,
            "pending": None if self.total is None else self.total - self.begun,
            "failed": self.failed,
            "percentage": None if percentage is None else round(percentage, 3),
        }


class ProgressTracker:
    """Follows the records of a history and says what progress they stand for.

    Those of a run of a distributed Map are no part of the *whole*: they tell of the Map and of the
    states within it alone.
    """

    def __init__(self, execution: Execution, whole: bool = True) -> None:
        block, program = document_block(execution, "Progress"), execution.program
        if not whole or (block is not None and block.get("Enabled") is False):
            block = None
        given: Mapping[str, Json] = {} if block is None else block
        self.weights: Mapping[str, float] = given.get("WeightedProgress", {})
        self.names = None if block is None else set(self.weights) or None
        """The states that count for the workflow; None for those of its machine."""
        self.total = 0.0
        if block is not None:
            counted = given.get("TotalStates", len(program.machine.steps))
            self.total = sum(self.weights.values()) if self.weights else counted
        self.passed: set[str] = set()
        self.loaded = False
        """Whether it has heard of what was recorded before this process."""
        self.shown = -1
        self.forks: dict[tuple[str, int], _Fork] = {}
        """By the path of the machine and the visit."""

    # Runs of distributed Maps

    def begin(self, frame: "Frame", tracking: Tracking, total: int | None) -> None:
        """Follow a run; that it has begun is told by the history of the whole."""
        fork = _Fork(frame, frame.step, tracking, total)
        fork.reached |= {0, *told_of(frame).reached}
        fork.shown[None] = fork.mark(fork.percentage(self.weights))
        self.forks[frame.path, frame.visit] = fork

    def counted(self, frame: "Frame", total: int) -> Iterator[ProgressEvent]:
        """Yield what follows from how many children the run of a Map has."""
        fork = self.forks[frame.path, frame.visit]
        fork.total = total
        yield from self._tell(fork, None)

    def count_ended_child(self, frame: "Frame", failed: bool) -> None:
        """Count a child that has ended before: what that stands for was told then."""
        parent = frame.parent
        assert parent is not None
        fork = self.forks.get((parent.path, frame.origin[1]))
        if fork is not None:
            fork.part(frame.index, 1)
            fork.end(frame.index, kinds.BROKEN if failed else kinds.EXITED)
            for _ in self._tell(fork, None):
                pass

    def snapshot(self, frame: "Frame") -> SoFar:
        """Return what has been told of the Map, for its next run if it fails."""
        return SoFar(frame.visit, None, tuple(self.forks[frame.path, frame.visit].reached))

    def add_event(
        self, path: tuple[str | int, ...], event: str, details: Mapping[str, Json]
    ) -> None:
        """Know of a milestone that the run of a Map has told of."""
        for fork in self.forks.values() if event == REACHED else ():
            if (*fork.frame.place, fork.step.name) == path:
                fork.reached.add(details["at"])

    def after(self, record: Record, events: Sequence["Event"]) -> Iterator[ProgressEvent]:
        """Yield what is to be told after a record, of which these are the events."""
        kind, _, frame, _, step, *rest = record
        if frame is None:
            return
        yield from self._below(kind, frame, step, rest, events)
        if step is not None and step.progress is not None:
            yield from self._of_fork(record, step, step.progress, events)
        if self.total:
            yield from self._of_workflow(frame, events)

    # The workflow

    def _of_workflow(self, frame: "Frame", events: Sequence["Event"]) -> Iterator[ProgressEvent]:
        for event in events:
            name = event.details.get("name")
            if not event.type.endswith("StateExited") or type(name) is not str:
                continue
            if frame.parent is None if self.names is None else name in self.names:
                self.passed.add(name)
        done = (
            sum(self.weights.get(name, 0) for name in self.passed)
            if self.names is not None
            else len(self.passed)
        )
        percentage = min(100, 100 * done / self.total)
        if int(percentage) != self.shown:
            first, self.shown = self.shown < 0, int(percentage)
            if not (first and not percentage):
                details = {
                    "percentage": round(percentage, 3),
                    "completed": len(self.passed),
                }
                yield None, None, None, UPDATED, details

    # Maps and Parallels

    def _of_fork(
        self, record: Record, step: Step, track: Track, events: Sequence["Event"]
    ) -> Iterator[ProgressEvent]:
        kind, _, frame, visit, _, *rest = record
        key = frame.path, visit
        if kind in (kinds.STRETCH, kinds.AGAIN):
            tracking = _tracking(record, step, track)
            if tracking is None:
                return
            total: int | None = len(tracking.states) or 1
            for event in events:
                if event.type == "MapStateStarted":
                    total = None if tracking.open else event.details["length"]
            before = self.forks.get(key)
            fork = self.forks[key] = _Fork(frame, step, tracking, total)
            if before is not None:  # a milestone is told once, also where the state runs again
                fork.reached = before.reached
                if kind == kinds.STRETCH:
                    fork.carry_over(before)
            yield from self._tell(fork, None, entered=True)
        elif kind == kinds.EXITED and key in self.forks:
            fork = self.forks.pop(key)
            if rest[0] is not ABSENT:
                yield from self._reach(fork, 100, last=True)

    def _below(
        self,
        kind: str,
        frame: "Frame",
        step: Step | None,
        rest: Sequence[Any],
        events: Sequence["Event"],
    ) -> Iterator[ProgressEvent]:
        """Yield what a record of a child means for the states around it."""
        current: float | None = None
        while frame.parent is not None:
            fork = self.forks.get((frame.parent.path, frame.origin[1]))
            if fork is None:  # it is not tracked itself, but part of a machine that may be
                frame, kind = frame.parent, ""
                continue
            first = rest[0] if kind == kinds.STRETCH else step
            fork.count_included_states(events)
            machine = fork.part(frame.index, 1 if first is None else len(first.siblings))
            ended = kind == kinds.BROKEN or kind == kinds.ABORTED or _is_last(kind, step, rest)
            if current is not None:
                machine.current = current
            elif kind == kinds.NOTED and rest[0] == UPDATED:
                machine.current = rest[1]["percentage"]
            else:
                passed = sum(event.type.endswith("StateExited") for event in events)
                if kind and passed:
                    machine.done += passed
                    machine.current = 0
            if ended and not machine.ended:
                fork.end(frame.index, kind)
            yield from self._tell(fork, frame.index)
            current = fork.percentage(self.weights)
            frame, kind = fork.frame, ""

    def _tell(
        self, fork: _Fork, index: int | None, entered: bool = False
    ) -> Iterator[ProgressEvent]:
        """Yield what is new about a fork, and about one part of it."""
        if index is not None and fork.tracking.each:
            whole = int(fork.parts[index].percentage) if index in fork.parts else 100
            if fork.shown.get(index, 0) != whole:
                fork.shown[index] = whole
                yield from self._updated(fork, index, {"percentage": whole})
        percentage = fork.percentage(self.weights)
        mark = fork.mark(percentage)
        if fork.shown.get(None) != mark or entered:
            fork.shown[None] = mark
            yield from self._updated(fork, None, fork.details(percentage))
        if percentage is not None:
            yield from self._reach(fork, percentage)

    def _updated(
        self, fork: _Fork, index: int | None, details: dict[str, Json]
    ) -> Iterator[ProgressEvent]:
        tracking = fork.tracking
        if not tracking.silent:
            yield fork.frame, fork.step, index, UPDATED, details
        if tracking.emit is not None:
            named = {"type": tracking.emit, "on": "progress", "data": details}
            yield fork.frame, fork.step, index, EMITTED, named

    def _reach(self, fork: _Fork, percentage: float, last: bool = False) -> Iterator[ProgressEvent]:
        for each in fork.tracking.milestones:
            if each.at in fork.reached or not (each.at <= percentage and (last or each.at < 100)):
                continue
            fork.reached.add(each.at)
            yield from self._reached(fork, each)

    def _reached(self, fork: _Fork, milestone: Milestone) -> Iterator[ProgressEvent]:
        for event, details in milestone.told():
            yield fork.frame, fork.step, None, event, details


def _tracking(record: Record, step: Step, track: Track) -> Tracking | None:
    """Return how the progress of a visit is told that begins with a record, None if it is not."""
    kind, time, frame, visit, _, *rest = record
    data, variables = rest[5:] if kind == kinds.STRETCH else rest[:2]
    at = frame.replayed(visit, variables, time, NO_USAGE)
    at.step = step
    try:
        return track(data, at)
    except StateError:  # the state fails of it
        return None


def _is_last(kind: str, step: Step | None, rest: Sequence[Any]) -> bool:
    """Whether a record is the end of a machine that has succeeded."""
    return (kind == kinds.STRETCH and step is None) or (kind == kinds.EXITED and rest[-1] is None)


def progress_report(events: Iterator["Event"] | Sequence["Event"]) -> dict[str, Json]:
    """Return how far an execution and its states are, by its events.

    `percentage` is that of the workflow, None where it is not tracked; `states` has the latest
    progress object of each state, by its path (`Each/3/Work`).
    """
    found: dict[str, Json] = {"percentage": None, "states": {}}
    for event in events:
        if event.type == UPDATED:
            if event.path:
                found["states"]["/".join(map(str, event.path))] = event.details
            else:
                found["percentage"] = event.details["percentage"]
    return found
