"""States that ask no one: Pass and Fail become transformations."""

from collections.abc import Iterable
from typing import Any

from asl.core.codes import is_anonymous
from asl.core.diagnostics import Severity
from asl.core.values import Json
from asl.dialects.codemie.config import END
from asl.dialects.codemie.writing.expressions import Expressions, Unsayable
from asl.dialects.codemie.writing.machine import WorkflowMachine, never
from asl.dialects.codemie.writing.names import Context, is_extractable
from asl.dialects.codemie.writing.scope import ContextScope, is_replaced
from asl.dialects.codemie.writing.texts import Texts, unreadable
from asl.dialects.lowering import WorkStep
from asl.dialects.terms import (
    INPUT,
    DataPath,
    Literal,
    Placement,
    Record,
    Step,
    Term,
    Text,
    placement,
)

__all__ = ["Transformation", "choice", "ended", "fail", "idle", "pass_", "transform", "writes"]


class Transformation:
    """The mappings of one transformation.

    Args:
        machine: The machine of its state.
        scope: Where data is.
        answers: Keys of answers next to those that the document has.
    """

    def __init__(
        self, machine: WorkflowMachine, scope: ContextScope, answers: Iterable[Step] = ()
    ) -> None:
        self.machine = machine
        self.scope = scope
        self.names = Context(
            scope.key, {*machine.workflow.answers, *answers}, machine.workflow.keys
        )
        self._made: list[dict[str, Json]] = []

    @property
    def mappings(self) -> list[dict[str, Json]]:
        """The mappings: first what is taken out of the context, then what is computed."""
        return [*self.names.mappings(), *self._made]

    def compute(self, term: Term, wanted: str) -> str:
        """Return the key of a new value; raises Unsayable."""
        script = self.script(term)
        key = self.machine.workflow.keys.new(wanted)
        self._made.append({"output_field": key, "type": "script", "script": script})
        return key

    def script(self, term: Term) -> str:
        """Return a script that computes a term.

        Raises:
            Unsayable: No expression says it.
        """
        try:
            return Expressions(self.names).value(term)
        except Unsayable:
            raise Unsayable("L-INTRINSIC", "no script computes this expression") from None

    def add(self, field: str, term: Term) -> None:
        """Let a field have the value of a term; raises Unsayable."""
        self._made.append({"output_field": field, **self.mapping(field, term)})

    def mapping(self, field: str, term: Term) -> dict[str, Json]:
        """Return the mapping that gives a field the value of a term.

        Raises:
            Unsayable: No expression says it.
        """
        match term:
            case Literal(value):
                return {"type": "constant", "value": value}
            case DataPath():
                place = self.scope.key(term)
                if not place or not is_extractable(place):
                    message = "a transform node does not read the whole data"
                    raise Unsayable("L-TRANSFORM", message)
                return {"type": "extract", "source_path": ".".join(map(str, place))}
            case Text(parts) if not any(
                isinstance(each, Literal) and unreadable(str(each.value)) for each in parts
            ):
                scope = self.scope._replace(transforming=True)
                compute = Texts(scope, lambda part: self.compute(part, f"{field}_part"))
                return {"type": "template", "template": compute.text(term)}
        return {"type": "script", "script": self.script(term)}


def writes(machine: WorkflowMachine, step: WorkStep, steps: tuple[Step, ...]) -> str:
    """Return the key of the context for a place of the data."""
    key = machine.scope.places.key(steps)
    if len(steps) > 1:
        pointer = machine.at(step, "ResultPath", "Output")
        message = "a nested value is stored under a key of its own"
        machine.lost("L-DEEP", message, pointer, f"under {key!r}")
    return str(key)


def ended(machine: WorkflowMachine, step: WorkStep) -> Placement | None:
    """Return where a step writes; what ends a run writes no part of the data apart."""
    place = placement(step.output)
    goes_on = any(machine.lead(each.target) is not None for each in step.exits)
    if goes_on or place is None or place.steps or not isinstance(place.value, DataPath):
        return place
    if place.value.root != INPUT:
        return place
    pointer = machine.at(step, "OutputPath", "Output", "InputPath")
    machine.lost(
        "L-OUTPUT", "the output of a run is its whole context", pointer, "it is part of the context"
    )
    return None


def transform(
    machine: WorkflowMachine, step: WorkStep, id: str, output: Term, answers: Iterable[Step] = ()
) -> dict[str, Any]:
    """Return the state that makes the data behind a step.

    Args:
        machine: The machine.
        step: The step, whose exits the state has.
        id: Name of the state.
        output: The data, over the context.
        answers: Keys of answers next to those that the document has.
    """
    made = Transformation(machine, machine.scope_of(step), answers)
    fields = ("Output", "ResultSelector", "Parameters", "Result", "InputPath", "OutputPath")
    pointer = machine.at(step, *fields)
    place = placement(output)
    flags: dict[str, Json] = {}
    if place is not None and place.steps:
        members: list[tuple[str, Term]] = [(writes(machine, step, place.steps), place.value)]
    elif place is not None and (found := _members(place.value)) is not None:
        members = found
    elif place is not None and isinstance(place.value, Literal):
        machine.lost(
            "L-DEEP", "the output of a transform node is an object", pointer, "under 'value'"
        )
        members = [("value", place.value)]
    else:
        message = "a transform node does not replace the whole data"
        machine.lost("L-TRANSFORM", message, pointer, severity=Severity.ERROR)
        members = []
    for key, term in members:
        try:
            made.add(key, machine.scope.meant(term))
            if step.jsonata and isinstance(term, DataPath):
                machine.lost("L-PRESENT", "a missing value is null", pointer)
        except Unsayable as fault:
            code, message, _ = fault.loss
            machine.lost(code, message, pointer, "it is left out", Severity.ERROR)
    if place is not None and not place.steps and is_replaced(step):
        where = machine.at(step, "ResultPath", "Output", "Result", "Parameters")
        machine.lost("L-REPLACE", "the previous context stays: the output is merged into it", where)
        flags = {"clear_context_store": "keep_current"}
    to = machine.going(step, flags)
    return machine.workflow.transforming(id, {"mappings": made.mappings}, to)


def _members(value: Term) -> list[tuple[str, Term]] | None:
    """Return the members that are written, None if a value is no object that is written out."""
    if isinstance(value, Literal) and isinstance(value.value, dict):
        return [(key, Literal(each)) for key, each in value.value.items()]
    if isinstance(value, Record) and value.base in (None, DataPath(INPUT)):
        return [*value.members]
    return None


def idle(machine: WorkflowMachine, step: WorkStep) -> None:
    """Write a state that does nothing, as its way leads back to it without any that does."""
    to = machine.next(step.exits[0].target)
    machine.node(step, {"mappings": []}, {**to, "store_in_context": False})


def pass_(machine: WorkflowMachine, step: WorkStep) -> None:
    """Write a Pass that makes something, or decides by what is there."""
    if step.output == DataPath(INPUT):
        (choice if step.decides else idle)(machine, step)
        return
    machine.add(step, transform(machine, step, machine.id(step), step.output))


def choice(machine: WorkflowMachine, step: WorkStep) -> None:
    """Write a Choice as a state of its own, which extracts what it reads."""
    machine.add(step, machine.decider(machine.id(step), step))


def fail(machine: WorkflowMachine, step: WorkStep) -> None:
    """Write a Fail as a transformation that needs what no one gives."""
    message = "a workflow has no Fail state"
    machine.lost("L-FAIL", message, step.pointer, "a transform node that always fails")
    for field in ("ErrorPath", "CausePath"):
        if field in step.state:
            hint = "the text of the path is used"
            machine.lost(
                "L-FAIL",
                "the error or cause is not read from the data",
                machine.at(step, field),
                hint,
            )
    told = [_told(step, "Error"), _told(step, "Cause")]
    if is_anonymous(told[0]):
        told = told[1:]
    needed = ": ".join(filter(None, told)) or _told(step, "Error") or "Failed"
    made = machine.workflow.transforming(machine.id(step), never(needed), {"state_id": END})
    machine.add(step, made)


def _told(step: WorkStep, field: str) -> str:
    """Return the text of a field, as it is written where it is computed."""
    found = step.fields.get(field)
    if isinstance(found, Literal):
        return str(found.value)
    return str(step.state.get(field, step.state.get(f"{field}Path", "")))
