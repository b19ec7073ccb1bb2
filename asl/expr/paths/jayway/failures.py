"""Failures of an evaluation, with the engine's messages."""

from typing import TypeAlias

from asl.core.values import Json, excerpt
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

__all__ = [
    "MULTIPLE",
    "ROOT",
    "PathFailure",
    "PathInvalid",
    "PathNotFound",
    "Trail",
    "location",
    "name_list",
    "no_array",
    "segments_text",
]

Trail: TypeAlias = "tuple[()] | tuple[Trail, str | int]"
"""The steps from the root to a node, the last one outermost: written only when something fails."""
ROOT: Trail = ()


class PathFailure(Exception):
    """A path cannot be followed.

    Args:
        words: The message up to the place.
        place: The place; None for a failure without one.
        rest: The message after the place.
    """

    def __init__(self, words: str, place: "Trail | None" = None, rest: str = "") -> None:
        super().__init__(words, place, rest)
        self.words = words
        self.place = place
        self.rest = rest

    def __str__(self) -> str:
        return self.words + ("" if self.place is None else location(self.place)) + self.rest


class PathNotFound(PathFailure):
    """A path leads to no node; the engine's `PathNotFoundException`."""


class PathInvalid(PathFailure):
    """A step does not fit the value; all other exceptions of the engine."""


def location(trail: Trail) -> str:
    """Return the place at the end of a trail: `$['a'][0]`."""
    steps: list[str] = []
    while trail:
        trail, key = trail
        steps.append(f"[{key}]" if type(key) is int else f"['{key}']")
    return "$" + "".join(reversed(steps))


MULTIPLE = "Multi properties can only be used as path leafs: "


def no_array(segments: tuple[Segment, ...], value: Json) -> str:
    """Return the message for an index or a slice applied to a value that is no array."""
    return (
        f"Filter: {segments_text(segments)} can only be applied to arrays. "
        f"Current context is: {excerpt(value)}"
    )


def name_list(names: tuple[str, ...]) -> str:
    """Return several names in brackets: `['a', 'b']`."""
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


def segments_text(segments: tuple[Segment, ...]) -> str:
    """Return segments in the engine's canonical form."""
    return "".join(map(_fragment, segments))


def _fragment(segment: Segment) -> str:
    match segment:
        case str():
            return f"['{segment}']"
        case int():
            return f"[{segment}]"
        case Pick(members):
            return name_list(members)
        case Wildcard():
            return "[*]"
        case Descend():
            return ".."
        case Filter():
            return "[?]"
        case ComputedSegment(offset):
            return f"[@.size(){offset}]"
        case Slice(bounds):
            first, stop = ("" if n is None else n for n in (bounds.start, bounds.stop))
            return f"[{first}:{stop}]"
        case Union(members):
            return "[" + ",".join(map(str, members)) + "]"
