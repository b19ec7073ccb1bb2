"""The Includes of a document, wherever they stand in it."""

from collections.abc import Iterator, Mapping

from asl.core.values import Json
from asl.states.machines import machines_of

__all__ = ["includes"]


def includes(machine: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    """Yield the Include states of a machine, and of the machines within it."""
    states = machine.get("States")
    for state in states.values() if type(states) is dict else ():
        if type(state) is dict:
            if state.get("Type") == "Include":
                yield state
            for _, inner in machines_of(state):
                yield from includes(inner)
