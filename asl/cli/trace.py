"""`asl run --trace`: the input and output of every state during the run.

Events do not contain the effective input or the result of a Pass. The trace evaluates those fields
of the document again, with the values of the events.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import click

from asl.cli.console import clip, error_text, item_failures
from asl.cli.state_paths import Path, definition, in_jsonata, in_template, state_name, state_pointer
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
"""Maximum number of printed characters of a value."""
WORTH = 40
"""Minimum number of characters of a value that is not repeated in the next line."""
TASKS = ("Task", "LambdaFunction", "Activity")
SCHEDULED = tuple(f"{kind}Scheduled" for kind in TASKS)
SUCCEEDED = tuple(f"{kind}Succeeded" for kind in TASKS)
LATER = ("MapStateSucceeded", "ParallelStateSucceeded", "IncludeStateSucceeded")


class Trace:
    """Writes the trace of a run by its events.

    Args:
        document: The document of the run.
        profile: The profile of the run.
        write: Writes one line.
        colour: Whether to use colours.
    """

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
        """The text of the previous value."""
        self.seen: set[Path] = set()
        self.variables: dict[Path, dict[str, Json]] = {}
        """Variables by the path of their machine."""
        self.outputs: dict[Path, dict[int | str, Json]] = {}
        """The latest output of each item or branch by the path of its Map or Parallel."""

    def listen(self, event: Event) -> None:
        """Handle one event of the run."""
        kind, path, details = event.type, event.path, event.details
        if kind == "ExecutionStarted":
            self.started, self.input = event.timestamp, details["input"]
        elif kind.endswith("StateEntered"):
            self._enter(event)
        elif kind.endswith("StateExited"):
            self._exit(path, details)
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
            results = self._fork_results(path)
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
            self._line(path, label, f"{details['agent']}: {_clip(details['response'])}")
        elif kind == "DebateDecided":
            self._line(path, "decision", _decision_text(details))
        elif kind == "MapIterationFailed":
            self.outputs.get(path[:-1], {}).pop(path[-1], None)
        elif kind == "RetryScheduled":
            self.outputs.pop(path, None)
            self._line(path, "retry", f"number {details['retry']}, after {details['delay']:g} s")
        elif kind == "ErrorCaught":
            self._line(path, "caught", f"continues with {details['next']!r}")
        elif kind.endswith(("Failed", "TimedOut")) and path and type(path[-1]) is str:
            self._line(path, "error", _error_text(details))
            if "itemCounts" in details:
                for line in item_failures(details["itemCounts"], details["failures"]):
                    self._line(path, "items", line)

    def _enter(self, event: Event) -> None:
        path, data = event.path, event.details["input"]
        self.current = None
        self._line(path, "input", _clip(data), since=event.timestamp)
        state = definition(self.document.value, path)
        if in_jsonata(self.document.value, path) or in_template(self.document.value, path):
            return  # JSONata has no such fields; those of a template depend on its parameters
        if state["Type"] != "Fail":
            self._evaluate_fields(event, "effective input", state, ("InputPath",))
        if state["Type"] == "Pass":
            fields = ("Result",) if "Result" in state else ("InputPath", "Parameters")
            self._evaluate_fields(event, "result", state, fields)

    def _exit(self, path: Path, details: dict[str, Json]) -> None:
        self._value(path, "output", details["output"])
        if len(path) > 1:
            self.outputs.setdefault(path[:-2], {})[path[-2]] = details["output"]
        if assigned := details.get("assignedVariables"):
            self._value(path, "variables", assigned)
            self.variables.setdefault(path[:-1], {}).update(assigned)

    def _fork_results(self, path: Path) -> list[Json]:
        """Return the outputs of the items or branches of a Map or Parallel, in order."""
        outputs = self.outputs.pop(path, {})
        return [outputs[index] for index in sorted(outputs)]

    def _evaluate_fields(
        self, event: Event, label: str, state: Json, fields: tuple[str, ...]
    ) -> None:
        """Evaluate a Pass of the same name with only these fields; say nothing if that fails."""
        name = str(event.path[-1])
        part = {"Type": "Pass", "End": True} | {key: state[key] for key in fields if key in state}
        workflow = {"StartAt": name, "States": {name: part}}
        evaluate = compile_workflow(workflow, self.profile, name).machine.start.transform
        assert evaluate is not None
        at = _EventFrame(self._visible_variables(event.path), event.timestamp, self)
        try:
            value = evaluate(event.details["input"], at)
        except StateError:
            return
        self._value(event.path, label, value)

    def _visible_variables(self, path: Path) -> dict[str, Json]:
        visible: dict[str, Json] = {}
        for length in range(0, len(path), 2):
            visible |= self.variables.get(path[:length], {})
        return visible

    # Lines

    def _value(self, path: Path, label: str, value: Json) -> None:
        text = _clip(value)
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
        title = click.style(state_name(path), bold=True) if self.colour else state_name(path)
        if since is None:
            self.write(f"{title}, continued")
            return
        kind = definition(self.document.value, path)["Type"]
        home, pointer = self.document.origin(state_pointer(self.document.value, path))
        line = home.locate(pointer, at_key=True).line
        where = "" if line is None else f", {home.source.name}:{line}"
        self.write(f"{title}  {kind}{printable(where)}, at {since - self.started:.3f} s")


def _clip(value: Json) -> str:
    return clip(value, SHOWN)


def _decision_text(details: dict[str, Json]) -> str:
    by = "" if details["decidedBy"] is None else f", by {details['decidedBy']}"
    votes = f", votes {_clip(details['votes'])}" if "votes" in details else ""
    return f"{_clip(details['decision'])}{by}{votes}"


def _error_text(details: dict[str, Json]) -> str:
    return error_text(details.get("error"), details.get("cause")) or "no error name"


@dataclass(slots=True)
class _EventFrame:
    """A frame with the values of events; other values fail like a path without a match."""

    variables: dict[str, Json]
    now: float
    trace: Trace

    def context(self, root: str, at: StateView) -> Json:
        """Return one member of the context object.

        Raises:
            KeyError: Events do not contain the member.
        """
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
        raise _unavailable("usage")

    def entropy(self) -> int:
        raise _unavailable("a random value")

    def price(self, model: str) -> Decimal | None:
        raise _unavailable("a price")


def _unavailable(what: str) -> StateError:
    return StateError("States.Runtime", f"events do not contain {what}")
