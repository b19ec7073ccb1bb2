"""A run of a distributed Map: every iteration is an execution of its own (Specification 6.3).

A child has no variables and no history of its parent, its own `$$.Execution`, and no records.
Its end is reported to the parent and to listeners of child executions. The events of the blocks
of its states are part of the parent's history.
"""

from collections.abc import Iterator
from typing import Any, Final, Self

from asl.core.errors import StateError
from asl.core.profile import NO_QUOTAS
from asl.core.values import Json
from asl.core.work import WorkMeter
from asl.engine.events import PAUSED, Event, error_details
from asl.engine.execution import FAIR, Execution, Identity
from asl.engine.frame import NO_VARIABLES, Frame, digest
from asl.engine.history import HistoryExpander
from asl.engine.live_history import count_events
from asl.engine.progress import ProgressTracker
from asl.engine.records import NOTED, TOLD, WHOLE
from asl.engine.usage import CallUsage, ExecutionSpending
from asl.program import Machine
from asl.states.blocks.audit import without
from asl.states.blocks.progress import Tracking
from asl.states.effects import FanOut, ItemSource, MapEntry, Record

__all__ = ["MapRun"]

BLOCK_EVENT_PREFIXES: Final = (
    *("Audit", "Budget", "Cache", "Context", "Event", "Fallback", "Feedback", "Guardrail"),
    *("Memory", "Milestone", "Progress", "Reasoning", "Stream", "Tool", "Usage"),
)
"""What the names of the events begin with that blocks tell, and no others."""
_NOTHING_DRAWN = (-1, 0)


class ChildExecution(Execution):
    """The execution of one iteration. What it uses counts for its parent, too."""

    recorded = False
    expander: HistoryExpander | None = None
    """Makes events of what it does, once it has done anything."""
    latest = 0.0
    """When it last did."""

    parent: Execution
    run: "MapRun"

    def of(self, parent: Execution, run: "MapRun") -> Self:
        """Belong to a run, and return it."""
        self.init(parent.program, None, 0.0, [], run.identity)
        self.emit = run.emit
        self.parent, self.run = parent, run
        self.prices, self.ledger = parent.prices, parent.ledger
        if self.program.profile.quotas is not NO_QUOTAS:
            count_events(self, exact=False)
        if parent.delivery is not None:
            self.delivery = parent.delivery
        return self

    @property
    def whole(self) -> Execution:
        """The execution whose history tells of this one."""
        return self.run.whole

    def meter(self) -> WorkMeter:
        """Return the meter of its work, which is that of the whole."""
        self.work = self.run.whole.meter()
        return self.work

    def count_work(self) -> bool:
        """Count all that was done here as work of the whole."""
        super().count_work()
        self.run.whole.busy += self.busy
        self.busy = 0
        return self.run.whole.busy >= FAIR

    def events(self, record: Record) -> Iterator[Event]:
        """Yield what a record tells, and first that the execution has begun."""
        if self.expander is None:
            self.expander = HistoryExpander(self)
            self.expander.progress = self.run.progress
            yield self.expander.start()
        self.latest = record[1]
        yield from self.expander.feed(record)

    def end(self, status: str, details: dict[str, Json]) -> None:
        """Tell whoever listens of its end, if it was told that it has begun."""
        self.count_work()
        expander, self.expander = self.expander, None  # each refers to the other
        if self.listener is not None and expander is not None:
            self.listener(expander.end(status, self.latest, details))
        self.emit = _unrecorded

    @property
    def name(self) -> str:
        """The name, made of that of the run and the number of the iteration."""
        return f"{self.run.id}-{self.index}"

    @property
    def deadline(self) -> float | None:
        """The epoch second at which an express child times out; the others end with the whole."""
        quota = self.program.profile.quotas.express_seconds if self.express else None
        return None if quota is None else self.started + quota

    def account(self, state: str, result: Json) -> CallUsage:
        """Count the usage that an agent reports, here and in the whole."""
        super().account(state, result)
        return self.parent.account(state, result)

    def absorb(self, state: str, child: ExecutionSpending, before: ExecutionSpending) -> CallUsage:
        """Count what an execution that *state* has started has spent, here and in the whole."""
        super().absorb(state, child, before)
        return self.parent.absorb(state, child, before)


class MapRun:
    """One run: its names, and its children (protocol `asl.states.effects.DistributedRun`)."""

    begun = 0

    def __init__(
        self, at: Frame, machine: Machine, label: str, express: bool, pure: bool, tells: bool
    ) -> None:
        self.at = at
        self.machine = machine
        around = at.execution
        self.outer = around.run if isinstance(around, ChildExecution) else None
        """The run of which the Map itself is part, None for none."""
        self.whole: Execution = around if self.outer is None else self.outer.whole
        """The execution whose history tells of the children."""
        self.listener = at.listening()
        """Who listens to the children, None for nobody."""
        track = at.step.progress
        self.tracking: Tracking | None = None if track is None else track(at.data, at)
        """How the progress of the Map is told, None where it is not."""
        tracks = at.execution.program.tracks_progress and (tells or self.tracking is not None)
        self.progress = ProgressTracker(at.execution, whole=False) if tracks else None
        """Says what progress follows from what the children do, None where nobody asks."""
        self.observes = tells or self.listener is not None or self.progress is not None
        """Whether all that they do is looked at."""
        self.pure = pure and not self.observes
        self.open: dict[int, Frame] = {}
        """Those that are looked at and have not ended."""
        workflow_id = f"{at.execution.workflow_id}/{label}"
        self.identity: Identity = Identity(
            workflow_id=workflow_id, express=express, asynchronous=express
        )
        """Who its children are."""
        self.id = _uuid(digest(at.execution.id, at.visit_key, at.retries))
        self.arn = f"{workflow_id.replace(':stateMachine:', ':mapRun:')}:{self.id}"
        at.begin_fork()
        self.view = at.child(0, machine, None, None).selector_frame()

    def selected(self, index: int, item: Json, source: str) -> Frame:
        """Return the state's own machine as `ItemSelector` sees it with an item."""
        view = self.view
        view.index, view.item, view.source = index, item, source
        view.draws = _NOTHING_DRAWN
        return view

    def child(self, index: int, data: Json, item: Json, source: str) -> Frame:
        """Return the frame of a child execution, standing at its start."""
        at = self.at
        self.begun = index + 1
        execution = ChildExecution().of(at.execution, self)
        frame = Frame().init(execution, at.effects, self.machine.start, data, at.now)
        frame.parent, frame.origin = at, at.forking
        frame.index = execution.index = index
        execution.input, execution.started = data, at.now
        frame.item, frame.source = item, source
        if self.observes:
            if self.listener is not None:
                execution.listener = self.listener.of(execution)
            self.open[index] = frame
        return frame

    def children(self, source: ItemSource) -> Iterator[Frame]:
        """Yield a child for each item, which is its input.

        Children of pure states never wait, so one frame serves them all: making it anew is half of
        what such a child costs.
        """
        index = -1
        if self.pure:
            at, start = self.at, self.machine.start
            frame = self.child(0, None, None, "")
            execution = frame.execution
            for index, item in enumerate(source):
                if frame.visit:  # the last child took so long that it was interpreted
                    frame.visit, frame.step, frame.log = 0, start, None
                    execution.emit = self.emit
                    count_events(execution, exact=False)
                frame.index = execution.index = index
                frame.data = execution.input = item.input if type(item) is MapEntry else item
                frame.now = execution.started = at.now
                frame.item, frame.source = item, source.name
                frame.variables, frame.draws = NO_VARIABLES, _NOTHING_DRAWN
                yield frame
        else:
            for index, item in enumerate(source):
                data = item.input if type(item) is MapEntry else item
                yield self.child(index, data, item, source.name)
        source.length = index + 1

    # What is told

    def emit(self, record: Record) -> None:
        """Take a record of a child: what its blocks tell goes into the history of the whole."""
        take = self.whole.child_records
        if take is not None:
            take(record)
        elif self.observes or record[0] is NOTED:
            for told in self.reported_records(record):
                self.whole.emit(told)

    def reported_records(self, record: Record) -> Iterator[Record]:
        """Yield what the history of the whole keeps of a record of a child."""
        kind, time, frame, visit, step, *rest = record
        if not self.observes:
            if kind is NOTED and rest[0].startswith(BLOCK_EVENT_PREFIXES):
                yield self._tell(time, frame, visit, (*frame.place, step.name), *rest)
            return
        child: ChildExecution = frame.execution
        for event in child.events(record):
            if child.listener is not None:
                child.listener(event)
            if event.type.startswith(BLOCK_EVENT_PREFIXES):
                yield self._tell(
                    event.timestamp, frame, visit, event.path, event.type, event.details
                )

    def _tell(
        self,
        time: float,
        frame: Frame,
        visit: int,
        path: tuple[str | int, ...],
        event: str,
        details: dict[str, Json],
    ) -> Record:
        """Return the record of what a child tells, once the runs around this one have heard it."""
        outer = self.outer
        while outer is not None:
            if outer.progress is not None:
                outer.progress.add_event(path, event, details)
            outer = outer.outer
        return TOLD, time, frame, visit, None, list(path), event, details

    def with_end_reports(self, fan: FanOut, source: ItemSource) -> FanOut:
        """Return a fan of which is told how each child has ended, where anybody wants to know."""
        if not self.observes:
            return fan
        tracking = self.tracking
        if self.progress is not None and tracking is not None:
            self.progress.begin(self.at, tracking, None if tracking.open else source.length)
        child, kept, failed, aborted = fan.child, fan.ended, fan.failed, fan.aborted
        assert kept is not None

        def next_child(index: int) -> Any:
            made = child(index)
            if made is None:
                self._counted(index)
            return made

        def on_end(child: Any, value: Json) -> None:
            self._end(child, "SUCCEEDED", {"output": value})
            kept(child, value)

        def on_failure(child: Any, error: StateError) -> StateError | None:
            failure = failed(child, error)
            timed_out = error.name == "States.Timeout"  # as the records of results have it
            self._end(child, "TIMED_OUT" if timed_out else "FAILED", error_details(error))
            return failure

        def on_abort(child: Any) -> None:
            self._end(child, "ABORTED", {})
            aborted(child)

        return FanOut(
            fan.length,
            next_child,
            fan.limit,
            failed=on_failure,
            ended=on_end,
            aborted=on_abort,
            held=fan.held,
            timed=fan.timed,
        )

    def _end(self, child: Any, status: str, details: dict[str, Json]) -> None:
        del self.open[child.index]
        if self.progress is not None and self.tracking is not None:
            if child.execution.expander is None:
                self.progress.count_ended_child(child, failed=status in ("FAILED", "TIMED_OUT"))
            self.at.progress = self.progress.snapshot(self.at)
        child.execution.end(status, details)

    def _counted(self, children: int) -> None:
        """Tell what follows from how many children there are, now that it is known."""
        at = self.at
        if self.progress is None or self.tracking is None:
            return
        beside = at.child(-1, self.machine, None)  # told by none of them
        for _, step, _, event, details in self.progress.counted(at, children):
            assert step is not None  # that of the Map
            path = (*at.place, step.name)
            self.whole.emit(self._tell(at.now, beside, 0, path, event, details))

    def shown(self, child: Any, error: StateError) -> str:
        """Return what may be said of the failure of a child outside of it."""
        expander = child.execution.expander
        return str(error) if expander is None else without(str(error), expander.failed)

    def pause(self) -> None:
        """Tell that the children which have not ended wait for people."""
        for child in self.open.values() if self.listener is not None else ():
            child.emit((WHOLE, child.now, child, 0, None, PAUSED, {}))


def _uuid(digits: str) -> str:
    """Return a version 4 UUID of hexadecimal digits."""
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"


def _unrecorded(record: Record) -> None:
    """Keep no record."""
