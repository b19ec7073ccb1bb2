"""Formatting and regular expressions of Terraform: `format`, `regex`, `replace`."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any, Final

from asl.core.regex import find_all, linear
from asl.core.values import Json, compact
from asl.core.work import WorkMeter

__all__ = ["format_text", "regex", "regex_all", "replace", "text_of"]

SCANNED: Final = 64
"""Characters of a pattern search that count as one step."""
MAX_LENGTH: Final = 4_000_000
"""Maximum length of a replacement."""


def text_of(value: Json) -> str:
    """Return the value as Terraform converts it to a string.

    Raises:
        TypeError: The value is an object, a list or null.
    """
    if type(value) in (dict, list) or value is None:
        raise TypeError("a string is expected")
    return value if type(value) is str else compact(value)


# Format ------------------------------------------------------------------------------------------

_VERB = re.compile(
    r"%(?P<flags>[-+ 0#]*)(?P<width>[0-9]{1,3})?(?:\.(?P<precision>[0-9]{1,3}))?"
    r"(?:\[(?P<place>[1-9][0-9]{0,2})\])?(?P<verb>.?)"
)


def _whole_number(value: Json) -> int:
    number = float(text_of(value))
    if not number.is_integer():
        raise ValueError("%d takes a whole number")
    return int(number)


def _boolean_text(value: Json) -> str:
    if text_of(value) not in ("true", "false"):
        raise ValueError("%t takes true or false")
    return text_of(value)


_NUMBERS: Final[Mapping[str, Callable[[Json], int | float]]] = {
    **dict.fromkeys("dboxX", _whole_number),
    **dict.fromkeys("eEfgG", lambda value: float(text_of(value))),
}
_TEXTS: Final[Mapping[str, Callable[[Json], str]]] = {
    "q": lambda value: compact(text_of(value)),
    "s": text_of,
    "t": _boolean_text,
    "v": lambda value: value if type(value) is str else compact(value),
}


def format_text(template: str, *values: Json) -> str:
    """`format(template, value, ...)`, with flags, widths and positions of verbs.

    Raises:
        ValueError: A verb is unknown, or verbs and values differ in number.
    """
    following = count()
    used = set()

    def filled(found: re.Match[str]) -> str:
        verb = found["verb"]
        if verb == "%":
            return "%"
        if verb not in _NUMBERS and verb not in _TEXTS:
            raise ValueError(f"there is no verb {found[0]!r}")
        place = int(found["place"]) - 1 if found["place"] else next(following)
        if place >= len(values):
            raise ValueError(f"there is no value for {found[0]!r}")
        used.add(place)
        return _format_value(found, verb, values[place])

    text = _VERB.sub(filled, template)
    if len(used) < len(values):
        raise ValueError("there are more values than verbs")
    return text


def _format_value(found: re.Match[str], verb: str, value: Json) -> str:
    flags, width = found["flags"], found["width"] or ""
    precision = f".{found['precision']}" if found["precision"] else ""
    if verb in _NUMBERS:
        number = _NUMBERS[verb](value)
        if verb == "b":
            return f"{number:{width and '0' * ('0' in flags) + width}b}"
        return f"%{flags}{width}{precision}{verb}" % number
    text = compact(value) if "#" in flags and verb == "v" else _TEXTS[verb](value)
    return f"%{'-' * ('-' in flags)}{width}{precision}s" % text


# Regular expressions -----------------------------------------------------------------------------


def regex(meter: WorkMeter, pattern: str, text: str) -> Json:
    """`regex(pattern, text)`: the first match, or its groups if the pattern has any."""
    return next(_match_values(meter, pattern, text))


def regex_all(meter: WorkMeter, pattern: str, text: str) -> list[Json]:
    """`regexall(pattern, text)`: all matches."""
    return list(_match_values(meter, pattern, text))


def replace(meter: WorkMeter, text: str, old: str, new: str) -> str:
    """`replace(text, old, new)`; between slashes *old* is a regular expression.

    Raises:
        ValueError: The result is longer than MAX_LENGTH, or the pattern is invalid.
    """
    if len(old) > 1 and old[0] == old[-1] == "/":
        return _join_within_limit(_replacement_pieces(meter, text, old[1:-1], new))
    if len(text) + text.count(old) * len(new) > MAX_LENGTH:
        raise ValueError("the result is too long")
    return text.replace(old, new)


def _compile(pattern: str) -> Any:
    try:
        return linear(pattern)
    except ValueError as error:
        raise ValueError(f"the regular expression {pattern!r} cannot be read: {error}") from None


def _scan(meter: WorkMeter, pattern: str, text: str) -> Iterator[Any]:
    """Yield the matches as Go does: no empty match directly after another."""
    meter.spend(1 + len(text) // SCANNED)
    end = -1
    for match in find_all(_compile(pattern), text, meter.spend):
        meter.spend(1 + (len(text) - match.end()) // SCANNED)
        if match.start() < match.end() or match.end() != end:
            yield match
        end = match.end()


def _match_values(meter: WorkMeter, pattern: str, text: str) -> Iterator[Json]:
    for match in _scan(meter, pattern, text):
        yield match.groupdict() or list(match.groups()) or match[0]


_REFERENCE = re.compile(r"\$(?:\$|(?P<plain>\w+)|\{(?P<braced>\w+)\})")


def _replacement_pieces(meter: WorkMeter, text: str, pattern: str, new: str) -> Iterator[str]:
    end = 0
    for match in _scan(meter, pattern, text):
        yield text[end : match.start()]
        yield _REFERENCE.sub(partial(_expand_group, match), new)
        end = match.end()
    yield text[end:]


def _expand_group(match: Any, found: re.Match[str]) -> str:
    name = found["plain"] or found["braced"]
    if name is None:
        return "$"
    try:
        return match[int(name) if name.isdecimal() else name] or ""
    except IndexError:  # as in Go
        return ""


def _join_within_limit(pieces: Iterator[str]) -> str:
    made, length = [], 0
    for piece in pieces:
        made.append(piece)
        length += len(piece)
        if length > MAX_LENGTH:
            raise ValueError("the result is too long")
    return "".join(made)
