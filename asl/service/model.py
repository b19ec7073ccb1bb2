"""The service model: operations, and the constraints on the members of requests.

`model.json` is derived from the model of Step Functions in botocore (Apache-2.0).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from asl.core.values import Json
from asl.service.errors import ServiceError

__all__ = ["check_request", "enum_values", "input_members", "known_members", "operation_names"]

Shape: TypeAlias = Mapping[str, Any]
"""A shape of `model.json`: `type`, its parts and its constraints."""

_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "timestamp": (int, float),
    "list": (list,),
    "map": (dict,),
    "structure": (dict,),
}
_JAVA: Final[Mapping[str, str]] = {
    "string": "a String",
    "boolean": "a Boolean",
    "integer": "an Integer",
    "long": "a Long",
    "float": "a Float",
}
_TOKENS: Final[Mapping[type, str]] = {
    bool: "TRUE_VALUE",
    int: "NUMBER_VALUE",
    float: "DECIMAL_VALUE",
    str: "STRING_VALUE",
}
_ASCII: Final = r"\p{ASCII}*"


@cache
def _model() -> Mapping[str, Any]:
    found: Mapping[str, Any] = orjson.loads(files(__package__).joinpath("model.json").read_bytes())
    return found


def operation_names() -> list[str]:
    """Return the names of all operations, sorted."""
    return [*_model()["operations"]]


def _input(operation: str) -> Shape:
    shape: Shape = _shape(_model()["operations"][operation]["input"])
    return shape


def _shape(name: str) -> Any:
    return _model()["shapes"][name]


def input_members(operation: str) -> list[str]:
    """Return the names of the members of a request."""
    return [*_input(operation)["members"]]


def enum_values(shape: str) -> frozenset[str]:
    """Return the values of an enumeration."""
    return frozenset(_shape(shape)["enum"])


class _Violation(NamedTuple):
    """A value that violates a constraint."""

    value: Json
    path: str
    constraint: str
    sensitive: bool

    def __str__(self) -> str:
        shown = "" if self.sensitive and self.value is not None else f" {_shown(self.value)}"
        return f"Value{shown} at '{self.path}' failed to satisfy constraint: {self.constraint}"


def _shown(value: Json) -> str:
    if value is None:
        return "null"
    return f"'[{', '.join(map(str, value))}]'" if isinstance(value, list) else f"'{value}'"


def check_request(operation: str, request: Json) -> dict[str, Any]:
    """Return the members of a request that the operation knows; null is the absence of a value.

    Args:
        operation: Name of the operation.
        request: The parsed body.

    Raises:
        ServiceError: SerializationException for values of a wrong type, ValidationException for
            values that violate a constraint.
    """
    shape = _input(operation)
    _check_types(shape, request, "")
    assert isinstance(request, dict)
    violations = [*_violations(shape, request, "")]
    if violations:
        count = len(violations)
        errors = "error" if count == 1 else "errors"
        listed = "; ".join(map(str, violations))
        raise ServiceError("ValidationException", f"{count} validation {errors} detected: {listed}")
    known: dict[str, Any] = _known(shape, request)
    return known


def known_members(shape: str, value: Mapping[str, Json]) -> dict[str, Json]:
    """Return a structure without members that its shape does not have."""
    known: dict[str, Json] = _known(_shape(shape), value)
    return known


def _known(shape: Shape, value: Any) -> Any:
    """Return a value without unknown members and without members that are null."""
    if shape["type"] == "structure":
        return {
            name: _known(_shape(member), value[name])
            for name, member in shape["members"].items()
            if value.get(name) is not None
        }
    if shape["type"] == "list":
        return [_known(_shape(shape["member"]), each) for each in value]
    return value


def _check_types(shape: Shape, value: Json, path: str) -> None:
    """Check the types of a value and its parts.

    Raises:
        ServiceError: SerializationException.
    """
    kind = shape["type"]
    if value is None:
        return
    wrong = not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != "boolean")
    if wrong:
        place = f" (at '{path}')" if path else ""
        raise ServiceError("SerializationException", _type_message(kind, value) + place)
    if kind == "structure":
        for name, member in shape["members"].items():
            _check_types(_shape(member), value.get(name), f"{path}.{name}" if path else name)
    elif kind == "list":
        for index, each in enumerate(value, 1):
            _check_types(_shape(shape["member"]), each, f"{path}.{index}")
    elif kind == "map":
        for key, each in value.items():
            _check_types(_shape(shape["value"]), each, f"{path}.{key}")


def _type_message(kind: str, value: Json) -> str:
    if kind not in _JAVA:
        return "Unexpected value type in payload"
    if isinstance(value, dict | list):
        return "Start of structure or map found where not expected."
    return f"{_TOKENS[type(value)]} can not be converted to {_JAVA[kind]}"


def _violations(shape: Shape, value: Any, path: str) -> Iterator[_Violation]:
    """Yield the violated constraints of a value of the right type, and of its parts."""
    kind = shape["type"]
    for constraint in _broken(shape, value):
        yield _Violation(value, path, constraint, bool(shape.get("sensitive")))
    if kind == "structure":
        required = shape.get("required", ())
        for name, member in shape["members"].items():
            below = f"{path}.{name}" if path else name
            if value.get(name) is not None:
                yield from _violations(_shape(member), value[name], below)
            elif name in required:
                yield _Violation(None, below, "Member must not be null", False)
    elif kind == "list":
        for index, each in enumerate(value, 1):
            below = f"{path}.{index}.member"
            if each is None:
                yield _Violation(None, below, "Member must not be null", False)
            else:
                yield from _violations(_shape(shape["member"]), each, below)


def _broken(shape: Shape, value: Any) -> Iterator[str]:
    """Yield AWS's sentence for each violated constraint of a value itself."""
    sized = isinstance(value, str | list)
    size = len(value) if sized else value
    what = "have length" if sized else "have value"
    if "max" in shape and size > shape["max"]:
        yield f"Member must {what} less than or equal to {shape['max']}"
    if "min" in shape and size < shape["min"]:
        yield f"Member must {what} greater than or equal to {shape['min']}"
    if "enum" in shape and value not in shape["enum"]:
        yield f"Member must satisfy enum value set: [{', '.join(shape['enum'])}]"
    if "pattern" in shape and not _matcher(shape["pattern"])(value):
        yield f"Member must satisfy regular expression pattern: {shape['pattern']}"


@cache
def _matcher(pattern: str) -> Callable[[str], object]:
    """Return a test for a pattern of the model, which is one of Java."""
    return str.isascii if pattern == _ASCII else re.compile(pattern).fullmatch
