"""Place and text of a diagnostic."""

from typing import Any

import pytest

from asl.checks import check
from asl.core.diagnostics import Diagnostic
from asl.core.document import read

pytestmark = pytest.mark.quick

TEXT = """{
  "StartAt": "Ask",
  "States": {
    "Ask": {
      "Type": "Task",
      "Agent": "Writer",
      "Parametres": {},
      "Retry": [{"ErrorEquals": ["States.Timout"]}],
      "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Halp"}],
      "Next": "Route"
    },
    "Route": {
      "Type": "Choice",
      "Choices": [
        {"Variable": "$.a", "NumericGreaterThen": 5, "Next": "Help"},
        {"Variable": "$.b", "IsNull": true, "Next": "Help"},
        {"Variable": "$.b", "IsNull": true, "Next": "Ask"}
      ],
      "Default": "Each"
    },
    "Each": {
      "Type": "Map",
      "ItemsPath": "$.items",
      "ItemProcessor": {
        "StartAt": "Help",
        "States": {
          "Help": {"Type": "Pass", "Parameters": {"a.$": "States.Arr($.b)"}, "Next": "Route"}
        }
      },
      "End": true
    },
    "Help": {"Type": "Fial"}
  }
}
"""


def at(code: str) -> Diagnostic:
    (found,) = [each for each in check(read(TEXT, name="w.json")) if each.code == code]
    return found


def test_an_unknown_field_is_marked_at_its_key() -> None:
    """The nearest field of the state's type is suggested."""
    found = at("V-TOP-09")
    assert (found.where, found.hint) == ("w.json:7:7", "did you mean 'Parameters'?")


def test_an_unknown_error_name_is_marked_at_the_name() -> None:
    """The nearest reserved name is suggested."""
    found = at("V-CATCH-05")
    assert (found.where, found.hint) == ("w.json:8:34", "did you mean 'States.Timeout'?")


def test_an_unknown_target_is_marked_at_its_value() -> None:
    """The nearest state is suggested; a state of another machine is no candidate but explained."""
    inner, outer = sorted(
        (each for each in check(read(TEXT)) if each.code == "V-ST-03"),
        key=lambda each: -(each.line or 0),
    )
    assert (outer.line, outer.column, outer.hint) == (9, 57, "did you mean 'Help'?")
    assert (inner.line, inner.column) == (27, 86)
    assert inner.hint is not None
    assert "another machine" in inner.hint


def test_an_unknown_operator_is_marked_at_its_key() -> None:
    """The rule is not said to lack a comparison as well."""
    found = at("V-CHOICE-09")
    assert (found.where, found.hint) == ("w.json:15:29", "did you mean 'NumericGreaterThan'?")
    assert not [each for each in check(read(TEXT)) if each.code == "V-CHOICE-03"]


def test_a_repeated_rule_points_at_the_earlier_one() -> None:
    """Both places are given, as for a repeated name."""
    found = at("V-CHOICE-08")
    assert found.line == 17
    assert [(other.line, other.column) for other in found.related] == [(16, 9)]


def test_a_repeated_name_points_at_the_first_one() -> None:
    """The outer machine is read first, whatever the order of the text."""
    found = at("V-TOP-06")
    assert found.line == 27
    assert [other.line for other in found.related] == [32]


def test_an_unknown_function_is_marked_at_the_expression() -> None:
    """The nearest function is suggested."""
    found = at("V-INTR-01")
    assert (found.line, found.column) == (27, 58)
    assert found.hint == "did you mean 'States.Array'?"


def test_an_unknown_type_is_the_only_complaint_about_a_state() -> None:
    """What the state should have looked like cannot be known."""
    found = [each for each in check(read(TEXT)) if each.pointer.startswith("/States/Help")]
    assert [(each.code, each.line, each.hint) for each in found] == [
        ("V-ST-01", 32, "did you mean 'Fail'?")
    ]


def test_a_fault_within_an_expression_says_where() -> None:
    """A long text is not searched by eye."""
    state = {"Type": "Pass", "Parameters": {"x.$": "States.Array($.a, nothing)"}, "End": True}
    (found,) = check(read({"StartAt": "S", "States": {"S": state}}))
    assert "at character 19 of 'States.Array($.a, nothing)'" in found.message


@pytest.mark.parametrize(
    ("field", "value", "hint"),
    [
        ("Retry", [{"ErrorEquals": "States.ALL"}], 'put it in an array: ["States.ALL"]'),
        ("Retry", {"ErrorEquals": ["States.ALL"], "MaxAttempts": 9}, "put it in an array: [...]"),
        ("TimeoutSeconds", "5", "write 5 without quotes"),
        ("TimeoutSeconds", "-5", None),
        ("TimeoutSeconds", "soon", None),
        ("TimeoutSeconds", "on", None),
        ("End", "true", "write true without quotes"),
        ("End", "yes", "write true"),
    ],
)
def test_a_value_that_is_only_written_otherwise_gets_a_hint(
    field: str, value: Any, hint: str | None
) -> None:
    """One item without its array, a number or a truth value in quotes; nothing else is guessed."""
    state = {"Type": "Task", "Agent": "A", "End": True, field: value}
    (found,) = check(read({"StartAt": "S", "States": {"S": state}})).errors
    assert found.hint == hint
