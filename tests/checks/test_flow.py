"""Which variables a state may find assigned (Specification 3.7), however tangled the machine."""

import random
from typing import Any

import pytest

from asl.checks import flow
from asl.checks.workflow import CheckedWorkflow, split_machines
from asl.core.profile import DEFAULT

pytestmark = pytest.mark.quick

Ways = dict[str, list[tuple[str, str | None]]]
"""State -> the states that may follow, with the variable assigned on the way."""


@pytest.mark.parametrize("seed", range(40))
def test_a_variable_is_known_behind_every_way_that_assigns_it(seed: int) -> None:
    """A way counts if its state can be reached, and then for all that can be reached from it."""
    ways = _tangle(seed, states=9, rules=2)
    reach = {name: _reachable(ways, name) for name in ways}
    expected = {
        (name, variable)
        for source in reach["S0"]
        for target, variable in ways[source]
        for name in reach[target]
        if variable is not None
    }
    workflow, found = _followed(ways)
    (scope,) = workflow.scopes
    variables = {each for rules in ways.values() for _, each in rules if each is not None}
    assert expected == {
        (node.name, variable)
        for node in scope.nodes
        for variable in variables
        if found.knows(scope, node, variable)
    }
    assert reach["S0"] == {node.name for node in scope.nodes if found.is_reachable(scope, node)}


def test_a_tangle_of_many_states_and_variables_is_followed_to_its_end() -> None:
    """The work grows with the ways, not with the walks over them."""
    ways = _tangle(1, states=400, rules=10)
    workflow, found = _followed(ways)
    (scope,) = workflow.scopes
    assert all(found.is_reachable(scope, node) for node in scope.nodes)


def test_a_machine_that_takes_too_long_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then no state counts as reached: what is assigned anywhere may be read anywhere."""
    monkeypatch.setattr(flow, "PATIENCE", 0)
    workflow, found = _followed(_tangle(1, states=9, rules=2))
    (scope,) = workflow.scopes
    assert not any(found.is_reachable(scope, node) for node in scope.nodes)


def _tangle(seed: int, states: int, rules: int) -> Ways:
    chance = random.Random(seed)
    return {
        f"S{index}": [
            *(
                (f"S{chance.randrange(states)}", chance.choice([None, f"v{index}_{rule}"]))
                for rule in range(chance.randrange(rules + 1))
            ),
            (f"S{min(index + 1, states - 1)}", None),
        ]
        for index in range(states)
    }


def _reachable(ways: Ways, start: str) -> set[str]:
    found, todo = {start}, [start]
    while todo:
        new = {target for target, _ in ways[todo.pop()]} - found
        found |= new
        todo += new
    return found


def _followed(ways: Ways) -> tuple[CheckedWorkflow, flow.AssignedVariables]:
    states: dict[str, Any] = {
        name: {
            "Type": "Choice",
            "Choices": [
                {"Next": target} if variable is None else {"Next": target, "Assign": {variable: 1}}
                for target, variable in rules
            ],
        }
        for name, rules in ways.items()
    }
    workflow = split_machines({"StartAt": "S0", "States": states}, DEFAULT)
    return workflow, flow.trace_assignments(workflow)
