"""What two documents differ in."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl

from .test_drawing import machines

pytestmark = pytest.mark.quick

Json = Any
DOCUMENT: Json = {
    "Comment": "Reviews files",
    "StartAt": "Plan",
    "States": {
        "Plan": {
            "Type": "Task",
            "Agent": "Planner",
            "Parameters": {"deep": {"at.$": "$.a"}, "list": [1, 2]},
            "Next": "Each",
        },
        "Each": {
            "Type": "Map",
            "ItemProcessor": {
                "StartAt": "Review",
                "States": {
                    "Review": {
                        "Type": "Task",
                        "Agent": "Reviewer",
                        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Skipped"}],
                        "End": True,
                    },
                    "Skipped": {"Type": "Pass", "Result": 1, "End": True},
                },
            },
            "Next": "Enough",
        },
        "Enough": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.n", "NumericGreaterThan": 3, "Next": "Good"},
                {"Variable": "$.n", "IsPresent": True, "Next": "Bad"},
            ],
            "Default": "Bad",
        },
        "Good": {"Type": "Succeed"},
        "Bad": {"Type": "Fail", "Error": "TooFew"},
    },
}


def changed(*steps: Any, to: Json) -> Json:
    """Return the document with another value at a place; None takes it away."""
    document = copy.deepcopy(DOCUMENT)
    holder = document["States"]
    for step in steps[:-1]:
        holder = holder[step]
    if to is None:
        del holder[steps[-1]]
    else:
        holder[steps[-1]] = to
    return document


REVIEW = ("Each", "ItemProcessor", "States", "Review")


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (
            changed("Plan", "Parameters", "deep", "at.$", to="$.b"),
            [("changed", "data flow", "Plan", 'Parameters.deep.at.$: "$.a" → "$.b"')],
        ),
        (
            changed("Plan", "Parameters", "list", to=[1, 3]),
            [("changed", "data flow", "Plan", "Parameters.list[1]: 2 → 3")],
        ),
        (
            changed("Plan", "TimeoutSeconds", to=5),
            [("added", "behaviour", "Plan", "TimeoutSeconds: 5")],
        ),
        (
            changed(*REVIEW, "Agent", to="Other"),
            [
                (
                    "changed",
                    "behaviour",
                    "Each (each item) / Review",
                    'Agent: "Reviewer" → "Other"',
                )
            ],
        ),
        (
            changed("Plan", "Next", to="Enough"),
            [("changed", "transition", "Plan", "→ Enough, not to Each")],
        ),
        (
            changed("Enough", "Choices", 0, "NumericGreaterThan", to=4),
            [
                ("removed", "transition", "Enough", "when $.n > 3 → Good"),
                ("added", "transition", "Enough", "when $.n > 4 → Good"),
            ],
        ),
        (
            changed("Enough", "Choices", to=DOCUMENT["States"]["Enough"]["Choices"][::-1]),
            [("changed", "transition", "Enough", "the order of Choices")],
        ),
        (
            changed("Enough", "Choices", 0, "Assign", to={"x": 1}),
            [("added", "data flow", "Enough", 'Assign: {"x":1}')],
        ),
        (
            changed(*REVIEW, "Catch", to=None),
            [("removed", "transition", "Each (each item) / Review", "catch → Skipped")],
        ),
        (changed("New", to={"Type": "Pass"}), [("added", "state", "New", "New (Pass)")]),
        (changed("Good", to=None), [("removed", "state", "Good", "Good (Succeed)")]),
        (
            {**DOCUMENT, "StartAt": "Each"},
            [("changed", "transition", "", "starts at Each, not at Plan")],
        ),
    ],
)
def test_change_has_its_place(after: Json, expected: Json) -> None:
    """Its kind, what it is about, the state and the words."""
    found = asl.diff(DOCUMENT, after)
    assert [(each.kind, each.about, each.place, each.text) for each in found] == expected
    assert not found.same


def test_a_remark_changes_nothing() -> None:
    """It is told, and the documents do the same."""
    found = asl.diff(DOCUMENT, {**DOCUMENT, "Comment": "other"})
    assert [each.about for each in found] == ["remark"]
    assert found.same


def test_the_old_name_of_a_processor_is_no_change() -> None:
    """`Iterator` and `ItemProcessor` are one; what is in it is compared."""
    old = json.loads(json.dumps(DOCUMENT).replace("ItemProcessor", "Iterator"))
    assert len(asl.diff(DOCUMENT, old)) == 0
    after = changed(*REVIEW, "Agent", to="Other")
    (change,) = asl.diff(old, after)
    assert (change.before or "").startswith("/States/Each/Iterator/")
    assert (change.after or "").startswith("/States/Each/ItemProcessor/")


def test_a_renamed_state_is_one_change() -> None:
    """With all that leads to it."""
    text = json.dumps(DOCUMENT).replace('"Good"', '"Fine"')
    found = asl.diff(DOCUMENT, text)
    assert [(each.kind, each.text) for each in found] == [("renamed", "Good is called Fine now")]


def test_pointers_lead_to_both_places() -> None:
    """In the document before, and in the one after."""
    (found,) = asl.diff(DOCUMENT, changed("Plan", "Parameters", "list", to=[1, 3]))
    assert found.before == found.after == "/States/Plan/Parameters/list/1"


@given(machines())
def test_a_document_does_not_differ_from_itself(machine: Json) -> None:
    """However its members are ordered."""
    assert len(asl.diff(machine, _reversed(machine))) == 0


def _reversed(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _reversed(value[key]) for key in reversed(value)}
    return [_reversed(each) for each in value] if isinstance(value, list) else value


@given(machines(), machines())
def test_both_directions_agree(one: Json, other: Json) -> None:
    """What is added one way is removed the other way."""
    there, back = asl.diff(one, other), asl.diff(other, one)
    assert there.same == back.same

    def count(changes: Any, kind: str, about: str) -> int:
        return sum(each.kind == kind and each.about == about for each in changes)

    assert count(there, "added", "state") == count(back, "removed", "state")
    assert count(there, "renamed", "state") == count(back, "renamed", "state")


@given(machines(), st.data())
def test_a_state_that_is_taken_away_is_missed(machine: Json, data: st.DataObject) -> None:
    """Whatever else there is."""
    if machine["States"]:
        less = copy.deepcopy(machine)
        del less["States"][data.draw(st.sampled_from(list(less["States"])))]
        assert [each.kind for each in asl.diff(machine, less) if each.about == "state"] == [
            "removed"
        ]


CHAIN = """
{"id": "greet", "tasks": [
  {"id": "first", "handler": "chat_completion", "prompt_template": "Hello {{.input}}",
   "transition": {"branches": [{"operator": "default", "goto": "second"}]}},
  {"id": "second", "handler": "chat_completion", "prompt_template": "Say {{.first}} again",
   "transition": {"branches": [{"operator": "default", "goto": "end"}]}}
]}
"""


def test_documents_of_two_languages_are_compared_without_the_functions_of_either() -> None:
    """What is told are the states and their data, as a third language would say them."""
    chain = asl.load(CHAIN, dialect="contenox")
    assert asl.diff(chain, asl.convert(chain, "asl").text).same
    for other in ("amazon", "codemie", "flujo"):
        there = asl.load(asl.convert(chain, other).text, dialect=other)
        told = [f"{each.place} {each.text}" for each in asl.diff(chain, there)]
        assert told
        assert not [each for each in told if "$contenox_" in each or f"${other}_" in each]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Say {{.first}} again", "Say it again", [("data flow", "second")] * 2),
        ('"greet"', '"hello"', [("remark", "")]),
        ('"id": "greet"', '"id": "greet", "debug": true', [("remark", "")]),
    ],
)
def test_description_of_a_chain_occurs_once(old: str, new: str, expected: Json) -> None:
    """Of the state that was read of it where that does something else; as a remark otherwise."""
    chain = asl.load(CHAIN, dialect="contenox")
    found = asl.diff(chain, asl.load(CHAIN.replace(old, new), dialect="contenox"))
    assert [(each.about, each.place) for each in found] == expected


def test_of_long_texts_the_difference_is_shown() -> None:
    """And a little of what is before it."""
    words = "one two three four five six seven eight nine ten eleven twelve"
    long = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Cause": words}}}
    other = json.loads(json.dumps(long).replace("eleven", "twelve"))
    (found,) = asl.diff(long, other)
    assert (
        found.text
        == 'Cause: …even eight nine ten eleven twelve" → …even eight nine ten twelve twelve"'
    )


SCORED = """
{"id": "scored", "tasks": [
  {"id": "score", "handler": "parse_number", "prompt_template": "Rate {{.input}}",
   "transition": {"on_failure": "say", "branches": [
     {"operator": "in_range", "when": "3-5", "goto": "say"},
     {"operator": "default", "goto": "end"}]}},
  {"id": "say", "handler": "prompt_to_string", "prompt_template": "Well, {{.score}}",
   "transition": {"branches": [{"operator": "default", "goto": "end"}]}}
]}
"""
BLUEPRINT = """
version: "0.1"
name: drafts
steps:
  - kind: StateMachine
    name: machine
    start_state: draft
    end_states: [done]
    states:
      draft: [{ name: write, uses: "desk:writer", input: "{{ context.topic }}" }]
      review: [{ name: judge, uses: "desk:judge" }]
    transitions:
      - { from: draft, on: success, to: review }
      - { from: review, on: success, to: done, when: "output.last_output == 'yes'" }
      - { from: review, on: success, to: draft }
"""


@pytest.mark.parametrize(
    ("text", "dialect", "old", "new", "expected"),
    [
        (
            SCORED,
            "contenox",
            "3-5",
            "3-6",
            ["when in_range 3-5 → say", "when in_range 3-6 → say"],
        ),
        (SCORED, "contenox", '"say"', '"tell"', ["say is called tell now"]),
        (
            BLUEPRINT,
            "flujo",
            "review",
            "check",
            [
                "review is called check now",
                "review:success is called check:success now",
                "review:failure is called check:failure now",
            ],
        ),
        (BLUEPRINT, "flujo", "'yes'", "'review'", [
            "when output.last_output == 'yes' → done",
            "when output.last_output == 'review' → done",
        ]),
    ],
)  # fmt: skip
def test_documents_of_one_language_differ_in_its_words(
    text: str, dialect: str, old: str, new: str, expected: list[str]
) -> None:
    """Rules as they were written; what is only called otherwise is renamed, with all about it."""
    before, after = (asl.load(each, dialect=dialect) for each in (text, text.replace(old, new)))
    assert [each.text for each in asl.diff(before, after) if each.about != "remark"] == expected


def test_a_text_that_is_the_name_of_a_state_is_a_text() -> None:
    """The state language has no names of states in its data."""
    said = {"Type": "Pass", "Parameters": {"to": "Good"}, "Next": "Plan"}
    before = {**DOCUMENT, "States": {**DOCUMENT["States"], "Say": said}}
    found = asl.diff(before, json.dumps(before).replace('"Good"', '"Fine"'))
    assert [each.text for each in found] == [
        "Good is called Fine now",
        'Parameters.to: "Good" → "Fine"',
    ]
