"""Functions on numbers and arrays of numbers."""

import math
import re
from fractions import Fraction

from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.javascript import INFINITY, SAFE, UNDEFINED, Value, double, number_text
from asl.expr.jsonata.values import finite, normal

_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([Ee][-+]?[0-9]+)?")
_PREFIXED = re.compile("0[xX][0-9A-Fa-f]+|0[oO][0-7]+|0[bB][01]+")


def number(value: Value) -> Value:
    """`$number(value)`; raises D3030 for a value that is no number."""
    if type(value) is bool:
        return int(value)
    if type(value) is not str:
        if value is None or not isinstance(value, int | float):
            raise fault("D3030", value=value, index=1)
        return value
    if _DECIMAL.fullmatch(value):
        parsed = float(value)
        if parsed not in (INFINITY, -INFINITY):
            return int(value) if len(value) < 16 and value.lstrip("-").isdigit() else normal(parsed)
    elif _PREFIXED.fullmatch(value):
        return normal(double(int(value, 0)))
    raise fault("D3030", value=value, index=1)


def total(values: list[Value]) -> Value:
    """`$sum(numbers)`."""
    if all(type(value) is int for value in values):
        exact = sum(values)
        if -SAFE <= exact <= SAFE:
            return exact
    result = 0.0
    for value in values:
        result += double(value)
    return normal(result)


def average(values: list[Value]) -> Value:
    """`$average(numbers)`."""
    return normal(double(total(values)) / len(values)) if values else UNDEFINED


def largest(values: list[Value]) -> Value:
    """`$max(numbers)`."""
    return max(values) if values else UNDEFINED


def smallest(values: list[Value]) -> Value:
    """`$min(numbers)`."""
    return min(values) if values else UNDEFINED


def absolute(value: Value) -> Value:
    """`$abs(number)`."""
    return abs(value)


def floor(value: Value) -> Value:
    """`$floor(number)`."""
    if type(value) is int or not math.isfinite(value):
        return value
    return normal(float(math.floor(value)))


def ceil(value: Value) -> Value:
    """`$ceil(number)`."""
    if type(value) is int or not math.isfinite(value):
        return value
    return normal(float(math.ceil(value)))


def round_number(value: Value, precision: Value = UNDEFINED) -> Value:
    """`$round(number, digits)`: half to even, on the decimal text of the number."""
    if precision is not UNDEFINED and not math.isfinite(precision):
        return math.nan
    places = 0 if precision is UNDEFINED else int(precision)
    if type(value) is float and not math.isfinite(value):
        return math.nan if places else value
    if not -400 < places < 400:
        return value if places > 0 else 0
    shifted = Fraction(number_text(value)) * Fraction(10) ** places
    return normal(double(round(shifted))) if not places else _unshifted(round(shifted), places)


def _unshifted(digits: int, places: int) -> Value:
    try:
        return normal(float(f"{digits}e{-places}"))
    except OverflowError:
        return INFINITY


def square_root(value: Value) -> Value:
    """`$sqrt(number)`; raises D3060 for a negative one."""
    if value < 0:
        raise fault("D3060", value=value, index=1)
    return normal(math.sqrt(value))


def power(base: Value, exponent: Value) -> Value:
    """`$power(base, exponent)`; raises D3061 for a result that is no number."""
    try:
        result = math.pow(double(base), double(exponent))
    except (OverflowError, ValueError, TypeError):
        result = INFINITY
    if not math.isfinite(result):
        raise fault("D3061", value=base, exp=exponent, index=1)
    return normal(result)


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def format_base(value: Value, radix: Value = UNDEFINED) -> Value:
    """`$formatBase(number, radix)`; raises D3100 for a radix outside 2 to 36."""
    base = 10 if radix is UNDEFINED else round_number(finite(radix))
    if not 2 <= base <= 36:
        raise fault("D3100", value=base)
    whole = round_number(finite(value))
    if base == 10:
        return number_text(whole)
    rest, digits = abs(int(whole)), ""
    while rest:
        rest, digit = divmod(rest, int(base))
        digits = _DIGITS[digit] + digits
    return ("-" if whole < 0 else "") + (digits or "0")
