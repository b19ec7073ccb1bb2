"""JavaScript's `undefined`, doubles and texts of values, which JSONata shares; and JSONata
literals.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from json.encoder import encode_basestring
from typing import Any, Final, TypeAlias

from asl.core.values import SURROGATE

__all__ = [
    "INFINITY",
    "PLAIN",
    "SAFE",
    "UNDEFINED",
    "TooLong",
    "Undefined",
    "Value",
    "Writer",
    "double",
    "literal",
    "number_text",
    "quote",
    "stringify",
    "with_exponent",
]

Value: TypeAlias = Any
"""A JSON value, UNDEFINED, or a value of `asl.expr.jsonata.values`."""


class Undefined:
    """The type of `UNDEFINED`, the result of an expression that finds nothing."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "undefined"

    def __bool__(self) -> bool:
        return False


UNDEFINED = Undefined()


INFINITY: Final = float("inf")

SAFE = 2**53
"""Bound of the integers that doubles represent exactly."""

PLAIN = 10**21
"""Bound from which JavaScript prints an exponent."""


def double(value: int | float) -> float:
    """Return the number as a JavaScript double; an integer beyond its range is infinite."""
    try:
        return float(value)
    except OverflowError:
        return INFINITY if value > 0 else -INFINITY


def number_text(value: int | float) -> str:
    """Return a number as `String(value)` prints it: `1e+21`, `1e-7`, `0.000001`, `100`."""
    if type(value) is int and -SAFE <= value <= SAFE:
        return str(value)
    return with_exponent(double(value))


def with_exponent(value: float) -> str:
    """Return a number as JavaScript prints it, with an exponent if it needs one."""
    if value in (INFINITY, -INFINITY) or value != value:
        return "null"
    digits, _, power = repr(abs(value)).partition("e")
    whole, _, fraction = digits.partition(".")
    figures = (whole + fraction).lstrip("0")
    point = len(whole) + int(power or 0) - (len(whole + fraction) - len(figures))
    figures = figures.rstrip("0")
    if not figures:
        return "0"
    sign = "-" if value < 0 else ""
    if 0 < point <= 21:
        padded = figures.ljust(point, "0")
        return sign + padded[:point] + (f".{padded[point:]}" if len(padded) > point else "")
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{figures}"
    rest = f".{figures[1:]}" if len(figures) > 1 else ""
    return f"{sign}{figures[0]}{rest}e{point - 1:+d}"


def quote(value: str) -> str:
    """Return a string literal; lone surrogates are escaped."""
    literal = encode_basestring(value)
    if literal.isascii():
        return literal
    return SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", literal)


class TooLong(Exception):
    """The text is longer than allowed."""


def stringify(value: Value, room: int) -> str:
    """Return a value as `JSON.stringify` prints it, cut shortly after *room* characters."""
    writer = Writer(number_text, quote, room, "", _free)
    with suppress(TooLong):
        writer.write(value, "\n")
    return "".join(writer.parts)


def _free(steps: int) -> None:
    """Count nothing: the work of a short text."""


WRITTEN = 10
"""Steps of writing a number with a fraction."""
SHORT = 16
"""Characters of a string that is free."""


class Writer:
    """Writes JSON text; functions become empty strings."""

    def __init__(
        self,
        number: Callable[[Any], str],
        quote: Callable[[str], str],
        room: int,
        indent: str,
        spend: Callable[[int], None],
    ) -> None:
        self.spend = spend
        self.number = number
        self.quoted = quote
        self.room = room
        self.indent = indent
        self.parts: list[str] = []

    def put(self, part: str) -> None:
        """Add a part of the text.

        Raises:
            TooLong: The text has more characters than allowed.
        """
        self.parts.append(part)
        self.room -= len(part)
        if self.room < 0:
            raise TooLong

    def write(self, value: Value, line: str) -> None:
        """Write a value; *line* starts a new line at its depth.

        Raises:
            TooLong: As `put` does.
        """
        if type(value) is str:
            if len(value) > SHORT:
                self.fits(len(value))
            self.put(self.quoted(value))
        elif value is None or value is UNDEFINED:
            self.put("null")
        elif type(value) is bool:
            self.put("true" if value else "false")
        elif isinstance(value, int | float):
            if type(value) is float:
                self.spend(WRITTEN)
            self.put(self.number(value))
        elif isinstance(value, list):
            self.members("[]", [("", item) for item in value], line)
        elif type(value) is dict:
            colon = ": " if self.indent else ":"
            named = [(self.quoted(key) + colon, item) for key, item in value.items()]
            self.members("{}", named, line)
        else:  # a function
            self.put('""')

    def fits(self, characters: int) -> None:
        """Count a long string before it is written; raises TooLong if it does not fit."""
        if characters > self.room:
            raise TooLong
        self.spend(characters >> 4)

    def members(self, brackets: str, members: list[tuple[str, Value]], line: str) -> None:
        """Write the members of a container, each with its prefix."""
        inner = line + self.indent
        self.spend(6 * len(members))
        self.put(brackets[0])
        for index, (prefix, item) in enumerate(members):
            self.put(("," if index else "") + (inner if self.indent else "") + prefix)
            self.write(item, inner)
        self.put((line if self.indent and members else "") + brackets[1])


def literal(value: object) -> str:
    """Return a JSON value as a JSONata literal."""
    if isinstance(value, str):
        written = encode_basestring(value)
        return written if "'" in value else f"'{written[1:-1]}'".replace('\\"', '"')
    if isinstance(value, dict):
        pairs = ", ".join(f"{literal(key)}: {literal(each)}" for key, each in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return json.dumps(value)
