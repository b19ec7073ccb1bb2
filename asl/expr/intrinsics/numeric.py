"""Intrinsic functions on numbers, tokens and money (Specification 5.2, 5.3).

`MathAdd` rounds its arguments as AWS does; the functions beyond AWS's compute exactly in decimal
and return the shortest form, so that 0.3 - 0.1 is 0.2.
"""

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from math import floor, isinf

from asl.core.profile import Profile
from asl.core.values import MAX_DIGITS, MAX_INTEGER, Json
from asl.core.work import WorkMeter
from asl.expr.frame import ExpressionFrame
from asl.expr.intrinsics.arguments import (
    SMALL,
    TEXT_READ,
    failure,
    integer,
    number,
    size_of,
    string,
    text_of,
)

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
    """`States.MathAdd(a, b, ...)`: each argument is rounded first; all within 32 bits.

    Raises:
        StateError: States.IntrinsicFailure beyond 32 bits.
    """
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


def random(profile: Profile, frame: ExpressionFrame, *bounds: Json) -> Json:
    """`States.MathRandom(start, end[, seed])`: an integer, start inclusive, end exclusive.

    The same seed gives the same number: `random.Random(seed).randrange(start, end)` of Python.
    Without arguments: a number in [0, 1).

    Raises:
        StateError: States.IntrinsicFailure for an empty range.
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
    """Return a decimal as the JSON number with the shortest text.

    Raises:
        StateError: States.IntrinsicFailure for a number that no double represents.
    """
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


BYTES_PER_TOKEN = 4
"""Bytes of text in one token of an estimate."""


def token_count(profile: Profile, frame: ExpressionFrame, value: Json) -> Json:
    """`States.TokenCount(v)`: an estimate of one token for each started 4 bytes of text."""
    return tokens_of("States.TokenCount", value, profile, frame.work)


def truncate(profile: Profile, frame: ExpressionFrame, value: Json, max_tokens: Json) -> Json:
    """`States.Truncate(s, maxTokens)`: whole characters of at most that many tokens, then `...`.

    Text that fits is returned unchanged.

    Raises:
        StateError: States.IntrinsicFailure for a negative number of tokens.
    """
    name = "States.Truncate"
    tokens = integer(name, 2, max_tokens)
    if tokens < 0:
        raise failure(name, f"maxTokens must not be negative, found {tokens}")
    text = text_of(name, value, profile.max_payload, work=frame.work)
    limit = min(tokens * BYTES_PER_TOKEN, profile.max_payload)
    if min(limit, len(text)) > SMALL:
        frame.work.spend(min(limit, len(text)) // TEXT_READ)
        frame.work.spend_bytes(min(limit, len(text)))
    prefix = text[: limit + 1].encode()
    if len(prefix) <= limit:
        return text
    return prefix[:limit].decode(errors="ignore") + "..."


def current_cost(frame: ExpressionFrame) -> Json:
    """`States.CurrentCost()`: the cost of the whole execution so far."""
    return shortest("States.CurrentCost", frame.usage.cost)


def current_tokens(frame: ExpressionFrame) -> Json:
    """`States.CurrentTokens()`: the tokens of the whole execution so far."""
    return frame.usage.tokens


def remaining_budget(frame: ExpressionFrame) -> Json:
    """`States.RemainingBudget()`: the unspent budget, null without a limit."""
    usage = frame.usage
    if usage.max_cost is None:
        return None
    return shortest("States.RemainingBudget", max(usage.max_cost - usage.cost, Decimal(0)))


def estimate_cost(profile: Profile, frame: ExpressionFrame, value: Json, model: Json) -> Json:
    """`States.EstimateCost(v, model)`: the price of the value's tokens as input of the model.

    Raises:
        StateError: States.IntrinsicFailure for a model without a known price.
    """
    name = "States.EstimateCost"
    price = frame.price(string(name, 2, model))
    if price is None:
        raise failure(name, f"no price is known for model {model!r}")
    return shortest(name, tokens_of(name, value, profile, frame.work) * price)


def tokens_of(function: str, value: Json, profile: Profile, work: WorkMeter | None = None) -> int:
    """Estimate the tokens of a value: one for each started 4 bytes of its text."""
    return -(-size_of(function, value, profile.max_payload, work) // BYTES_PER_TOKEN)
