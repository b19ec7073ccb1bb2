"""Format and parse datetimes by pictures, and in ISO 8601.

Pictures such as `[Y0001]-[M01]-[D01]` are those of XPath 3.1, 9.8.4.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from math import nan, trunc
from typing import NamedTuple

from asl.core.regex import escape, linear
from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.javascript import UNDEFINED, Value
from asl.expr.jsonata.pictures import LONGEST, integers
from asl.expr.jsonata.scopes import QueryScope
from asl.expr.jsonata.values import finite

DAY = 86_400_000
FURTHEST = 100_000_000 * DAY
"""Milliseconds between 1970 and the earliest and latest datetimes."""

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_DEFAULTS = {
    **dict.fromkeys("YMDdWwXxHhf", "1"),
    **dict.fromkeys("FPCE", "n"),
    **dict.fromkeys("ms", "01"),
    **dict.fromkeys("Zz", "01:01"),
}
ISO = "[Y0001]-[M01]-[D01]T[H01]:[m01]:[s01].[f001][Z01:01t]"


class PictureMarker(NamedTuple):
    """One `[...]` of a picture."""

    component: str
    names: str | None
    """Case of a name: N, Nn or n."""
    widest: int | None
    zulu: bool
    """Whether UTC is written as Z."""
    integer: integers.IntegerPicture | None
    digits: int
    """Digits of a year, month or day; -1 for all."""


@lru_cache(maxsize=64)
def parse(picture: str) -> tuple[str | PictureMarker, ...]:
    """Return the literals and markers of a picture.

    Raises:
        QueryFault: D3132 for an unknown component, D3135 for an unclosed marker, D1013 for a
            picture that is too long.
    """
    if len(picture) > LONGEST:
        raise fault("D1013", what="picture string", limit=f"{LONGEST} characters")
    parts: list[str | PictureMarker] = []
    position = 0
    while position < len(picture):
        opening = picture.find("[", position)
        if opening == -1:
            opening = len(picture)
        if opening > position:
            parts.append(picture[position:opening].replace("]]", "]"))
        if opening == len(picture):
            break
        if picture.startswith("[[", opening):
            parts.append("[")
            position = opening + 2
            continue
        closing = picture.find("]", opening)
        if closing == -1:
            raise fault("D3135")
        parts.append(_marker("".join(picture[opening + 1 : closing].split())))
        position = closing + 1
    return tuple(parts)


def _marker(text: str) -> PictureMarker:
    component = text[:1]
    head, comma, width = text[1:].rpartition(",")
    least, _, most = width.partition("-") if comma else ("", "", "")
    modifier = head if comma else text[1:]
    ordinal = zulu = False
    if len(modifier) > 1 and modifier[-1] in "atco":
        ordinal, zulu = modifier[-1] == "o", modifier[-1] == "t"
        modifier = modifier[:-1]
    modifier = modifier or _DEFAULTS.get(component, "")
    if not modifier:
        raise fault("D3132", value=component)
    names = "Nn" if modifier.startswith("Nn") else modifier[0] if modifier[0] in "Nn" else None
    integer = None
    digits = -1
    if names is None and component in "YMDdFWwXxHhmsf":
        integer = integers.parse(modifier + (";o" if ordinal else ""))
        least_digits = _width(least) if integer.primary == "0" else None
        if least_digits is not None and integer.mandatory < least_digits:
            integer = integer.at_least(least_digits)
        if component in "YMD":
            most_digits = _width(most)
            if most_digits is not None:
                digits = most_digits
                integer = integer.at_least(digits)
            elif integer.mandatory + integer.optional >= 2:
                digits = integer.mandatory + integer.optional
    if component in "Zz":
        integer = integers.parse(modifier)
    return PictureMarker(component, names, _width(most), zulu, integer, digits)


def _width(text: str) -> int | None:
    digits = re.match("[0-9]{1,3}", text)
    return int(digits[0]) if digits is not None else None


# The calendar ------------------------------------------------------------------------------------


def days_before(year: int, month: int, day: int = 1) -> int:
    """Return the days from 1970-01-01 to a Gregorian date; months from 1, or beyond 12."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468 + day - 1


def date_of(days: int) -> tuple[int, int, int]:
    """Return the year, month and day of a number of days after 1970-01-01."""
    era, of_era = divmod(days + 719468, 146097)
    years = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * years + years // 4 - years // 100)
    shifted = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + years + (month <= 2), month, day


def _first_week(year: int, month: int) -> int:
    """Return the first day of the first week of a month: the week with its first Thursday."""
    first = days_before(year, month)
    weekday = _weekday(first)
    return first + 8 - weekday if weekday > 4 else first - weekday + 1


def _weekday(days: int) -> int:
    """Return 1 for Monday to 7 for Sunday."""
    return (days + 3) % 7 + 1


def _week(days: int, year: int, month: int, span: int) -> int:
    """Return the week number in a year (span 12) or month (span 1) that starts with this month."""
    week = (days - _first_week(year, month)) // 7 + 1
    if days >= _first_week(year, month + span):
        return 1
    if week < 1:
        return (days - _first_week(year, month - span)) // 7 + 1
    return week


def fragment(millis: int, component: str) -> int | str:
    """Return a component of a datetime in UTC."""
    days, time = divmod(millis, DAY)
    return _FRAGMENTS.get(component, _calendar)(days, time)


def _calendar(days: int, time: int) -> str:
    return "ISO"


def _week_year(days: int, time: int) -> int:
    year = date_of(days)[0]
    return year + (days >= _first_week(year, 13)) - (days < _first_week(year, 1))


def _week_month(days: int, time: int) -> int:
    year, month, _ = date_of(days)
    after = days >= _first_week(year, month + 1)
    return (month + after - (days < _first_week(year, month)) - 1) % 12 + 1


def _week_of_month(days: int, time: int) -> int:
    year, month, _ = date_of(days)
    return _week(days, year, month, 1)


_FRAGMENTS: dict[str, Callable[[int, int], int | str]] = {
    "Y": lambda days, time: date_of(days)[0],
    "M": lambda days, time: date_of(days)[1],
    "D": lambda days, time: date_of(days)[2],
    "d": lambda days, time: days - days_before(date_of(days)[0], 1) + 1,
    "F": lambda days, time: _weekday(days),
    "W": lambda days, time: _week(days, date_of(days)[0], 1, 12),
    "w": _week_of_month,
    "X": _week_year,
    "x": _week_month,
    "H": lambda days, time: time // 3_600_000,
    "h": lambda days, time: (time // 3_600_000 + 11) % 12 + 1,
    "P": lambda days, time: "pm" if time >= DAY // 2 else "am",
    "m": lambda days, time: time // 60_000 % 60,
    "s": lambda days, time: time // 1000 % 60,
    "f": lambda days, time: time % 1000,
}


# Writing -----------------------------------------------------------------------------------------


def now(scope: QueryScope, picture: Value = UNDEFINED, zone: Value = UNDEFINED) -> Value:
    """`$now(picture, zone)`."""
    return from_millis(scope, scope.run.millis, picture, zone)


def millis(scope: QueryScope) -> Value:
    """`$millis()`."""
    return scope.run.millis


def from_millis(
    scope: QueryScope, moment: Value, picture: Value = UNDEFINED, zone: Value = UNDEFINED
) -> Value:
    """`$fromMillis(millis, picture, zone)`.

    AWS accepts the zone name `utc` (AWS, measured).

    Raises:
        QueryFault: D3133 and D3134 for a wrong picture or zone, D3150 for a time out of range.
    """
    hours = minutes = 0
    if zone is not UNDEFINED and not (scope.run.bounds.java and zone.lower() == "utc"):
        number = re.match(r"\s*([-+]?[0-9]{1,9})", zone)
        if number is None:
            raise fault("D3134", value=zone)
        offset = int(number[1])
        hours = offset // 100
        minutes = offset - trunc(offset / 100) * 100
    shifted = trunc(finite(moment)) + (60 * hours + minutes) * 60_000
    if not -FURTHEST <= shifted <= FURTHEST:
        raise fault("D3150", message="The first argument of $fromMillis is out of range")
    parts = parse(ISO if picture is UNDEFINED else picture)
    return "".join(
        part if isinstance(part, str) else _format_marker(part, shifted, hours, minutes)
        for part in parts
    )


def _format_marker(marker: PictureMarker, moment: int, hours: int, minutes: int) -> str:
    component = marker.component
    if component in "Zz":
        return _zone(marker, hours, minutes)
    value = fragment(moment, component)
    if isinstance(value, str):
        return value.upper() if component == "P" and marker.names == "N" else value
    if component == "Y" and marker.digits != -1:
        value = value % 10**marker.digits
    if marker.integer is not None:
        return integers.format_by_picture(value, marker.integer)
    if component in "Mx":
        name = MONTHS[value - 1]
    elif component == "F":
        name = DAYS[value - 1]
    else:
        raise fault("D3133", value=component)
    name = {"N": name.upper(), "n": name.lower()}.get(marker.names or "", name)
    return name[: marker.widest]


def _zone(marker: PictureMarker, hours: int, minutes: int) -> str:
    offset = hours * 100 + minutes
    if offset == 0 and marker.zulu:
        return "Z"
    picture = marker.integer
    if picture is None or (picture.mandatory > 4 and not picture.regular) or not picture.mandatory:
        raise fault("D3134", value=0 if picture is None else picture.mandatory)
    if picture.regular or picture.mandatory > 2:
        text = integers.format_by_picture(offset, picture)
    else:
        text = integers.format_by_picture(hours, picture)
        if minutes:
            text += ":" + integers.format_by_picture(minutes, integers.parse("00"))
    return ("GMT" if marker.component == "z" else "") + ("+" if offset >= 0 else "") + text


# Reading -----------------------------------------------------------------------------------------

_ISO_TEXT = re.compile(
    r"\d{4}(-[01]\d)?(-[0-3]\d)?(T[0-2]\d:[0-5]\d:[0-5]\d)?(\.\d+)?([+-][0-2]\d:?[0-5]\d|Z)?",
    re.ASCII,
)


def to_millis(scope: QueryScope, text: str, picture: Value = UNDEFINED) -> Value:
    """`$toMillis(text, picture)`; a 13th month is NaN on AWS.

    Raises:
        QueryFault: D3110 for an invalid ISO 8601 timestamp, D3136 for a text with missing
            components.
    """
    if picture is not UNDEFINED:
        moment = _read(text, picture, scope.run.millis)
        if moment != moment and scope.run.bounds.finite:
            return UNDEFINED
        return moment
    match = _ISO_TEXT.fullmatch(text)
    if match is None:
        raise fault("D3110", value=text)
    month, day, time, fraction, zone = match.groups()
    numbers = [int(part) for part in (time or "T00:00:00")[1:].split(":")]
    moment = _moment(
        int(text[:4]),
        int((month or "-01")[1:]),
        int((day or "-01")[1:]),
        (numbers[0], numbers[1], numbers[2], int((fraction or ".")[1:4].ljust(3, "0"))),
    )
    if moment is None or (fraction and not time) or (zone and not time):
        if not scope.run.bounds.finite:
            return nan
        raise fault("D3110", value=text)
    if zone and zone != "Z":
        sign = -1 if zone[0] == "-" else 1
        moment -= sign * (int(zone[1:3]) * 60 + int(zone[-2:])) * 60_000
    return moment


def _moment(year: int, month: int, day: int, time: tuple[int, int, int, int]) -> int | None:
    hour, minute, second, milli = time
    if not (1 <= month <= 12 and 1 <= day <= 31):  # a 30th of February is the 2nd of March
        return None
    if hour > 24 or (hour == 24 and (minute or second or milli)):
        return None
    return days_before(year, month, day) * DAY + _time(*time)


def _time(hour: int, minute: int, second: int, milli: int) -> int:
    return ((hour * 60 + minute) * 60 + second) * 1000 + milli


_Reader = Callable[[str], Value]


def _read(text: str, picture: str, now: int) -> Value:
    """Return the time of a text with a picture; undefined if the text does not match.

    It is NaN for a part with the form of a number that is none, such as `ix` for `I`. Components
    before the first given one are those of now, those after the last one minimal; raises D3136 for
    a gap in between.
    """
    if len(text) > LONGEST:
        raise fault("D1013", what="timestamp", limit=f"{LONGEST} characters")
    pattern, readers = _reading(picture)
    match = pattern.fullmatch(text)
    if match is None:
        return UNDEFINED
    found = {
        component: value
        for (component, read), part in zip(readers, match.groups(), strict=True)
        if (value := read(part)) is not UNDEFINED
    }
    if not found:
        return UNDEFINED
    return nan if any(value != value for value in found.values()) else _assemble(found, now)


@lru_cache(maxsize=64)
def _reading(picture: str) -> "tuple[re.Pattern[str], tuple[tuple[str, _Reader], ...]]":
    pattern, readers = "", []
    for part in parse(picture):
        if isinstance(part, str):
            pattern += escape(part)
            continue
        source, reader = _reader(part)
        pattern += f"({source})"
        readers.append((part.component, reader))
    try:
        return linear(pattern, "i"), tuple(readers)
    except ValueError:
        raise fault("D1013", what="picture string", limit="what can be matched") from None


def _reader(marker: PictureMarker) -> tuple[str, _Reader]:
    """Return the pattern of a component and its parser."""
    component, picture = marker.component, marker.integer
    if component in "Zz" and picture is not None:
        separator = picture.separators[0][1] if picture.regular else ""
        prefix = "GMT" if component == "z" else ""
        tail = re.escape(separator) + "[0-9]{1,4}" if separator else ""
        source = prefix + "[-+][0-9]{1,9}" + tail
        return source, lambda text: _read_zone(text[len(prefix) :], separator)
    if picture is not None:
        return _integer_pattern(marker, picture), lambda text: integers.parse_by_picture(
            text, picture
        )
    if component in "Mx":
        names = {name[: marker.widest]: number for number, name in enumerate(MONTHS, 1)}
    elif component == "F":
        names = {name[: marker.widest]: number for number, name in enumerate(DAYS, 1)}
    elif component == "P":
        names = {"am": 0, "AM": 0, "pm": 1, "PM": 1}
    else:
        raise fault("D3133", value=component)
    return "[a-zA-Z]+", lambda text: names.get(text, UNDEFINED)


def _integer_pattern(marker: PictureMarker, picture: integers.IntegerPicture) -> str:
    if picture.primary in ("W", "Ww", "w"):
        return "(?:" + "|".join([*integers.WORD_VALUES, "and", r"[\-, ]"]) + ")+"
    if picture.primary in ("A", "a"):
        return "[A-Z]+"
    if picture.primary in ("I", "i"):
        return "[MDCLXVI]+"
    if picture.primary != "0":
        raise fault("D3130", value=picture.primary)
    times = "+"
    if marker.digits > 0:
        least = max(0, marker.digits - picture.optional)
        times = f"{{{least},{marker.digits}}}"
    return f"[0-9]{times}" + ("(?:th|st|nd|rd)" if picture.ordinal else "")


def _read_zone(text: str, separator: str) -> Value:
    if separator:
        hours, _, minutes = text.partition(separator)
        return int(hours) * 60 + int(minutes)
    if len(text) <= 3:
        return int(text) * 60
    return int(text[:3]) * 60 + int(text[3:])


def _assemble(found: dict[str, int], now: int) -> Value:
    date = _fits("YXMxWwdD", found)
    by_day = not _is(161, date) and _is(130, date)
    if not by_day and (_is(84, date) or _is(72, date)):
        raise fault("D3136")  # dates by week are not supported by the original either
    time = _fits("PHhmsf", found)
    halves = not _is(23, time) and _is(47, time)
    begun = ended = False
    for component in ("Yd" if by_day else "YMD") + ("Phmsf" if halves else "Hmsf"):
        if component in found:
            begun = True
            if ended:
                raise fault("D3136")
        elif begun:
            found[component] = 1 if component in "MDd" else 0
            ended = True
        else:
            value = fragment(now, component)
            found[component] = 0 if isinstance(value, str) else value  # in the morning
    if halves:
        found["H"] = (0 if found["h"] == 12 else found["h"]) + 12 * found["P"]
    year = found["Y"] + (1900 if 0 <= found["Y"] < 100 else 0)
    if by_day:
        days = days_before(year, 1) + found["d"] - 1
    else:
        days = days_before(year, max(found["M"], 1), found["D"])
    moment = days * DAY + _time(found["H"], found["m"], found["s"], found["f"])
    moment -= (found.get("Z") or found.get("z") or 0) * 60_000
    return moment if -FURTHEST <= moment <= FURTHEST else UNDEFINED


def _fits(components: str, found: dict[str, int]) -> int:
    """Return the components that were read and are not 0, as bits."""
    mask = 0
    for component in components:
        mask = mask << 1 | (1 if found.get(component) else 0)
    return mask


def _is(kind: int, mask: int) -> bool:
    return not ~kind & mask and bool(kind & mask)
