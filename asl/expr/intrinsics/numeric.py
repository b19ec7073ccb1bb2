"""Intrinsic functions on numbers (Specification 5.2, 5.3).

`MathAdd` rounds its arguments as AWS does; the functions beyond AWS's compute exactly in decimal
and return the shortest form, so that 0.3 - 0.1 is 0.2.
"""

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from math import floor, isinf

from asl.core.profile import Profile
from asl.core.values import MAX_DIGITS, MAX_INTEGER, Json
from asl.expr.frame import Frame
from asl.expr.intrinsics.arguments import failure, number

LOWEST, HIGHEST = -(2**31), 2**31 - 1

# Enough digits for the exact difference of the largest integer and the smallest double.
_EXACT = Context(prec=MAX_DIGITS + 400, Emin=MIN_EMIN, Emax=MAX_EMAX)
_SAFE_INTEGER = 2**53


def round_argument(function: str, position: int, value: Json) -> int:
    """Return the argument rounded to the nearest integer, halves up: -1.5 is -1."""
    if type(value) is int:
        return value
    exact = number(function, position, value)
    below = floor(exact)
    return below + 1 if exact - below >= 0.5 else below


def count_argument(profile: Profile, function: str, position: int, value: Json) -> int:
    """Return the argument as a count or an index: rounded, on AWS truncated."""
    if profile.aws:
        return int(number(function, position, value))
    return round_argument(function, position, value)


def add(one: Json, other: Json, *more: Json) -> Json:
    """`States.MathAdd(a, b, ...)`: each argument is rounded first; all within 32 bits."""
    if type(one) is int and type(other) is int and not more:
        total = one + other
        if LOWEST <= total <= HIGHEST and LOWEST <= one <= HIGHEST and LOWEST <= other <= HIGHEST:
            return total
    name = "States.MathAdd"
    terms = [round_argument(name, at, value) for at, value in enumerate((one, other, *more), 1)]
    total = sum(terms)
    for value in (*terms, total):
        if not LOWEST <= value <= HIGHEST:
            raise failure(name, f"{value} is not a 32-bit integer")
    return total


def subtract(one: Json, other: Json) -> Json:
    """`States.MathSubtract(a, b)`: exact."""
    name = "States.MathSubtract"
    left, right = number(name, 1, one), number(name, 2, other)
    if type(left) is int and type(right) is int:
        return _bounded(name, left - right)
    return shortest(name, _EXACT.subtract(_decimal(left), _decimal(right)))


def multiply(one: Json, other: Json) -> Json:
    """`States.MathMultiply(a, b)`: exact."""
    name = "States.MathMultiply"
    left, right = number(name, 1, one), number(name, 2, other)
    if type(left) is int and type(right) is int:
        return _bounded(name, left * right)
    return shortest(name, _EXACT.multiply(_decimal(left), _decimal(right)))


def random(profile: Profile, frame: Frame, *bounds: Json) -> Json:
    """`States.MathRandom(start, end[, seed])`: an integer, start inclusive, end exclusive.

    The same seed gives the same number: `random.Random(seed).randrange(start, end)` of Python.
    Without arguments: a number in [0, 1).
    """
    name = "States.MathRandom"
    if not bounds:
        return (frame.entropy() >> 75) / 2**53
    if len(bounds) == 1:
        raise failure(name, "the end of the range is missing")
    start, end, *seed = (
        count_argument(profile, name, at, each) for at, each in enumerate(bounds, 1)
    )
    if start >= end:
        raise failure(name, f"no integer is between {start} and {end}")
    if not seed:
        return start + frame.entropy() % (end - start)
    from random import Random

    return Random(seed[0]).randrange(start, end)


def shortest(function: str, value: Decimal) -> int | float:
    """Return a decimal as the JSON number with the shortest text."""
    if abs(value) < _SAFE_INTEGER and value == value.to_integral_value():
        return int(value)
    nearest = float(value)
    if isinf(nearest):
        raise failure(function, "the result is too large")
    return nearest


def _decimal(value: int | float) -> Decimal:
    return Decimal(value) if type(value) is int else Decimal(repr(value))


def _bounded(function: str, value: int) -> int:
    if abs(value) > MAX_INTEGER:
        raise failure(function, "the result is too large")
    return value
