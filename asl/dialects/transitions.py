"""The transitions between the states of a machine."""

from collections.abc import Iterator, Mapping
from typing import Any

from asl.checks.workflow import handlers, objects

__all__ = ["find_cycle", "reachable_states"]


def reachable_states(start: str, states: Mapping[str, Any]) -> set[str]:
    """Return the reachable states."""
    found: set[str] = set()
    todo: list[Any] = [start]
    while todo:
        name = todo.pop()
        if name in states and name not in found:
            found.add(name)
            todo += _targets(states[name])
    return found


def _targets(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield the targets of a state."""
    holders = [each for _, each in (*objects(state, "Choices"), *handlers(state, "Catch"))]
    for holder, key in ((state, "Next"), *((each, "Next") for each in holders), (state, "Default")):
        if key in holder:
            yield holder[key]


def find_cycle(start: str, states: Mapping[str, Any]) -> str | None:
    """Return a state that is part of a cycle, None if there is none."""
    open_: dict[str, Iterator[str]] = {start: _targets(states[start])}
    closed: set[str] = set()
    while open_:
        name = next(reversed(open_))
        target = next(open_[name], None)
        if target is None:
            del open_[name]
            closed.add(name)
        elif target in open_:
            return target
        elif target in states and target not in closed:
            open_[target] = _targets(states[target])
    return None
