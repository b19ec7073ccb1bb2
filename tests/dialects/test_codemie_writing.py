"""What conditions of workflows become, and what becomes one, with what is told of it."""

from typing import Any

import pytest

import asl
from asl.dialects.codemie.writing.expressions import Expressions, Unsayable
from asl.dialects.codemie.writing.names import Extracted, OutputNames, ValueNames
from asl.dialects.terms.jsonpath import read_rule
from tests.dialects.law import each_loss

Json = Any


def said(rule: Json, names: ValueNames | None = None) -> tuple[str, set[str]]:
    expressions = Expressions(names or OutputNames(("r",)))
    try:
        text = expressions.condition(read_rule(rule))
    except Unsayable as fault:
        return "", {fault.loss.code}
    return text, {str(each.severity or each.code) for each in expressions.losses}


def at(operator: str, value: Json, path: str = "$.r.a") -> Json:
    return {"Variable": path, operator: value}


@pytest.mark.parametrize(
    ("rule", "text", "told"),
    [
        (at("StringEquals", "x"), "a == 'x'", {"info"}),
        (at("StringEquals", "5"), "a == 5", {"L-COERCE"}),
        (at("StringEquals", "5", "$.r.a.b"), "a['b'] == '5'", set()),
        (at("StringLessThan", "5"), "a < '5'", {"L-COERCE"}),
        (at("NumericEquals", 5), "a == 5", {"L-COERCE"}),
        (at("NumericEquals", 5, "$.r.a.b"), "a['b'] == 5", set()),
        (at("NumericEquals", 1, "$.r.a.b"), "a['b'] == 1", {"L-COERCE"}),
        (at("NumericLessThan", 5), "a < 5", {"L-COERCE"}),
        (
            {"Not": at("NumericLessThan", 5)},
            "not ('a' in keys and isinstance(a, (int, float)) and a < 5)",
            {"L-COERCE"},
        ),
        (
            {"Or": [at("NumericLessThan", 5), at("NumericLessThan", 9, "$.r.b")]},
            "('a' in keys and isinstance(a, (int, float)) and a < 5) or b < 9",
            {"L-COERCE"},
        ),
        (
            {"And": [at("NumericLessThan", 5), at("NumericLessThan", 9, "$.r.b")]},
            "a < 5 and b < 9",
            {"L-COERCE"},
        ),
        (at("BooleanEquals", True), "a == True", {"L-COERCE"}),
        (at("IsNull", True), "a is None", {"L-COERCE"}),
        (
            at("IsNull", False, "$.r.a.b"),
            "not ('a' in keys and isinstance(a, dict) and 'b' in a and a['b'] is None)",
            set(),
        ),
        (
            {"Or": [at("StringEquals", "x"), at("StringEquals", "y")]},
            "a in ['x', 'y']",
            {"info"},
        ),
        (
            at("IsNumeric", True, "$.r.a.b"),
            "isinstance(a['b'], (int, float)) and not isinstance(a['b'], bool)",
            set(),
        ),
        (at("IsPresent", True), "'a' in keys", set()),
        (
            at("IsPresent", True, "$.r.a.b"),
            "'a' in keys and isinstance(a, dict) and 'b' in a",
            {"L-COERCE"},
        ),
        (at("StringEqualsPath", "$.r.b"), "isinstance(a, str) and a == b", {"L-COERCE"}),
        (at("StringMatches", "x*"), "a.startswith('x')", {"L-COERCE"}),
        (at("StringMatches", "x\\**"), "a.startswith('x*')", {"L-COERCE"}),
        (at("StringMatches", "x\\*"), "a == 'x*'", {"info"}),
        (at("StringMatches", "*x*"), "isinstance(a, str) and 'x' in a", {"L-COERCE"}),
        (
            at("StringMatches", "ab*ba"),
            "a.startswith('ab') and a.endswith('ba') and len(a) >= 4",
            {"L-COERCE"},
        ),
        (at("StringMatches", "a*b*c"), "", {"L-PATTERN"}),
    ],
)
def test_rules_are_conditions(rule: Json, text: str, told: set[str]) -> None:
    """What values are read as is told each time; the type is asked where a failure would count."""
    assert said(rule) == (text, told)


def test_what_is_extracted_is_null_where_it_is_missing() -> None:
    reads = Extracted(lambda path: path.steps)
    assert said(at("IsPresent", True), reads) == ("r_a is not None", {"L-PRESENT"})


def test_every_condition_that_becomes_a_rule_is_told_of() -> None:
    """It is asked of the answer as it is, which may say a value as a text."""
    text = """\
assistants: [{id: a, system_prompt: x}]
states:
  - id: s
    assistant_id: a
    next:
      switch:
        cases:
          - {condition: "code == '404'", state_id: t}
          - {condition: "code == 404", state_id: t}
        default: end
  - {id: t, assistant_id: a, next: {state_id: end}}
"""
    for target in ("amazon", "contenox", "flujo"):
        conversion = asl.convert(text, target)
        told = {each.line for each in each_loss(conversion.losses) if each.code == "L-COERCE"}
        assert told == {8, 9}, target


@pytest.mark.parametrize("target", ["amazon", "contenox", "flujo"])
def test_a_workflow_by_way_of_the_native_language_is_converted_alike(target: str) -> None:
    """As long as the native document has not been changed."""
    to = {"condition": {"expression": "n > 1", "then": "b", "otherwise": "end"}}
    workflow = {
        "assistants": [{"id": "w", "system_prompt": "You help."}],
        "states": [
            {"id": "a", "assistant_id": "w", "task": "Count {{x}}", "next": to},
            {"id": "b", "assistant_id": "w", "task": "Close {{n}}", "next": {"state_id": "end"}},
        ],
    }
    native = asl.load(asl.convert(workflow, "asl").text)
    direct, second = asl.convert(workflow, target), asl.convert(native, target)
    assert second.document == direct.document
    assert {each.code for each in second.losses} >= {
        each.code for each in direct.losses if each.code not in ("L-ACTOR", "L-SETTING")
    }


@pytest.mark.parametrize("metadata", [{"CodeMie": 5}, {"CodeMie": {"config": {"states": 3}}}])
def test_odd_metadata_is_no_workflow(metadata: Json) -> None:
    states = {"A": {"Type": "Pass", "End": True}}
    document = {"StartAt": "A", "Metadata": metadata, "States": states}
    assert asl.convert(document, "amazon").ok
