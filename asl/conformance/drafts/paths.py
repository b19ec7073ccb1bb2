"""The ways through a document, and what an execution must be given to take each of them.

A way is a sequence of transitions from `StartAt` to an end. It decides nothing twice, so it goes
round a loop once. What its states ask for is followed back to where it comes from: the answer of a
Task, which a mock can give, or the input.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, TypeAlias

from asl.conformance.drafts.choice_rules import rule_facts
from asl.conformance.drafts.facts import (
    Facts,
    Place,
    add_facts,
    facts_of_answer,
    facts_of_memory,
    facts_of_pass,
    facts_of_queries,
    facts_of_results,
    facts_of_variables,
    firmest,
    handed_on,
    of_branches,
    of_item,
    outside,
    place_of,
    put,
    read,
    read_of_input,
    trace,
    value_of,
)
from asl.core.values import Json
from asl.graphs.paths import first_paths
from asl.states import type_of
from asl.states.machines import machine_fields, nested_machines

__all__ = ["DraftStep", "RunInputs", "WorkflowPath", "find_paths", "required_inputs", "tasks_of"]


@dataclass(frozen=True, slots=True)
class DraftStep:
    """One state on a way, and by which of its transitions the way goes on."""

    name: str
    by: str
    """`next`, `end`, `rule`, `default` or `catch`."""
    index: int = 0
    """Of the rule or the catcher."""


WorkflowPath: TypeAlias = tuple[DraftStep, ...]
Scripts: TypeAlias = dict[str, list[Mapping[str, Json]]]
"""By Task: what it answers, one after the other."""


def find_paths(machine: Mapping[str, Json], limit: int) -> tuple[list[WorkflowPath], bool]:
    """Return the ways through a machine that decide nothing twice, and whether these are all.

    No more than *limit* are returned.
    """
    states = machine["States"]
    start = machine["StartAt"]
    return first_paths(start, lambda name: _transitions(name, states[name]), limit, _turns)


def _turns(step: DraftStep) -> int:
    """Return how often a way may take a step: once more where it comes out of a loop."""
    return 2 if step.by == "next" else 1


def _transitions(name: str, state: Mapping[str, Json]) -> Iterator[tuple[DraftStep, str | None]]:
    for index, rule in enumerate(state.get("Choices", ())):
        yield DraftStep(name, "rule", index), rule["Next"]
    if "Default" in state:
        yield DraftStep(name, "default"), state["Default"]
    if "Next" in state:
        yield DraftStep(name, "next"), state["Next"]
    elif state.get("End") or not type_of(state).decides:
        yield DraftStep(name, "end"), None
    catchers = state.get("Catch", ()) if type_of(state).effect else ()
    for index, catcher in enumerate(catchers):
        yield DraftStep(name, "catch", index), catcher["Next"]


class RunInputs(NamedTuple):
    """What an execution is given: its input, and the answers of each Task, one after the other."""

    data: Json
    scripts: Mapping[str, Sequence[Mapping[str, Json]]]

    @property
    def mocks(self) -> dict[str, Json]:
        """The scripts as mocks."""
        return {
            name: each[0] if len(each) == 1 else {"sequence": list(each)}
            for name, each in self.scripts.items()
        }

    def put(self, place: Place, value: Json) -> "RunInputs":
        """Return the same with another value at a place of the input."""
        return self._replace(data=put(self.data, place, value))

    def with_answer(self, task: str, number: int, place: Place, value: Json) -> "RunInputs":
        """Return the same with another value at a place of an answer of a Task."""
        script = list(self.scripts[task])
        script[number] = {"return": put(script[number]["return"], place, value)}
        return self._replace(scripts={**self.scripts, task: script})


def required_inputs(
    machine: Mapping[str, Json], way: WorkflowPath, data: Json, answer: Json, *, items: bool = True
) -> RunInputs:
    """Return the input and the answers with which an execution should go a way.

    They are *data* and *answer* where nothing is asked of them. Maps get one item each, and none
    without *items*.
    """
    scripts: Scripts = {}
    facts = add_facts(read_of_input(machine), _asked(machine, way, {}, answer, items, scripts))
    return RunInputs(value_of(facts) if facts else data, scripts)


def _asked(
    machine: Mapping[str, Json],
    way: WorkflowPath,
    facts: Facts,
    answer: Json,
    items: bool,
    scripts: Scripts,
) -> Facts:
    """Return what a machine must be given to go a way to where the facts hold; add the answers."""
    variables: Facts = {}
    for step in reversed(way):
        state = machine["States"][step.name]
        asked, remain = facts_of_queries(state)
        facts = facts if step.by == "catch" else handed_on(state, facts)
        given, made, variables = facts_of_variables(
            state, _handler(state, step).get("Assign"), variables
        )
        inner: Facts = {}
        item: Facts = {}
        results: Facts = {}
        answers = {} if step.by == "catch" else scripts
        if machine_fields(type_of(state)) and step.by != "catch":
            results, facts = facts_of_answer(state, facts)
            results = firmest(asked, results)
        if state["Type"] == "Map":
            one = facts_of_results(results, 0) or _singly(asked)
            item = of_item(state, _inside(state, [one], answer, items, answers))
        elif state["Type"] == "Parallel":
            each = [facts_of_results(results, index) for index in range(len(state["Branches"]))]
            inner = of_branches(state, _inside(state, each, answer, items, answers))
        if step.by == "catch":
            catcher = state["Catch"][step.index]
            facts = outside(facts, place_of(catcher.get("ResultPath", "$")))
            error = catcher["ErrorEquals"][0]
            name = "States.TaskFailed" if error == "States.ALL" else error
            script: Json = {"raise": {"Error": name}}
            # Every error of a reader is reported as States.ItemReaderFailed.
            first = 1 if "ItemReader" in state and error not in _OF_READERS else 0
            for task in islice(tasks_of(step.name, state), first, first + 1):
                scripts.setdefault(task, []).insert(0, script)
        elif state["Type"] == "Choice":
            facts |= rule_facts(state["Choices"], step.index if step.by == "rule" else None)
        elif state["Type"] == "Task":
            result, facts = facts_of_answer(state, facts)
            result |= made | trace(state.get("Reasoning", {}))
            if "ResultSelector" not in state:
                result = add_facts(facts_of_memory(state), result)
            result = add_facts(asked, result)
            value = value_of(result) if result else answer
            scripts.setdefault(step.name, []).insert(0, {"return": value})
        elif state["Type"] == "Pass":
            facts = add_facts(facts_of_memory(state), facts_of_pass(state, facts))
        if "ItemReader" in state:
            scripts.setdefault(step.name, [{"return": [value_of(item)] if items else []}])
        for task in tasks_of(step.name, state):
            scripts.setdefault(task, [{"return": answer}])
        given = firmest(read(state, [value_of(item)] if items else []), given)
        same = {at: value for at, value in given.items() if at in inner}
        facts = firmest(firmest(add_facts(given, inner), same), facts)
        variables = firmest(variables, remain)
    return facts


_OF_READERS = ("States.ALL", "States.TaskFailed", "States.ItemReaderFailed")
"""By which the failure of a reader is caught."""


def _inside(
    state: Mapping[str, Json],
    results: Sequence[Facts],
    answer: Json,
    items: bool,
    scripts: Scripts,
) -> Facts:
    """Return what the machines in a state must be given to go their first ways to the results."""
    found: Facts = {}
    for (_, machine), facts in zip(nested_machines(state), results, strict=False):
        for way in find_paths(machine, 1)[0]:
            found = firmest(found, _asked(machine, way, facts, answer, items, scripts))
    return found


def _singly(facts: Facts) -> Facts:
    """Return what each of many must be that together are what the facts say."""
    return {
        at: each[0] if type(each) is list and each else each for at, each in facts.items() if at
    }


def _handler(state: Mapping[str, Json], step: DraftStep) -> Mapping[str, Json]:
    """Return the rule, the catcher or the state itself by which a way leaves a state."""
    fields = {"rule": "Choices", "catch": "Catch"}
    return state[fields[step.by]][step.index] if step.by in fields else state


def tasks_of(name: str, state: Mapping[str, Json]) -> Iterator[str]:
    """Yield the name of a state that asks somebody, then those of such states in its machines.

    That is a Task, or a Map for which a reader answers the items.
    """
    if state["Type"] == "Task" or "ItemReader" in state:
        yield name
    for _, machine in nested_machines(state):
        for inner, each in machine.get("States", {}).items():
            yield from tasks_of(inner, each)
