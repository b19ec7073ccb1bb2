"""Layer 7: executions as traces and metrics of OpenTelemetry.

A listener creates spans from the history: of an execution, of each state, agent call and tool call,
with their usage. Times are those of the execution's clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from asl.core.environment import require_extra
from asl.core.values import Json, excerpt
from asl.engine.events import ENDINGS, PAUSED, Event
from asl.engine.exception_mapping import describe_exception
from asl.engine.execution import Execution
from asl.engine.usage import CallUsage, reported_usage
from asl.states import STATE_TYPES, UNKNOWN

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

__all__ = ["Telemetry"]

Attributes: TypeAlias = dict[str, str | bool | int | float]
Path: TypeAlias = tuple[str | int, ...]
Place: TypeAlias = tuple[str, Path]
"""Kind of a span (`execution`, `state`, `agent`, `tool`), and its path."""
SHOWN: Final = 8192
"""Maximum size of a value in a span, in bytes."""
ENDED: Final = {event: status for status, event in ENDINGS.items()} | {PAUSED: "PAUSED"}
"""Status of an execution by the event that ends its trace."""
WORDS: Final = {
    "execution": "execution",
    "state": "state",
    "agent": "invoke_agent",
    "tool": "execute_tool",
}
"""Prefixes of the names of spans, as in OpenTelemetry's conventions for agents."""
TOLD: Final = (
    "error",
    "model",
    "agent",
    "tool",
    "action",
    "when",
    "next",
    "retry",
    "delay",
    "tokens",
)
"""Details of an event that are not content."""


class Telemetry:
    """Reports executions to OpenTelemetry: `asl.run(..., listener=Telemetry())`; serves any number.

    Args:
        tracer_provider: Provider of tracers; None for that of the process.
        meter_provider: Provider of meters; None for that of the process.
        content: Whether spans show inputs, outputs and causes; otherwise only names, numbers and
            errors.

    Raises:
        AslError: The extra `telemetry` is not installed.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        content: bool = False,
    ) -> None:
        require_extra("opentelemetry", "telemetry", "telemetry")
        from opentelemetry import metrics, trace

        self.tracer = trace.get_tracer("asl", tracer_provider=tracer_provider)
        self.content = content
        meter = metrics.get_meter("asl", meter_provider=meter_provider)
        self.executions = meter.create_counter(
            "asl.executions", "{execution}", "Ended executions, by status."
        )
        self.retries = meter.create_counter("asl.retries", "{retry}", "Retries of states.")
        self.tokens = meter.create_counter("asl.tokens", "{token}", "Tokens that agents report.")
        self.cost = meter.create_counter("asl.cost", "{currency}", "Cost that agents report.")
        self.durations = {
            what: meter.create_histogram(f"asl.{what}.duration", "s", f"How long an {what} takes.")
            for what in ("execution", "agent")
        } | {
            what: meter.create_histogram(f"asl.{what}.duration", "s", f"How long a {what} takes.")
            for what in ("state", "tool")
        }
        self.failed = 0
        """Number of events that a provider, a processor or an exporter has refused."""

    def report(self, failure: str) -> None:
        """Log a failure of telemetry, the first one only; executions continue without it."""
        self.failed += 1
        if self.failed == 1:
            from logging import getLogger

            getLogger("asl.telemetry").warning("telemetry is incomplete: %s", failure)

    def of(self, execution: Execution) -> _Trace:
        """Return the listener of one execution."""
        return _Trace(self, execution)

    def __call__(self, event: Event) -> None:
        """Ignore an event of an unknown execution."""


class _ChildTrace:
    """Creates the traces of executions that a state starts, within the span of that state."""

    def __init__(self, telemetry: Telemetry, around: Span | None) -> None:
        self.telemetry = telemetry
        self.around = around

    def of(self, execution: Execution) -> _Trace:
        """Return the listener of a child execution."""
        return _Trace(self.telemetry, execution, self.around)


class _OpenSpan:
    """A span that has not ended."""

    __slots__ = ("attributes", "span", "started", "what")

    def __init__(self, what: str, span: Span, started: float, attributes: Attributes) -> None:
        self.what = what
        self.span = span
        self.started = started
        self.attributes = attributes
        """Attributes of its metrics."""


class _Trace:
    """The trace of one execution."""

    def __init__(
        self, telemetry: Telemetry, execution: Execution, around: Span | None = None
    ) -> None:
        self.telemetry = telemetry
        self.execution = execution
        self.around = around
        """Span of the state that started the execution, None without one."""
        self.agents = dict(_agents(execution.program.document))
        self.open: dict[Place, _OpenSpan] = {}
        """Open spans, outermost first."""

    def within(self, path: Path) -> _ChildTrace:
        """Return the listener of executions that the state at a path starts."""
        state = self._around(("state", (*path, "")))
        return _ChildTrace(self.telemetry, self.around if state is None else state.span)

    def __call__(self, event: Event) -> None:
        """Take one event."""
        try:
            self._take(event)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # processors are user code: none may fail the execution
            self.telemetry.report(describe_exception(error))

    def _take(self, event: Event) -> None:
        kind, path = event.type, event.path
        if kind == "ExecutionStarted":
            self._start(event)
        elif kind in ENDED:
            self._finish(event)
        elif kind.endswith("StateEntered"):
            self._enter(event)
        elif kind.endswith("StateExited"):
            self._exit(event)
        elif (
            kind == "ToolCalled" and ("state", path) in self.open
        ):  # otherwise the child's trace has it
            self._tool(event)
        elif kind.endswith("Scheduled") and kind != "RetryScheduled":
            self._call(event)
        elif ("agent", path) in self.open and kind.endswith(("Succeeded", "Failed", "TimedOut")):
            self._answered(event)
        else:
            self._note(event)

    # Spans

    def _begin(
        self, place: Place, name: str, at: float, names: Attributes, own: Attributes
    ) -> None:
        """Start a span; *names* are the attributes that its metrics have, too."""
        from opentelemetry.trace import SpanKind, set_span_in_context

        outside = self._around(place)
        around = self.around if outside is None else outside.span
        made = self.telemetry.tracer.start_span(
            f"{WORDS[place[0]]} {name}",
            None if around is None else set_span_in_context(around),
            kind=SpanKind.CLIENT if place[0] in ("agent", "tool") else SpanKind.INTERNAL,
            attributes={**names, **own},
            start_time=_nanoseconds(at),
        )
        self.open[place] = _OpenSpan(place[0], made, at, names)

    def _around(self, place: Place) -> _OpenSpan | None:
        """Return the enclosing span: of its call, its state, or the parent execution."""
        what, path = place
        if what == "tool" and ("agent", path) in self.open:
            return self.open["agent", path]
        ends = range(len(path) - (what == "state"), 0, -1)
        states = (self.open.get(("state", path[:end])) for end in ends)
        return next(filter(None, states), self.open.get(("execution", ())))

    def _end(self, place: Place, at: float, error: str | None = None) -> None:
        from opentelemetry.trace import StatusCode

        ended = self.open.pop(place, None)
        if ended is None:
            return
        if error is not None:
            ended.span.set_attribute("error.type", error)
            ended.span.set_status(StatusCode.ERROR, error)
            ended.attributes["error.type"] = error
        ended.span.end(_nanoseconds(at))
        self.telemetry.durations[ended.what].record(max(0.0, at - ended.started), ended.attributes)

    def _end_within(self, path: Path, at: float, error: str | None) -> None:
        """End the open spans below a path, innermost first."""
        for place in reversed([*self.open]):
            if len(place[1]) > len(path) and place[1][: len(path)] == path:
                self._end(place, at, error)

    # Executions and states

    def _start(self, event: Event) -> None:
        place, workflow = ("execution", event.path), self.execution.workflow
        own: Attributes = {"asl.execution.id": self.execution.id}
        self._begin(place, workflow, event.timestamp, {"asl.workflow": workflow}, own)
        self._show(place, event.details, "input")

    def _finish(self, event: Event) -> None:
        place = "execution", ()
        root = self.open.get(place)
        if root is None:
            return
        status, usage = ENDED[event.type], self.execution.usage
        failed = status not in ("SUCCEEDED", "PAUSED")
        error = str(event.details.get("error", status)) if failed else None
        root.attributes["asl.status"] = status
        own = {"asl.usage.tokens": usage.tokens, "asl.usage.cost": float(usage.cost)}
        root.span.set_attributes({"asl.status": status, **own})
        self._show(place, event.details, "output", "cause")
        self.telemetry.executions.add(1, dict(root.attributes))
        self._end_within((), event.timestamp, error)
        self._end(place, event.timestamp, error)

    def _enter(self, event: Event) -> None:
        place, name = ("state", event.path), str(event.path[-1])
        names: Attributes = {"asl.state": name}
        names["asl.state.type"] = event.type.removesuffix("StateEntered")
        own: Attributes = {"asl.path": "/".join(map(str, event.path))}
        self._begin(place, name, event.timestamp, names, own)
        self._show(place, event.details, "input")

    def _exit(self, event: Event) -> None:
        """End a state and its open spans."""
        path, at = event.path, event.timestamp
        self._show(("state", path), event.details, "output")
        if STATE_TYPES.get(event.type.removesuffix("StateExited"), UNKNOWN).forks:
            self._end_within(path, at, None)
        self._end(("agent", path), at)
        self._end(("state", path), at)

    # Calls

    def _call(self, event: Event) -> None:
        place, state = ("agent", event.path), str(event.path[-1])
        agent = self.agents.get(state, state)
        own: Attributes = {"gen_ai.operation.name": WORDS["agent"], "gen_ai.agent.name": agent}
        self._begin(place, agent, event.timestamp, {"asl.agent": agent}, own)
        self._show(place, event.details, "parameters")

    def _answered(self, event: Event) -> None:
        place, details = ("agent", event.path), event.details
        if type(details.get("output")) is dict:
            used = reported_usage(details["output"], self.execution.prices)
            self._used(self.open[place], used)
        self._show(place, details, "output", "cause")
        failed = not event.type.endswith("Succeeded")
        error = str(details.get("error", event.type)) if failed else None
        self._end(place, event.timestamp, error)

    def _used(self, call: _OpenSpan, used: CallUsage) -> None:
        if not (used.tokens or used.cost):
            return
        names, found = dict(call.attributes), {"asl.usage.tokens": used.tokens}
        if used.input or used.output:
            found |= {"gen_ai.usage.input_tokens": used.input}
            found |= {"gen_ai.usage.output_tokens": used.output}
        if used.model is not None:
            names["asl.model"] = used.model
            call.span.set_attribute("gen_ai.response.model", used.model)
        call.span.set_attributes({**found, "asl.usage.cost": float(used.cost)})
        self.telemetry.tokens.add(used.tokens, names)
        self.telemetry.cost.add(float(used.cost), names)

    def _tool(self, event: Event) -> None:
        """Create the span of an ended call."""
        place, details = ("tool", event.path), event.details
        tool, error = str(details.get("tool")), details.get("error")
        own: Attributes = {"gen_ai.operation.name": WORDS["tool"], "gen_ai.tool.name": tool}
        began = event.timestamp - float(details.get("seconds", 0))
        self._begin(place, tool, began, {"asl.tool": tool}, own)
        usage = details.get("usage", {})
        self.open[place].span.set_attributes(
            {f"asl.usage.{name}": usage[name] for name in ("tokens", "cost") if name in usage}
        )
        self._show(place, details, "arguments", "result", "cause")
        self._end(place, event.timestamp, None if error is None else str(error))

    def _note(self, event: Event) -> None:
        """Add any other event of a state to its span; a failure in a fork ends it."""
        if event.type == "RetryScheduled":
            self.telemetry.retries.add(1, {"asl.state": str(event.path[-1])})
        if event.type.endswith(("StateFailed", "IterationFailed", "Aborted")):
            error = str(event.details.get("error", event.type))
            self._end_within(event.path, event.timestamp, error)
        around = self._around(("event", event.path))
        if around is not None:
            told = {
                f"asl.{key}": value
                for key, value in event.details.items()
                if key in TOLD and type(value) in (str, int, float, bool)
            }
            around.span.add_event(event.type, told, _nanoseconds(event.timestamp))

    def _show(self, place: Place, details: Mapping[str, Json], *names: str) -> None:
        """Add content to a span, if enabled."""
        shown = self.open.get(place)
        for name in names if self.telemetry.content and shown is not None else ():
            if shown is not None and name in details:
                value = details[name]
                text = value if type(value) is str else excerpt(value, SHOWN)
                shown.span.set_attribute(f"asl.{name}", text[:SHOWN])


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1_000_000_000)


def _agents(part: Json) -> Iterator[tuple[str, str]]:
    """Yield the states of a document that name an agent or a resource, with that name."""
    if type(part) is list:
        for each in part:
            yield from _agents(each)
    elif type(part) is dict:
        states = part.get("States")
        for name, state in states.items() if type(states) is dict else ():
            named = None if type(state) is not dict else state.get("Agent", state.get("Resource"))
            if type(named) is str:
                yield name, named
        for each in part.values():
            yield from _agents(each)
