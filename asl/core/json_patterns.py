"""Patterns over JSON values, for scripted agents and conformance cases.

A pattern is a JSON value; `{"$like": REGEX}` matches a whole string, `{"$any": true}` matches
everything, `{"$type": "number"}` a type, `{"$json": P}` a string with JSON that matches P, and
`{"$partial": {...}}` an object with at least these members.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from asl.core.json_text import read_data
from asl.core.regex import fullmatch, linear
from asl.core.values import Json, excerpt, json_equal, type_name
from asl.core.work import WorkExceeded, WorkMeter

__all__ = ["matches", "mismatches"]

SHOWN = 400
"""Bytes of a value shown in a sentence."""


def matches(pattern: Json, value: Json) -> bool:
    """Return whether a value matches a pattern."""
    return not any(True for _ in mismatches(pattern, value))


def mismatches(pattern: Json, value: Json, place: str = "$") -> Iterator[str]:
    """Yield a sentence for every part of a value that does not match."""
    if type(pattern) is dict and len(pattern) == 1 and (name := next(iter(pattern))) in _WILD:
        yield from _WILD[name](pattern[name], value, place)
    elif type(pattern) is dict and type(value) is dict:
        for key in pattern.keys() | value.keys():
            here = f"{place}.{key}"
            if key not in value:
                yield f"{here}: expected {_short(pattern[key])}, but it is absent"
            elif key not in pattern:
                yield f"{here}: unexpected {_short(value[key])}"
            else:
                yield from mismatches(pattern[key], value[key], here)
    elif type(pattern) is list and type(value) is list and len(pattern) == len(value):
        for index, (one, other) in enumerate(zip(pattern, value, strict=True)):
            yield from mismatches(one, other, f"{place}[{index}]")
    elif not json_equal(pattern, value):
        yield f"{place}: expected {_short(pattern)}, got {_short(value)}"


def _like(pattern: Json, value: Json, place: str) -> Iterator[str]:
    try:
        expression = linear(str(pattern), "s")
    except ValueError as fault:
        yield f"{place}: {pattern!r} is no regular expression: {fault}"
        return
    try:
        fits = type(value) is str and fullmatch(expression, value, WorkMeter().spend)
    except WorkExceeded as excess:
        yield f"{place}: {pattern!r} cannot be matched: {excess}"
        return
    if not fits:
        yield f"{place}: expected a string like {pattern!r}, got {_short(value)}"


def _any(pattern: Json, value: Json, place: str) -> Iterator[str]:
    yield from ()


def _type(pattern: Json, value: Json, place: str) -> Iterator[str]:
    if type_name(value) != pattern:
        yield f"{place}: expected a {pattern}, got {_short(value)}"


def _json(pattern: Json, value: Json, place: str) -> Iterator[str]:
    try:
        inner = read_data(value if type(value) is str else "")
    except ValueError:
        yield f"{place}: expected a string that holds JSON, got {_short(value)}"
    else:
        yield from mismatches(pattern, inner, f"{place}(JSON)")


def _partial(pattern: Json, value: Json, place: str) -> Iterator[str]:
    if type(pattern) is not dict:
        yield f"{place}: '$partial' takes an object, not {type_name(pattern)}"
        return
    if type(value) is not dict:
        yield f"{place}: expected an object, got {_short(value)}"
        return
    for key, part in pattern.items():
        if key not in value:
            yield f"{place}.{key}: expected {_short(part)}, but it is absent"
        else:
            yield from mismatches(part, value[key], f"{place}.{key}")


_WILD: Mapping[str, Callable[[Json, Json, str], Iterator[str]]] = MappingProxyType(
    {"$like": _like, "$any": _any, "$type": _type, "$json": _json, "$partial": _partial}
)


def _short(value: Json) -> str:
    return excerpt(value, SHOWN)
