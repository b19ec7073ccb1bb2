"""Durations that a state comes to when it runs."""

from math import inf

from asl.core.errors import ExpressionFault, StateError
from asl.core.values import Json, excerpt
from asl.expr.times import parse_duration

__all__ = ["duration", "unfit"]

MAX_WAIT = 1e10
"""Seconds that a duration may come to: some 300 years."""


def duration(
    field: str, value: Json, *, positive: bool = False, allow_never: bool = False
) -> float:
    """Return the seconds of a duration in *field*; raises StateError("States.InvalidTTL").

    What is longer than anybody waits raises StateError("States.Runtime"); where `never` is allowed
    it is infinite, too.
    """
    try:
        if type(value) not in (str, int, float):
            raise unfit(field, "a duration", value, "States.InvalidTTL")
        seconds = parse_duration(value, allow_never=allow_never)
    except ExpressionFault as fault:
        raise StateError("States.InvalidTTL", f"{field}: {fault}") from None
    if seconds > MAX_WAIT and allow_never:
        return inf
    if seconds > MAX_WAIT or (positive and seconds == 0):
        raise StateError("States.Runtime", f"{field}: nobody waits for {value!r}")
    return seconds


def unfit(field: str, wanted: str, found: Json, error: str = "States.Runtime") -> StateError:
    """Return the error of a field that came to something else than *wanted*."""
    return StateError(error, f"{field} is {wanted}, not {excerpt(found, 200)}")
