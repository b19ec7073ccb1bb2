"""Instants and durations: RFC 3339 timestamps (Specification 6.6), `90s`, `-5m` (8.0, 6.2)."""

from datetime import UTC, date, datetime
from math import inf, isfinite, isinf
from typing import TypeAlias

from asl.core.errors import ExpressionFault
from asl.core.lazy import lazy_pattern
from asl.core.values import Json, compact, is_number

__all__ = [
    "Instant",
    "format_timestamp",
    "instant",
    "instant_of_java",
    "is_timestamp",
    "parse_duration",
    "parse_epoch",
    "parse_relative",
    "parse_timestamp",
    "seconds_of",
    "shift_time",
]

Instant: TypeAlias = int
"""Nanoseconds since 1970-01-01T00:00:00Z: exact, so instants compare exactly."""

_SECOND = 10**9
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_TIMESTAMP = lazy_pattern(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])"
    r"(?:\.([0-9]+))?(?:Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)
_TO_THE_MINUTE = lazy_pattern(r"(T[0-9]{2}:[0-9]{2})(?=Z|[+-])")
_DURATION = lazy_pattern(r"([0-9]+)(ms|s|m|h|d|w)?")
_RELATIVE = lazy_pattern(r"([+-])([0-9]+)(ms|s|m|h|d|w)")
_MILLISECONDS = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}


def parse_timestamp(text: str, code: str = "V-WAIT-03") -> Instant:
    """Return the instant of a timestamp `YYYY-MM-DDThh:mm:ss[.f+](Z|+hh:mm|-hh:mm)`.

    A fraction may have any length; digits beyond nanoseconds are cut off.

    Raises:
        ExpressionFault: It is no timestamp; the error has the given code.
    """
    found = instant(text)
    if found is None:
        raise ExpressionFault(
            f"{text!r} is not an RFC 3339 timestamp",
            0,
            code,
            "a timestamp looks like 2026-01-31T13:45:00Z or 2026-01-31T13:45:00.5+01:00",
        )
    return found


def instant(value: Json) -> Instant | None:
    """Return the instant of a timestamp, None for any other value."""
    found = _TIMESTAMP.fullmatch(value) if type(value) is str else None
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = found.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - _EPOCH_DAY
    except ValueError:  # no such day
        return None
    seconds = ((days * 24 + int(hour)) * 60 + int(minute)) * 60 + int(second)
    if sign is not None:
        offset = (int(hours) * 60 + int(minutes)) * 60
        seconds += offset if sign == "-" else -offset
    nanoseconds = int(fraction[:9].ljust(9, "0")) if fraction else 0
    return seconds * _SECOND + nanoseconds


def instant_of_java(value: Json) -> Instant | None:
    """Return the instant of a timestamp in Java's syntax: also in lower case or without seconds."""
    if type(value) is not str:
        return None
    return instant(_TO_THE_MINUTE.sub(r"\1:00", value.upper()))


def parse_epoch(text: str) -> float:
    """Return the seconds since the epoch of a timestamp.

    Raises:
        ExpressionFault: As `parse_timestamp` does.
    """
    return seconds_of(parse_timestamp(text))


def seconds_of(moment: Instant) -> float:
    """Return an instant in seconds since the epoch."""
    return moment / _SECOND


def is_timestamp(value: Json) -> bool:
    """Return whether the value is a string with a timestamp (`IsTimestamp`)."""
    return instant(value) is not None


def format_timestamp(epoch: float) -> str:
    """Return seconds since the epoch as UTC with milliseconds: `2026-01-31T13:45:00.000Z`."""
    seconds, milliseconds = divmod(round(epoch * 1000), 1000)
    moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='seconds')}.{milliseconds:03}Z"


def shift_time(now: float, seconds: float) -> Instant:
    """Return the instant *seconds* after *now* (seconds since the epoch)."""
    return round((now + seconds) * _SECOND)


def parse_duration(value: str | int | float, *, allow_never: bool = False) -> float:
    """Return the seconds of a duration: `90`, `"90"`, `"500ms"`, `"90s"`, `"5m"`, `"2h"`, `"7d"`,
    `"1w"`.

    Args:
        value: The duration; a number is in seconds.
        allow_never: Whether the text `"never"` is an infinite duration.

    Raises:
        ExpressionFault: V-DUR-01 for any other value.
    """
    if allow_never and value == "never":
        return inf
    if isinstance(value, str):
        found = _DURATION.fullmatch(value)
        seconds = _seconds(found[1], found[2] or "s") if found else inf
    else:
        seconds = float(value) if is_number(value) and isfinite(value) and value >= 0 else inf
    if isinf(seconds):
        forms = "a whole number and one of ms, s, m, h, d, w"
        raise ExpressionFault(
            f"{repr(value) if isinstance(value, str) else compact(value)} is not a duration",
            0,
            "V-DUR-01",
            f"{forms}, or never" if allow_never else forms,
        )
    return seconds


MOST_SECONDS = 1e11
"""The largest relative time of a document, about 3,000 years."""


def parse_relative(text: str) -> float | None:
    """Return the seconds from now of a relative time such as `-5m`, None for any other text."""
    found = _RELATIVE.fullmatch(text)
    if found is None:
        return None
    seconds = _seconds(found[2], found[3])
    return None if seconds > MOST_SECONDS else seconds if found[1] == "+" else -seconds


def _seconds(digits: str, unit: str) -> float:
    return float(digits) * _MILLISECONDS[unit] / 1000
