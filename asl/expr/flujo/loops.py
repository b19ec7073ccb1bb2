"""Loops: how many rounds each has made, under `loops` in the data."""

from collections.abc import Mapping
from typing import Any

from asl.core.values import Json
from asl.expr.flujo.data import Data, done, opened

__all__ = ["again", "begun", "ended", "rounds"]


def begun(data: Json, loop: str) -> Data:
    """Return the data in which the first round of a loop begins."""
    found = opened(data)
    return {**found, "loops": {**found.get("loops", {}), loop: 1}}


def again(data: Data, loop: str) -> Data:
    """Return the data in which the next round begins."""
    return {**data, "loops": {**data["loops"], loop: rounds(data, loop) + 1}}


def rounds(data: Data, loop: str) -> int:
    """Return how many rounds have begun."""
    made: int = data.get("loops", {}).get(loop, 0)
    return made


def ended(data: Data, loop: str, flags: Mapping[str, Any] | None = None) -> Data:
    """Return the data behind a loop: its output is that of the last round."""
    left = {key: each for key, each in data["loops"].items() if key != loop}
    after = {key: each for key, each in data.items() if key != "loops"}
    if left:
        after["loops"] = left
    return done(after, loop, data["previous_step"], flags)
