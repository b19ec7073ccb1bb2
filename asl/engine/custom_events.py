"""Events that documents define: hooks of states, and feedback requests (8.13, 8.9)."""

from collections.abc import Iterator
from typing import Any

from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine import records as kinds
from asl.engine.event_sequencer import EventSequencer
from asl.engine.events import Event, error_details
from asl.engine.frame import Frame
from asl.program import Step
from asl.states.blocks.audit import redact_text
from asl.states.blocks.events import EventHook
from asl.states.blocks.feedback import BuildRequest
from asl.states.blocks.progress import EMITTED
from asl.states.effects import ABSENT, Record

__all__ = ["events_after_error", "events_after_state"]


def events_after_state(sequencer: EventSequencer, record: Record, event: Event) -> Iterator[Event]:
    """Yield the events that a state emits on its entry or exit."""
    entered = event.type.endswith("StateEntered")
    if not entered and not event.type.endswith("StateExited"):
        return
    _, time, frame, visit, step, *rest = record
    beside = (rest[0] if record[0] == kinds.STRETCH else step).siblings
    emitting = beside.get(event.path[-1])
    if emitting is None:
        return
    hook = None if emitting.hooks is None else emitting.hooks.get("enter" if entered else "exit")
    if hook is not None:
        data = event.details["input" if entered else "output"]
        yield _by_hook(sequencer, hook, frame, time, visit, emitting, data)
    if emitting.feedback is not None and not entered:
        yield from _asked(sequencer, emitting.feedback, frame, time, visit, emitting, rest)


def events_after_error(sequencer: EventSequencer, record: Record) -> Iterator[Event]:
    """Yield the events that a failing state emits, whether its error is caught or not."""
    _, time, frame, visit, step, error, *_ = record
    hook = None if step is None or step.hooks is None else step.hooks.get("error")
    if hook is not None:
        entry = sequencer.thread(frame).entry_event(visit)
        data = {} if entry is None else entry.details["input"]
        cause = redact_text(error.cause or "", sequencer.failed)
        failure = {"Error": error.name or "", "Cause": cause}
        document = {**data, **failure} if type(data) is dict else failure
        yield _by_hook(sequencer, hook, frame, time, visit, step, document)


def _by_hook(
    sequencer: EventSequencer,
    hook: EventHook,
    frame: Frame,
    time: float,
    visit: int,
    step: Step,
    data: Json,
) -> Event:
    at = sequencer.frame_at(frame, time, visit)
    at.step = step
    event = EMITTED
    try:
        details = hook.details(data, at)
    except StateError as error:
        event, details = "EventWarning", error_details(error)
    return sequencer.event(frame, time, event, (*frame.place, step.name), details)


def _asked(
    sequencer: EventSequencer,
    ask: BuildRequest,
    frame: Frame,
    time: float,
    visit: int,
    step: Step,
    rest: list[Any],
) -> Iterator[Event]:
    """Yield the feedback request of a Task that succeeded."""
    answer, _, before, *_ = rest
    entry = sequencer.thread(frame).entry_event(visit)
    if answer is ABSENT or entry is None:
        return
    at = sequencer.frame_at(frame, time, visit, before)
    at.step, at.entered = step, entry.timestamp
    event, details = "FeedbackRequested", {"feedbackId": f"{frame.execution_id}:{at.visit_key}"}
    try:
        asked = ask(entry.details["input"], at)
    except StateError as error:
        event, details = "FeedbackWarning", error_details(error)
    else:
        if asked is None:
            return
        details |= asked
    yield sequencer.state_event(frame, time, step, event, details)
