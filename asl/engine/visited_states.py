"""The visited states of a machine, computed from flat records."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine import records as kinds
from asl.engine.events import CREATED
from asl.engine.execution import Execution
from asl.engine.frame import Frame
from asl.engine.usage import UsageTotals
from asl.program import Step
from asl.states.effects import Record

__all__ = ["advance", "execution_after", "names_before_checkpoints", "visited_names"]


def execution_after(execution: Execution, life: Execution, time: float, details: Json) -> Execution:
    """Return the execution as expressions see it after an event of the whole execution."""
    count = details.get("redriveCount")
    return life if count is None else execution.with_redrives(count, time)


Trail: TypeAlias = "tuple[Trail, str] | None"
"""Names of visited states as nested pairs, the last one outermost, so that prefixes are shared."""


def visited_names(execution: Execution, records: Iterable[Record]) -> list[str]:
    """Return the names of the top machine's states in the order they were entered.

    States between a checkpoint and a resumption from it are left out.
    """
    return _names(_walked(execution, records)[0])


def names_before_checkpoints(
    execution: Execution, records: Iterable[Record]
) -> dict[str, list[str]]:
    """Return the names of the `visited` states before each checkpoint, by its id."""
    return {id: _names(trail) for id, trail in _walked(execution, records)[1].items()}


def _names(trail: Trail) -> list[str]:
    names = []
    while trail is not None:
        trail, name = trail
        names.append(name)
    names.reverse()
    return names


def _walked(execution: Execution, records: Iterable[Record]) -> tuple[Trail, dict[str, Trail]]:
    """Return the states up to the end, and up to each checkpoint by its id."""
    trail: Trail = None
    saved: dict[str, Trail] = {}
    latest, life = -1, execution.with_redrives(0, None)
    for kind, time, frame, visit, after, *rest in records:
        if kind == kinds.NOTED and rest[0] == CREATED:
            saved[rest[1]["id"]] = trail
        elif kind == kinds.WHOLE:
            life = execution_after(execution, life, time, rest[1])
            if "checkpoint" in rest[1]:
                trail = saved[rest[1]["checkpoint"]["id"]]
        elif kind == kinds.STRETCH and frame.parent is None:
            for entered, name in _entered(life, time, frame, visit, after, *rest):
                if entered > latest:
                    trail = trail, name
                    latest = entered
    return trail, saved


def _entered(
    life: Execution,
    time: float,
    frame: Frame,
    visit: int,
    after: Step | None,
    step: Step,
    data: Json,
    variables: dict[str, Json],
    usage: UsageTotals,
    length: int,
    *_: Json,
) -> Iterator[tuple[int, str]]:
    """Yield visit and name of the states that a stretch entered."""
    at = frame.frame_at(visit - length, variables, time, usage)
    at.execution = life
    for entered in range(visit - length, visit):
        yield entered, step.name
        try:
            following, data = advance(at, step, data)
        except StateError:
            break
        if following is None:
            break
        step = following
    if after is not None and after.work is not None:
        yield visit, after.name


def advance(frame: Frame, step: Step, data: Json) -> tuple[Step | None, Json]:
    """Run one pure state, as the interpreter does for a whole stretch."""
    frame.work.renew()
    if step.choose is not None:
        return step.choose(data, frame)
    assert step.transform is not None
    return step.next, step.transform(data, frame)
