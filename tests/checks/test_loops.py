"""V-BUD-09: loops of agents that nothing bounds."""

from copy import deepcopy
from typing import Any

import pytest

import asl

Json = Any
DONE = [{"Variable": "$.done", "BooleanEquals": True, "Next": "End"}]
COUNTED = [{"Variable": "$.n", "NumericGreaterThanEquals": 3, "Next": "End"}]


def document(**work: Json) -> Json:
    """Return a loop of an agent and a Choice that the agent alone decides."""
    return {
        "StartAt": "Work",
        "States": {
            "Work": {"Type": "Task", "Agent": "A", "Next": "Enough", **work},
            "Enough": {"Type": "Choice", "Choices": DONE, "Default": "Work"},
            "End": {"Type": "Succeed"},
        },
    }


def found(document: Json) -> list[str]:
    return [each.pointer for each in asl.check(document) if each.code == "V-BUD-09"]


MAP = {"StartAt": "T", "States": {"T": {"Type": "Task", "Agent": "A", "End": True}}}


@pytest.mark.parametrize(
    "work",
    [
        {},
        {"TimeoutSeconds": 9},
        {"Budget": {"MaxTokens": 9}},
        {"Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Work"}]},
        {"Type": "Map", "Agent": None, "ItemProcessor": MAP},
        {"Type": "Parallel", "Agent": None, "Branches": [MAP]},
        {"Type": "Debate", "Agent": None, "Agents": ["A", "B"], "Topic": "?"},
    ],
)
def test_an_agent_alone_decides_when_its_loop_ends(work: Json) -> None:
    """What bounds one visit of a state does not bound the visits."""
    written = document(**work)
    if written["States"]["Work"]["Agent"] is None:
        del written["States"]["Work"]["Agent"]
    assert found(written) == ["/States/Work"]


def test_an_error_may_lead_back_for_ever() -> None:
    """A catcher makes a loop, too."""
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Work"}]
    written = {
        "StartAt": "Work",
        "States": {"Work": {"Type": "Task", "Agent": "A", "Catch": catch, "End": True}},
    }
    assert found(written) == ["/States/Work"]


def test_a_catcher_that_limits_attempts_bounds_its_loop() -> None:
    """A function that fails after a number of refused answers, in a converted workflow."""
    catch = [
        {
            "ErrorEquals": ["CM.OutputSchema"],
            "Output": "{% $codemie_refuse($states.input, $states.errorOutput, 3) %}",
            "Next": "Work",
        }
    ]
    work = {"Type": "Task", "Agent": "A", "Catch": catch, "End": True}
    written = {"QueryLanguage": "JSONata", "StartAt": "Work", "States": {"Work": work}}
    assert found(written) == []
    outer = {"Type": "Task", "Agent": "A", "Catch": catch, "Next": "Work"}
    assert found({**written, "States": {"Work": outer}}) == ["/States/Work"]


def test_the_hint_can_be_followed() -> None:
    """Each remedy that it names is one."""
    for remedy in ({"Budget": {"MaxCalls": 100}}, {"TimeoutSeconds": 60}):
        assert found({**document(), **remedy}) == []
    counting = document(Next="Count")
    counting["States"]["Count"] = {
        "Type": "Pass",
        "Parameters": {"n.$": "States.MathAdd($.n, 1)", "done.$": "$.done"},
        "Next": "Enough",
    }
    counting["States"]["Enough"]["Choices"] = COUNTED
    assert found(counting) == []
    counting["States"]["Enough"]["Choices"] = []
    counting["States"]["Enough"] = {"Type": "Pass", "Next": "Work"}
    assert found(counting) == ["/States/Work"]


def test_jsonata_counts_rounds() -> None:
    """With a variable of its own."""
    written = {
        "QueryLanguage": "JSONata",
        "StartAt": "Work",
        "States": {
            "Work": {
                "Type": "Task",
                "Agent": "A",
                "Assign": {"n": "{% $n + 1 %}"},
                "Next": "Enough",
            },
            "Enough": {
                "Type": "Choice",
                "Choices": [{"Condition": "{% $n > 3 %}", "Next": "End"}],
                "Default": "Work",
            },
            "End": {"Type": "Succeed"},
        },
    }
    assert found(written) == []
    score = deepcopy(written)
    score["States"]["Work"]["Assign"] = {"n": "{% $states.result.score %}"}
    assert found(score) == ["/States/Work"]


@pytest.mark.parametrize(
    "pause",
    [
        {"Type": "Wait", "Seconds": 60},
        {"Type": "Approval", "Prompt": "Go on?", "ResultPath": "$.a"},
    ],
)
def test_a_loop_that_waits_does_not_run_away(pause: Json) -> None:
    """For people, or for time."""
    written = document(Next="Pause")
    written["States"]["Pause"] = {**pause, "Next": "Enough"}
    assert found(written) == []


def test_a_budget_around_a_machine_bounds_its_loops() -> None:
    """That of a Map or Parallel counts all that runs in it."""
    holder = {"Type": "Parallel", "Branches": [document()], "End": True}
    outer = {"StartAt": "P", "States": {"P": holder}}
    assert found(outer) == ["/States/P/Branches/0/States/Work"]
    holder["Budget"] = {"MaxCalls": 9}
    assert found(outer) == []


def test_resources_are_not_agents() -> None:
    """AWS's own bound on events holds for them, and in its profile for all."""
    written = document()
    del written["States"]["Work"]["Agent"]
    written["States"]["Work"]["Resource"] = "arn:aws:lambda:us-east-1:123456789012:function:A"
    assert found(written) == []
    assert "V-BUD-09" not in [each.code for each in asl.check(document(), profile="aws")]
