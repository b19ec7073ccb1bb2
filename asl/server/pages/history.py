"""Histories of executions as their pages show them: events, visits of states, statuses."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock
from typing import Final, TypeAlias

from asl.core.errors import AslError
from asl.core.values import Json
from asl.engine.events import ENDINGS, Event
from asl.executions.execution_reader import EventFeed
from asl.graphs.model import GraphState, MachineGraph
from asl.server.projects import ServerProject
from asl.states import STATE_TYPES, UNKNOWN
from asl.states.blocks.streaming import CHUNK
from asl.stores.executions import StoredExecution

__all__ = [
    "HistoryCache",
    "Path",
    "RunHistory",
    "StateTotals",
    "StateVisit",
    "path_text",
    "step_text",
]

Path: TypeAlias = tuple[str | int, ...]
MAX_EVENTS: Final = 100_000
"""Events that a page reads; those of longer histories are in the REST interface."""
LONGEST_ANSWER: Final = 50_000
"""Characters of an unfinished answer that are shown."""
REMEMBERED: Final = 32
"""Histories in memory."""
MOST_REMEMBERED: Final = 200_000
"""Events of all histories in memory."""
OPEN: Final = ("RUNNING", "RETRYING", "WAITING")
"""The statuses of a visit that has not ended."""
PRECEDENCE: Final = (*OPEN, "FAILED", "TIMED_OUT", "ABORTED", "CAUGHT", "SUCCEEDED")
"""The status of a state is the first one of these that one of its visits has."""
ENDS: Final[Mapping[str, str]] = {event: status for status, event in ENDINGS.items()}
"""The status of an execution by the type of its last event."""


@dataclass(slots=True)
class StateVisit:
    """One visit of a state.

    Attributes:
        path: Names of states and numbers of branches or items, outermost first.
        state: The state in the graph; None if the document does not have it any more.
        type: Type of the state.
        number: 1 for the first visit of this path.
        entered: Time of its start in epoch seconds.
        ended: Time of its end, None before.
        status: One of `PRECEDENCE`.
        attempts: Number of attempts of its task.
        first: Index of its first event.
        last: Index of its last event.
        error: Name of the last error.
        cause: Cause of the last error.
        field: Field whose expression failed.
    """

    path: Path
    state: GraphState | None
    type: str
    number: int
    entered: float
    first: int
    last: int
    ended: float | None = None
    status: str = "RUNNING"
    attempts: int = 0
    error: str | None = None
    cause: str | None = None
    field: str | None = None

    @property
    def pointer(self) -> str:
        """JSON Pointer of the state; empty if it is unknown."""
        return "" if self.state is None else self.state.pointer

    @property
    def is_waiting(self) -> bool:
        """Whether the visit waits for time or people."""
        return STATE_TYPES.get(self.type, UNKNOWN).waits


def path_text(path: Path) -> str:
    """Return a path for people: `Each [3] › Review`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f" [{step}]"
        else:
            text += f" › {step}" if text else step
    return text


def step_text(path: Path) -> str:
    """Return the last step of a path for people: `Review [3]`."""
    name, *around = path[::-1]
    return f"{name} [{around[0]}]" if around else str(name)


@dataclass(slots=True)
class StateTotals:
    """All visits of one state.

    Attributes:
        name: Name of the state.
        type: Type of the state.
        statuses: Number of visits by status.
        attempts: Number of attempts of its task.
        seconds: Sum of the durations of the ended visits.
    """

    name: str
    type: str
    statuses: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(PRECEDENCE, 0)))
    attempts: int = 0
    seconds: float = 0.0

    @property
    def status(self) -> str:
        """The first status of `PRECEDENCE` that a visit has."""
        return next((each for each in PRECEDENCE if self.statuses[each]), "")

    @property
    def visits(self) -> int:
        """The number of visits."""
        return self.statuses.total()


class RunHistory:
    """The history of an execution, which grows while the execution runs.

    Args:
        feed: Its events.
        graph: The graph of its document.
    """

    def __init__(self, feed: EventFeed, graph: MachineGraph) -> None:
        self.events: list[Event] = []
        self.visits: list[StateVisit] = []
        self.ended: float | None = None
        """Time of the end of the execution, None before."""
        self.graph = graph
        self.answers: dict[Path, str] = {}
        """What agents have answered so far, by the path of the state that calls them."""
        self._feed = feed
        self._states: dict[str, Mapping[str, GraphState]] = {}
        """The states of each machine by name, by the JSON Pointer of the machine."""
        self._by_pointer: dict[str, StateTotals] = {}
        self._latest: dict[Path, StateVisit] = {}
        self._open: dict[Path, StateVisit] = {}
        self._cut: list[StateVisit] = []
        """The visits that the end of the execution has ended."""
        self._failed: StateVisit | None = None
        """The visit that failed last."""
        self._lock = Lock()

    @property
    def totals(self) -> dict[str, StateTotals]:
        """What is known about each visited state, by its JSON Pointer.

        A copy: another thread may read further events meanwhile.
        """
        return dict(self._by_pointer)

    @property
    def is_truncated(self) -> bool:
        """Whether the history has more events than a page reads."""
        return len(self.events) >= MAX_EVENTS

    @property
    def failed(self) -> StateVisit | None:
        """The visit whose failure came last and was not handled, None without one."""
        return self._failed

    def refresh(self) -> None:
        """Read the events that were recorded since the last call.

        Raises:
            StoreDamaged: The history is damaged.
        """
        with self._lock:
            for event in islice(self._feed.new_events(), MAX_EVENTS - len(self.events)):
                if event.id:
                    self.events.append(event)
                    self._add(event, len(self.events) - 1)
                elif event.type == CHUNK:
                    words = self.answers.get(event.path, "") + str(event.details.get("chunk", ""))
                    self.answers[event.path] = words[-LONGEST_ANSWER:]

    def visits_of(self, pointer: str) -> list[StateVisit]:
        """Return the visits of a state, in order."""
        return [each for each in self.visits if each.pointer == pointer]

    def events_of(self, visit: StateVisit) -> list[Event]:
        """Return the events of a visit, without those of the states within it."""
        span = self.events[visit.first : visit.last + 1]
        return [each for each in span if each.path == visit.path]

    def variables_before(self, visit: StateVisit) -> dict[str, Json]:
        """Return the variables that a visit sees when it begins."""
        machines = [
            visit.path[:length]
            for length in range(len(visit.path))
            if length == 0 or isinstance(visit.path[length - 1], int)
        ]
        found: dict[str, Json] = {}
        for event in self.events[: visit.first]:
            assigned = event.details.get("assignedVariables")
            if assigned and event.path[:-1] in machines:
                found |= assigned
        return found

    # Events

    def _add(self, event: Event, index: int) -> None:
        if not event.path:
            self._add_to_whole(event)
        elif isinstance(event.path[-1], int):
            self._add_to_iteration(event, index)
        elif event.type.endswith("StateEntered"):
            self._enter(event, index)
        elif (visit := self._latest.get(event.path)) is not None:
            visit.last = index
            self._add_to_visit(visit, event)

    def _add_to_whole(self, event: Event) -> None:
        if event.type in ENDS:
            self.ended = event.timestamp
            self._cut = [*self._open.values()]
            self._end_below((), event, ENDS[event.type])
        elif event.type in ("ExecutionRedriven", "ExecutionResumed"):
            self.ended = None
            for visit in (*self._cut, *self._around_failure()):
                self._change(visit, "WAITING" if visit.is_waiting else "RUNNING")
                visit.error = visit.cause = visit.field = None
            self._cut, self._failed = [], None

    def _around_failure(self) -> Iterator[StateVisit]:
        """Yield the visit that failed last, and those around it that failed with it."""
        path = () if self._failed is None else self._failed.path
        for length in range(1, len(path) + 1):
            visit = self._latest.get(path[:length])
            if visit is not None and visit.status in ("FAILED", "TIMED_OUT"):
                yield visit

    def _add_to_iteration(self, event: Event, index: int) -> None:
        around = self._latest.get(event.path[:-1])
        if around is not None:
            around.last = index
        if event.type.endswith("IterationFailed"):
            self._end_below(event.path, event, "FAILED")
        elif event.type.endswith("IterationAborted"):
            self._end_below(event.path, event, "ABORTED")

    def _enter(self, event: Event, index: int) -> None:
        before = self._latest.get(event.path)
        visit = StateVisit(
            path=event.path,
            state=self._state_at(event.path),
            type=event.type.removesuffix("StateEntered"),
            number=1 if before is None else before.number + 1,
            entered=event.timestamp,
            first=index,
            last=index,
        )
        if visit.is_waiting:
            visit.status = "WAITING"
        self._latest[event.path] = self._open[event.path] = visit
        self.visits.append(visit)
        self._totals(visit).statuses[visit.status] += 1

    def _add_to_visit(self, visit: StateVisit, event: Event) -> None:
        kind = event.type
        if kind == "RetryScheduled":
            self._change(visit, "RETRYING")
        elif kind.endswith("Scheduled"):
            visit.attempts += 1
            self.answers.pop(visit.path, None)
            self._totals(visit).attempts += 1
            self._change(visit, "RUNNING")
        elif kind.endswith("StateStarted"):
            self._change(visit, "RUNNING")
        elif kind == "ApprovalRequested":
            self._change(visit, "WAITING")
        elif kind == "ErrorCaught":
            self._note_error(visit, event)
            self._end(visit, event.timestamp, "CAUGHT")
        elif kind.endswith("StateExited"):
            caught = visit.status == "CAUGHT"
            self._end_below(visit.path, event, "ABORTED")
            self._end(visit, event.timestamp, "CAUGHT" if caught else "SUCCEEDED")
            if self._failed is not None and _is_at_or_within(self._failed.path, visit.path):
                self._failed = None  # it was retried or caught
        elif kind.endswith("StateAborted"):
            self._end(visit, event.timestamp, "ABORTED")
        elif kind.endswith(("Failed", "TimedOut")) and "error" in event.details:
            status = "TIMED_OUT" if kind.endswith("TimedOut") else "FAILED"
            self._end_below(visit.path, event, status)
            self._note_error(visit, event)
            self._fail(visit, event.timestamp, status)

    def _note_error(self, visit: StateVisit, event: Event) -> None:
        visit.error = event.details.get("error") or visit.error
        visit.cause = event.details.get("cause") or visit.cause
        visit.field = event.details.get("location") or visit.field

    def _fail(self, visit: StateVisit, time: float, status: str) -> None:
        around = self._failed is not None and _is_within(self._failed.path, visit.path)
        if not around:
            self._failed = visit
        self._end(visit, time, status)

    def _end_below(self, path: Path, event: Event, status: str) -> None:
        """End the open visits below a path.

        A failure that no visit has had so far is that of the last of them.
        """
        below = [each for each in self._open.values() if _is_within(each.path, path)]
        failed = self._failed
        if status == "FAILED" and not (failed and _is_within(failed.path, path)) and below:
            failed = max(below, key=lambda each: (each.last, len(each.path)))
            self._note_error(failed, event)
            self._failed = failed
        for visit in below:
            has_failed = failed is not None and _is_at_or_within(failed.path, visit.path)
            final = status if status != "FAILED" or has_failed else "ABORTED"
            self._end(visit, event.timestamp, final)

    def _end(self, visit: StateVisit, time: float, status: str) -> None:
        self._change(visit, status)
        self._open.pop(visit.path, None)
        visit.ended = time
        self._totals(visit).seconds += time - visit.entered

    def _change(self, visit: StateVisit, status: str) -> None:
        """Give a visit another status; one that had ended is open then."""
        totals = self._totals(visit)
        totals.statuses[visit.status] -= 1
        totals.statuses[status] += 1
        visit.status = status
        if visit.ended is not None:
            totals.seconds -= visit.ended - visit.entered
            visit.ended = None
            self._open[visit.path] = visit

    def _totals(self, visit: StateVisit) -> StateTotals:
        found = self._by_pointer.get(visit.pointer)
        if found is None:
            found = self._by_pointer[visit.pointer] = StateTotals(str(visit.path[-1]), visit.type)
        return found

    def _state_at(self, path: Path) -> GraphState | None:
        """Return the state of the graph at a path."""
        machine, found = self.graph, None
        for step in path:
            if isinstance(step, str):
                found = self._names(machine).get(step)
                continue
            machines = () if found is None else found.machines
            if not machines:
                return None
            machine = machines[step if 1 < len(machines) > step else 0]
        return found

    def _names(self, machine: MachineGraph) -> Mapping[str, GraphState]:
        known = self._states.get(machine.pointer)
        if known is None:
            known = self._states[machine.pointer] = {each.name: each for each in machine.states}
        return known


def _is_within(path: Path, outer: Path) -> bool:
    return len(path) > len(outer) and path[: len(outer)] == outer


def _is_at_or_within(path: Path, outer: Path) -> bool:
    return path[: len(outer)] == outer


class HistoryCache:
    """The histories that were shown last, so that a page reads only what is new."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, int, str, int], RunHistory] = OrderedDict()
        self._lock = Lock()

    def get(
        self,
        project: ServerProject,
        stored: StoredExecution,
        draw: Callable[[ServerProject, StoredExecution], MachineGraph],
    ) -> RunHistory:
        """Return the history of an execution up to now.

        Args:
            project: The project.
            stored: The execution.
            draw: Returns the graph of its document.

        Raises:
            StoreDamaged: The history is damaged.
        """
        key = (project.name, stored.number, stored.document, stored.redrives)
        with self._lock:
            found = self._known.pop(key, None)
            if found is None or found.ended not in (None, stored.ended):
                found = RunHistory(project.store.feed(stored.name), draw(project, stored))
            self._known[key] = found
            while len(self._known) > 1 and self._has_too_many():
                self._known.popitem(last=False)
        try:
            found.refresh()
        except AslError:  # a history that was read in part is not shown again
            with self._lock:
                self._known.pop(key, None)
            raise
        return found

    def _has_too_many(self) -> bool:
        events = sum(len(each.events) for each in self._known.values())
        return len(self._known) > REMEMBERED or events > MOST_REMEMBERED
