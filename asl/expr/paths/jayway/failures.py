"""Failures of an evaluation, in the words of the engine."""

from typing import TypeAlias

__all__ = ["ROOT", "PathFailure", "PathInvalid", "PathNotFound", "Trail", "location"]

Trail: TypeAlias = "tuple[()] | tuple[Trail, str | int]"
"""The steps from the root to a node, the last one outermost: written only when something fails."""
ROOT: Trail = ()


class PathFailure(Exception):
    """A path cannot be followed.

    Args:
        words: What is wrong, up to the place.
        place: The place; None for a failure without one.
        rest: What follows the place.
    """

    def __init__(self, words: str, place: "Trail | None" = None, rest: str = "") -> None:
        super().__init__(words, place, rest)
        self.words = words
        self.place = place
        self.rest = rest

    def __str__(self) -> str:
        return self.words + ("" if self.place is None else location(self.place)) + self.rest


class PathNotFound(PathFailure):
    """Nothing is at the place that a path leads to; the engine's `PathNotFoundException`."""


class PathInvalid(PathFailure):
    """A step does not suit the value it is applied to; every other exception of the engine."""


def location(trail: Trail) -> str:
    """Write the place at the end of a trail: `$['a'][0]`."""
    steps: list[str] = []
    while trail:
        trail, key = trail
        steps.append(f"[{key}]" if type(key) is int else f"['{key}']")
    return "$" + "".join(reversed(steps))
