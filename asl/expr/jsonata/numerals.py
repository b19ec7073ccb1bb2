"""Numbers and JSON text as queries print them: as in JavaScript, or as in AWS's Java."""

from collections.abc import Callable
from decimal import ROUND_FLOOR, Context
from json.encoder import encode_basestring
from math import isfinite

from asl.core.java import decimal
from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.serialization import PLAIN, Writer, double, quote, with_exponent
from asl.expr.jsonata.undefined import Value
from asl.expr.jsonata.values import is_number

LONG = 2**63
"""Bound below which AWS keeps all digits of integers that are not computed with."""


def normal(value: float) -> int | float:
    """Return a result of arithmetic: whole numbers as integers, -0 as 0."""
    if value.is_integer() and -PLAIN < value < PLAIN:
        return int(value)
    return value


def finite(value: int | float) -> int | float:
    """Return the number; raises D1001 for NaN and infinities."""
    if type(value) is float and not isfinite(value):
        raise fault("D1001", value=value)
    return value


def precise(value: int | float) -> str:
    """Return a number rounded to 15 significant digits, as `$string` prints it."""
    if type(value) is int and -(10**15) < value < 10**15:
        return str(value)
    is_number(value)
    return with_exponent(float(f"{double(value):.14e}"))


def precise_in_java(value: int | float) -> str:
    """Return a number as AWS's `$string` prints it (measured).

    Whole numbers have all of their digits, others fifteen significant ones, rounded down, with an
    exponent if the digits end before the point.
    """
    if type(value) is int and -LONG <= value < LONG:
        return str(value)
    is_number(value)
    exact = double(value)
    if not isfinite(exact) or abs(exact) >= PLAIN:
        return with_exponent(exact)
    if exact.is_integer():
        return str(int(exact))
    return str(_FIFTEEN.create_decimal(decimal(exact)).normalize(_FIFTEEN)).replace("E", "e")


_FIFTEEN = Context(prec=15, rounding=ROUND_FLOOR)


def _quoted_in_java(value: str) -> str:
    """Return a string literal as AWS prints it: few characters are escaped (measured)."""
    for character in _ESCAPED:
        if character in value:
            value = value.replace(character, encode_basestring(character)[1:-1])
    return f'"{value}"'


_ESCAPED = '\\"\b\f\n\r\t'


def text(
    value: Value, room: int, pretty: bool, spend: Callable[[int], None], java: bool = False
) -> str:
    """Return a value as `$string` prints it.

    Args:
        value: The value.
        room: The allowed number of characters.
        pretty: Whether to indent.
        spend: Counts the work.
        java: Whether to print as AWS does.

    Raises:
        TooLong: The text has more characters.
    """
    number, literal = (precise_in_java, _quoted_in_java) if java else (precise, quote)
    writer = Writer(number, literal, room, "  " if pretty else "", spend)
    writer.write(value, "\n")
    return "".join(writer.parts)
