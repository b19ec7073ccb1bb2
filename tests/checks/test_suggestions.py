"""What is proposed for a field or a value that the language does not have there."""

from typing import Any

import pytest

from asl.checks import check
from asl.core.document import read

pytestmark = pytest.mark.quick

Json = Any

TASK = {"Type": "Task", "Agent": "A", "End": True}
APPROVAL = {"Type": "Approval", "Prompt": "ok?", "End": True}
WORKFLOW = {"Type": "Workflow", "WorkflowId": "W", "End": True}
DEBATE = {"Type": "Debate", "Agents": ["A", "B"], "Topic": "t", "End": True}
JSONATA = {**TASK, "QueryLanguage": "JSONata"}
WAIT = {"Type": "Wait", "End": True}


def hints(state: Json, **document: Json) -> dict[str, str | None]:
    """The hint at each finding in a document of one state, by its pointer within the state."""
    found = check(read({"StartAt": "S", "States": {"S": state}, **document}))
    return {each.pointer.removeprefix("/States/S"): each.hint for each in found}


@pytest.mark.parametrize(
    ("state", "field", "value", "hint"),
    [
        (APPROVAL, "approvers", ["ann"], 'write "Policy": {"Approvers": {"Users": ...}}'),
        (APPROVAL, "Approvers", ["ann"], 'write "Policy": {"Approvers": {"Users": ...}}'),
        (APPROVAL, "TimeoutSeconds", 5, "did you mean 'Timeout'?"),
        (APPROVAL, "Message", "ok?", "did you mean 'Prompt'?"),
        (WORKFLOW, "Parameters", {}, "did you mean 'Input'?"),
        (WORKFLOW, "TimeoutSeconds", 5, "did you mean 'Timeout'?"),
        (TASK, "Timeout", 5, "did you mean 'TimeoutSeconds'?"),
        (TASK, "MaxTokens", 5, 'write "Generation": {"MaxTokens": ...}'),
        (TASK, "max_tokens", 5, 'write "Generation": {"MaxTokens": ...}'),
        (TASK, "Input", {}, "did you mean 'Parameters'?"),
        (JSONATA, "Input", {}, "did you mean 'Arguments'?"),
        (DEBATE, "Timeout", 5, "did you mean 'TimeoutSeconds'?"),
        (DEBATE, "Arbiter", "A", 'write "Consensus": {"Arbiter": ...}'),
    ],
)
def test_similar_field_is_suggested(state: Json, field: str, value: Json, hint: str | None) -> None:
    """People call it so, or have it at another place; no misspelling would explain that."""
    assert hints({**state, field: value})[f"/{field}"] == hint


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("Tools", "did you mean 'DefaultTools'?"),
        ("Guardrails", "it is a field of states: write it there"),
        ("Model", "it is a field of states: write it there"),
        ("Modul", "did you mean 'Module'?"),
    ],
)
def test_a_field_of_states_is_no_field_of_the_document(field: str, hint: str) -> None:
    """Nor is it a misspelling of one, however near it is."""
    assert hints(TASK, **{field: {}})[f"/{field}"] == hint


@pytest.mark.parametrize(
    ("memory", "pointer", "place"),
    [
        ({"InjectAt": "$.m", "Read": {"Query": "q"}}, "/Memory/InjectAt", "'Read'"),
        ({"Read": {"Query": "q", "Provider": "p"}}, "/Memory/Read/Provider", None),
        ({"Read": {"Query": "q", "Write": {}}}, "/Memory/Read/Write", "the object around this one"),
    ],
)
def test_a_field_one_level_too_high_or_low(memory: Json, pointer: str, place: str | None) -> None:
    """The hint names the object that has the field, if there is one."""
    hint = hints({**TASK, "Memory": memory})[pointer]
    assert ("write it there" in hint) == (place is not None)
    assert place is None or hint == f"it is a field of {place}: write it there"


@pytest.mark.parametrize(
    ("state", "fields", "pointer", "hint"),
    [
        (TASK, {"Tools": ["search"]}, "/Tools", 'write {"Allowed": ["search"]}'),
        (TASK, {"Tools": [5]}, "/Tools", None),
        (TASK, {"Model": "small"}, "/Model", 'write {"Preferred": "small"}'),
        (TASK, {"Reasoning": True}, "/Reasoning", 'write {"Required": true}'),
        (DEBATE, {"Consensus": "voting"}, "/Consensus", 'write {"Method": "voting"}'),
        (
            TASK,
            {"Guardrails": {"Input": [{"Type": "pii"}]}},
            "/Guardrails/Input",
            'write {"Rules": [{"Type":"pii"}]}',
        ),
    ],
)
def test_missing_object_around_a_value_is_suggested(
    state: Json, fields: Json, pointer: str, hint: str | None
) -> None:
    """Where it fits the field that is meant by it."""
    assert hints({**state, **fields})[pointer] == hint


@pytest.mark.parametrize(
    ("state", "fields", "pointer", "hint"),
    [
        (TASK, {"Budget": {"MaxCost": "$.x"}}, "/Budget/MaxCost", 'write "MaxCost.$": "$.x"'),
        (
            TASK,
            {"Budget": {"MaxTokens": "$$.x"}},
            "/Budget/MaxTokens",
            'write "MaxTokens.$": "$$.x"',
        ),
        (
            TASK,
            {"Budget": {"MaxTokens": "{% 5 %}"}},
            "/Budget/MaxTokens",
            'write "MaxTokens.$", or set "QueryLanguage": "JSONata"',
        ),
        (TASK, {"TimeoutSeconds": "$.x"}, "/TimeoutSeconds", 'write "TimeoutSecondsPath": "$.x"'),
        (
            JSONATA,
            {"TimeoutSeconds": "$.x"},
            "/TimeoutSeconds",
            "JSONPath has no meaning in a JSONata state",
        ),
        (
            WAIT,
            {"Seconds": "{% 5 %}"},
            "/Seconds",
            'set "QueryLanguage": "JSONata" on the state',
        ),
        (
            TASK,
            {"Arguments": {}},
            "/Arguments",
            'set "QueryLanguage": "JSONata" on the state, or write "Parameters"',
        ),
    ],
)
def test_place_of_a_misplaced_expression_is_suggested(
    state: Json, fields: Json, pointer: str, hint: str | None
) -> None:
    """To the field that computes the value, or to the other query language."""
    assert hints({**state, **fields})[pointer] == hint


@pytest.mark.parametrize(
    ("fields", "pointer", "hint"),
    [
        ({"Agents": "A,B"}, "/Agents", 'put it in an array: ["A","B"]'),
        ({"Agents": "A"}, "/Agents", None),
        ({"Budget": {"Tags": "a, b"}}, "/Budget/Tags", 'put it in an array: ["a","b"]'),
        ({"Budget": {"Tags": "a, b c"}}, "/Budget/Tags", 'put it in an array: ["a, b c"]'),
        ({"Budget": {"Tags": {"a": 1}}}, "/Budget/Tags", None),
        ({"Budget": {"Tags": "a"}}, "/Budget/Tags", 'put it in an array: ["a"]'),
    ],
)
def test_only_an_array_that_fits_is_proposed(fields: Json, pointer: str, hint: str | None) -> None:
    """One value is not enough for two, and an object is no text."""
    assert hints({**DEBATE, **fields})[pointer] == hint


def test_a_name_cut_short_is_nearer_than_another_word() -> None:
    """`MaxPerDay` has as many other letters."""
    limits = {"RateLimits": {"*": {"MaxPerMin": 5}}}
    hint = hints({**TASK, "Tools": limits})["/Tools/RateLimits/*/MaxPerMin"]
    assert hint == "did you mean 'MaxPerMinute'?"


def test_a_function_is_no_path() -> None:
    """A dollar before it makes it none."""
    hint = hints({**TASK, "InputPath": "States.Format('a')"})["/InputPath"]
    assert hint == "call an intrinsic function under a key that ends in '.$', as in Parameters"


@pytest.mark.parametrize(
    ("language", "more"), [("JSONPath", ""), ("JSONata", ", or {% JSONata %}")]
)
def test_a_message_names_the_expressions_of_its_language_only(language: str, more: str) -> None:
    """What a field may be in JSONata is no way out of a state in JSONPath."""
    state = {**WAIT, "Seconds": "five", "QueryLanguage": language}
    (found,) = check(read({"StartAt": "S", "States": {"S": state}}))
    wanted = f"must be a whole number of seconds from 0 to 99999999{more}, not 'five'"
    assert found.message == f"'Seconds' {wanted}"


@pytest.mark.parametrize(
    ("state", "pointer", "hint"),
    [
        ({"Tpye": "Pass", "End": True}, "", "write \"Type\" for 'Tpye'"),
        (
            {"type": "Pass", "End": True},
            "",
            "write \"Type\" for 'type': fields begin with a capital",
        ),
        ({"Kind": "Pass", "Next": "S"}, "", None),
        (
            {"Type": "Parallel", "Brnaches": [], "End": True},
            "",
            "write \"Branches\" for 'Brnaches'",
        ),
        (
            {**TASK, "Catch": [{"ErorEquals": ["States.ALL"], "Next": "S"}]},
            "/Catch/0",
            "write \"ErrorEquals\" for 'ErorEquals'",
        ),
        (
            {
                "Type": "Choice",
                "Choices": [{"Variable": "$.a", "IsNull": True, "Nxet": "S"}],
                "Default": "S",
            },
            "/Choices/0",
            "write \"Next\" for 'Nxet'",
        ),
    ],
)
def test_required_field_that_is_misspelt(state: Json, pointer: str, hint: str | None) -> None:
    """The finding names the field that is written in its place, if one is near."""
    assert hints(state).get(pointer) == hint


def test_start_at_that_is_misspelt() -> None:
    """The name of the field comes before a proposal for its value."""
    found = check(read({"StratAt": "S", "States": {"S": {"Type": "Pass", "End": True}}}))
    missing = next(each for each in found if each.code == "V-TOP-02")
    assert missing.hint == "write \"StartAt\" for 'StratAt'"


def test_misspelt_fields_without_end_are_compared_within_a_bound() -> None:
    """Hints are left out when their work is spent, findings are not."""
    states = {f"S{number}": {f"Tyqe{number}x{at}": 1 for at in range(200)} for number in range(200)}
    found = check(read({"StartAt": "S0", "States": states}))
    assert sum(each.message == "'Type' is missing" for each in found) >= 90
