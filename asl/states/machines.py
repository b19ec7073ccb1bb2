"""The machines within a state: branches, iterations, included documents."""

from collections.abc import Iterator, Mapping
from typing import Final

from asl.core.values import Json
from asl.states.base import StateType
from asl.states.registry import STATE_TYPES, UNKNOWN, type_of

__all__ = ["include_states", "machine_fields", "nested_machines", "scoped_states"]

TOOL_SCOPES: Final = ("DefaultTools", "ToolCategories")
"""What an included document says of the tools of its states."""


def machine_fields(kind: StateType) -> tuple[str, ...]:
    """Return the fields in which states of a type hold machines; for UNKNOWN those of all types."""
    if kind is not UNKNOWN:
        return kind.machines
    return tuple(field for each in STATE_TYPES.values() for field in each.machines)


def nested_machines(state: Mapping[str, Json]) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """Yield the machines within a state that are written there, each with the steps to it."""
    for name in machine_fields(type_of(state)):
        held = state.get(name)
        if type(held) is dict:
            yield (name,), held
        for index, machine in enumerate(held if type(held) is list else ()):
            if type(machine) is dict:
                yield (name, index), machine


def scoped_states(
    machine: Mapping[str, Json], scopes: tuple[Mapping[str, Json], ...]
) -> Iterator[tuple[str, Mapping[str, Json], tuple[Mapping[str, Json], ...]]]:
    """Yield all states of a machine and of those within: `(name, state, scopes)`.

    Args:
        machine: The object that has the `States`.
        scopes: The documents around it whose blocks bind its tools, the outermost first.
    """
    for name, state in machine["States"].items():
        if type(state) is not dict:
            continue  # parameters of a template will fill it in
        yield name, state, scopes
        for steps, inner in nested_machines(state):
            own = steps == ("Template",) and not inner.keys().isdisjoint(TOOL_SCOPES)
            yield from scoped_states(inner, (*scopes, inner) if own else scopes)


def include_states(machine: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    """Yield the Include states of a machine, and of the machines within it."""
    states = machine.get("States")
    for state in states.values() if type(states) is dict else ():
        if type(state) is dict:
            if state.get("Type") == "Include":
                yield state
            for _, inner in nested_machines(state):
                yield from include_states(inner)
