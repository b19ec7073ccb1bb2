r"""Interpolated text: `Review {{ $.title }}` (Specification 3.8).

A text is scanned once; inserted values are not scanned again, so data cannot add expressions. `\{{`
is a literal `{{`.
"""

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from asl.core.errors import ExpressionFault
from asl.core.values import Json, compact
from asl.expr.frame import Evaluate, Frame, constant
from asl.expr.templates import parse_expression

__all__ = ["Insertion", "Part", "Steps", "check", "compile", "parse"]

Steps: TypeAlias = tuple[str, ...]

RULE = "V-TXT-01"
_MARK = re.compile(r"\\\{\{|\{\{|\}\}")
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|\}\}|(?P<open>['"])|.""", re.DOTALL)


class Insertion(NamedTuple):
    """An expression between braces; `offset` is the start of its text."""

    text: str
    offset: int


Part: TypeAlias = str | Insertion


def parse(text: str) -> tuple[Part, ...]:
    """Split a text into literal strings and insertions; raises ExpressionFault (V-TXT-01)."""
    parts: list[Part] = []
    literal = ""
    at = 0
    while (mark := _MARK.search(text, at)) is not None:
        literal += text[at : mark.start()]
        at = mark.end()
        if mark.group() == r"\{{":
            literal += "{{"
        elif mark.group() == "}}":
            raise ExpressionFault("'}}' without '{{' before it", mark.start(), RULE)
        else:
            insertion, at = _insertion(text, mark.end())
            parts += [literal, insertion] if literal else [insertion]
            literal = ""
    literal += text[at:]
    return (*parts, literal) if literal else tuple(parts)


def _insertion(text: str, start: int) -> tuple[Insertion, int]:
    """Read up to the closing braces, ignoring those within quotes."""
    for token in _TOKEN.finditer(text, start):
        if token.group() == "}}":
            inner = text[start : token.start()]
            stripped = inner.strip()
            offset = start + len(inner) - len(inner.lstrip())
            if not stripped:
                raise ExpressionFault("there is nothing between the braces", start - 2, RULE)
            return Insertion(stripped, offset), token.end()
        if token["open"]:
            raise ExpressionFault("this quote is never closed", token.start(), RULE)
    raise ExpressionFault("'{{' is never closed", start - 2, RULE, r"write \{{ for braces in text")


def check(text: str) -> None:
    """Raise ExpressionFault (V-TXT-01) for a text that `compile` refuses."""
    for part in parse(text):
        if isinstance(part, Insertion):
            _check_expression(part)


def _check_expression(part: Insertion) -> None:
    try:
        parse_expression(part.text)
    except ExpressionFault as fault:
        offset = part.offset + fault.offset
        raise ExpressionFault(fault.message, offset, RULE, fault.hint) from None


def compile(text: str, expression: Callable[[str], Evaluate]) -> Evaluate:
    """Compile a text to a closure that returns a string.

    Args:
        text: The text.
        expression: Compiles the path or intrinsic call between two braces.

    Strings are inserted as they are, other values as compact JSON.

    Raises:
        ExpressionFault: V-TXT-01. The closure raises the errors of its expressions.
    """
    parts = parse(text)
    if all(type(part) is str for part in parts):
        return constant("".join(part for part in parts if type(part) is str))
    pieces = [
        expression(part.text) if isinstance(part, Insertion) else constant(part) for part in parts
    ]

    def evaluate(data: Json, frame: Frame) -> Json:
        return "".join([_text(piece(data, frame)) for piece in pieces])

    return evaluate


def _text(value: Json) -> str:
    return value if type(value) is str else compact(value)
