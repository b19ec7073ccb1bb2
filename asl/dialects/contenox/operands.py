"""Right-hand sides of branches: numbers, ranges, edges; and durations of Go."""

import re
from math import inf, isfinite
from typing import Final

__all__ = ["edge", "number", "range_of", "seconds"]

_DIGITS: Final = r"[0-9]{1,30}(?:\.[0-9]{1,30})?|\.[0-9]{1,30}"
_NUMBER: Final = re.compile(rf"\s*([-+]?(?:{_DIGITS})(?:[eE][-+]?[0-9]{{1,3}})?)\s*")
_RANGES: Final = {
    "in_range": re.compile(rf"\s*([-+]?(?:{_DIGITS}))\s*-\s*([-+]?(?:{_DIGITS}))\s*"),
    "range": re.compile(rf"\s*([-+]?(?:{_DIGITS}))\s*,\s*([-+]?(?:{_DIGITS}))\s*"),
}
_PART: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(ns|us|µs|μs|ms|s|m|h)")
_UNITS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}


def number(when: str) -> float:
    """Return the number of `gt` and `lt`; raises ValueError."""
    match = _NUMBER.fullmatch(when)
    found = float(match[1]) if match else inf
    if not isfinite(found):
        raise ValueError(f"{when[:60]!r} is no number")
    return _plain(found)


def range_of(operator: str, when: str) -> tuple[float, float]:
    """Return both ends of a range, `3-5` or `3,5` by its operator; raises ValueError."""
    match = _RANGES[operator].fullmatch(when)
    if match is None:
        form = "min-max" if operator == "in_range" else "min,max"
        raise ValueError(f"{when[:60]!r} is no range {form}")
    least, most = _plain(float(match[1])), _plain(float(match[2]))
    if least > most:
        raise ValueError(f"the range {when[:60]!r} has nothing in it: {least} is above {most}")
    return least, most


def _plain(found: float) -> float:
    return int(found) if found.is_integer() and abs(found) < 2**53 else found


def edge(written: str) -> tuple[str, str]:
    """Return both ends of `from->to`; raises ValueError."""
    left, arrow, right = written.partition("->")
    if not (left.strip() and arrow and right.strip()):
        raise ValueError(f"{written[:60]!r} is no edge from->to")
    return left.strip(), right.strip()


def seconds(duration: str) -> float:
    """Return the seconds of a duration of Go: `500ms`, `1h30m`; raises ValueError."""
    found, at = 0.0, 0
    while at < len(duration):
        match = _PART.match(duration, at)
        if match is None:
            break
        found += float(match[1]) * _UNITS[match[2]]
        at = match.end()
    if not duration or at < len(duration) or found <= 0:
        raise ValueError(f"{duration[:60]!r} is no duration")
    return found
