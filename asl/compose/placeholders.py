r"""Placeholders in template texts: `Dear {{name}}`, `{{depth | default: 'quick'}}` (Specification
9.2).

A name between braces refers to a parameter. Other braces are left alone (`{{$.x}}` is
interpolation, Specification 3.8), and `\{{` is a literal `{{`.
"""

import json
import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from asl.core.errors import ExpressionFault
from asl.core.values import Json, compact, type_name
from asl.states.base import PARAMETER

__all__ = [
    "RULE",
    "ParameterReference",
    "Part",
    "escape_braces",
    "member",
    "names",
    "parse",
    "sole_reference",
    "unescape_braces",
]

RULE = "V-TPL-02"
_BEGIN = re.compile(rf"\\\{{\{{|{PARAMETER}")
_FILTER = re.compile(
    r"""\|\s*([A-Za-z_]\w*)\s*(?::\s*
    ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null)\s*)?""",
    re.VERBOSE | re.DOTALL,
)
_MEMBER = re.compile(r"(?<!\\)\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*[.\[]")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ParameterReference:
    """A parameter in a text, with the filters for its value."""

    name: str
    filters: tuple[tuple[str, Json], ...]
    start: int
    end: int

    def value(self, given: Json) -> Json:
        """Return the filtered value; raises ExpressionFault for an unsuitable filter."""
        for name, argument in self.filters:
            given = _FILTERS[name](given, argument)
        return given


Part: TypeAlias = str | ParameterReference


def parse(text: str) -> tuple[Part, ...]:
    """Split a text at its references; raises ExpressionFault (V-TPL-02) for a malformed one.

    Text outside of references stays as written, escapes included.
    """
    parts: list[Part] = []
    start = at = 0
    while (begin := _BEGIN.search(text, at)) is not None:
        at = begin.end()
        if begin[1] is None:
            continue
        filters, at = _filters(text, at)
        if start < begin.start():
            parts.append(text[start : begin.start()])
        parts.append(ParameterReference(begin[1], filters, begin.start(), at))
        start = at
    return (*parts, text[start:]) if start < len(text) else tuple(parts)


def sole_reference(text: str) -> ParameterReference | None:
    """Return the reference that makes up a whole text; None for any other text."""
    try:
        parts = parse(text)
    except ExpressionFault:
        return None
    return parts[0] if len(parts) == 1 and isinstance(parts[0], ParameterReference) else None


def member(text: str, parameters: Container[str]) -> ExpressionFault | None:
    """Return the fault of a text with a member of a parameter: `{{order.id}}`."""
    for found in _MEMBER.finditer(text):
        if found[1] in parameters:
            message = f"{found[1]!r} is inserted as a whole, not a part of it"
            hint = r"declare a parameter for that part, or write \{{ for braces in text"
            return ExpressionFault(message, found.start(), RULE, hint)
    return None


def names(value: Json) -> Iterator[str]:
    """Yield the names between braces in the strings of a value."""
    if type(value) is str and "{{" in value:
        yield from (begin[1] for begin in _BEGIN.finditer(value) if begin[1] is not None)
    elif type(value) is list:
        for item in value:
            yield from names(item)
    elif type(value) is dict:
        for key, item in value.items():
            yield from names(key)
            yield from names(item)


def _filters(text: str, at: int) -> tuple[tuple[tuple[str, Json], ...], int]:
    """Parse filters up to the closing braces; return them and their end."""
    found: list[tuple[str, Json]] = []
    while not text.startswith("}}", at):
        filter = _FILTER.match(text, at)
        if filter is None:
            message = "a filter is written '| default: value', '| upper' or '| json'"
            raise ExpressionFault(message, at, RULE)
        name, argument = filter.groups()
        if name not in _FILTERS:
            hint = f"there are {', '.join(_FILTERS)}"
            raise ExpressionFault(f"there is no filter {name!r}", filter.start(1), RULE, hint)
        if (argument is not None) is not (name == "default"):
            message, advice = f"{name!r} takes no value", "leave it out"
            if argument is None:
                message = "'default' needs a value"
                advice = "a text in quotes, a number, true, false or null"
            raise ExpressionFault(message, filter.start(1), RULE, advice)
        found.append((name, None if argument is None else _literal(argument)))
        at = filter.end()
    return tuple(found), at + 2


def _literal(text: str) -> Json:
    return _ESCAPE.sub(r"\1", text[1:-1]) if text[0] in "'\"" else json.loads(text)


def _upper(value: Json, argument: Json) -> Json:
    if type(value) is not str:
        message = f"'upper' takes a string, and this is of type {type_name(value)}"
        raise ExpressionFault(message, 0, RULE)
    return value.upper()


_FILTERS: Mapping[str, Callable[[Json, Json], Json]] = {
    "default": lambda value, argument: argument if value is None else value,
    "upper": _upper,
    "json": lambda value, argument: compact(value),
}


def escape_braces(value: Json) -> Json:
    """Return a value with all `{{` in its strings escaped."""
    return _deep(value, lambda text: text.replace("{{", r"\{{"))


def unescape_braces(value: Json) -> Json:
    """Return a value with all escaped `{{` in its strings restored."""
    return _deep(value, lambda text: text.replace(r"\{{", "{{"))


def _deep(value: Json, change: Callable[[str], str]) -> Json:
    if type(value) is str:
        return change(value) if "{{" in value else value
    if type(value) is list:
        return [_deep(item, change) for item in value]
    if type(value) is dict:
        return {change(key): _deep(item, change) for key, item in value.items()}
    return value
