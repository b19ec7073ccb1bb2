"""History: flat records expanded into events, on demand.

A stretch of pure states is one record; its events are computed by running the stretch again from
its input, one state at a time. Nothing is lost and nothing is stored twice. The same expander
serves a finished history and a listener of a running execution.
"""

from collections.abc import Iterator
from typing import Any

from asl.core.errors import EvaluationFailed, StateError
from asl.core.values import Json
from asl.engine import records as kinds
from asl.engine.aws_events import NATIVE, TaskEvents, task_events
from asl.engine.custom_events import events_after_error, events_after_state
from asl.engine.event_sequencer import EventSequencer
from asl.engine.events import (
    ENDINGS,
    Event,
    credentials,
    error_details,
    is_fatal,
)
from asl.engine.execution import REGION, Execution
from asl.engine.frame import Frame
from asl.engine.progress import ProgressTracker
from asl.engine.records import each_record
from asl.engine.usage import UsageTotals
from asl.engine.visited_states import advance, execution_after
from asl.expr.frame import Variables
from asl.program import Step
from asl.states.calls import CallOptions
from asl.states.effects import ABSENT, Record

__all__ = ["HistoryExpander"]


class HistoryExpander(EventSequencer):
    """Expands records into events, in order; `feed` each record once."""

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)
        self.origins: dict[StateError, tuple[Frame, int, str]] = {}
        """Frame, visit and state in which each error was raised."""
        self.explained_error: StateError | None = None
        """The latest error with an `EvaluationFailed` event."""
        self.fatal = False
        """Whether an error is propagating that ends the execution without further events."""
        self.cut_by: int | None = None
        """Last event of a machine that has just failed: events of the siblings that it stops follow
        it."""
        quota = execution.program.profile.quotas.history_events
        self.event_limit = None if quota is None or execution.express else quota - 1
        """Number of events after which only the end of the execution follows."""
        self.is_full = False
        """Whether events were left out for that reason."""
        tracked = execution.program.tracks_progress and execution.has_history
        self.progress = ProgressTracker(execution) if tracked else None
        """Derives progress from the records; None if nothing is tracked."""

    def load_progress(self, flat: list[Any]) -> None:
        """Count the progress of earlier records, once, without events."""
        if self.progress is not None and not self.progress.loaded:
            earlier = HistoryExpander(self.execution)
            for record in each_record(flat):
                for _ in earlier.feed(record):
                    pass
            assert earlier.progress is not None
            self.progress = earlier.progress
            self.progress.loaded = True

    def start(self) -> Event:
        """Return the first event."""
        details = {"input": self.execution.input}
        if self.aws:
            details["roleArn"] = self.execution.role
        return self.event(None, self.execution.started, "ExecutionStarted", (), details)

    def end(self, status: str, time: float, details: dict[str, Json]) -> Event:
        """Return the last event; *status* is the execution's.

        An end from outside has no predecessor (AWS, recorded).
        """
        if status in ("TIMED_OUT", "ABORTED"):
            self.whole.latest = 0
        return self.event(None, time, ENDINGS[status], (), details)

    def feed(self, record: Record) -> Iterator[Event]:
        """Yield the events of one record."""
        if record[0] == kinds.TOLD:
            yield self._of_child(record)
            return
        if self.event_limit is not None:
            yield from self._capped(record, self.event_limit)
            return
        if self.progress is None and not self.execution.program.has_hooks:
            yield from self._fed(record)
            return
        events: list[Event] = []
        for event in self._fed(record):
            events.append(event)
            yield event
            yield from events_after_state(self, record, event)
        if record[0] in (kinds.CAUGHT, kinds.BROKEN):
            yield from events_after_error(self, record)
        if self.progress is None:
            return
        for frame, step, index, type, details in self.progress.events_after(record, events):
            if frame is None or step is None:
                yield self.event(None, record[1], type, (), details)
            elif index is None:
                yield self.state_event(frame, record[1], step, type, details)
            else:
                path = (*frame.place, step.name, index)
                yield self.event(frame, record[1], type, path, details)

    def _capped(self, record: Record, most: int) -> Iterator[Event]:
        """Yield the events of a record until the history is full."""
        for event in self._fed(record):
            if self.count > most:
                self.count, self.is_full = most, True
                return
            yield event

    def _of_child(self, record: Record) -> Event:
        """Return the event of a block in a child execution; its path is the complete one."""
        path, type, details = record[5:]
        event = self.event(None, record[1], type, tuple(path), details)
        if self.progress is not None:
            self.progress.add_event(event.path, type, details)
        return event

    def _fed(self, record: Record) -> Iterator[Event]:
        kind, time, frame, visit, step, *rest = record
        if frame.parent is not None and frame.origin[0].type == "Debate":
            # Concurrent turns have no events of their own either: their debate has them.
            if kind != kinds.NOTED:
                return
            frame, (step, visit, _) = frame.parent, frame.origin
        if frame.parent is not None and frame not in self.threads:
            yield from self._iteration(frame, time, "Started")
        if kind not in (kinds.BROKEN, kinds.ABORTED):
            self.cut_by = None
        yield from _EXPAND[kind](self, time, frame, visit, step, *rest)

    def _told(self, frame: Frame, time: float, step: Step, data: Json) -> Iterator[Event]:
        """Yield the events of the document's dialect for a state that is entered."""
        told = self.execution.program.entry_events
        if told is not None:
            for type, details in told(step.name, step.type, step.siblings, data):
                yield self.state_event(frame, time, step, type, details)

    def _exited(
        self, frame: Frame, time: float, step: Step, output: Json, assigned: dict[str, Json]
    ) -> Event:
        details: dict[str, Json] = {"name": step.name, "output": output}
        if assigned:
            details["assignedVariables"] = assigned
        if step.label is not None:
            details["label"] = step.label
        return self.state_event(frame, time, step, f"{step.type}StateExited", details)

    def _iteration(self, frame: Frame, time: float, what: str, **more: Json) -> Iterator[Event]:
        """Yield the event of an iteration.

        Branches have none, as with AWS, nor has an iteration that is an execution of its own.
        """
        parent = frame.parent
        if parent is None or parent.execution is not frame.execution:
            return
        if frame.origin[0].type == "Map":
            details = {"name": frame.origin[0].name, "index": frame.index}
            if not self.aws:
                details |= more
            yield self.event(frame, time, f"MapIteration{what}", frame.place, details)

    def _ended(self, frame: Frame) -> None:
        """Continue the parent's chain from the machine that ended last."""
        if frame.parent is not None:
            self.thread(frame.parent).latest = self.thread(frame).latest

    # One method per kind of record

    def _stretch(
        self,
        time: float,
        frame: Frame,
        visit: int,
        after: Step | None,
        step: Step | None,
        data: Json,
        variables: dict[str, Json],
        usage: UsageTotals,
        length: int,
        data_now: Json,
        variables_now: dict[str, Json],
    ) -> Iterator[Event]:
        first = visit - length
        self._know_item(frame)
        at, strand = self.frame_at(frame, time, first, variables, usage), self.thread(frame)
        for entered in range(first, visit):
            assert step is not None
            if entered > strand.visit:  # otherwise the state is redriven
                yield from self._told(frame, time, step, data)
                yield self.entry_event(frame, time, entered, step, data)
            before = at.variables
            try:
                following, output = advance(at, step, data)
            except StateError:
                return
            yield self._exited(frame, time, step, output, _changes(before, at.variables))
            step, data = following, output
        if after is None:
            yield from self._iteration(frame, time, "Succeeded")
            self._ended(frame)
            self.threads.pop(frame, None)  # the machine has no further events
        elif after.work is not None:
            if visit > strand.visit:
                yield from self._told(frame, time, after, data_now)
                yield self.entry_event(frame, time, visit, after, data_now)
            yield from self._begun(time, frame, visit, after, data_now, variables_now, usage, 0)

    def _know_item(self, frame: Frame) -> None:
        """Set the item of the iteration in a frame from a store, which does not store items."""
        parent = frame.parent
        if parent is None or frame.item is not ABSENT or parent.execution is not frame.execution:
            return
        if frame.origin[0].type == "Map":
            frame.item = self.thread(parent).items[frame.index]

    def _begun(
        self,
        time: float,
        frame: Frame,
        visit: int,
        step: Step,
        data: Json,
        variables: dict[str, Json],
        usage: UsageTotals,
        retry: int,
    ) -> Iterator[Event]:
        """Yield the events of an attempt; its parameters are computed again, because they are
        pure.
        """
        at, strand = self.frame_at(frame, time, visit, variables, usage, retry), self.thread(frame)
        assert strand.entry is not None  # an attempt starts from the entered data
        at.step, at.entered = step, strand.visit_start
        strand.handed_over = False
        try:
            if step.forks:
                details: dict[str, Json] = {} if self.aws else {"name": step.name}
                if step.items is not None:
                    strand.items = step.items(data, at)
                    details["length"] = len(strand.items)
                event = self.state_event(frame, time, step, f"{step.type}StateStarted", details)
                strand.fork, strand.succeeded = event.id, None
                yield event
            elif step.payload is not None:
                payload = step.payload(data, at)
                options = None if step.limits is None else step.limits(data, at)
                strand.handed_over = True
                shown = data if step.redact is None else step.redact(data)
                besides = {} if step.details is None else step.details(shown, at)
                yield from self._handed_over(time, frame, step, payload, options, besides)
        except StateError:
            return

    def _handed_over(
        self,
        time: float,
        frame: Frame,
        step: Step,
        payload: Json,
        options: CallOptions | None,
        besides: dict[str, Json],
    ) -> Iterator[Event]:
        manner = self._manner(step)
        details = {**manner.scheduled, manner.payload: payload, **besides}
        if self.aws and options is not None:
            limits = (options.timeout, options.heartbeat)
            names = ("timeoutInSeconds", "heartbeatInSeconds")
            details |= {
                name: int(limit) for name, limit in zip(names, limits, strict=True) if limit
            }
        if options is not None and options.credentials is not None:
            details["taskCredentials"] = credentials(options.credentials)
        yield self._of_task(time, frame, step, "Scheduled", details)
        if self.aws and manner.started:
            yield self._of_task(time, frame, step, "Started", {})

    def _manner(self, step: Step) -> TaskEvents:
        return task_events(step.resource, REGION) if self.aws and step.resource else NATIVE

    def _of_task(
        self, time: float, frame: Frame, step: Step, what: str, details: dict[str, Json]
    ) -> Event:
        manner = self._manner(step)
        return self.state_event(
            frame, time, step, f"{manner.prefix}{what}", {**manner.always, **details}
        )

    def _advanced(
        self, time: float, frame: Frame, visit: int, step: Step, what: str, details: dict[str, Json]
    ) -> Iterator[Event]:
        yield self._of_task(time, frame, step, what, details)

    def _failed(
        self, time: float, frame: Frame, visit: int, step: Step, error: StateError, answer: Json
    ) -> Iterator[Event]:
        self.origins.setdefault(error, (frame, visit, step.name))
        strand = self.thread(frame)
        self.failed |= strand.quoted
        if step.type == "Task":
            yield from self._attempt_failed(time, frame, step, error, answer)
        elif step.forks and not self.aws:
            yield self._fork_failed(time, frame, step, error)
        elif step.forks:
            strand.failing = error
            if answer is not ABSENT:  # the task succeeded; processing its result failed
                yield self._fork_succeeded(time, frame, step)
        yield from self._explained(time, frame, visit, step, error)

    def _attempt_failed(
        self, time: float, frame: Frame, step: Step, error: StateError, answer: Json
    ) -> Iterator[Event]:
        if self.aws and answer is not ABSENT:  # the task succeeded; processing its result failed
            yield self._of_task(time, frame, step, "Succeeded", {"output": answer})
        elif self.thread(frame).handed_over or not (
            self.aws or isinstance(error, EvaluationFailed)
        ):
            what = "TimedOut" if error.name == "States.Timeout" else "Failed"
            yield self._of_task(time, frame, step, what, error_details(error))

    def _fork_failed(self, time: float, frame: Frame, step: Step, error: StateError) -> Event:
        details = {} if self.aws else error_details(error)
        return self.state_event(frame, time, step, f"{step.type}StateFailed", details)

    def _fork_succeeded(self, time: float, frame: Frame, step: Step) -> Event:
        details: dict[str, Json] = {} if self.aws else {"name": step.name}
        strand = self.thread(frame)
        before = strand.latest
        if strand.run is not None:
            strand.latest, strand.run = strand.run, None
        event = self.state_event(frame, time, step, f"{step.type}StateSucceeded", details)
        strand.latest, strand.succeeded = before, event.id
        return event

    def _explained(
        self, time: float, frame: Frame, visit: int, step: Step, error: StateError
    ) -> Iterator[Event]:
        """Yield the event of a failed expression, once per failure."""
        if not isinstance(error, EvaluationFailed) or error is self.explained_error:
            return
        self.explained_error = error
        details = {
            "error": error.name,
            "cause": self.cause(error, frame, visit, step.name),
            "location": error.location,
            "state": step.name,
        }
        present = {key: value for key, value in details.items() if value is not None}
        yield self.state_event(frame, time, step, "EvaluationFailed", present)

    def _retried(
        self,
        time: float,
        frame: Frame,
        visit: int,
        step: Step,
        error: StateError,
        delay: float,
        retry: int,
    ) -> Iterator[Event]:
        if self.aws:
            return
        details = {"retry": retry, "delay": delay, **error_details(error)}
        yield self.state_event(frame, time, step, "RetryScheduled", details)

    def _caught(
        self, time: float, frame: Frame, visit: int, step: Step, error: StateError, goto: Step
    ) -> Iterator[Event]:
        if not self.aws:
            details = {"next": goto.name, **error_details(error)}
            yield self.state_event(frame, time, step, "ErrorCaught", details)
        elif step.forks:
            yield self._fork_failed(time, frame, step, error)

    def _end(
        self,
        time: float,
        frame: Frame,
        visit: int,
        step: Step,
        answer: Json,
        output: Json,
        before: dict[str, Json],
        after: dict[str, Json],
        following: Step | None,
    ) -> Iterator[Event]:
        if answer is not ABSENT:
            if step.forks:
                yield self._fork_succeeded(time, frame, step)
            elif step.type == "Task":
                yield self._of_task(time, frame, step, "Succeeded", {"output": answer})
        yield self._exited(frame, time, step, output, _changes(before, after))
        if following is None:
            yield from self._iteration(frame, time, "Succeeded")
            self._ended(frame)
            self.threads.pop(frame, None)  # the machine has no further events

    def _broken(
        self, time: float, frame: Frame, visit: int, step: Step | None, error: StateError
    ) -> Iterator[Event]:
        if step is not None:
            self.origins.setdefault(error, (frame, visit, step.name))
        self.fatal = self.aws and is_fatal(error)
        if self.fatal and step is not None and step.forks:  # its own failure follows
            strand = self.thread(frame)
            strand.latest = strand.succeeded or strand.latest
        if not self.fatal:
            yield from self._broken_off(time, frame, visit, step, error)
        self.cut_by = None if frame.parent is None else self.thread(frame).latest
        if frame.parent is not None and frame.origin[0].tolerant:
            self.fatal = False
        self._ended(frame)

    def _broken_off(
        self, time: float, frame: Frame, visit: int, step: Step | None, error: StateError
    ) -> Iterator[Event]:
        if step is not None:
            strand = self.thread(frame)
            failing, strand.failing = strand.failing, None
            if failing is not None and failing is not error:
                yield from self._catcher_failed(time, frame, step, error)
            yield from self._explained(time, frame, visit, step, error)
            if self.aws and step.forks:
                yield self._fork_failed(time, frame, step, error)
        yield from self._iteration(frame, time, "Failed", **error_details(error))
        if step is not None and step.type == "Task":
            yield from self._state_aborted(time, frame, step)

    def _catcher_failed(
        self, time: float, frame: Frame, step: Step, error: StateError
    ) -> Iterator[Event]:
        """Yield the failure of a fork whose catcher fails; nothing follows it (recorded)."""
        strand = self.thread(frame)
        before = strand.latest
        yield self._fork_failed(time, frame, step, error)
        strand.latest = before

    def _aborted(self, time: float, frame: Frame, visit: int, step: Step | None) -> Iterator[Event]:
        """Yield the events of an aborted machine; *step* is the state that a failure stopped."""
        if self.aws and self.cut_by is not None:
            self.thread(frame).latest = self.cut_by
        if not self.fatal and not (self.aws and step is None):
            yield from self._iteration(frame, time, "Aborted")
            yield from self._state_aborted(time, frame, step)

    def _state_aborted(self, time: float, frame: Frame, step: Step | None) -> Iterator[Event]:
        """Yield the end of a state in a machine that does not continue."""
        if self.aws and frame.parent is not None and step is not None and step.work is not None:
            yield self.state_event(frame, time, step, f"{step.type}StateAborted", {})

    def _noted(
        self,
        time: float,
        frame: Frame,
        visit: int,
        step: Step,
        event: str,
        details: dict[str, Json],
    ) -> Iterator[Event]:
        told = self.state_event(frame, time, step, event, details)
        if event == "MapRunSucceeded":
            self.thread(frame).run = told.id
        yield told

    def _whole(
        self,
        time: float,
        frame: Frame,
        visit: int,
        step: None,
        event: str,
        details: dict[str, Json],
    ) -> Iterator[Event]:
        self.fatal, self.life = False, execution_after(self.execution, self.life, time, details)
        told = self.event(None, time, event, (), details)
        self.whole.latest = told.id
        yield told


_EXPAND: dict[str, Any] = {
    kinds.STRETCH: HistoryExpander._stretch,
    kinds.ADVANCED: HistoryExpander._advanced,
    kinds.FAILED: HistoryExpander._failed,
    kinds.RETRIED: HistoryExpander._retried,
    kinds.AGAIN: HistoryExpander._begun,
    kinds.CAUGHT: HistoryExpander._caught,
    kinds.EXITED: HistoryExpander._end,
    kinds.BROKEN: HistoryExpander._broken,
    kinds.ABORTED: HistoryExpander._aborted,
    kinds.NOTED: HistoryExpander._noted,
    kinds.WHOLE: HistoryExpander._whole,
}


def _changes(before: dict[str, Json], after: dict[str, Json]) -> dict[str, Json]:
    return after.assigned if after is not before and isinstance(after, Variables) else {}
