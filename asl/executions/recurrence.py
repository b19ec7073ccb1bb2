"""Recurrences: the times that `rate(...)`, `cron(...)`, `at(...)` and plain cron fields name."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import takewhile
from math import floor
from typing import Final, Protocol
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from asl.core.errors import AslError

__all__ = ["Recurrence", "latest_between", "read_recurrence", "read_zone"]

LONGEST: Final = 256
"""Characters of the longest expression."""
FORMS: Final = (
    "use 'rate(5 minutes)', 'cron(0 12 * * ? *)', 'at(2027-01-31T12:00:00)' or five cron fields "
    "such as '0 12 * * 1-5'"
)
_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_RATE: Final = re.compile(r"rate\((\d{1,9}) (second|minute|hour|day)(s?)\)")
_CRON: Final = re.compile(r"cron\((.*)\)")
_AT: Final = re.compile(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)")
_DAY_NAMES: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
SPAN: Final = 3600
"""Seconds of the first part of the past that is searched for times; each further one is twice as
long."""
YEARS: Final = range(1970, 2200)
"""Years of AWS's expressions."""


class Recurrence(Protocol):
    """Times of a schedule, in epoch seconds."""

    def following(self, after: float) -> Iterator[float]:
        """Yield the times after a time, the earliest first."""
        ...


def latest_between(recurrence: Recurrence, after: float, until: float, most: int) -> list[float]:
    """Return the latest times after one time and up to another, the earliest first.

    Args:
        recurrence: The recurrence.
        after: Times up to this one are left out.
        until: The latest possible time.
        most: Maximum number of times.
    """
    found: list[float] = []
    end, span = until, float(SPAN)
    while end > after and len(found) < most:
        begin = max(after, end - span)
        found[:0] = [*_up_to(recurrence.following(begin), end)]
        end, span = begin, 2 * span
    return found[-most:] if most else []


def _up_to(times: Iterator[float], end: float) -> Iterator[float]:
    return takewhile(lambda each: each <= end, times)


@dataclass(frozen=True, slots=True)
class Rate:
    """Every so many seconds after a time.

    Attributes:
        seconds: The period.
        anchor: Epoch second from which periods are counted.
    """

    seconds: int
    anchor: float

    def following(self, after: float) -> Iterator[float]:
        """Yield the times after a time, the earliest first."""
        count = max(1, floor((after - self.anchor) / self.seconds) + 1)
        while True:
            yield self.anchor + count * self.seconds
            count += 1


@dataclass(frozen=True, slots=True)
class Once:
    """A single time."""

    time: float

    def following(self, after: float) -> Iterator[float]:
        """Yield the time if it is after another one."""
        if self.time > after:
            yield self.time


@dataclass(frozen=True, slots=True)
class Cron:
    """Five fields of cron in a time zone.

    Daylight saving time counts as for the cron of Debian: what is planned for a time that a day
    lacks happens right after the gap, what is planned for a time that a day has twice happens once,
    and what is planned for every hour or minute happens in each of them.
    """

    fields: str
    zone: tzinfo

    def following(self, after: float) -> Iterator[float]:
        """Yield the times after a time, the earliest first."""
        for each in CronSim(self.fields, datetime.fromtimestamp(after, self.zone)):
            time = each.timestamp()
            if time > after:  # within the repeated hour the walk begins before it
                yield time


@dataclass(frozen=True, slots=True)
class AwsCron:
    """The fields of AWS's `cron(...)` in a time zone.

    As AWS documents it, what is planned for a time that a day lacks is left out, and what is
    planned for a time that a day has twice happens once.
    """

    fields: str
    years: tuple[int, ...]
    zone: tzinfo

    def following(self, after: float) -> Iterator[float]:
        """Yield the times after a time, the earliest first."""
        local = datetime.fromtimestamp(after, self.zone).replace(tzinfo=None)
        for year in self.years[bisect_left(self.years, local.year) :]:
            start = max(local, datetime(year, 1, 1) - timedelta(seconds=1))
            yield from (time for time in self._times(year, start) if time > after)

    def _times(self, year: int, start: datetime) -> Iterator[float]:
        """Yield the times of a year after a local time."""
        for each in CronSim(self.fields, start):
            if each.year != year:
                return
            local = each.replace(tzinfo=self.zone)
            if local == local.astimezone(UTC).astimezone(self.zone):
                yield local.timestamp()


def read_zone(name: str) -> tzinfo:
    """Return a time zone of the IANA database.

    Raises:
        AslError: There is none of this name.
    """
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, a path, or a folder of the database
        raise AslError(
            f"there is no time zone {name[:80]!r}: use a name such as Europe/Berlin"
        ) from None


def read_recurrence(expression: str, zone: str, anchor: float) -> Recurrence:
    """Return the recurrence of an expression.

    Args:
        expression: `rate(...)`, `cron(...)`, `at(...)` or five fields of cron.
        zone: Name of the time zone of cron fields and `at(...)`.
        anchor: Epoch second from which `rate(...)` counts.

    Raises:
        AslError: The expression or the zone is wrong, or the expression names no time.
    """
    where = read_zone(zone)
    if len(expression) > LONGEST:
        raise AslError(f"an expression has at most {LONGEST} characters")
    try:
        found = _recurrence(expression.strip(), where, anchor)
        first = next(found.following(anchor - 1), None)
    except CronSimError as error:
        reason = str(error).lower()
        raise AslError(f"{expression!r} is not a schedule ({reason}): {FORMS}") from None
    if first is None and not isinstance(found, Once):
        raise AslError(f"{expression!r} names no time")
    return found


def _recurrence(expression: str, zone: tzinfo, anchor: float) -> Recurrence:
    if rate := _RATE.fullmatch(expression):
        count, unit, plural = int(rate[1]), rate[2], rate[3]
        if not count or (count == 1) == bool(plural):
            raise AslError(f"{expression!r}: write 'rate(1 {unit})' or 'rate(2 {unit}s)'")
        return Rate(count * _UNITS[unit], anchor)
    if at := _AT.fullmatch(expression):
        try:
            return Once(datetime.fromisoformat(at[1]).replace(tzinfo=zone).timestamp())
        except ValueError as error:
            raise AslError(f"{expression!r}: {error}") from None
    if cron := _CRON.fullmatch(expression):
        return _aws_cron(expression, cron[1].upper().split(), zone)
    if len(expression.split()) != 5 or "?" in expression:
        raise AslError(f"{expression!r} is not a schedule: {FORMS}")
    return Cron(expression, zone)


def _aws_cron(expression: str, fields: list[str], zone: tzinfo) -> AwsCron:
    """Return the recurrence of AWS's six fields.

    Raises:
        AslError: A field has a form that is not supported.
    """
    if len(fields) != 6:
        raise AslError(f"{expression!r} must have six fields: minute hour day month weekday year")
    minute, hour, day, month, weekday, year = fields
    if (day == "?") == (weekday == "?"):
        raise AslError(f"{expression!r}: one of day of month and day of week must be '?'")
    if "W" in day and day != "LW":
        raise AslError(f"{expression!r}: the nearest weekday 'W' is supported as 'LW' only")
    if day.startswith("L-"):
        raise AslError(f"{expression!r}: 'L-n' in the day of month is not supported")
    days = day.replace("?", "*")
    weekdays = "*" if weekday in "?*" else ",".join(map(_weekdays, weekday.split(",")))
    return AwsCron(f"{minute} {hour} {days} {month} {weekdays}", _years(year), zone)


def _weekdays(term: str) -> str:
    """Return a term of AWS's day of week, where Sunday is 1, in cron's, where it is 0.

    Raises:
        CronSimError: It is no day of week.
    """
    if term == "L":  # the last day of the week
        return "6"
    if term.endswith("L"):
        return f"{_weekday(term[:-1])}L"
    if "#" in term:
        day, _, number = term.partition("#")
        return f"{_weekday(day)}#{number}"
    days, _, step = term.partition("/")
    first, dash, last = days.partition("-")
    begin = 0 if days == "*" else _weekday(first)
    end = _weekday(last) if dash else 6 if step or days == "*" else begin
    chosen = range(begin, end + 1, _number(step or "1", "step"))
    if not chosen:
        raise CronSimError("bad day-of-week")
    return ",".join(map(str, chosen))


def _weekday(text: str) -> int:
    if text in _DAY_NAMES:
        return _DAY_NAMES.index(text)
    number = _number(text, "day-of-week")
    if number > 7:
        raise CronSimError("bad day-of-week")
    return number - 1


def _years(text: str) -> tuple[int, ...]:
    """Return the years of AWS's last field.

    Raises:
        CronSimError: It is none.
    """
    found: set[int] = set()
    for term in text.split(","):
        years, _, step = term.partition("/")
        first, dash, last = years.partition("-")
        begin = YEARS[0] if years == "*" else _number(first, "year")
        end = _number(last, "year") if dash else YEARS[-1] if step or years == "*" else begin
        if begin not in YEARS or end not in YEARS or end < begin:
            raise CronSimError("bad year")
        found.update(range(begin, end + 1, _number(step or "1", "step")))
    return tuple(sorted(found))


def _number(text: str, what: str) -> int:
    """Return a positive number.

    Raises:
        CronSimError: It is none.
    """
    if not (text.isascii() and text.isdecimal()) or len(text) > 4 or not int(text):
        raise CronSimError(f"bad {what}")
    return int(text)
