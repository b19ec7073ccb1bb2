"""Show what went in and out of every state, from the records of a finished run.

Records hold less than a trace shows, on purpose. What is missing (the effective input, the result
of a Pass) comes from evaluating those fields of the state again, on the frame as it was.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import click

from asl.cli.failure import place_name
from asl.compiler import compile_workflow
from asl.core.document import Document
from asl.core.errors import StateError
from asl.core.values import Json, compact
from asl.engine import records as kinds
from asl.engine.frame import Frame
from asl.engine.history import advance, replayed
from asl.engine.result import Result
from asl.expr.frame import Evaluate
from asl.program import Step
from asl.states.host import Record

__all__ = ["render_trace"]

SHOWN = 2000
"""Characters of a value that are shown."""


def render_trace(result: Result, document: Document, *, colour: bool = False) -> str:
    """Return a block of lines for every visit of a state, in the order they were entered."""
    tracer = _Tracer(result, document)
    for record in result.records:
        tracer.feed(record)
    return "\n\n".join("\n".join(visit.lines(colour)) for visit in tracer.visits.values())


@dataclass(slots=True)
class _Visit:
    """One visit of a state: what is known of it, by label, in order."""

    title: str
    facts: list[tuple[str, str]] = field(default_factory=list)

    def value(self, label: str, value: Json) -> None:
        text = compact(value)
        if len(text) > SHOWN:
            text = f"{text[:SHOWN]}… ({len(text)} characters)"
        self.facts.append((label, text))

    def error(self, label: str, error: StateError) -> None:
        self.facts.append((label, str(error) or "no error name"))

    def lines(self, colour: bool) -> Iterator[str]:
        yield click.style(self.title, bold=True) if colour else self.title
        for label, text in self.facts:
            head = f"  {label:<15} "
            if colour:
                head = click.style(head, fg="red" if label == "error" else "cyan")
            yield head + text


class _Tracer:
    """Gathers visits from records."""

    def __init__(self, result: Result, document: Document) -> None:
        self.started = result.execution.started
        self.profile = result.execution.program.profile
        self.document = document
        self.visits: dict[tuple[int, int], _Visit] = {}
        self.parts: dict[tuple[str, str], Evaluate | None] = {}

    def feed(self, record: Record) -> None:
        """Take one record."""
        kind, time, frame, visit, step, *rest = record
        if kind == kinds.STRETCH:
            self._stretch(time, frame, visit, step, *rest)
        elif kind == kinds.ENTERED:
            data, variables = rest
            at = replayed(frame, visit, variables, time)
            self._entered(frame, visit, step, data, at)
        elif (frame_visit := self.visits.get((id(frame), visit))) is not None:
            self._more(frame_visit, kind, rest)

    def _more(self, visit: _Visit, kind: str, rest: list[Json]) -> None:
        if kind == kinds.SCHEDULED:
            visit.value("parameters", rest[0])
        elif kind == kinds.FAILED:
            visit.error("error", rest[0])
        elif kind == kinds.RETRIED:
            visit.facts.append(("retry", f"number {rest[2]}, after {rest[1]:g} s"))
        elif kind == kinds.CAUGHT:
            visit.facts.append(("caught", f"goes on with {rest[1].name!r}"))
        elif kind == kinds.ABORTED:
            visit.facts.append(("aborted", "another branch or item failed"))
        elif kind == kinds.EXITED:
            answered, output, before, after, _ = rest
            if answered is not None and not visit.title.partition("  ")[2].startswith("Wait"):
                visit.value("result", answered[0])
            self._left(visit, output, before, after)

    def _left(self, visit: _Visit, output: Json, before: Json, after: Json) -> None:
        visit.value("output", output)
        assigned = {key: new for key, new in after.items() if before.get(key, ...) is not new}
        if assigned:
            visit.value("variables", assigned)

    def _stretch(
        self,
        time: float,
        frame: Frame,
        visit: int,
        step: Step | None,
        data: Json,
        variables: dict[str, Json],
        length: int,
        after: Step | None,
    ) -> None:
        at = replayed(frame, visit, variables, time)
        for offset in range(length):
            assert step is not None
            shown = self._entered(frame, visit + offset, step, data, at)
            if step.type == "Pass":
                self._part(shown, "result", step, data, at)
            before = at.variables
            try:
                step, data = advance(at, step, data)
            except StateError as error:
                shown.error("error", error)
                return
            self._left(shown, data, before, at.variables)

    def _entered(self, frame: Frame, visit: int, step: Step, data: Json, at: Frame) -> _Visit:
        place = self.document.locate(step.pointer, at_key=True)
        parts = [place_name(frame, step.name), step.type]
        if place.line is not None:
            parts.append(f"{self.document.source.name}:{place.line}")
        parts.append(f"+{at.now - self.started:.3f} s")
        shown = self.visits[id(frame), visit] = _Visit("  ".join(parts))
        shown.value("input", data)
        if step.type != "Fail":
            self._part(shown, "effective input", step, data, at)
        return shown

    def _part(self, visit: _Visit, label: str, step: Step, data: Json, at: Frame) -> None:
        """Evaluate some fields of a state again; what fails here has failed in the run too."""
        key = step.pointer, label
        if key not in self.parts:
            self.parts[key] = self._compiled(step, label)
        evaluate = self.parts[key]
        assert evaluate is not None
        probe = replayed(at, at.visit, at.variables, at.now)
        probe.draws = at.draws
        try:
            visit.value(label, evaluate(data, probe))
        except StateError:
            return

    def _compiled(self, step: Step, label: str) -> Evaluate | None:
        """Compile a Pass state of the same name that has only the fields which matter."""
        state = self._definition(step.pointer)
        fields: tuple[str, ...] = ("InputPath",)
        if label == "result":
            fields = ("Result",) if "Result" in state else ("InputPath", "Parameters")
        part = {"Type": "Pass", "End": True} | {key: state[key] for key in fields if key in state}
        workflow = {"StartAt": step.name, "States": {step.name: part}}
        return compile_workflow(workflow, self.profile, step.name).machine.start.transform

    def _definition(self, pointer: str) -> Json:
        value = self.document.value
        for token in pointer.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            value = value[int(key)] if type(value) is list else value[key]
        return value
