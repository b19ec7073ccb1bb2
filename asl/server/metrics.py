"""Metrics in the text format of Prometheus: counts of this process, and the state of stores."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from threading import Lock
from time import time
from typing import Final, NamedTuple

from asl import __version__
from asl.engine.result import Result
from asl.executions import Store
from asl.executions.schedules import Schedule, list_schedules
from asl.stores.executions import ENDED

__all__ = ["MEDIA_TYPE", "ProcessMetrics"]

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
MOST_WORKFLOWS: Final = 100
"""Number of workflows with values of their own; those beyond it share the label `other`."""
BUCKETS: Final = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0)
"""Upper bounds of durations in seconds."""

Labels = Mapping[str, str]


class Family(NamedTuple):
    """A metric with its values.

    Attributes:
        name: Its name.
        kind: `counter`, `gauge` or `histogram`.
        help: What it is.
        samples: Suffix of the name, labels and value of each sample.
    """

    name: str
    kind: str
    help: str
    samples: list[tuple[str, Labels, float]]


class ProcessMetrics:
    """What this process has counted since its start; any thread may use it."""

    def __init__(self) -> None:
        self._started = time()
        self._lock = Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._ended: Counter[tuple[str, str, str]] = Counter()
        self._durations: dict[tuple[str, str], list[int]] = {}
        """Number of executions in each bucket; the last one has no bound."""
        self._seconds: dict[tuple[str, str], float] = {}
        self._workflows: set[str] = set()

    def count_request(self, face: str, method: str, status: int) -> None:
        """Count an answered request."""
        with self._lock:
            self._requests[face, method, status] += 1

    def count_outcome(self, project: str, outcome: Result | str) -> None:
        """Count the outcome of an execution as a runner reports it."""
        if isinstance(outcome, str) or outcome.status not in ENDED:
            return
        with self._lock:
            workflow = self._label(outcome.execution.workflow)
            seconds = max(0.0, outcome.ended - outcome.execution.started)
            self._ended[project, workflow, outcome.status] += 1
            total = self._seconds.get((project, workflow), 0.0) + seconds
            self._seconds[project, workflow] = total
            counts = self._durations.setdefault((project, workflow), [0] * (len(BUCKETS) + 1))
            counts[bisect_left(BUCKETS, seconds)] += 1

    def _label(self, workflow: str) -> str:
        """Return the label of a workflow; their number is bounded."""
        if workflow not in self._workflows and len(self._workflows) >= MOST_WORKFLOWS:
            return "other"
        self._workflows.add(workflow)
        return workflow

    def text(self, stores: Mapping[str, Store]) -> str:
        """Return all metrics.

        Args:
            stores: The stores by the name of their project.

        Raises:
            StoreError: A store cannot be read.
        """
        with self._lock:
            families = [*self._own()]
        states = [(project, _state(store)) for project, store in stores.items()]
        with self._lock:
            families += self._of_stores(states)
        return "".join(map(_rendered, families))

    def _own(self) -> Iterator[Family]:
        yield Family("asl_build_info", "gauge", "Version.", [("", {"version": __version__}, 1)])
        help = "Start of the process in epoch seconds."
        yield Family("asl_process_start_time_seconds", "gauge", help, [("", {}, self._started)])
        requests: list[tuple[str, Labels, float]] = [
            ("", {"face": face, "method": method, "status": str(status)}, count)
            for (face, method, status), count in self._requests.items()
        ]
        yield Family("asl_http_requests_total", "counter", "Answered requests.", requests)
        ended: list[tuple[str, Labels, float]] = [
            ("", {"project": project, "workflow": workflow, "status": status}, count)
            for (project, workflow, status), count in self._ended.items()
        ]
        help = "Executions that ended in this process."
        yield Family("asl_executions_ended_total", "counter", help, ended)
        samples: list[tuple[str, Labels, float]] = []
        for (project, workflow), counts in self._durations.items():
            labels = {"project": project, "workflow": workflow}
            bounds = [*(f"{each:g}" for each in BUCKETS), "+Inf"]
            total = sum(counts)
            samples += [
                ("_bucket", {**labels, "le": bound}, count)
                for bound, count in zip(bounds, accumulate(counts), strict=True)
            ]
            samples += [("_sum", labels, self._seconds[project, workflow])]
            samples += [("_count", labels, total)]
        help = "Time from the start to the end of executions, waits included."
        yield Family("asl_execution_duration_seconds", "histogram", help, samples)

    def _of_stores(self, states: Iterable[tuple[str, _StoreState]]) -> Iterator[Family]:
        found = [*states]
        open_ones: list[tuple[str, Labels, float]] = []
        for project, state in found:
            counts: Counter[tuple[str, str]] = Counter()
            for (workflow, status), count in state.open.items():
                counts[self._label(workflow), status] += count
            open_ones += [
                ("", {"project": project, "workflow": workflow, "status": status}, count)
                for (workflow, status), count in counts.items()
            ]
        help = "Executions that have not ended; paused ones wait."
        yield Family("asl_executions_open", "gauge", help, open_ones)
        for name, help, value in _GAUGES:
            samples: list[tuple[str, Labels, float]] = [
                ("", {"project": project}, value(state)) for project, state in found
            ]
            yield Family(name, "gauge", help, samples)


class _StoreState(NamedTuple):
    """The state of a store at one time.

    Attributes:
        open: Number of executions that have not ended, by workflow and status.
        requests: Number of open requests and task tokens.
        oldest_request: Seconds since the oldest of them was made.
        stuck: Number of executions that lack a binding.
        workers: Number of live runners.
        queue_delay: Seconds for which the longest due execution has waited for a runner.
        schedules: Number of schedules that are not paused.
        schedule_lag: Seconds for which the longest due schedule has not started its execution.
    """

    open: Mapping[tuple[str, str], int]
    requests: int
    oldest_request: float
    stuck: int
    workers: int
    queue_delay: float
    schedules: int
    schedule_lag: float


_GAUGES: Final[tuple[tuple[str, str, Callable[[_StoreState], float]], ...]] = (
    ("asl_requests_open", "Open requests and task tokens.", lambda state: state.requests),
    (
        "asl_oldest_request_age_seconds",
        "Age of the oldest open request.",
        lambda state: state.oldest_request,
    ),
    (
        "asl_executions_stuck",
        "Executions that lack a binding in all workers.",
        lambda state: state.stuck,
    ),
    ("asl_workers", "Live runners of the store.", lambda state: state.workers),
    (
        "asl_queue_delay_seconds",
        "Time for which the longest due execution has waited for a runner.",
        lambda state: state.queue_delay,
    ),
    ("asl_schedules", "Schedules that are not paused.", lambda state: state.schedules),
    (
        "asl_schedule_lag_seconds",
        "Time by which the latest schedule is late.",
        lambda state: state.schedule_lag,
    ),
)


def _state(store: Store) -> _StoreState:
    session, now = store.session, store.clock.now()
    created = store.open_request_times()
    schedules = [each for each in list_schedules(session) if not each.paused]
    return _StoreState(
        Counter(store.open_executions()),
        len(created),
        max(0.0, now - min(created)) if created else 0.0,
        len(store.stuck()),
        len(store.workers()),
        store.queue_delay(),
        len(schedules),
        max((_lag(each, now) for each in schedules), default=0.0),
    )


def _lag(schedule: Schedule, now: float) -> float:
    return 0.0 if schedule.queued is not None else max(0.0, now - schedule.next_time())


def _rendered(family: Family) -> str:
    """Return a metric in the text format."""
    lines = [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
    for suffix, labels, value in family.samples:
        pairs = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        place = f"{{{pairs}}}" if pairs else ""
        lines.append(f"{family.name}{suffix}{place} {value:.17g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
