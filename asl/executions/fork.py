"""Forks: new executions that begin at a visit of another one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.core.values import Json
from asl.engine.events import Event
from asl.executions.execution_reader import EventFeed, ExecutionReader
from asl.program import Program
from asl.stores.executions import StoredExecution

__all__ = ["ForkPoint", "find_fork_point"]

LONGEST = 9
"""Maximum number of digits of a visit's number."""
ENTERED, EXITED = "StateEntered", "StateExited"


class ForkPoint(NamedTuple):
    """The beginning of a visit of a state."""

    state: str
    visit: int
    """1 for the first visit of the state."""
    data: Json
    variables: dict[str, Json]

    @property
    def position(self) -> dict[str, Any]:
        """The first position of the new execution, without its `now`."""
        return {
            "state": self.state,
            "visit": 0,
            "data": self.data,
            "variables": self.variables,
            "records": 0,
            "usage": ["0", 0],
        }


def find_fork_point(
    reader: ExecutionReader, known: StoredExecution, program: Program, place: str
) -> ForkPoint:
    """Return a visit of an execution: `STATE` for the latest, `STATE#2` for the second.

    Raises:
        AslError: The document has no such top-level state, or the execution has not visited it.
    """
    state, mark, number = place.rpartition("#")
    is_number = number.isdecimal() and len(number) <= LONGEST
    if not (mark and is_number and state in program.machine.steps):
        state, number = place, ""
    if state not in program.machine.steps:
        hint = did_you_mean(state, program.machine.steps)
        raise AslError(
            f"the document has no state {state!r} outside of branches and items"
            + (f" ({hint})" if hint else "")
        )
    events = EventFeed(reader, known.name, redacts=False).new_events()
    visits = [each for each in _entries(events, program.machine.steps) if each.state == state]
    if not visits:
        raise AslError(f"the execution {known.name!r} has not entered the state {state!r}")
    if not number:
        return visits[-1]
    if not 1 <= int(number) <= len(visits):
        times = "once" if len(visits) == 1 else f"{len(visits)} times"
        raise AslError(f"the execution {known.name!r} has entered the state {state!r} {times}")
    return visits[int(number) - 1]


def _entries(events: Iterable[Event], states: Iterable[str]) -> Iterable[ForkPoint]:
    """Yield the visits of top-level states, with the variables of each."""
    counts = dict.fromkeys(states, 0)
    variables: dict[str, Json] = {}
    for event in events:
        if len(event.path) != 1 or (name := event.details.get("name")) not in counts:
            continue
        if event.type.endswith(ENTERED):
            counts[name] += 1
            yield ForkPoint(name, counts[name], event.details["input"], dict(variables))
        elif event.type.endswith(EXITED):
            variables |= event.details.get("assignedVariables", {})
