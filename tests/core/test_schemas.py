"""What a schema has against a value: in linear time, and as jsonschema says it."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from asl.core.schemas import faults, judge, schema_faults
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
    assert judge(compact(schema), draft, value)


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


def _doubled(keyword: str) -> Any:
    """Return a schema that judges its value 2 to the power of 24 times."""
    definitions: dict[str, Any] = {"s24": {"type": "string"}}
    for level in range(24):
        pair = [{"$ref": f"#/$defs/s{level + 1}"}] * 2
        definitions[f"s{level}"] = {
            "not": {"not": {"allOf": pair}},
            "if": {"if": pair[0], "then": pair[0], "else": pair[0]},
            "dependentSchemas": {"dependentSchemas": {"a": {"allOf": pair}}},
            "contains": {"contains": {"anyOf": pair}},
        }.get(keyword, {keyword: pair})
    return {"$defs": definitions, "$ref": "#/$defs/s0"}


OBJECTS = [{"n": index, "m": [index]} for index in range(3000)]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        *((_doubled(each), 1) for each in ("anyOf", "oneOf", "allOf", "not", "if")),
        ({**_doubled("allOf"), "unevaluatedProperties": False}, {"a": 1}),
        (_doubled("dependentSchemas"), {"a": 1}),
        ({"$ref": "#"}, 1),
        ({"$dynamicAnchor": "x", "$dynamicRef": "#x"}, 1),
        ({"anyOf": [{"$ref": "#"}, {"not": {"$ref": "#"}}]}, 1),
        ({"unevaluatedProperties": False, "$ref": "#"}, {"a": 1}),
        ({"unevaluatedItems": False, "$ref": "#"}, [1]),
        ({"items": {"enum": [[OBJECTS[:20], index] for index in range(1000)]}}, OBJECTS),
        ({"contains": {"anyOf": [{"const": index} for index in range(1000)]}}, OBJECTS),
        (
            {"patternProperties": {f"^{n}$": False for n in range(1000)}},
            dict.fromkeys(map(str, range(2000, 4000))),
        ),
        ({"patternProperties": {f"\\pL{{{n}}}": False for n in range(1000, 1300)}}, {"a": 1}),
        ({"allOf": [{"required": [str(n) for n in range(500)]}] * 200}, {}),
        ({"contains": False}, [1] * 100_000),
        ({"contains": {"contains": {"contains": False}}}, [[[1] * 100] * 10] * 100),
    ],
)
def test_work_of_a_schema_is_counted(schema: Any, value: Any) -> None:
    """What would take long is a fault that says so."""
    assert faults(schema, value).startswith("the value cannot be judged by its schema: ")


def test_unique_items_of_many_objects() -> None:
    """Equal items are looked up, not compared with each other."""
    schema = {"uniqueItems": True}
    assert not faults(schema, OBJECTS)
    assert judge(compact(schema), "Draft202012Validator", [*OBJECTS, {"m": [5.0], "n": 5}])
    assert faults(schema, [1, True, 0, False, "1", [1], {"a": 1}]) == ""


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"enum": [1, {"a": [True]}]}, 1.0),
        ({"enum": [1, {"a": [True]}]}, {"a": [1]}),
        ({"enum": [0]}, False),
        ({"const": {"a": [1]}}, {"a": [1.0]}),
        ({"const": []}, ["array"]),
        ({"uniqueItems": True}, [1, 1.0]),
        (
            {
                "properties": {"a": {}},
                "patternProperties": {"^x": {}},
                "unevaluatedProperties": False,
            },
            {"a": 1, "x1": 2},
        ),
        ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1}),
        (
            {
                "anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {}}}],
                "unevaluatedProperties": False,
            },
            {"a": 1, "b": 2},
        ),
        (
            {
                "if": {"properties": {"a": {"const": 1}}},
                "then": {"properties": {"b": {}}},
                "else": {"properties": {"c": {}}},
                "unevaluatedProperties": False,
            },
            {"a": 1, "c": 2},
        ),
        (
            {
                "dependentSchemas": {"a": {"properties": {"a": {}}}},
                "unevaluatedProperties": {"type": "string"},
            },
            {"a": 1, "c": 2},
        ),
        (
            {
                "$defs": {"s": {"properties": {"a": {}}}},
                "$ref": "#/$defs/s",
                "unevaluatedProperties": False,
            },
            {"a": 1},
        ),
        (
            {
                "$defs": {"s": {"properties": {"a": {}}}},
                "$ref": "#/$defs/s",
                "unevaluatedProperties": False,
            },
            {"b": 1},
        ),
        ({"allOf": [{"unevaluatedProperties": True}], "unevaluatedProperties": False}, {"b": 1}),
    ],
)
def test_comparisons_are_those_of_jsonschema(schema: Any, value: Any) -> None:
    """Our own keywords decide as jsonschema's do."""
    assert bool(faults(schema, value)) == (not Draft202012Validator(schema).is_valid(value))


def test_schemas_within_name_no_other_class() -> None:
    """A `$schema` within the schema does not bring back Python's own patterns."""
    inner = {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": SLOW}
    assert "does not match" in faults({"allOf": [inner]}, LONG)


def test_reference_to_nowhere() -> None:
    """It is a fault, not an exception."""
    assert faults({"$ref": "#/$defs/x"}, 1) == "$: the schema has no '/$defs/x'"


def test_check_of_a_hostile_schema() -> None:
    """A schema is checked with counted work, too."""
    found = [*schema_faults("V-TOOLS-06", {"type": OBJECTS}, "")]
    assert found
    nested: Any = {"type": 1}
    for _ in range(150):
        nested = {"anyOf": [nested, nested]}
    assert "too large or too deep" in next(schema_faults("V-TOOLS-06", nested, "")).message
    large = {"properties": {f"p{index}": {"type": "string"} for index in range(1000)}}
    assert not [*schema_faults("V-TOOLS-06", large, "")]


HUGE = 10**400


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"multipleOf": HUGE}, 3 * HUGE, True),
        ({"multipleOf": HUGE}, HUGE + 1, False),
        ({"multipleOf": HUGE}, 1e308, False),
        ({"multipleOf": 0.5}, HUGE, True),
        ({"multipleOf": 1e-308}, HUGE, False),
        ({"minimum": HUGE}, 1e308, False),
        ({"exclusiveMaximum": HUGE}, 1e308, True),
        ({"const": 2**70}, 2**70, True),
        ({"const": 2**70}, 2**70 + 1, False),
        ({"enum": [HUGE]}, HUGE, True),
        ({"minLength": HUGE}, "a", False),
        ({"maxItems": HUGE}, [1], True),
        ({"contains": {}, "minContains": HUGE}, [1], False),
    ],
)
def test_numbers_of_any_size_are_compared(schema: Any, value: Any, fits: bool) -> None:
    """Integers that no double holds, in the schema and in the value."""
    assert (not faults(schema, value)) is fits
