"""Sequencing of events: their ids, their predecessors and the redaction of their details."""

from collections.abc import Sequence

from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine.events import COPIES, Event, needs_state_name, redact_details, redact_quotes
from asl.engine.execution import Execution
from asl.engine.frame import NO_VARIABLES, Frame
from asl.engine.usage import NO_USAGE, UsageTotals
from asl.program import Step

__all__ = ["EventSequencer", "EventThread"]

_ASIDE = ("StateSucceeded", "RunSucceeded", "IterationFailed", "Aborted")
"""Events that have no successor: the next event follows their predecessor (AWS, recorded)."""


class EventThread:
    """The events of one machine: what its next event depends on.

    The top machine and the execution itself share one thread.
    """

    __slots__ = (
        "entry",
        "failing",
        "fork",
        "handed_over",
        "items",
        "latest",
        "quoted",
        "run",
        "succeeded",
        "visit",
        "visit_start",
    )  # fmt: skip

    def __init__(self, latest: int = 0) -> None:
        self.latest = latest
        """Id of the event that the next one follows, 0 for none."""
        self.visit = -1
        """The latest visit, -1 before the first."""
        self.entry: Event | None = None
        """The entry event of the visit."""
        self.visit_start = 0.0
        """Time at which the visit began, as expressions see it."""
        self.fork = 0
        """Id of the event with which the latest fork began."""
        self.items: Sequence[Json] = ()
        """Items of the latest Map."""
        self._begin()

    def _begin(self) -> None:
        self.handed_over = False
        """Whether the current attempt has reached its call."""
        self.quoted: set[str] = set()
        """Redacted texts that no text of the visit may quote."""
        self.failing: StateError | None = None
        """Error of the latest failed attempt of a fork."""
        self.run: int | None = None
        """Id of the event with which the run of a distributed Map succeeded."""
        self.succeeded: int | None = None
        """Id of the event with which a fork succeeded."""

    def enter(self, visit: int) -> None:
        """Begin a visit without events."""
        self.visit = visit
        self._begin()

    def entry_event(self, visit: int) -> Event | None:
        """Return the entry event of a visit, None if it is not the current one."""
        return self.entry if visit == self.visit else None


class EventSequencer:
    """Creates the events of one execution, in order."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.aws = execution.program.profile.aws
        """Whether events have AWS's names and events unknown to AWS are left out."""
        self.redacts = True
        """Whether details are redacted."""
        self.count = 0
        self.whole = EventThread()
        self.threads: dict[Frame, EventThread] = {}
        """Threads of the machines below the top."""
        self.failed: set[str] = set()
        """Redacted texts of failed visits, whose errors appear in other events."""
        self.now = execution.started
        """Time of the latest event: no later event has an earlier time."""
        self.life = execution.with_redrives(0, None)
        """The execution as expressions saw it at this point of the history."""

    def thread(self, frame: Frame | None) -> EventThread:
        """Return the thread of a machine; a new one starts at the fork of its parent."""
        if frame is None or frame.parent is None:
            return self.whole
        found = self.threads.get(frame)
        if found is None:
            found = self.threads[frame] = EventThread(self.thread(frame.parent).fork)
        return found

    def event(
        self,
        frame: Frame | None,
        time: float,
        type: str,
        path: tuple[str | int, ...],
        details: dict[str, Json],
    ) -> Event:
        """Return the next event, which follows the latest one of its machine.

        A time before the latest event (a timeout while no process ran, a system clock that was set
        back) becomes that of the latest event.
        """
        strand = self.thread(frame)
        if time > self.now:
            self.now = time
        self.count += 1
        if self.failed:
            details = redact_quotes(details, self.failed)
        event = Event(self.count, strand.latest, self.now, type, path, details)
        if frame is not None and not type.endswith(_ASIDE):
            strand.latest = event.id
        return event

    def state_event(
        self, frame: Frame, time: float, step: Step, type: str, details: dict[str, Json]
    ) -> Event:
        """Return the next event of a state, redacted."""
        if self.redacts and step.redact is not None:
            quoted = self.thread(frame).quoted
            for key in COPIES:
                quoted.update(step.redact.quoted_texts(details.get(key)))
            details = redact_quotes(redact_details(type, details, step.redact), quoted)
        return self.event(frame, time, type, (*frame.place, step.name), details)

    def entry_event(self, frame: Frame, time: float, visit: int, step: Step, data: Json) -> Event:
        """Return the entry event of a visit."""
        strand = self.thread(frame)
        strand.enter(visit)
        strand.visit_start = time
        details = {"name": step.name, "input": data}
        strand.entry = self.state_event(frame, time, step, f"{step.type}StateEntered", details)
        return strand.entry

    def frame_at(
        self,
        frame: Frame,
        time: float,
        visit: int,
        variables: dict[str, Json] = NO_VARIABLES,
        usage: UsageTotals = NO_USAGE,
        retry: int = 0,
    ) -> Frame:
        """Return the frame of a visit, to evaluate pure expressions again."""
        at = frame.frame_at(visit, variables, time, usage, retry)
        at.execution = self.life
        return at

    def cause(self, error: StateError, frame: Frame, visit: int, state: str) -> str | None:
        """Return an error's cause; for an error of the engine it names the state and its entry
        event.
        """
        if not needs_state_name(error):
            return error.cause
        entry = self.thread(frame).entry_event(visit)
        if entry is None:  # the state was not entered
            return f"Before the state '{state}': {error.cause}"
        return (
            f"An error occurred while executing the state '{state}' "
            f"(entered at the event id #{entry.id}). {error.cause}"
        )
