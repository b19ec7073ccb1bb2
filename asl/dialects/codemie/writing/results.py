"""Where the result of a state stands, and what paths lead to within it."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from asl.core.values import Json

__all__ = ["ITEM", "Result", "key_of", "path_of", "steps"]

_PATH: Final = re.compile(r"\$((?:\.[A-Za-z_][A-Za-z0-9_]*|\[\d+\])+)")
"""A path to one place below the root."""
_QUERY: Final = re.compile(r"\{%\s*\$states\.input((?:\.[A-Za-z_][A-Za-z0-9_]*|\[\d+\])*)\s*%\}")
ITEM: Final = "$$.Map.Item.Value"
"""The path of the item that a Map is at."""
_VALUE: Final = re.compile(r"\{%\s*\$states\.(input|context)([.\[][\w.\[\]]*)?\s*%\}")
_STEP = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\d+")
_RESHAPED = frozenset(("ResultSelector", "OutputPath", "Output", "Assign"))
"""Fields behind which a result is not what the agent gave."""


def steps(path: Json) -> tuple[str, ...] | None:
    """Return the keys and positions of a plain path or query, None for any other."""
    if path == "$":
        return ()
    match = None
    if type(path) is str:
        match = _PATH.fullmatch(path) or _QUERY.fullmatch(path)
    return None if match is None else tuple(_STEP.findall(match[1]))


def path_of(value: Json) -> Json:
    """Return a query for one place of the input, or of the context object, as a path."""
    match = _VALUE.fullmatch(value) if type(value) is str else None
    return value if match is None else f"{'$' if match[1] == 'input' else '$$'}{match[2] or ''}"


def key_of(state: Mapping[str, Any]) -> str | None:
    """Return the key under which a state writes its result, None if it is not one key."""
    found = steps(state.get("ResultPath", "$"))
    return found[0] if found and len(found) == 1 else None


class Result(NamedTuple):
    """What an agent gave: the place where it is written."""

    place: tuple[str, ...]

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> "Result | None":
        """Return the result of a state, None where it is thrown away or made into another."""
        if any(field in state for field in _RESHAPED):
            return None
        place = steps(state.get("ResultPath", "$"))
        return None if place is None else cls(place)

    def within(self, path: Json) -> tuple[str, ...] | None:
        """Return the way to a path from here, None for one that does not lead into the result."""
        found, own = steps(path), len(self.place)
        return None if found is None or found[:own] != self.place else found[own:]
