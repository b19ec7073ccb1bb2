"""There and back again and again: what one round has made is not made any longer by another."""

from typing import Any

import pytest

import asl
from asl.dialects import load

ARN = "arn:aws:lambda:eu-west-1:111122223333:function"
FLOW = """
assistants:
  - { id: writer, system_prompt: You write. }
states:
  - id: draft
    assistant_id: writer
    task: Write about {{topic}}
    next:
      condition: { expression: kind == 'a' and not done, then: end, otherwise: draft }
"""


def back(text: str, home: str, other: str) -> str:
    """Return a document after one round."""
    there = asl.convert(load(text, dialect=home), other)
    return asl.convert(load(there.text, dialect=other, files=there.files), home).text


def test_a_workflow_at_amazon_keeps_the_names_of_its_actors() -> None:
    """An ARN that was made up of a name becomes that name again."""
    first = back(FLOW, "codemie", "amazon")
    assert back(first, "codemie", "amazon") == first
    assert asl.load(first, dialect="codemie").value["States"]["draft"]["Agent"] == "writer"


def test_cause_of_a_fail_state_occurs_once() -> None:
    """Its state fails with an error of its own there, which is no part of the cause."""
    failing = {"Type": "Fail", "Error": "Broken", "Cause": "no more"}
    there = asl.convert({"StartAt": "F", "States": {"F": failing}}, "codemie").text
    first = back(there, "codemie", "amazon")
    assert back(first, "codemie", "amazon") == first
    assert "Broken: no more" in first


@pytest.mark.parametrize("other", ["amazon", "codemie", "contenox", "flujo"])
def test_a_native_document_stays_as_it_is(other: str) -> None:
    """Its original travels with it, or needs not to."""
    document = asl.convert(load(FLOW, dialect="codemie"), "asl").text
    first = back(document, "asl", other)
    assert back(first, "asl", other) == back(back(first, "asl", other), "asl", other)


def test_conditions_grow_little() -> None:
    """From a workflow to a blueprint and back each test of null is written out once more."""
    found, lengths = FLOW, []
    for _ in range(4):
        found = back(found, "codemie", "flujo")
        workflow: Any = asl.load(found, dialect="codemie").composition
        lengths.append(str(workflow.written).count(" and "))
    assert lengths[3] <= 3 * lengths[1]


@pytest.mark.parametrize(("other", "key"), [("flujo", "agents"), ("codemie", "tools")])
def test_two_functions_whose_names_become_one_stay_two(other: str, key: str) -> None:
    """The second one gets a number."""
    states = {
        "A": {"Type": "Task", "Resource": f"{ARN}:to do", "Next": "B"},
        "B": {"Type": "Task", "Resource": f"{ARN}:to_do", "End": True},
    }
    made = asl.convert({"StartAt": "A", "States": states}, other).document[key]
    names = [*made] if isinstance(made, dict) else [each["id"] for each in made]
    assert names == ["to_do", "to_do_2"]


@pytest.mark.parametrize(("answer", "status"), [(1, "SUCCEEDED"), (2, "FAILED")])
def test_how_a_machine_of_a_blueprint_has_ended_is_known_at_amazon(
    answer: int, status: str
) -> None:
    """What reads the name of its last state afterwards finds it."""
    machine = {
        "StartAt": "A",
        "States": {
            "A": {"Type": "Task", "Resource": f"{ARN}:a", "Next": "C"},
            "C": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.r", "NumericEquals": 1, "Next": "B"}],
                "Default": "D",
            },
            "B": {"Type": "Task", "Resource": f"{ARN}:a", "End": True},
            "D": {"Type": "Fail", "Error": "E", "Cause": "no"},
        },
    }
    there = asl.convert(machine, "flujo").text
    again = asl.convert(load(there, dialect="flujo"), "amazon").document
    (arn,) = {each["Resource"] for each in again["States"].values() if each["Type"] == "Task"}
    resources = {arn: lambda parameters: {"r": answer}}
    assert asl.run(again, {"input": {}}, resources=resources, clock="virtual").status == status
