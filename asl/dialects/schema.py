"""Schemas of foreign documents: keys and the types of their values.

A shape is a table; whatever does not fit it is a finding at its place.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from asl.core.diagnostics import Finding, did_you_mean
from asl.core.pointers import escape
from asl.core.values import Json, compact, type_name

__all__ = [
    "BOOLEAN",
    "OBJECT",
    "TEXT",
    "TEXTS",
    "Codes",
    "ListSchema",
    "MapSchema",
    "ObjectSchema",
    "anything",
    "check",
    "filled",
    "integer",
    "is_a",
    "number",
]


class Codes(NamedTuple):
    """The codes of a dialect: what does not fit, keys that mean nothing here, unknown ones."""

    misfit: str
    near_miss: str
    unknown: str


Kind: TypeAlias = "Callable[[Json], str | None] | ObjectSchema | ListSchema | MapSchema"


@dataclass(frozen=True)
class ObjectSchema:
    """An object: its keys with what they hold, which must be there, and keys often meant."""

    keys: Mapping[str, Any]
    required: tuple[str, ...] = ()
    near_misses: Mapping[str, str] = field(default_factory=dict)
    """Keys without effect that stand in documents -> what to do."""
    ignored: frozenset[str] = frozenset()
    """Keys that belong to editors."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """What to do where a required key is missing."""


@dataclass(frozen=True)
class ListSchema:
    """A list, and what its items are."""

    kind: Any


@dataclass(frozen=True)
class MapSchema:
    """An object with any keys, and the schema of its values."""

    kind: Any


def is_a(*names: str) -> Callable[[Json], str | None]:
    """A value of one of these types."""
    wanted = " or ".join(names)
    article = "an" if wanted[0] in "aeiou" else "a"

    def check(value: Json) -> str | None:
        return None if type_name(value) in names else f"must be {article} {wanted}"

    return check


def filled(value: Json) -> str | None:
    """A text that is not empty."""
    if type(value) is not str:
        return "must be a string"
    return None if value else "must not be empty"


def integer(least: int, most: int | None = None) -> Callable[[Json], str | None]:
    """A whole number in a range."""

    def check(value: Json) -> str | None:
        if type(value) is not int:
            return "must be a whole number"
        if value < least or (most is not None and value > most):
            return _range(least, most)
        return None

    return check


def number(least: float, most: float, *, text: bool = False) -> Callable[[Json], str | None]:
    """A number in a range; with *text* its text as well."""

    def check(value: Json) -> str | None:
        if text and type(value) is str:
            try:
                value = float(value)
            except ValueError:
                return "must be a number"
        if type(value) not in (int, float):
            return "must be a number"
        return None if least <= value <= most else _range(least, most)

    return check


def _range(least: float, most: float | None) -> str:
    return f"must be {least} or more" if most is None else f"must be from {least} to {most}"


TEXT, BOOLEAN, OBJECT = is_a("string"), is_a("boolean"), is_a("object")
TEXTS = ListSchema(TEXT)


def anything(value: Json) -> str | None:
    """Any value."""
    return None


def check(value: Json, kind: Kind, pointer: str, codes: Codes) -> list[Finding]:
    """Return what does not fit a kind, and keys without effect as warnings."""
    found: list[Finding] = []
    _check(value, kind, pointer, codes, found)
    return found


def _check(value: Json, kind: Kind, pointer: str, codes: Codes, found: list[Finding]) -> None:
    if type(kind) is ObjectSchema:
        _object(value, kind, pointer, codes, found)
    elif type(kind) is ListSchema:
        if type(value) is not list:
            found.append(_misfit(value, "must be an array", pointer, codes))
            return
        for index, item in enumerate(value):
            _check(item, kind.kind, f"{pointer}/{index}", codes, found)
    elif type(kind) is MapSchema:
        if type(value) is not dict:
            found.append(_misfit(value, "must be an object", pointer, codes))
            return
        for key, each in value.items():
            _check(each, kind.kind, f"{pointer}/{escape(key)}", codes, found)
    elif complaint := kind(value):  # type: ignore[operator]
        found.append(_misfit(value, complaint, pointer, codes))


def _misfit(value: Json, complaint: str, pointer: str, codes: Codes) -> Finding:
    holder, _, last = pointer.rpartition("/")
    name = repr(last or "the document")
    if last.isdecimal():
        name = f"item {last} of {holder.rpartition('/')[2]!r}"
    shown = type_name(value)
    if isinstance(value, int | float | str):
        shown = compact(value) if type(value) is bool else repr(value)[:60]
    hint = None
    if "string" in complaint and type(value) in (int, float, bool):
        hint = "put the text in quotes"
    elif value is None:
        hint = "leave the key out"
    else:
        wanted = complaint.removeprefix("must ")
        hint = f"write {wanted[3:]}" if wanted.startswith("be ") else f"it must {wanted}"
    message = f"{name} {complaint}, not {shown}"
    return Finding(codes.misfit, message, pointer, hint, at_key=value is None)


def _object(
    value: Json, shape: ObjectSchema, pointer: str, codes: Codes, found: list[Finding]
) -> None:
    if type(value) is not dict:
        found.append(_misfit(value, "must be an object", pointer, codes))
        return
    for key in shape.required:
        if key not in value:
            hint = shape.missing.get(key, f"add {key!r}")
            found.append(Finding(codes.misfit, f"{key!r} is missing", pointer, hint, at_key=True))
    for key, each in value.items():
        if key in shape.keys:
            kind = shape.keys[key]
            if kind is not anything and not (kind is TEXT and type(each) is str):
                _check(each, kind, f"{pointer}/{key}", codes, found)
        elif key not in shape.ignored:
            found.append(_without_effect(key, shape, f"{pointer}/{escape(key)}", codes))


def _without_effect(key: str, shape: ObjectSchema, place: str, codes: Codes) -> Finding:
    if key in shape.near_misses:
        message = f"{key!r} has no effect here"
        return Finding(codes.near_miss, message, place, shape.near_misses[key], at_key=True)
    near = did_you_mean(key, shape.keys) or "take it out"
    message = f"{key!r} means nothing here, so it has no effect"
    return Finding(codes.unknown, message, place, near, at_key=True)
