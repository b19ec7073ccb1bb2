"""What a schema has against a value: in linear time, and as jsonschema says it."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from asl.core.schemas import faults, validator_of
from asl.core.values import compact

LONG = "a" * 60 + "!"
SLOW = "^(a+)+$"
"""What Python's own expressions would try for years."""


@pytest.mark.parametrize("draft", ["Draft202012Validator", "Draft7Validator"])
@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"pattern": SLOW}}, "required": [LONG]},
        {"patternProperties": {SLOW: {}}, "additionalProperties": False},
        {"patternProperties": {SLOW: False}, "required": ["y"]},
    ],
)
def test_patterns_take_linear_time(draft: str, schema: Any) -> None:
    """Wherever a schema has one, a value that it does not fit is refused at once."""
    value = {LONG: 1} if "patternProperties" in schema else {"x": LONG}
    assert list(validator_of(compact(schema), draft).iter_errors(value))


@pytest.mark.parametrize("more", [False, True, {"type": "integer"}])
@pytest.mark.parametrize("value", [{"n": 1}, {"x-1": "a"}, {"x-1": 1}, {"y": 1}, {"y": "a"}, 3, []])
def test_additional_properties_are_those_of_jsonschema(more: Any, value: Any) -> None:
    """Those that are neither named nor fit a pattern."""
    schema = {
        "properties": {"n": {"type": "integer"}},
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": more,
    }
    assert bool(faults(schema, value)) == (not Draft202012Validator(schema).is_valid(value))
