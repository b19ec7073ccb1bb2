"""From names to agents."""

from typing import Any

import pytest

import asl
from asl.agents.adapters import as_agent
from asl.agents.registry import AgentRegistry
from asl.states.calls import Target

from .workflows import task

pytestmark = pytest.mark.quick

ARN = "arn:aws:lambda:eu-west-1:123456789012:function:Charge"


def resource(name: str) -> dict[str, Any]:
    state = {"Type": "Task", "Resource": name, "End": True}
    return {"StartAt": "T", "States": {"T": state}}


@pytest.mark.parametrize(
    "bound", [ARN, "arn:aws:lambda:*:function:Charge", "arn:aws:lambda:*", "*"]
)
def test_a_resource_is_found_by_name_or_pattern(bound: str) -> None:
    """`*` in a bound resource stands for any run of characters."""
    assert asl.run(resource(ARN), resources={bound: {"return": 1}}).output == 1


def test_an_exact_name_wins_over_a_pattern() -> None:
    """Patterns are asked only for resources that nobody named."""
    resources = {"*": {"return": "pattern"}, ARN: {"return": "exact"}}
    assert asl.run(resource(ARN), resources=resources).output == "exact"


def test_the_first_pattern_that_matches_wins() -> None:
    """Patterns are tried in the order in which they were bound."""
    resources = {"arn:aws:lambda:*": {"return": 1}, "*": {"return": 2}}
    assert asl.run(resource(ARN), resources=resources).output == 1


def test_a_mock_wins_over_everything() -> None:
    """A mock goes by the name of the state."""
    result = asl.run(task(), agents={"A": {"return": 1}}, mocks={"T": {"return": 2}})
    assert result.output == 2


@pytest.mark.parametrize("document", [task(), resource(ARN)])
def test_an_unknown_name_is_an_error_of_the_state(document: Any) -> None:
    """Nobody answers: the state fails with States.AgentNotFound, which Catch can see."""
    result = asl.run(document)
    assert (result.status, result.error) == ("FAILED", "States.AgentNotFound")
    assert "state 'T'" in (result.cause or "")


def test_a_near_name_is_suggested() -> None:
    """The cause says which name may have been meant."""
    document = {
        "StartAt": "T",
        "States": {"T": {"Type": "Task", "Agent": "Reviwer", "End": True}},
    }
    result = asl.run(document, agents={"Reviewer": {"return": 1}})
    assert "did you mean 'Reviewer'?" in (result.cause or "")


@pytest.mark.parametrize("value", [1, None, [1], object()])
def test_what_cannot_answer_cannot_be_bound(value: Any) -> None:
    """Binding something that is no agent is misuse and names the name."""
    with pytest.raises(asl.AslError, match="'A' is bound to"):
        as_agent(value, "A")


def test_an_agent_object_is_taken_as_it_is() -> None:
    """What follows the agent protocol needs no wrapper."""
    agent = as_agent({"return": 1}, "A")
    assert as_agent(agent, "B") is agent


def test_a_target_is_resolved_once() -> None:
    """The same target leads to the same agent."""
    registry = AgentRegistry(agents={"A": {"return": 1}})
    target = Target("agent", "A", "T")
    assert registry.find(target) is registry.find(target)
