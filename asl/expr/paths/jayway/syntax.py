r"""The grammar of Jayway JsonPath 2.0.0: from the text of a path to its segments.

The engine splits a path into fragments without regard to quotes, and ignores the unusable part of a
fragment. So `[1.5]` is the element 1, and `['it\'s']` the member `it\`.
"""

import re
from collections.abc import Iterator
from typing import NoReturn

from asl.core.errors import ExpressionFault
from asl.core.lazy import lazy_pattern
from asl.expr.paths.jayway.filters import JAVA_BLANKS, parse_filter
from asl.expr.paths.segments import (
    ComputedSegment,
    Descend,
    Filter,
    Pick,
    Segment,
    Slice,
    Union,
    Wildcard,
)

__all__ = ["MAX_SEGMENTS", "is_definite", "parse_segments"]

MAX_SEGMENTS = 200
"""Segments of a path with more than names and indices; each is a nested call."""
SYNTAX = "V-ST-09"

_NAME = lazy_pattern(r"[^.\[ ]*")
_USED = lazy_pattern(r"[?':@-]|\d")
_NUMBERS = lazy_pattern(r"[\d,: -]*")
_SIZE = lazy_pattern(r"@.([^-]*)([^)]*)\)", re.DOTALL)
_QUOTED = lazy_pattern(r"'([^'\]]*)'")
_BOUND = lazy_pattern(r"[\d-]*")
_INTEGER = lazy_pattern(r"[+-]?\d+")


def parse_segments(text: str) -> tuple[Segment, ...]:
    """Parse a path without its root.

    Args:
        text: The path without its root and outer blanks: `.a[0]`.

    Raises:
        ExpressionFault: V-ST-09, with the offset of the error.
    """
    if text.endswith(".."):
        _fail("a path cannot end with '..'", len(text) - 2)
    if text and text[0] not in ".[":
        _fail(f"unexpected {text[0]!r} after the root of a path", 0)
    segments = tuple(_segments(text))
    simple = all(type(each) is str or type(each) is int for each in segments)
    if len(segments) > MAX_SEGMENTS and not simple:
        _fail(f"a path with more than names and indices may have at most {MAX_SEGMENTS} steps", 0)
    return segments


def is_definite(segments: tuple[Segment, ...]) -> bool:
    """Return whether segments lead to at most one node."""
    return all(isinstance(each, str | int | ComputedSegment | Pick) for each in segments)


def _fail(message: str, offset: int, hint: str | None = None) -> NoReturn:
    raise ExpressionFault(message, offset, SYNTAX, hint)


def _segments(text: str) -> Iterator[Segment]:
    at = 0
    while at < len(text):
        if text[at] == "[":
            end = _bracket_end(text, at)
            yield _bracket(text[at:end], at)
            at = end
        elif text.startswith("..", at):
            yield Descend()
            at += 2
        elif text[at] == "*":
            yield Wildcard()
            at += 1
        else:
            start = at + 1 if text[at] == "." else at
            if start == len(text):
                _fail("expected a name after '.' in a path", start)
            if text[start] == " ":
                _fail("a blank in a path", start, "write ['two words'] for a name with blanks")
            if text[start] == "$" and start == at:
                _fail("unexpected '$' in a path", at)
            name = _taken(_NAME, text, start)
            if name == "*" and start > at:
                yield Wildcard()
            elif name:
                yield _names(f"'{name}']", start)
            at = start + len(name)


def _bracket_end(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        if text[at] == "[":
            depth += 1
        elif text[at] == "]":
            depth -= 1
            if depth == 0:
                return at + 1
    return len(text)


def _bracket(fragment: str, offset: int) -> Segment:
    """Read a fragment from `[` to `]`; its first significant character decides its kind."""
    if fragment == "[*]":
        return Wildcard()
    first = _USED.search(fragment)
    if first is None:
        _fail("expected an index, a name in single quotes, '*' or a filter in brackets", offset)
    at = first.start()
    if fragment[at] == "?":
        return _filter(fragment, offset)
    if fragment[at] == "'":
        return _names(fragment[at:], offset + at)
    if fragment[at] == "@":
        return _computed(fragment[at:], offset + at)
    return _indices(fragment[at:], offset + at)


def _names(rest: str, offset: int) -> Segment:
    inside, closed, _ = rest.partition("]")
    if not closed:
        _fail("a bracket of the path is never closed", offset)
    names = tuple(_QUOTED.findall(inside))
    return names[0] if len(names) == 1 else Pick(names)


def _computed(rest: str, offset: int) -> Segment:
    found = _SIZE.match(rest)
    if found is None or _without(found[1], " ()") not in ("length", "size"):
        hint = "write [(@.length-1)] for the last element"
        _fail("an index can only be computed from the length", offset, hint)
    return ComputedSegment(_integer(_without(found[2], " "), offset))


def _indices(rest: str, offset: int) -> Segment:
    """Read indices or a slice up to the first character of neither."""
    used = _taken(_NUMBERS, rest, 0)
    if used == rest:
        _fail("a bracket of the path is never closed", offset)
    written = _without(used, " ")
    numbers: list[int] = []
    bounds: list[str] = []
    listed = False
    buffer = ""
    at = 0
    while at < len(written):
        character = written[at]
        at += 1
        if character == ",":
            numbers.append(_integer(buffer, offset))
            buffer, listed = "", True
        elif character != ":":
            buffer += character
        else:
            after = _taken(_BOUND, written, at)
            at += len(after) + 1  # the engine steps over what follows the bound
            if buffer:
                numbers.append(_integer(buffer, offset))
            if after or not buffer:
                numbers.append(_integer(after, offset))
            bounds.append("between" if buffer and after else "from" if buffer else "to")
            buffer = ""
    if buffer:
        numbers.append(_integer(buffer, offset))
    return _made(numbers, bounds, listed)


def _made(numbers: list[int], bounds: list[str], listed: bool) -> Segment:
    if len(numbers) == 1 and "to" not in bounds and "from" not in bounds:
        return numbers[0]
    if listed:
        return Union(tuple(numbers))
    if "from" in bounds:
        return Slice(slice(numbers[0], None))
    if "to" in bounds:
        return Slice(slice(None, numbers[0]))
    return Slice(slice(numbers[0], numbers[1]))


def _filter(fragment: str, offset: int) -> Segment:
    start = offset + fragment.index("?") + 1
    return Filter(parse_filter(fragment, start, parse_definite))


def parse_definite(text: str, offset: int) -> tuple[Segment, ...]:
    """Parse the path of a filter, which starts with `@` or `$`, to at most one node.

    Raises:
        ExpressionFault: V-ST-09 for a malformed path, or for one to several nodes.
    """
    path = text.strip(JAVA_BLANKS)
    try:
        segments = parse_segments(path[1:])
    except ExpressionFault as fault:
        raise ExpressionFault(fault.message, offset + 1, fault.code, fault.hint) from None
    if not is_definite(segments):
        _fail(f"{path!r} in a filter may match any number of nodes", offset)
    return segments


def _integer(text: str, offset: int) -> int:
    if not _INTEGER.fullmatch(text) or not -(2**31) <= int(text) < 2**31:
        _fail(f"{text!r} is no index" if text else "an index or a bound is missing", offset)
    return int(text)


def _taken(pattern: "re.Pattern[str]", text: str, at: int) -> str:
    found = pattern.match(text, at)
    return found.group() if found else ""


def _without(text: str, characters: str) -> str:
    return text.translate(dict.fromkeys(map(ord, characters)))
