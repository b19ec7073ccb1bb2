"""History: flat records become events, on demand.

A stretch of pure states is one record; its events come from running the stretch again, one state
at a time, on the data that it began with. Nothing is lost and nothing is stored twice. The same
expander serves a finished history and a listener to a running one.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from asl.core.errors import EvaluationFailed, StateError
from asl.core.values import Json, excerpt, fits
from asl.engine import records as kinds
from asl.engine.execution import Execution, Usage
from asl.engine.frame import Frame
from asl.expr.times import format_timestamp
from asl.program import Step
from asl.states.host import ABSENT, Record

__all__ = ["Event", "Expander", "visited"]


_FUNCTION = re.compile(r"arn:[^:]+:lambda:.*")
MAX_SHOWN = 64 * 1024 * 1024
"""Bytes of a value that an event is written with."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of an execution's history (Specification 8.14)."""

    id: int
    """1 for the first event of the execution."""
    timestamp: float
    """Epoch seconds."""
    type: str
    """AWS's name where one exists: `TaskStateEntered`, `MapIterationStarted`, ..."""
    path: tuple[str | int, ...]
    """Where: names of states and indices of branches or items, outermost first."""
    details: dict[str, Json]

    def to_json(self) -> dict[str, Json]:
        """Return the event as a JSON object; the timestamp in ISO 8601."""
        return {
            "id": self.id,
            "timestamp": format_timestamp(self.timestamp),
            "type": self.type,
            "path": list(self.path),
            "details": {
                key: value if fits(value, MAX_SHOWN) else excerpt(value, 0)
                for key, value in self.details.items()
            },
        }


class Expander:
    """Turns records into events, in order; `feed` each record once."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.aws = execution.program.profile.aws
        """Whether events have AWS's names, and those that AWS has not are left out."""
        self.count = 0
        self.started: set[int] = set()
        self.entered: dict[tuple[int, int], Event] = {}
        """The event with which a visit began, by frame and visit."""

    def start(self) -> Event:
        """Return the first event."""
        return self._event(
            self.execution.started, "ExecutionStarted", (), {"input": self.execution.input}
        )

    def end(self, status: str, time: float, details: dict[str, Json]) -> Event:
        """Return the last event; *status* is the execution's."""
        name = {
            "SUCCEEDED": "ExecutionSucceeded",
            "FAILED": "ExecutionFailed",
            "TIMED_OUT": "ExecutionTimedOut",
            "ABORTED": "ExecutionAborted",
        }[status]
        return self._event(time, name, (), details)

    def feed(self, record: Record) -> Iterator[Event]:
        """Yield the events that one record stands for."""
        kind, time, frame, visit, step, *rest = record
        if id(frame) not in self.started:
            self.started.add(id(frame))
            yield from self._child_event(frame, time, "Started")
        yield from _EXPAND[kind](self, time, frame, visit, step, *rest)

    def _event(
        self, time: float, type: str, path: tuple[str | int, ...], details: dict[str, Json]
    ) -> Event:
        self.count += 1
        return Event(self.count, time, type, path, details)

    def _entered(self, frame: Frame, time: float, visit: int, step: Step, data: Json) -> Event:
        event = self._event(
            time,
            f"{step.type}StateEntered",
            (*frame.place, step.name),
            {"name": step.name, "input": data},
        )
        self.entered[id(frame), visit] = event
        return event

    def _exited(
        self,
        frame: Frame,
        time: float,
        step: Step,
        output: Json,
        assigned: dict[str, Json],
    ) -> Event:
        details: dict[str, Json] = {"name": step.name, "output": output}
        if assigned:
            details["assignedVariables"] = assigned
        return self._event(time, f"{step.type}StateExited", (*frame.place, step.name), details)

    def _child_event(self, frame: Frame, time: float, what: str, **more: Json) -> Iterator[Event]:
        """Yield the event of an iteration; branches have none, as with AWS."""
        parent = frame.parent
        if parent is not None and parent.step.type == "Map":
            yield self._event(
                time,
                f"MapIteration{what}",
                frame.place,
                {"name": parent.step.name, "index": frame.index, **more},
            )

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
        usage: Usage,
        length: int,
        data_now: Json,
        variables_now: dict[str, Json],
    ) -> Iterator[Event]:
        first = visit - length
        at = frame.replayed(first, variables, time, usage)
        for entered in range(first, visit):
            assert step is not None
            yield self._entered(frame, time, entered, step, data)
            before = at.variables
            try:
                following, output = advance(at, step, data)
            except StateError as error:
                yield from self._evaluation_failed(time, frame, entered, step, error)
                return
            yield self._exited(frame, time, step, output, _changes(before, at.variables))
            step, data = following, output
        if after is None:
            yield from self._child_event(frame, time, "Succeeded")
        elif after.work is not None:
            yield self._entered(frame, time, visit, after, data_now)
            yield from self._scheduled(time, frame, visit, after, data_now, variables_now, usage, 0)
            if after.type in ("Map", "Parallel"):
                place = (*frame.place, after.name)
                yield self._event(time, f"{after.type}StateStarted", place, {"name": after.name})

    def _scheduled(
        self,
        time: float,
        frame: Frame,
        visit: int,
        step: Step,
        data: Json,
        variables: dict[str, Json],
        usage: Usage,
        retry: int,
    ) -> Iterator[Event]:
        """Yield the event of an attempt; what was handed over is computed again, being pure."""
        if step.payload is None:
            return
        at = frame.replayed(visit, variables, time, usage, retry)
        at.step, at.entered = step, self.entered[id(frame), visit].timestamp
        try:
            payload = step.payload(data, at)
        except StateError:
            return
        yield self._task_event(time, frame, step, "Scheduled", {"parameters": payload})
        if self.aws:
            yield self._task_event(time, frame, step, "Started", {})

    def _task_event(
        self, time: float, frame: Frame, step: Step, what: str, details: dict[str, Json]
    ) -> Event:
        """Return an event of a task; AWS has names of their own for those of a function."""
        is_function = self.aws and _FUNCTION.fullmatch(step.resource or "") is not None
        name = f"LambdaFunction{what}" if is_function else f"Task{what}"
        return self._event(time, name, (*frame.place, step.name), details)

    def _failed(
        self, time: float, frame: Frame, visit: int, step: Step, error: StateError
    ) -> Iterator[Event]:
        yield from self._evaluation_failed(time, frame, visit, step, error)
        details = error_details(error)
        if step.type in ("Map", "Parallel"):
            yield self._event(time, f"{step.type}StateFailed", (*frame.place, step.name), details)
        elif step.type == "Task" and not isinstance(error, EvaluationFailed):
            what = "TimedOut" if error.name == "States.Timeout" else "Failed"
            yield self._task_event(time, frame, step, what, details)

    def _evaluation_failed(
        self, time: float, frame: Frame, visit: int, step: Step, error: StateError
    ) -> Iterator[Event]:
        """Yield the event of an expression that failed, as AWS records it."""
        if not isinstance(error, EvaluationFailed):
            return
        details = {"state": step.name, **error_details(error)}
        if error.location is not None:
            details["location"] = error.location
        yield self._event(time, "EvaluationFailed", (*frame.place, step.name), details)

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
        yield self._event(time, "RetryScheduled", (*frame.place, step.name), details)

    def _caught(
        self, time: float, frame: Frame, visit: int, step: Step, error: StateError, goto: Step
    ) -> Iterator[Event]:
        if self.aws:
            return
        details = {"next": goto.name, **error_details(error)}
        yield self._event(time, "ErrorCaught", (*frame.place, step.name), details)

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
            if step.type in ("Map", "Parallel"):
                name, details = f"{step.type}StateSucceeded", {"name": step.name}
                yield self._event(time, name, (*frame.place, step.name), details)
            elif step.type == "Task":
                if self.aws and (step.resource or "").endswith((".sync", ".sync:2")):
                    yield self._task_event(time, frame, step, "Submitted", {})
                yield self._task_event(time, frame, step, "Succeeded", {"output": answer})
        yield self._exited(frame, time, step, output, _changes(before, after))
        if following is None:
            yield from self._child_event(frame, time, "Succeeded")

    def _broken(
        self, time: float, frame: Frame, visit: int, step: Step | None, error: StateError
    ) -> Iterator[Event]:
        yield from self._child_event(frame, time, "Failed", **error_details(error))

    def _aborted(self, time: float, frame: Frame, visit: int, step: Step | None) -> Iterator[Event]:
        yield from self._child_event(frame, time, "Aborted")


_EXPAND: dict[str, Any] = {
    kinds.STRETCH: Expander._stretch,
    kinds.FAILED: Expander._failed,
    kinds.RETRIED: Expander._retried,
    kinds.AGAIN: Expander._scheduled,
    kinds.CAUGHT: Expander._caught,
    kinds.EXITED: Expander._end,
    kinds.BROKEN: Expander._broken,
    kinds.ABORTED: Expander._aborted,
}


def error_details(error: StateError) -> dict[str, Json]:
    """Return the error and cause that are there."""
    both = {"error": error.name, "cause": error.cause}
    return {key: value for key, value in both.items() if value is not None}


def visited(records: Iterable[Record]) -> Iterator[str]:
    """Yield the names of the top machine's states in the order they were entered."""
    for kind, time, frame, visit, after, *rest in records:
        if kind == kinds.STRETCH and frame.parent is None:
            step, data, variables, usage, length, *_ = rest
            at = frame.replayed(visit - length, variables, time, usage)
            for _ in range(length):
                yield step.name
                try:
                    step, data = advance(at, step, data)
                except StateError:
                    break
            if after is not None and after.work is not None:
                yield after.name


def advance(at: Frame, step: Step, data: Json) -> tuple[Step | None, Json]:
    """Run one pure state; the interpreter does the same for a whole stretch at once."""
    if step.choose is not None:
        return step.choose(data, at)
    assert step.transform is not None
    return step.next, step.transform(data, at)


def _changes(before: dict[str, Json], after: dict[str, Json]) -> dict[str, Json]:
    if before is after:
        return {}
    return {key: value for key, value in after.items() if before.get(key, ...) is not value}
