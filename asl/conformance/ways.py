"""The ways through a document, and what an execution must be given to take each of them.

A way is a sequence of transitions from `StartAt` to an end that takes none of them twice. What its
states ask for is followed back to where it comes from: the answer of a Task, which a mock can give,
or the input.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from asl.conformance.choosing import chosen
from asl.conformance.facts import (
    Facts,
    answered,
    beside,
    outside,
    passed,
    place_of,
    read,
    remembered,
    trace,
    value_of,
)
from asl.core.values import Json
from asl.states.base import machines_of

__all__ = ["Step", "Way", "needs", "ways"]


@dataclass(frozen=True, slots=True)
class Step:
    """One state on a way, and by which of its transitions the way goes on."""

    name: str
    by: str
    """`next`, `end`, `rule`, `default` or `catch`."""
    index: int = 0
    """Of the rule or the catcher."""


Way: TypeAlias = tuple[Step, ...]


def ways(machine: Mapping[str, Json]) -> Iterator[Way]:
    """Yield the ways through a machine that take no transition twice."""
    waiting: list[tuple[str, Way]] = [(machine["StartAt"], ())]
    while waiting:
        name, way = waiting.pop()
        further = []
        for step, following in _transitions(name, machine["States"][name]):
            if step in way:
                continue
            if following is None:
                yield (*way, step)
            else:
                further.append((following, (*way, step)))
        waiting += reversed(further)


def _transitions(name: str, state: Mapping[str, Json]) -> Iterator[tuple[Step, str | None]]:
    for index, rule in enumerate(state.get("Choices", ())):
        yield Step(name, "rule", index), rule["Next"]
    if "Default" in state:
        yield Step(name, "default"), state["Default"]
    if "Next" in state:
        yield Step(name, "next"), state["Next"]
    elif state["Type"] not in ("Choice", "Approval"):
        yield Step(name, "end"), None
    for index, catcher in enumerate(state.get("Catch", ())):
        yield Step(name, "catch", index), catcher["Next"]


def needs(machine: Mapping[str, Json], way: Way, unsaid: Json) -> tuple[Json, dict[str, Json]]:
    """Return the input and the mocks with which an execution should go a way.

    *unsaid* is what they are where nothing is asked of them.
    """
    facts: Facts = {}
    scripts: dict[str, list[Json]] = {}
    for step in reversed(way):
        state = machine["States"][step.name]
        if step.by == "catch":
            catcher = state["Catch"][step.index]
            facts = outside(facts, place_of(catcher.get("ResultPath", "$")))
            error = catcher["ErrorEquals"][0]
            name = "States.TaskFailed" if error == "States.ALL" else error
            script: Json = {"raise": {"Error": name}}
            for task in [step.name] if state["Type"] == "Task" else list(_tasks(state))[:1]:
                scripts.setdefault(task, []).insert(0, script)
        elif state["Type"] == "Choice":
            facts |= chosen(state["Choices"], step.index if step.by == "rule" else None)
        elif state["Type"] == "Task":
            result, facts = answered(state, facts)
            result |= trace(state.get("Reasoning", {}))
            if "ResultSelector" not in state:
                result = beside(remembered(state), result)
            answer = value_of(result) if result else unsaid
            scripts.setdefault(step.name, []).insert(0, {"return": answer})
        elif state["Type"] == "Pass":
            facts = beside(remembered(state), passed(state, facts))
        for task in _tasks(state):
            scripts.setdefault(task, [{"return": unsaid}])
        facts = read(state) | facts
    sequences = {name: {"sequence": each} for name, each in scripts.items()}
    mocks = {name: each[0] if len(each) == 1 else sequences[name] for name, each in scripts.items()}
    return value_of(facts) if facts else unsaid, mocks


def _tasks(state: Mapping[str, Json]) -> Iterator[str]:
    """Yield the names of the Tasks in the machines of a state."""
    for _, machine in machines_of(state):
        for name, inner in machine.get("States", {}).items():
            if inner.get("Type") == "Task":
                yield name
            yield from _tasks(inner)
