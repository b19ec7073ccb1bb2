"""Show what goes in and out of every state, line by line, while it happens.

Events hold less than a trace shows, on purpose. What is missing (the effective input, the result
of a Pass) comes from evaluating those fields of the document again, on what the events told.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import click

from asl.cli.console import clip, item_failures, reason
from asl.cli.state_paths import Path, definition, in_jsonata, in_template, name_of, pointer_of
from asl.compiler import compile_workflow
from asl.core.document import Document
from asl.core.errors import StateError
from asl.core.printable import printable
from asl.core.profile import Profile
from asl.core.values import Json
from asl.core.work import WorkMeter
from asl.engine.events import Event
from asl.expr.frame import StateView, UsageView
from asl.expr.times import format_timestamp

__all__ = ["Trace"]

SHOWN = 2000
"""Characters of a value that are shown."""
WORTH = 40
"""Characters of a value from which on it is not shown twice, one below the other."""
TASKS = ("Task", "LambdaFunction", "Activity")
SCHEDULED = tuple(f"{kind}Scheduled" for kind in TASKS)
SUCCEEDED = tuple(f"{kind}Succeeded" for kind in TASKS)
LATER = ("MapStateSucceeded", "ParallelStateSucceeded", "IncludeStateSucceeded")


class Trace:
    """Listens to a run and writes what it hears, as lines; *profile* is the run's."""

    def __init__(
        self,
        document: Document,
        profile: Profile,
        write: Callable[[str], None],
        *,
        colour: bool = False,
    ) -> None:
        self.document = document
        self.profile = profile
        self.write = write
        self.colour = colour
        self.started = 0.0
        self.input: Json = None
        self.current: Path | None = None
        self.above = ""
        """The value in the line above, as text."""
        self.seen: set[Path] = set()
        self.variables: dict[Path, dict[str, Json]] = {}
        """Variables by the path of the machine that they belong to."""
        self.outputs: dict[Path, dict[int | str, Json]] = {}
        """By the path of a Map or Parallel: the latest output of each item or branch."""

    def listen(self, event: Event) -> None:
        """Take one event of the run."""
        kind, path, details = event.type, event.path, event.details
        if kind == "ExecutionStarted":
            self.started, self.input = event.timestamp, details["input"]
        elif kind.endswith("StateEntered"):
            self._entered(event)
        elif kind.endswith("StateExited"):
            self._exited(path, details)
        elif kind in SCHEDULED:
            label = "arguments" if in_jsonata(self.document.value, path) else "parameters"
            self._value(path, label, details.get("parameters", details.get("input")))
        elif kind in SUCCEEDED:
            self._value(path, "result", details["output"])
        elif kind == "TaskSubmitted" and "output" in details:
            self._value(path, "submitted", details["output"])
        elif "workerName" in details:
            self._line(path, "taken by", details["workerName"])
        elif kind in LATER:
            results = self._joined(path)
            self._value(path, "result", results[0] if kind.startswith("Include") else results)
        elif kind == "ProgressUpdated" and path and type(path[-1]) is str:
            said = details.get("message")
            self._line(
                path, "progress", f"{details['percentage']:g} %{f', {said}' if said else ''}"
            )
        elif kind == "StreamChunk":
            self._value(path, "says", details["chunk"])
        elif kind == "DebateTurn":
            label = f"round {details['round']}" if "round" in details else details["role"]
            self._line(path, label, f"{details['agent']}: {_clipped(details['response'])}")
        elif kind == "DebateDecided":
            self._line(path, "decision", _decided(details))
        elif kind == "MapIterationFailed":
            self.outputs.get(path[:-1], {}).pop(path[-1], None)
        elif kind == "RetryScheduled":
            self.outputs.pop(path, None)
            self._line(path, "retry", f"number {details['retry']}, after {details['delay']:g} s")
        elif kind == "ErrorCaught":
            self._line(path, "caught", f"continues with {details['next']!r}")
        elif kind.endswith(("Failed", "TimedOut")) and path and type(path[-1]) is str:
            self._line(path, "error", _error(details))
            if "itemCounts" in details:
                for line in item_failures(details["itemCounts"], details["failures"]):
                    self._line(path, "items", line)

    def _entered(self, event: Event) -> None:
        path, data = event.path, event.details["input"]
        self.current = None
        self._line(path, "input", _clipped(data), since=event.timestamp)
        state = definition(self.document.value, path)
        if in_jsonata(self.document.value, path) or in_template(self.document.value, path):
            return  # no field stands between input and output, or its text is not known here
        if state["Type"] != "Fail":
            self._part(event, "effective input", state, ("InputPath",))
        if state["Type"] == "Pass":
            fields = ("Result",) if "Result" in state else ("InputPath", "Parameters")
            self._part(event, "result", state, fields)

    def _exited(self, path: Path, details: dict[str, Json]) -> None:
        self._value(path, "output", details["output"])
        if len(path) > 1:
            self.outputs.setdefault(path[:-2], {})[path[-2]] = details["output"]
        if assigned := details.get("assignedVariables"):
            self._value(path, "variables", assigned)
            self.variables.setdefault(path[:-1], {}).update(assigned)

    def _joined(self, path: Path) -> list[Json]:
        """Return the results of the machines that a Map or Parallel forked, in order."""
        outputs = self.outputs.pop(path, {})
        return [outputs[index] for index in sorted(outputs)]

    def _part(self, event: Event, label: str, state: Json, fields: tuple[str, ...]) -> None:
        """Evaluate a Pass of the same name with only these fields; say nothing if that fails."""
        name = str(event.path[-1])
        part = {"Type": "Pass", "End": True} | {key: state[key] for key in fields if key in state}
        workflow = {"StartAt": name, "States": {name: part}}
        evaluate = compile_workflow(workflow, self.profile, name).machine.start.transform
        assert evaluate is not None
        at = _Seen(self._visible(event.path), event.timestamp, self)
        try:
            value = evaluate(event.details["input"], at)
        except StateError:
            return
        self._value(event.path, label, value)

    def _visible(self, path: Path) -> dict[str, Json]:
        visible: dict[str, Json] = {}
        for length in range(0, len(path), 2):
            visible |= self.variables.get(path[:length], {})
        return visible

    # Lines

    def _value(self, path: Path, label: str, value: Json) -> None:
        text = _clipped(value)
        same = (path, text) == (self.current, self.above) and WORTH <= len(text) <= SHOWN
        self._line(path, label, "the same" if same else text)
        self.above = text

    def _line(self, path: Path, label: str, text: str, since: float | None = None) -> None:
        if path != self.current:
            self._title(path, since)
        head = f"  {label:<15}  "
        if self.colour:
            head = click.style(head, fg="red" if label == "error" else "cyan")
        self.write(head + printable(text))
        self.above = text

    def _title(self, path: Path, since: float | None) -> None:
        if self.current is not None or self.seen:
            self.write("")
        self.current = path
        self.seen.add(path)
        title = click.style(name_of(path), bold=True) if self.colour else name_of(path)
        if since is None:
            self.write(f"{title}, continued")
            return
        kind = definition(self.document.value, path)["Type"]
        home, pointer = self.document.origin(pointer_of(self.document.value, path))
        line = home.locate(pointer, at_key=True).line
        where = "" if line is None else f", {home.source.name}:{line}"
        self.write(f"{title}  {kind}{printable(where)}, at {since - self.started:.3f} s")


def _clipped(value: Json) -> str:
    return clip(value, SHOWN)


def _decided(details: dict[str, Json]) -> str:
    by = "" if details["decidedBy"] is None else f", by {details['decidedBy']}"
    votes = f", votes {_clipped(details['votes'])}" if "votes" in details else ""
    return f"{_clipped(details['decision'])}{by}{votes}"


def _error(details: dict[str, Json]) -> str:
    return reason(details.get("error"), details.get("cause")) or "no error name"


@dataclass(slots=True)
class _Seen:
    """As much of a frame as events tell; asked for more it fails like a path without a match."""

    variables: dict[str, Json]
    now: float
    trace: Trace

    def context(self, root: str, at: StateView) -> Json:
        """Return one member of the context object; KeyError for what events do not tell."""
        if root == "Execution":
            started = format_timestamp(self.trace.started)
            return {"Input": self.trace.input, "StartTime": started}
        if root == "State":
            return {"Name": at.state, "EnteredTime": format_timestamp(self.now)}
        raise KeyError(root)

    @property
    def work(self) -> WorkMeter:
        """A meter for each field."""
        return WorkMeter()

    @property
    def usage(self) -> UsageView:
        raise _untold("usage")

    def entropy(self) -> int:
        raise _untold("a random value")

    def price(self, model: str) -> Decimal | None:
        raise _untold("a price")


def _untold(what: str) -> StateError:
    return StateError("States.Runtime", f"events do not tell {what}")
