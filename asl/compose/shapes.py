"""The use of each string in a machine, by its place.

A parameter may occur in any string (Specification 9.2), but data is allowed only in values, and
braces of an argument must stay braces in an interpolated text.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Final

from asl.core.values import Json
from asl.expr.choice_rules import COMBINATORS
from asl.expr.templates import SUFFIX
from asl.states import UNKNOWN, type_of
from asl.states.base import StateType
from asl.states.fields import ITEM, Field, FieldIndex, Reading
from asl.states.machines import machine_fields

__all__ = ["DOCUMENT", "Shape", "StringUse"]


class StringUse(Enum):
    """The use of a string."""

    SETTING = "a value of a certain type"
    PAYLOAD = "a value of any type"
    VERBATIM = "a value of any type that is never evaluated"
    TEXT = "an interpolated text"
    STRUCTURE = "the structure of the machine"
    EXPRESSION = "an expression"
    REMARK = "a comment"


@dataclass(frozen=True, slots=True)
class Shape:
    """The uses of the strings in a value; the items of an array share its shape.

    `members` are the shapes of an object's members by name. Other members get their shape by name
    in an object with fields (`named`), else the shape of the object.
    """

    place: StringUse = StringUse.SETTING
    members: "Mapping[str, Shape]" = field(default_factory=dict)
    named: bool = False

    def of(self, key: str, value: Json, language: str) -> "Shape":
        """Return the shape of a member."""
        if key in self.members:
            return self.members[key]
        if self is _STATES:
            return _of_type(type_of(value) if type(value) is dict else UNKNOWN)
        if self.named and (key == "Comment" or key.endswith("Path")):
            return _REMARK if key == "Comment" else _EXPRESSION
        if key.endswith(SUFFIX) and language == "JSONPath" and self.place in _COMPUTED:
            return _EXPRESSION
        return _SETTING if self.named else self


_COMPUTED: Final = (StringUse.SETTING, StringUse.PAYLOAD, StringUse.TEXT)
_SETTING: Final = Shape()
_PAYLOAD: Final = Shape(StringUse.PAYLOAD)
_VERBATIM: Final = Shape(StringUse.VERBATIM)
_TEXT: Final = Shape(StringUse.TEXT)
_STRUCTURE: Final = Shape(StringUse.STRUCTURE)
_EXPRESSION: Final = Shape(StringUse.EXPRESSION)
_REMARK: Final = Shape(StringUse.REMARK)

_RULE_MEMBERS: dict[str, Shape] = {"Next": _STRUCTURE, "Variable": _EXPRESSION}
_RULE: Final = Shape(members=_RULE_MEMBERS, named=True)
_RULE_MEMBERS.update(dict.fromkeys(COMBINATORS, _RULE))

_CONFIGURED: Final = Shape(members={"ReaderConfig": Shape(named=True)}, named=True)

_STATES: Final = Shape()
_MACHINE: Final = Shape(
    StringUse.STRUCTURE,
    {"StartAt": _STRUCTURE, "QueryLanguage": _STRUCTURE, "States": _STATES},
    named=True,
)
_FIELDS: Final = FieldIndex(lambda field: True)


def _with_texts(fields: Mapping[str, Shape], texts: list[tuple[str, ...]]) -> dict[str, Shape]:
    """Return the shapes of fields, with interpolated strings at *texts*."""
    found = dict(fields)
    for first in dict.fromkeys(steps[0] for steps in texts):
        below = [steps[1:] for steps in texts if steps[0] == first]
        found[first] = _TEXT if () in below else Shape(members=_with_texts({}, below), named=True)
    return found


@cache
def _of_type(kind: StateType) -> Shape:
    """Return the shape of a state type."""
    fields = {
        name: _of_field(*parts)
        for name, parts in _FIELDS.fields(kind).items()
        if not name.endswith(SUFFIX)
    }
    fields |= dict.fromkeys(machine_fields(kind), _MACHINE)
    return Shape(members=_with_texts(fields, list(kind.insertions)), named=True)


def _of_field(field: Field, *within: Field) -> Shape:
    """Return the shape of a field of a state, with its inner fields."""
    if field.name == "Comment":
        return _REMARK
    if field.role == "structure":
        return _STRUCTURE
    if field.jsonpath is Reading.LITERAL:
        return _VERBATIM
    if field.jsonpath in (Reading.PATH, Reading.REFERENCE, Reading.RESULT, Reading.TEXT):
        return _EXPRESSION
    if field.untyped and (field.jsonpath is Reading.TEMPLATE or field.jsonata == "template"):
        return _PAYLOAD
    if any(each.place[1] == ITEM and len(each.place) > 2 for each in within):
        return _RULE
    return _CONFIGURED if any(each.language for each in within) else _SETTING


DOCUMENT: Final = Shape(
    members={
        **_MACHINE.members,
        "Exports": _STRUCTURE,
        "Budget": Shape(members={"Alerts": Shape(members={"Message": _TEXT}, named=True)}),
    },
    named=True,
)
"""The shape of a whole document."""
