"""Progress of a run on a terminal: active states, items of Maps, waits and streamed answers.

The display starts after a short delay.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType

from asl.cli import console
from asl.cli.live_block import LiveBlock
from asl.cli.state_paths import Path, definition, state_name
from asl.core.document import Document
from asl.core.errors import StateError
from asl.core.printable import printable
from asl.core.values import Json, is_number
from asl.effects.clock import Clock
from asl.engine.events import Event
from asl.expr.paths import PathUse, compile_path, parse_path
from asl.expr.times import is_timestamp, parse_epoch

__all__ = ["ActiveState", "Progress", "StreamedText", "duration", "look_up", "wait_end"]

PATIENCE = 0.3
"""Seconds before the display starts."""
SHOWN = 60
"""Maximum number of characters of a streamed answer in the line of its state."""
MOST = 12
"""Maximum number of active states in the display."""


@dataclass(slots=True)
class ActiveState:
    """A state that has been entered and not exited; times are seconds since the epoch."""

    path: Path
    type: str
    since: float
    until: float | None = None
    note: str = ""
    done: int = 0
    total: int | None = None

    def describe(self, now: float) -> str:
        """Return the progress of the state."""
        if self.type == "Map" and self.until is None:
            return f"{self.done}/{self.total} items" if self.total else f"{self.done} items"
        if self.until is not None:
            what = self.note or "waits"
            return f"{what}, {duration(max(0.0, self.until - now))} left"
        return self.note or duration(now - self.since)


class StreamedText:
    """Streamed answers as lines, with the name of the state above its lines."""

    def __init__(self) -> None:
        self.partial: dict[Path, str] = {}
        """The incomplete lines by state."""
        self.latest: Path | None = None

    def add(self, event: Event) -> list[str]:
        """Return the lines that an event completes."""
        if event.type == "StreamChunk":
            text = self.partial.pop(event.path, "") + printable(event.details["chunk"], lines=True)
            *lines, rest = text.split("\n")
            if rest:
                self.partial[event.path] = rest
        else:
            lines = [self.partial.pop(event.path)] if event.path in self.partial else []
        if lines and self.latest != event.path:
            self.latest = event.path
            lines.insert(0, f"{state_name(event.path)}:")
        return lines


class Progress:
    """Displays a run on standard error by its events."""

    def __init__(self, document: Document, clock: Clock) -> None:
        self.document = document
        self.clock = clock
        self.active: dict[Path, ActiveState] = {}
        """The active state of each machine by the machine's path."""
        self.streamed = StreamedText()
        self.workflow_percentage: float | None = None
        """Progress of the workflow in percent; None if it is not reported."""
        self.unprinted: list[str] = []
        """Lines of answers that have not been printed."""
        self._lock = threading.Lock()
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True
        self._live: LiveBlock | None = None
        self._is_over = threading.Event()

    def __enter__(self) -> Progress:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._is_over.set()
            live = self._live
        if live is not None:
            live.stop()
        for line in self.unprinted:
            console.print_message(line)

    # Events

    def listen(self, event: Event) -> None:
        """Handle one event of the run."""
        with self._lock:
            self._track(event)
            self.unprinted += self.streamed.add(event)
        self._print_streamed()

    def _print_streamed(self) -> None:
        """Print the lines above the display, if it has started.

        The display takes the lock itself, so this writes without it.
        """
        with self._lock:
            if self._live is None or not self.unprinted:
                return
            live, lines, self.unprinted = self._live, self.unprinted, []
        for line in lines:
            live.write_above(f"{printable(line)}\n")

    def _track(self, event: Event) -> None:
        kind, path = event.type, event.path
        machine = path[:-1]
        if kind.endswith("StateEntered"):
            self.active[machine] = self._enter(event, kind.removesuffix("StateEntered"))
        elif kind.endswith("StateExited"):
            del self.active[machine]
        elif kind in ("MapIterationSucceeded", "MapIterationFailed", "MapIterationAborted"):
            self.active.pop(path, None)
            if (around := self.active.get(path[:-2])) is not None:
                around.done += 1
        elif kind == "MapIterationStarted":
            self.active[path[:-2]].until = None
        elif kind in ("MapStateFailed", "ParallelStateFailed"):
            self._drop_inside(path)
        elif kind == "RetryScheduled":
            retried = self.active[machine]
            retried.until = event.timestamp + event.details["delay"]
            retried.note, retried.done = f"retry {event.details['retry']}", 0
        elif kind == "ProgressUpdated":
            self._update_progress(event)
        elif kind == "StreamChunk":
            self.active[machine].note = f"says {_tail(event.details['chunk'])}"
        elif kind == "TaskScheduled":
            asked = self.active[machine]
            asked.until, asked.note = None, ""
        elif kind == "DebateTurnStarted":
            debate, agent = self.active[machine], event.details["agent"]
            number = event.details.get("round")
            debate.until = None
            debate.note = f"{agent} decides" if number is None else f"round {number}, {agent}"

    def _update_progress(self, event: Event) -> None:
        percentage, message = event.details["percentage"], event.details.get("message")
        if not event.path:
            self.workflow_percentage = percentage
        elif (found := self.active.get(event.path[:-1])) is not None and found.path == event.path:
            said = f", {_tail(message)}" if message else ""
            found.note = f"{percentage:.0f} %{said}"

    def _drop_inside(self, path: Path) -> None:
        """Remove the machines that a state forked."""
        for each in [each for each in self.active if each[: len(path)] == path]:
            del self.active[each]

    def _enter(self, event: Event, kind: str) -> ActiveState:
        activity = ActiveState(event.path, kind, event.timestamp)
        if kind == "Wait":
            activity.until = wait_end(*self._with_input(event), event.timestamp)
        elif kind == "Map":
            state, data = self._with_input(event)
            items = look_up(state.get("ItemsPath", "$"), data)
            activity.total = len(items) if type(items) is list else None
        return activity

    def _with_input(self, event: Event) -> tuple[Json, Json]:
        """Return the definition of an entered state, and its effective input."""
        state = definition(self.document.value, event.path)
        return state, look_up(state.get("InputPath", "$"), event.details["input"])

    # Display

    def _show(self) -> None:
        live = LiveBlock(sys.stderr, self._render)
        with self._lock:
            if self._is_over.is_set():
                return
            self._live = live
        live.start()
        self._print_streamed()
        if self._is_over.is_set():  # the run ended while the display started
            live.stop()

    def _render(self) -> list[str]:
        with self._lock:
            rows = list(self.lines())
            whole = self.workflow_percentage
            hidden = len(self.active) - len(rows)
        if whole is not None:
            rows.insert(0, ("workflow", "", f"{whole:.0f} %"))
        widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
        shown = [
            f"{name:<{widths[0]}}  {kind:<{widths[1]}}  {printable(note)}"
            for name, kind, note in rows
        ]
        return [*shown, f"and {hidden} more"] if hidden else shown

    def lines(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, type and progress of the active states, outermost first."""
        now = self.clock.now()
        for activity in sorted(self.active.values(), key=lambda each: len(each.path))[:MOST]:
            yield state_name(activity.path), activity.type, activity.describe(now)


def _tail(text: str) -> str:
    """Return the end of a text on one line."""
    return " ".join(printable(text, lines=True).split())[-SHOWN:]


def look_up(text: Json, data: Json) -> Json:
    """Evaluate a path on the data; None if it reads other values or matches nothing."""
    if type(text) is not str:
        return None
    path = parse_path(text)
    if path.root == "$$" or path.variable is not None:
        return None
    try:
        return compile_path(path, PathUse("", ""))(data, None)  # type: ignore[arg-type]  # unused
    except StateError:
        return None


def wait_end(state: Json, data: Json, now: float) -> float | None:
    """Return the time at which a Wait ends; None if its input does not determine it."""
    seconds = state.get("Seconds", look_up(state.get("SecondsPath"), data))
    if is_number(seconds):
        return now + float(seconds)
    moment = state.get("Timestamp", look_up(state.get("TimestampPath"), data))
    return parse_epoch(moment) if is_timestamp(moment) else None


def duration(seconds: float) -> str:
    """Format seconds: `4 s`, `2 min 05 s`, `3 h 20 min`, `12 d 3 h`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"
