"""Runs of a distributed Map: every iteration is an execution of its own (Specification 6.3).

A child has no variables and no history of its parent, its own `$$.Execution`, and no records. Its
end is reported to the parent and to listeners of child executions. Events of the blocks of its
states are part of the parent's history.
"""

from collections.abc import Iterator, Mapping
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
from asl.engine.live_map_run import LiveMapRun
from asl.engine.progress import ProgressTracker
from asl.engine.records import NOTED, TOLD, WHOLE
from asl.engine.usage import CallUsage, ExecutionSpending
from asl.program import Machine
from asl.states.blocks.audit import redact_text
from asl.states.blocks.progress import Tracking
from asl.states.effects import FanOut, Record
from asl.states.map_data import ItemSource, MapEntry, Tolerance

__all__ = ["MapRun"]

BLOCK_EVENT_PREFIXES: Final = (
    *("Audit", "Budget", "Cache", "Context", "Event", "Fallback", "Feedback", "Guardrail"),
    *("Memory", "Milestone", "Progress", "Reasoning", "Stream", "Tool", "Usage"),
)
"""Prefixes of the names of block events."""
_NOTHING_DRAWN = (-1, 0)


class ChildExecution(Execution):
    """The execution of one iteration. Its usage counts for its parent as well."""

    has_history = False
    expander: HistoryExpander | None = None
    """Expands its records into events, from its first record on."""
    latest_time = 0.0
    """Time of its latest record."""

    parent: Execution
    run: "MapRun"

    def of(self, parent: Execution, run: "MapRun") -> Self:
        """Attach the child to a run, and return it."""
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
    def outermost(self) -> Execution:
        """The execution whose history contains the events of this one."""
        return self.run.history_execution

    def meter(self) -> WorkMeter:
        """Return the work meter of the parent execution."""
        self.work = self.run.history_execution.meter()
        return self.work

    def count_work(self) -> bool:
        """Count the work of the child as work of the parent execution."""
        super().count_work()
        self.run.history_execution.work_since_yield += self.work_since_yield
        self.work_since_yield = 0
        return self.run.history_execution.work_since_yield >= FAIR

    def events(self, record: Record) -> Iterator[Event]:
        """Yield the events of a record; the first record is preceded by the start event."""
        if self.expander is None:
            self.expander = HistoryExpander(self)
            self.expander.progress = self.run.progress
            yield self.expander.start()
        self.latest_time = record[1]
        yield from self.expander.feed(record)

    def end(self, status: str, details: dict[str, Json]) -> None:
        """Send the end event to the listener, if the start event was sent."""
        self.count_work()
        expander, self.expander = self.expander, None  # breaks a reference cycle
        if self.listener is not None and expander is not None:
            self.listener(expander.end(status, self.latest_time, details))
        self.emit = _unrecorded

    @property
    def name(self) -> str:
        """Name made of that of the run and the index of the iteration."""
        return f"{self.run.id}-{self.index}"

    @property
    def deadline(self) -> float | None:
        """Epoch second at which an express child times out; other children end with the parent."""
        quota = self.program.profile.quotas.express_seconds if self.express else None
        return None if quota is None else self.started + quota

    def account(self, state: str, result: Json) -> CallUsage:
        """Count the usage that an agent reports, here and in the parent."""
        super().account(state, result)
        return self.parent.account(state, result)

    def absorb(self, state: str, child: ExecutionSpending, before: ExecutionSpending) -> CallUsage:
        """Count the spending of an execution that a state has started, here and in the parent."""
        super().absorb(state, child, before)
        return self.parent.absorb(state, child, before)


class MapRun:
    """A run: its names and its children (protocol `asl.states.effects.DistributedRun`)."""

    started_children = 0
    live: LiveMapRun | None = None
    """The run as its monitor sees it, None without a monitor."""

    def __init__(
        self, frame: Frame, machine: Machine, label: str, express: bool, pure: bool, emits: bool
    ) -> None:
        self.at = frame
        self.machine = machine
        around = frame.execution
        self.outer = around.run if isinstance(around, ChildExecution) else None
        """Enclosing run that contains this Map, None for none."""
        self.history_execution: Execution = (
            around if self.outer is None else self.outer.history_execution
        )
        """Execution whose history contains the events of the children."""
        self.listener = frame.child_listener()
        """Listener of the children, None without one."""
        track = frame.step.progress
        self.tracking: Tracking | None = None if track is None else track(frame.data, frame)
        """Tracking of the Map's progress, None without one."""
        tracks = frame.execution.program.tracks_progress and (emits or self.tracking is not None)
        self.progress = ProgressTracker(frame.execution, whole=False) if tracks else None
        """Derives progress from records of the children, None if progress is not tracked."""
        self.observes = emits or self.listener is not None or self.progress is not None
        """Whether records of the children are needed."""
        self.is_pure = pure and not self.observes
        self.open: dict[int, Frame] = {}
        """Running children whose records are needed."""
        workflow_id = f"{frame.execution.workflow_id}/{label}"
        self.identity: Identity = Identity(
            workflow_id=workflow_id, express=express, asynchronous=express
        )
        """Identity of the children."""
        self.id = _uuid(digest(frame.execution.id, frame.visit_key, frame.retries))
        self.arn = f"{workflow_id.replace(':stateMachine:', ':mapRun:')}:{self.id}"
        frame.begin_fork()
        self.view = frame.child(0, machine, None, None).selector_frame()

    def item_selector_frame(self, index: int, item: Json, source: str) -> Frame:
        """Return the state's own machine with an item, as `ItemSelector` sees it."""
        view = self.view
        view.index, view.item, view.source = index, item, source
        view.random_draws = _NOTHING_DRAWN
        return view

    def child(self, index: int, data: Json, item: Json, source: str) -> Frame:
        """Return the frame of a child execution, at its first state."""
        at = self.at
        self.started_children = index + 1
        execution = ChildExecution().of(at.execution, self)
        frame = Frame().init(execution, at.effects, self.machine.start, data, at.now)
        frame.parent, frame.origin = at, at.fork_origin
        frame.index = execution.index = index
        execution.input, execution.started = data, at.now
        frame.item, frame.source = item, source
        if self.observes:
            if self.listener is not None:
                execution.listener = self.listener.of(execution)
            self.open[index] = frame
        return frame

    def children(self, source: ItemSource) -> Iterator[Frame]:
        """Yield a child for each item; the item is its input.

        Children of pure states never wait, so one frame serves them all: creating it is half the
        cost of such a child.
        """
        index = -1
        if self.is_pure:
            at, start = self.at, self.machine.start
            frame = self.child(0, None, None, "")
            execution = frame.execution
            for index, item in enumerate(source):
                if frame.visit:  # the last child took so long that it needed the interpreter
                    frame.visit, frame.step, frame.log = 0, start, None
                    execution.emit = self.emit
                    count_events(execution, exact=False)
                frame.index = execution.index = index
                frame.data = execution.input = item.input if type(item) is MapEntry else item
                frame.now = execution.started = at.now
                frame.item, frame.source = item, source.name
                frame.variables, frame.random_draws = NO_VARIABLES, _NOTHING_DRAWN
                yield frame
        else:
            for index, item in enumerate(source):
                data = item.input if type(item) is MapEntry else item
                yield self.child(index, data, item, source.name)
        source.length = index + 1

    # Events of children

    def emit(self, record: Record) -> None:
        """Take a record of a child: events of its blocks go into the history of the parent."""
        take = self.history_execution.child_records
        if take is not None:
            take(record)
        elif self.observes or record[0] is NOTED:
            for told in self.reported_records(record):
                self.history_execution.emit(told)

    def reported_records(self, record: Record) -> Iterator[Record]:
        """Yield the records that the parent's history stores for a record of a child."""
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
        """Return the record of an event of a child, after enclosing runs have counted it."""
        outer = self.outer
        while outer is not None:
            if outer.progress is not None:
                outer.progress.add_event(path, event, details)
            outer = outer.outer
        return TOLD, time, frame, visit, None, list(path), event, details

    def with_end_reports(self, fan: FanOut, source: ItemSource) -> FanOut:
        """Return a fan-out that reports the end of each child, if listeners or progress need it."""
        if not self.observes:
            return fan
        tracking = self.tracking
        if self.progress is not None and tracking is not None:
            self.progress.begin(self.at, tracking, None if tracking.open else source.length)
        child, kept, failed, aborted = fan.child, fan.on_end, fan.on_failure, fan.on_abort
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
            timed_out = error.name == "States.Timeout"  # in the form of result records
            self._end(child, "TIMED_OUT" if timed_out else "FAILED", error_details(error))
            return failure

        def on_abort(child: Any) -> None:
            self._end(child, "ABORTED", {})
            aborted(child)

        return FanOut(
            fan.length,
            next_child,
            fan.limit,
            on_failure=on_failure,
            on_end=on_end,
            on_abort=on_abort,
            held_results=fan.held_results,
            has_timeout=fan.has_timeout,
        )

    def _end(self, child: Any, status: str, details: dict[str, Json]) -> None:
        del self.open[child.index]
        if self.progress is not None and self.tracking is not None:
            if child.execution.expander is None:
                self.progress.count_ended_child(child, failed=status in ("FAILED", "TIMED_OUT"))
            self.at.progress = self.progress.snapshot(self.at)
        child.execution.end(status, details)

    def _counted(self, children: int) -> None:
        """Emit the progress that follows from the number of children, once it is known."""
        at = self.at
        if self.progress is None or self.tracking is None:
            return
        beside = at.child(-1, self.machine, None)  # none of the children has an event for it
        for _, step, _, event, details in self.progress.events_after_count(at, children):
            assert step is not None  # the index of the Map itself
            path = (*at.place, step.name)
            self.history_execution.emit(self._tell(at.now, beside, 0, path, event, details))

    def monitored_fan_out(
        self,
        fan: FanOut,
        tolerance: Tolerance,
        weights: Mapping[int, int],
        source: ItemSource,
    ) -> FanOut:
        """Return a fan-out whose children are counted for the monitor of the execution, if any."""
        monitor = self.history_execution.map_runs
        if monitor is None:
            return fan
        self.live = LiveMapRun(
            self.arn,
            self.history_execution.id,
            self.identity.workflow_id or "",
            self.identity.express,
            self.at.now,
            tolerance,
            weights,
            source,
        )
        counting = self.live.count_children(fan)
        monitor.begin(self.live)
        return counting

    def finish(self, status: str) -> None:
        """Report the end of the run to the monitor; an empty status is that of a paused run."""
        if self.live is not None and self.history_execution.map_runs is not None:
            self.history_execution.map_runs.end(self.live, status)

    def redacted_cause(self, child: Any, error: StateError) -> str:
        """Return the redacted cause of a child's failure."""
        expander = child.execution.expander
        return str(error) if expander is None else redact_text(str(error), expander.failed)

    def pause(self) -> None:
        """Send the pause event of each child that waits for approvals."""
        for child in self.open.values() if self.listener is not None else ():
            child.emit((WHOLE, child.now, child, 0, None, PAUSED, {}))


def _uuid(digits: str) -> str:
    """Return a version 4 UUID of hexadecimal digits."""
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"


def _unrecorded(record: Record) -> None:
    """Discard a record."""
