"""The fields of states: how each query language reads them, when, and whom they name.

A field is one property of the JSON Schema of its state type. What the package has to know of it
is annotated there (`schemas/README.md`), so that a field is added in one place.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from asl.core.values import Json
from asl.states import STATE_TYPES, UNKNOWN, type_of
from asl.states.base import StateType
from asl.states.schemas import URN, Schema, resolve_schema

__all__ = ["ANNOTATIONS", "ITEM", "Field", "FieldIndex", "Reading", "Steps"]

Steps: TypeAlias = tuple[str | int, ...]
ANNOTATIONS: Final = frozenset(
    f"x-{name}"
    for name in (
        *("language", "jsonpath", "jsonata", "after"),
        *("role", "agent", "checker", "free", "states", "type"),
    )
)
"""The keywords of a JSON Schema that describe a field, except its `x-rule`."""
_TYPING: Final = frozenset({"type", "enum", "const", "if", "anyOf", "allOf"})
"""The keywords that restrict the type of a value."""
ITEM: Final = "*"
"""The step in the place of a field to any item of an array."""


class Reading(Enum):
    """How JSONPath reads a field (`x-jsonpath`)."""

    PATH = "path"
    REFERENCE = "reference path"
    RESULT = "result path"
    """A reference path into the data, where a result goes."""
    EXPRESSION = "expression"
    """A path or an intrinsic function."""
    TEXT = "error text"
    """A path or an intrinsic function that gives text."""
    TEMPLATE = "template"
    """A payload template: an object of the author, in which keys that end in `.$` are computed."""
    BLOCK = "block"
    """An object of the language, in which keys that end in `.$` are computed."""
    LITERAL = "literal"
    """A value that is taken as it is."""


class Field(NamedTuple):
    """A field of a state, or of an object within it."""

    place: tuple[str, ...]
    """The steps to it from the state: `("ItemReader", "Arguments")`, `("Catch", "*", "Assign")`."""
    rule: str
    """The rule that a wrong value breaks (`x-rule`)."""
    untyped: bool
    """Whether a value of any JSON type is right."""
    language: str | None
    """The query language that the field belongs to (`x-language`); None for both."""
    jsonpath: Reading | None
    """How JSONPath reads it; None where it computes nothing."""
    jsonata: str | None
    """How JSONata reads it: `template`, or the type of its result (`x-jsonata`)."""
    after: str | None
    """What there is when it is computed: a `result` or an `error`; None before (`x-after`)."""
    role: str | None
    """What it is about: the `structure` of a machine, or the `data` in it (`x-role`)."""
    agent: str | None
    """The rule on an unknown agent named in the field (`x-agent`)."""
    checker: str | None
    """The same for a checker of guardrails (`x-checker`)."""

    @property
    def name(self) -> str:
        """The last step to it that is a name."""
        return next(step for step in reversed(self.place) if step != ITEM)

    def is_within(self, other: "Field") -> bool:
        """Whether it is a field of the object in another field."""
        return self.place[: len(other.place)] == other.place != self.place


class FieldIndex:
    """The fields that fulfil a condition, found in states.

    Args:
        holds: The condition.
        outermost: Whether fields within a field that fulfils it are left out.
    """

    def __init__(self, holds: Callable[[Field], bool], *, outermost: bool = False) -> None:
        self._holds = holds
        self._outermost = outermost
        self._types: dict[StateType, Mapping[str, tuple[Field, ...]]] = {}

    def fields(self, kind: StateType) -> Mapping[str, tuple[Field, ...]]:
        """Return the fields of a state type by the first step to each."""
        found = self._types.get(kind)
        if found is None:
            found = self._types[kind] = self._grouped(kind)
        return found

    def _grouped(self, kind: StateType) -> Mapping[str, tuple[Field, ...]]:
        grouped: dict[str, tuple[Field, ...]] = {}
        for field in filter(self._holds, _fields_of(kind)):
            around = grouped.get(field.place[0], ())
            if not (self._outermost and any(field.is_within(each) for each in around)):
                grouped[field.place[0]] = (*around, field)
        return grouped

    def of(self, state: Mapping[str, Json]) -> Iterator[tuple[Field, Steps, Json]]:
        """Yield the fields that a state has: `(field, steps to it, value)`."""
        fields = self.fields(type_of(state))
        if fields.keys().isdisjoint(state):
            return
        for name, value in state.items():
            for field in fields.get(name, ()):
                if len(field.place) == 1:
                    yield field, field.place, value
                    continue
                for steps, part in _within(value, field.place):
                    yield field, steps, part


def _within(value: Json, place: tuple[str, ...]) -> list[tuple[Steps, Json]]:
    """Return all parts at a place; *value* is the part at its first step."""
    found: list[tuple[Steps, Json]] = [(place[:1], value)]
    for step in place[1:]:
        if step == ITEM:
            found = [
                ((*steps, index), part)
                for steps, held in found
                if type(held) is list
                for index, part in enumerate(held)
            ]
        else:
            found = [
                ((*steps, step), held[step])
                for steps, held in found
                if type(held) is dict and step in held
            ]
        if not found:
            break
    return found


# --------------------------------------------------------------------------------------------
# From schemas to fields


def _fields_of(kind: StateType) -> Iterator[Field]:
    """Yield the fields of a state type; for UNKNOWN those of all types."""
    if kind is not UNKNOWN:
        yield from _described(resolve_schema(f"{URN}states:{kind.name}"), (), "", frozenset())
        return
    places = set()
    for each in STATE_TYPES.values():
        for field in _fields_of(each):
            if field.place not in places:
                places.add(field.place)
                yield field


def _described(
    schema: Schema, place: tuple[str, ...], rule: str, around: frozenset[str]
) -> Iterator[Field]:
    """Yield what a schema describes as a field, and the fields within.

    Args:
        schema: The schema of a value.
        place: The steps to the value.
        rule: The rule that holds around it.
        around: The references that lead here, as a schema may lead back to itself.
    """
    notes = schema
    while "$ref" in notes:
        if notes["$ref"] in around:
            return
        around |= {notes["$ref"]}
        own = {keyword: value for keyword, value in notes.items() if keyword != "$ref"}
        notes = {**resolve_schema(notes["$ref"]), **own}
    rule = notes.get("x-rule", rule)
    if place:
        yield _field(place, rule, notes)
    for name, member in notes.get("properties", {}).items():
        yield from _described(member, (*place, name), rule, around)
    if isinstance(notes.get("items"), dict):
        yield from _described(notes["items"], (*place, ITEM), rule, around)
    for form in ("then", "else"):
        if form in notes:
            within = _described(notes[form], place, rule, around)
            yield from (field for field in within if field.place != place)


def _field(place: tuple[str, ...], rule: str, notes: Schema) -> Field:
    return Field(
        place,
        rule,
        untyped=_TYPING.isdisjoint(notes),
        language=notes.get("x-language"),
        jsonpath=Reading(notes["x-jsonpath"]) if "x-jsonpath" in notes else None,
        jsonata=notes.get("x-jsonata"),
        after=notes.get("x-after"),
        role=notes.get("x-role"),
        agent=notes.get("x-agent"),
        checker=notes.get("x-checker"),
    )
