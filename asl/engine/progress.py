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
    reported_progress,
)
from asl.states.blocks.progress import ReportedProgress as SoFar
from asl.states.effects import ABSENT, Record

__all__ = ["ProgressEvent", "ProgressTracker", "progress_report"]

ProgressEvent = tuple["Frame | None", "Step | None", "int | None", str, dict[str, Json]]
"""An event to emit: `(machine, state, index of a part, type, details)`; the machine is None for the
workflow."""


class _Machine:
    """Progress of one child of a tracked state."""

    __slots__ = ("current", "done", "ended", "states")

    def __init__(self, states: int) -> None:
        self.states = states
        self.done = 0
        """Number of its completed states."""
        self.current = 0.0
        """Progress of the current state in percent."""
        self.ended = False

    @property
    def percentage(self) -> float:
        if self.ended:
            return 100
        # A loop runs more states than the machine has.
        done = min(self.done, self.states - 1)
        return 100 * (done + min(self.current, 100) / 100) / self.states


class _Fork:
    """Progress of one visit of a tracked Map or Parallel."""

    def __init__(self, frame: "Frame", step: Step, tracking: Tracking, total: int | None) -> None:
        self.frame = frame
        self.step = step
        self.place = (*frame.place, step.name)
        self.tracking = tracking
        self.total = total
        """Number of parts, None while it is unknown."""
        self.parts: dict[int, _Machine] = {}
        """Parts that have started; child executions only until they end."""
        self.running: set[int] = set()
        """Parts that have started and not ended."""
        self.succeeded: set[int] = set()
        """Parts that have succeeded, without child executions."""
        self.begun = 0
        self.completed = 0
        self.failed = 0
        self.shown: dict[int | None, int] = {}
        """Emitted whole percentages by part; the key None is for all parts together."""
        self.reached: set[float] = set()
        self.passed: set[str] = set()
        """Completed states of an included document."""

    @property
    def ended_children(self) -> int:
        return self.completed + self.failed

    def part(self, index: int, states: int) -> _Machine:
        """Return a part; an unknown one starts now."""
        if index not in self.parts:
            self.parts[index] = _Machine(states)
            self.running.add(index)
            self.begun += 1
        return self.parts[index]

    def count_included_states(self, events: Sequence["Event"]) -> None:
        """Count the states of an included document that a record completes.

        Without weights these are the states of its machine.
        """
        weights = self.tracking.weights
        for event in events if self.tracking.by == "states" else ():
            name = event.details.get("name")
            own = name in weights if weights is not None else event.path[:-2] == self.place
            if event.type.endswith("StateExited") and type(name) is str and own:
                self.passed.add(name)

    def end(self, index: int, kind: str) -> None:
        """Count the end of a part, by the kind of its last record."""
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
        """Take over succeeded parts, which a redrive of the state does not repeat."""
        for index in before.succeeded:
            self.part(index, 1)
            self.end(index, kinds.EXITED)

    def percentage(self, weights: Mapping[str, float]) -> float | None:
        """Return the progress of all parts together in percent; None while their number is
        unknown.
        """
        by = self.tracking.by
        if self.total is None:
            return None
        if by == "states":
            known = self.tracking.weights
            passed = sum(1 if known is None else known[name] for name in self.passed)
            return min(100, 100 * passed / self.tracking.whole) if self.tracking.whole else 100
        if by == "completed":
            return 100 * self.ended_children / self.total if self.total else 100
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
        """Return a value that changes whenever an event is due.

        It is the whole percentage, or how often the number of ended parts has doubled.
        """
        return -1 - self.ended_children.bit_length() if percentage is None else int(percentage)

    def details(self, percentage: float | None) -> dict[str, Json]:
        """Return the progress object."""
        if self.tracking.by == "states":
            return {"percentage": round(percentage or 0, 3), "completed": len(self.passed)}
        return {
            "total": self.total,
            "completed": self.completed,
            "inProgress": self.begun - self.ended_children,
            "pending": None if self.total is None else self.total - self.begun,
            "failed": self.failed,
            "percentage": None if percentage is None else round(percentage, 3),
        }


class ProgressTracker:
    """Derives progress events from the records of a history.

    Records of a run of a distributed Map are not part of the *whole*: they only affect the Map and
    the states within it.
    """

    def __init__(self, execution: Execution, whole: bool = True) -> None:
        block, program = document_block(execution, "Progress"), execution.program
        if not whole or (block is not None and block.get("Enabled") is False):
            block = None
        given: Mapping[str, Json] = {} if block is None else block
        self.weights: Mapping[str, float] = given.get("WeightedProgress", {})
        self.names = None if block is None else set(self.weights) or None
        """States that count for the workflow; None for those of its machine."""
        self.total = 0.0
        if block is not None:
            counted = given.get("TotalStates", len(program.machine.steps))
            self.total = sum(self.weights.values()) if self.weights else counted
        self.passed_states: set[str] = set()
        self.loaded = False
        """Whether the records from before this process have been read."""
        self.shown_percentage = -1
        self.forks: dict[tuple[str, int], _Fork] = {}
        """Tracked visits, by path of the machine and visit."""

    # Runs of distributed Maps

    def begin(self, frame: "Frame", tracking: Tracking, total: int | None) -> None:
        """Track a run; the history of the whole execution has its start event."""
        fork = _Fork(frame, frame.step, tracking, total)
        fork.reached |= {0, *reported_progress(frame).reached}
        fork.shown[None] = fork.mark(fork.percentage(self.weights))
        self.forks[frame.path, frame.visit] = fork

    def events_after_count(self, frame: "Frame", total: int) -> Iterator[ProgressEvent]:
        """Yield the events that follow from the number of children of a run."""
        fork = self.forks[frame.path, frame.visit]
        fork.total = total
        yield from self._tell(fork, None)

    def count_ended_child(self, frame: "Frame", failed: bool) -> None:
        """Count a child that ended before, without events."""
        parent = frame.parent
        assert parent is not None
        fork = self.forks.get((parent.path, frame.origin[1]))
        if fork is not None:
            fork.part(frame.index, 1)
            fork.end(frame.index, kinds.BROKEN if failed else kinds.EXITED)
            for _ in self._tell(fork, None):
                pass

    def snapshot(self, frame: "Frame") -> SoFar:
        """Return the emitted progress of the Map, for its next run if it fails."""
        return SoFar(frame.visit, None, tuple(self.forks[frame.path, frame.visit].reached))

    def add_event(
        self, path: tuple[str | int, ...], event: str, details: Mapping[str, Json]
    ) -> None:
        """Register a milestone that the run of a Map has emitted."""
        for fork in self.forks.values() if event == REACHED else ():
            if (*fork.frame.place, fork.step.name) == path:
                fork.reached.add(details["at"])

    def events_after(self, record: Record, events: Sequence["Event"]) -> Iterator[ProgressEvent]:
        """Yield the progress events that follow a record.

        Args:
            record: The record.
            events: Events of the record.
        """
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
                self.passed_states.add(name)
        done = (
            sum(self.weights.get(name, 0) for name in self.passed_states)
            if self.names is not None
            else len(self.passed_states)
        )
        percentage = min(100, 100 * done / self.total)
        if int(percentage) != self.shown_percentage:
            first, self.shown_percentage = self.shown_percentage < 0, int(percentage)
            if not (first and not percentage):
                details = {
                    "percentage": round(percentage, 3),
                    "completed": len(self.passed_states),
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
            if before is not None:  # a milestone is emitted once, even if the state runs again
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
        """Yield the progress of the states around a child after one of its records."""
        current: float | None = None
        while frame.parent is not None:
            fork = self.forks.get((frame.parent.path, frame.origin[1]))
            if fork is None:  # untracked, but part of a machine that may be tracked
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
        """Yield the new progress of a fork and of one part of it."""
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
        for event, details in milestone.events():
            yield fork.frame, fork.step, None, event, details


def _tracking(record: Record, step: Step, track: Track) -> Tracking | None:
    """Return the tracking of a visit that begins with a record, None without one."""
    kind, time, frame, visit, _, *rest = record
    data, variables = rest[5:] if kind == kinds.STRETCH else rest[:2]
    at = frame.frame_at(visit, variables, time, NO_USAGE)
    at.step = step
    try:
        return track(data, at)
    except StateError:  # the state fails with this error
        return None


def _is_last(kind: str, step: Step | None, rest: Sequence[Any]) -> bool:
    """Return whether a record is the end of a machine that has succeeded."""
    return (kind == kinds.STRETCH and step is None) or (kind == kinds.EXITED and rest[-1] is None)


def progress_report(events: Iterator["Event"] | Sequence["Event"]) -> dict[str, Json]:
    """Return the progress of an execution and its states, from its events.

    Returns:
        `percentage` of the workflow, None if it is not tracked, and `states` with the latest
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
