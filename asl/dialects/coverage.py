"""What writers carry: every state type and field is written, carried in another form, or a loss.

A dialect declares the fields that its writer deals with (`Coverage`). Here, in one place for all
writers, that is compared with the document: a field that is not declared and that the writer has
not reported is a loss, and so is a state type that the writer does not know.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple

from asl.checks.workflow import objects
from asl.core.diagnostics import Finding, Severity
from asl.core.document import Document
from asl.core.pointers import escape, resolve_pointer
from asl.core.values import Json, json_equal
from asl.dialects.base import Coverage, Dialect, WriterResult
from asl.states import STATE_TYPES
from asl.states.machines import nested_machines
from asl.states.schemas import URN, decides, inert_fields, known_fields, resolve_schema

__all__ = ["write"]

_DOCUMENT: Final = "asl"
"""The schema of a document, in addition to those of its states."""
_DEFAULTS: Final[Mapping[str, Json]] = {"ProcessorConfig": {"Mode": "INLINE"}}
"""Values that mean the same as no value, by field."""
_MACHINE: Final = "SubMachine"
"""The schema of a machine within a state."""


def write(dialect: Dialect, document: Document, **options: Any) -> WriterResult:
    """Write a document in a dialect, and report everything that the writer does not.

    A state of a type that the writer does not know is written as a Task whose agent has the name
    of the state.

    Args:
        dialect: The dialect to write.
        document: A document of the state language without errors.
        options: Options of the writer.

    Returns:
        What the writer has written, with all losses.
    """
    coverage = dialect.coverage()
    if coverage is None:
        made = dialect.write(document, **options)
        message = f"the dialect {dialect.name!r} does not declare what it writes"
        return replace(made, losses=(*made.losses, Finding("L-FIELD", message, "")))
    if coverage.complete:
        return dialect.write(document, **options)
    replaced = _Replacement(coverage)
    value = replaced.machine(document.composed_value, "")
    known = replace(document, value=value, composition=None) if replaced.losses else document
    made = dialect.write(known, **options)
    if made.restored:
        return made
    audit = _Audit(coverage, made)
    losses = (_graded(each, value) for each in (*replaced.losses, *audit.losses(value)))
    return replace(made, losses=tuple(losses))


def _waits_for_token(resource: Json) -> bool:
    return type(resource) is str and resource.endswith(".waitForTaskToken")


def _graded(loss: Finding, document: Mapping[str, Json]) -> Finding:
    """Return a loss as an error where what is lost decides about the path or the output."""
    owner, _, field = loss.pointer.rpartition("/")
    holder = resolve_pointer(document, owner)
    kind = holder.get("Type") if isinstance(holder, dict) else None
    schema = f"states:{kind if kind in STATE_TYPES else 'Task'}" if owner else _DOCUMENT
    value = resolve_pointer(document, loss.pointer)
    if decides(schema, field.removesuffix(".$"), value):
        return loss._replace(severity=Severity.ERROR)
    if field == "Resource" and _waits_for_token(value):
        return loss._replace(severity=Severity.ERROR)
    return loss


# --------------------------------------------------------------------------------------------
# State types


@cache
def _of_calls() -> frozenset[str]:
    """Return the fields that all states of the language have that call something and may fail."""
    kinds = (kind for kind in STATE_TYPES.values() if kind.effect and kind.schema is None)
    return frozenset.intersection(*(known_fields(f"states:{kind.name}") for kind in kinds))


class _Replacement:
    """Replaces the states whose type a writer does not know, and reports each."""

    def __init__(self, coverage: Coverage) -> None:
        self.coverage = coverage
        self.losses: list[Finding] = []

    def machine(self, machine: Mapping[str, Any], pointer: str) -> dict[str, Json]:
        """Return a machine in which every state has a type that the writer knows."""
        states = {
            name: self.state(name, state, f"{pointer}/States/{escape(name)}")
            for name, state in machine["States"].items()
        }
        return {**machine, "States": states}

    def state(self, name: str, state: Mapping[str, Any], pointer: str) -> dict[str, Json]:
        """Return a state of a type that the writer knows."""
        if state["Type"] not in self.coverage.states:
            return self.stand_in(name, state, pointer)
        made = dict(state)
        if type(state.get("Branches")) is list:
            made["Branches"] = [*state["Branches"]]
        for steps, inner in nested_machines(state):
            found = self.machine(inner, pointer + "".join(f"/{escape(str(e))}" for e in steps))
            field, *index = steps
            if index:
                made[str(field)][index[0]] = found
            else:
                made[str(field)] = found
        return made

    def stand_in(self, name: str, state: Mapping[str, Any], pointer: str) -> dict[str, Json]:
        """Return a Task in the place of a state, and report what that loses."""
        kept = {key: value for key, value in state.items() if key in _of_calls()}
        lost = [key for key in state if key not in kept]
        message = _with(f"there are no {state['Type']} states there", lost)
        instead = f"a Task whose agent is {name!r} replaces it"
        self.losses.append(Finding("L-TYPE", message, pointer, instead, at_key=True))
        ends = {} if kept.keys() & {"Next", "End"} else {"End": True}
        return {**kept, **ends, "Type": "Task", "Agent": name}


# --------------------------------------------------------------------------------------------
# Fields


class _Field(NamedTuple):
    """A field of a document that a writer neither carries nor reports."""

    name: str
    value: Json
    pointer: str


class _Audit:
    """Compares a document with what its writer carries and has reported."""

    def __init__(self, coverage: Coverage, made: WriterResult) -> None:
        self.coverage = coverage
        self.written = made
        self.reported: set[str] = set()
        """JSON Pointers of what the writer has reported, and of all around it."""
        self.dropped = {each.pointer for each in made.losses if each.code == "L-DROPPED"}
        self.found: list[_Field] = []
        self.inert: list[_Field] = []
        self.replaced: dict[str, list[str]] = {}
        """JSON Pointers of states that are lost as a whole -> the fields that are lost with it."""
        for loss in made.losses:
            place = loss.pointer if loss.code != "L-MISSING" else ""  # that is about all reads
            while place and place not in self.reported:
                self.reported.add(place)
                place = place.rpartition("/")[0]

    def losses(self, value: Mapping[str, Any]) -> Iterator[Finding]:
        """Yield the losses of the writer, and those that it has not reported."""
        self.fields(value, "", _DOCUMENT, self.coverage.document)
        self.machine(value, "")
        for loss in self.written.losses:
            yield loss._replace(message=_with(loss.message, self.replaced.pop(loss.pointer, ())))
        for each in self.found:
            message = f"{each.name!r} is not carried over"
            yield Finding("L-FIELD", message, each.pointer, "it is left out", at_key=True)
        texts = {each for each in _values(self.written.value) if type(each) is str}
        for each in self.inert:
            if not self.written_out(each.value, texts):
                message = f"{each.name!r} is not carried over"
                yield Finding("L-INERT", message, each.pointer, "it is left out", at_key=True)

    def machine(self, machine: Mapping[str, Any], pointer: str) -> None:
        """Find the fields of the states of a machine that are neither carried nor reported."""
        for name, state in machine["States"].items():
            place = f"{pointer}/States/{escape(name)}"
            if place in self.dropped:
                continue
            kind = state["Type"]
            self.fields(state, place, f"states:{kind}", self.coverage.states[kind])
            if kind in self.coverage.replaced:
                continue
            for field, schema in _entries(kind).items():
                for index, entry in objects(state, field):
                    self.within(entry, f"{place}/{field}/{index}", schema)
            for steps, inner in nested_machines(state):
                there = place + "".join(f"/{each}" for each in steps)
                self.within(inner, there, _MACHINE)
                self.machine(inner, there)

    def within(self, holder: Mapping[str, Any], pointer: str, schema: str) -> None:
        """Find the fields of an object within a state that are neither carried nor reported."""
        lacks = self.coverage.lacks.get(schema, frozenset())
        lost = {name for name in lacks & holder.keys() if holder[name] != _DEFAULTS.get(name)}
        self.fields(holder, pointer, schema, frozenset(holder) - lost)

    def fields(
        self, holder: Mapping[str, Any], pointer: str, schema: str, carried: frozenset[str]
    ) -> None:
        """Find the fields of a state, or of the document, that are neither carried nor reported."""
        inert = inert_fields(schema)
        whole = pointer in self.reported and holder.get("Type") in self.coverage.replaced
        for name, value in holder.items():
            found = _Field(name, value, f"{pointer}/{escape(name)}")
            if found.pointer in self.reported:
                continue
            if name in inert:
                self.inert.append(found)
            elif name in carried:
                continue
            elif whole:
                self.replaced.setdefault(pointer, []).append(name)
            else:
                self.found.append(found)

    def written_out(self, value: Json, texts: Container[str]) -> bool:
        """Whether the written document contains a value, in any field."""
        if type(value) is str:
            return value in texts
        return any(json_equal(value, each) for each in _values(self.written.value))


@cache
def _entries(kind: str) -> Mapping[str, str]:
    """Return the fields of a state type that list objects of the language, with their schemas."""
    found: dict[str, str] = {}
    for field, schema in resolve_schema(f"{URN}states:{kind}")["properties"].items():
        items = schema.get("items")
        name = items.get("$ref", "").removeprefix(URN) if isinstance(items, dict) else ""
        if name and "properties" in resolve_schema(URN + name) and name != _MACHINE:
            found[field] = name
    return found


def _values(value: Json) -> Iterator[Json]:
    """Yield a value and everything in it."""
    todo = [value]
    while todo:
        each = todo.pop()
        yield each
        if isinstance(each, dict):
            todo += each.values()
        elif isinstance(each, list):
            todo += each


def _with(message: str, fields: Sequence[str]) -> str:
    """Return a message that names the fields that are lost with a state."""
    if not fields:
        return message
    names = ", ".join(map(repr, fields))
    return f"{message}; {names} {'is' if len(fields) == 1 else 'are'} lost with it"
