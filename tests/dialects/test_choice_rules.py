"""Rules are said once, and hold and fail as before."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl
from asl.dialects.choice_rules import simplified

pytestmark = pytest.mark.quick

TESTS = [
    *({"Variable": path, "IsPresent": True} for path in ("$.a", "$.b")),
    {"Variable": "$.a", "IsPresent": False},
    *({"Variable": path, "IsNull": True} for path in ("$.a", "$.b")),
    {"Variable": "$.a", "StringEquals": "x"},
    {"Variable": "$.b", "NumericGreaterThan": 3},
]
RULES = st.recursive(
    st.sampled_from(TESTS),
    lambda inner: st.one_of(
        inner.map(lambda rule: {"Not": rule}),
        st.tuples(st.sampled_from(["And", "Or"]), st.lists(inner, min_size=1, max_size=3)).map(
            lambda said: {said[0]: said[1]}
        ),
    ),
    max_leaves=8,
)
DATA = [{}, {"a": None}, {"a": "x", "b": 7}, {"a": "y"}, {"b": None}, {"a": "x", "b": "x"}]


def decided(rule: Any, data: Any) -> Any:
    """Return where a rule leads, or the error of a run."""
    states = {
        "C": {"Type": "Choice", "Choices": [{**rule, "Next": "T"}], "Default": "F"},
        "T": {"Type": "Pass", "Result": True, "End": True},
        "F": {"Type": "Pass", "Result": False, "End": True},
    }
    result = asl.run({"StartAt": "C", "States": states}, data)
    return result.output if result.status == "SUCCEEDED" else result.error


@given(RULES, st.sampled_from(DATA))
def test_a_simplified_rule_decides_as_before(rule: Any, data: Any) -> None:
    """For any data, errors with it."""
    assert decided(simplified(rule), data) == decided(rule, data)


@given(RULES)
def test_a_simplified_rule_is_as_simple_as_it_gets(rule: Any) -> None:
    """To simplify it once more changes nothing."""
    once = simplified(rule)
    assert simplified(once) == once
    assert "[]" not in str(once)


def test_what_is_known_is_not_asked_again() -> None:
    """Neither what has held, nor what then cannot."""
    present, null = TESTS[0], TESTS[3]
    assert simplified(
        {
            "And": [
                {"And": [present, {"Not": null}]},
                {"Or": [{"Not": present}, null, TESTS[5]]},
                {"Not": {"Or": [{"Not": present}, null]}},
            ]
        }
    ) == {"And": [present, {"Not": null}, TESTS[5]]}


def test_what_always_holds_ends_a_rule_once() -> None:
    """It is asked again by nobody behind it."""
    present, absent = TESTS[0], TESTS[2]
    rule = {"Or": [{"Or": [absent, present]}, absent]}
    assert simplified(rule) == {"Or": [absent, present]}
