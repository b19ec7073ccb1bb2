"""Choice rules: what each of the 39 operators compares, and the laws of And, Or and Not."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.core.errors import StateError
from asl.core.profile import Missing
from asl.core.work import WorkMeter
from asl.expr.choice_rules import OPERATORS, Operand, compile_rule
from asl.expr.frame import Evaluate
from asl.expr.paths import PathUse, compile_path, parse_path

NOW = 1_767_225_600.0
"""2026-01-01T00:00:00Z"""
FRAME: Any = SimpleNamespace(now=NOW, variables={}, work=WorkMeter())


def path(text: str, missing: Missing = Missing.RUNTIME) -> Evaluate:
    return compile_path(parse_path(text), PathUse("Variable", "Choose", missing))


OPERAND = Operand(
    variable=lambda text, strict: path(text),
    expression=path,
    reference=path,
)


def holds(rule: Any, data: Any) -> bool:
    return compile_rule(rule, OPERAND)(data, FRAME)


def comparison(operator: str, value: Any, operand: Any) -> bool:
    return holds({"Variable": "$.v", operator: operand}, {"v": value})


def test_operator_count() -> None:
    """The number that the service documents."""
    assert len(OPERATORS) == 39


RELATIONS = {
    "Equals": (False, True, False),
    "LessThan": (True, False, False),
    "LessThanEquals": (True, True, False),
    "GreaterThan": (False, False, True),
    "GreaterThanEquals": (False, True, True),
}
"""What each relation says of a smaller, an equal and a greater value."""

ORDERED = {
    "String": [("a", "b"), ("", "a"), ("Z", "a"), ("a", "aa"), ("\uffff", "\U00010000")],
    "Numeric": [(1, 2), (-1, 0), (1.5, 2), (1, 1.5), (2**53, 2**53 + 1), (10**30, 1e31)],
    "Timestamp": [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000001Z"),
        ("2026-01-01T00:00:00+01:00", "2026-01-01T00:00:00Z"),
        ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
    ],
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("kind", "less", "more"),
    [(kind, less, more) for kind, pairs in ORDERED.items() for less, more in pairs],
)
def test_comparison_order_by_type(kind: str, less: Any, more: Any, relation: str) -> None:
    """Strings by code point, numbers by value, timestamps by instant."""
    smaller, same, greater = RELATIONS[relation]
    assert comparison(kind + relation, less, more) is smaller
    assert comparison(kind + relation, less, less) is same
    assert comparison(kind + relation, more, less) is greater


@pytest.mark.parametrize(
    ("operator", "value", "operand"),
    [
        ("NumericEquals", 1, 1.0),
        ("NumericEquals", -0.0, 0),
        ("BooleanEquals", True, True),
        ("BooleanEquals", False, False),
        ("TimestampEquals", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z"),
        ("TimestampEquals", "2026-01-01T00:00:00.0Z", "2026-01-01T00:00:00Z"),
        ("TimestampEquals", "2026-01-01T00:00:00Z", "+0s"),
        ("TimestampLessThan", "2025-12-31T23:54:59Z", "-5m"),
        ("TimestampGreaterThan", "2026-01-01T02:00:01Z", "+2h"),
        ("StringMatches", "log-1.txt", "log-*.txt"),
        ("StringMatches", "", "*"),
        ("StringMatches", "a*b", "a\\*b"),
        ("StringMatches", "a?", "a?"),
        ("IsNull", None, True),
        ("IsNull", 0, False),
        ("IsNumeric", 1.5, True),
        ("IsNumeric", True, False),
        ("IsNumeric", "5", False),
        ("IsString", "", True),
        ("IsString", None, False),
        ("IsBoolean", False, True),
        ("IsBoolean", 0, False),
        ("IsTimestamp", "2026-01-01T00:00:00Z", True),
        ("IsTimestamp", "2026-01-01", False),
        ("IsTimestamp", "2026-02-30T00:00:00Z", False),
        ("IsTimestamp", 0, False),
        ("IsPresent", None, True),
        ("IsPresent", False, True),
    ],
)
def test_comparison_true(operator: str, value: Any, operand: Any) -> None:
    """Facts that tell neighbouring operators apart."""
    assert comparison(operator, value, operand)


@pytest.mark.parametrize(
    ("operator", "value", "operand"),
    [
        ("StringEquals", 5, "5"),
        ("NumericEquals", "5", 5),
        ("NumericEquals", True, 1),
        ("BooleanEquals", "true", True),
        ("BooleanEquals", 1, True),
        ("BooleanEquals", None, False),
        ("NumericLessThan", None, 1),
        ("TimestampEquals", "2026-01-01", "2026-01-01T00:00:00Z"),
        ("StringMatches", "ab", "a?"),
        ("StringMatches", ["a"], "*"),
        ("StringMatches", "a", "a*a"),
        ("IsNull", None, False),
        ("IsPresent", None, False),
    ],
)
def test_comparison_false(operator: str, value: Any, operand: Any) -> None:
    """A value of another kind makes it false, never an error."""
    assert not comparison(operator, value, operand)


@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_missing_variable_fails_except_is_present(operator: str) -> None:
    """Every other operator fails as its path does."""
    operand: Any = {"path": "$.w", "number": 1, "boolean": True}.get(OPERATORS[operator].operand)
    rule = {"Variable": "$.missing", operator: "x" if operand is None else operand}
    if operator == "IsPresent":
        assert not holds(rule, {"w": 1})
        assert holds({**rule, operator: False}, {"w": 1})
    else:
        with pytest.raises(StateError):
            holds(rule, {"w": 1})


def test_and_or_short_circuit() -> None:
    """A presence test guards what follows it."""
    present = {"Variable": "$.v", "IsPresent": True}
    reads = {"Variable": "$.v", "NumericEquals": 1}
    assert not holds({"And": [present, reads]}, {})
    assert holds({"Or": [{"Not": present}, reads]}, {})
    with pytest.raises(StateError):
        holds({"And": [reads, present]}, {})


def test_variable_expression() -> None:
    """`Variable.$` is computed."""
    assert holds({"Variable.$": "$.a.b", "NumericEquals": 1}, {"a": {"b": 1}})


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TIMESTAMPS = st.datetimes().map(lambda at: at.isoformat() + "Z")
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=5) | TIMESTAMPS
VALUES = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=2), below),
    max_leaves=5,
)
OPERANDS = {
    "string": st.text(max_size=5),
    "number": NUMBERS,
    "boolean": st.booleans(),
    "timestamp": TIMESTAMPS
    | st.tuples(st.sampled_from("+-"), st.integers(0, 10**6), st.sampled_from("smhdw")).map(
        lambda parts: "".join(map(str, parts))
    ),
    "path": st.sampled_from(["$.v", "$.w"]),
}
COMPARISONS = st.sampled_from(sorted(OPERATORS)).flatmap(
    lambda name: st.builds(
        lambda variable, operand: {"Variable": variable, name: operand},
        st.sampled_from(["$.v", "$.w"]),
        OPERANDS[OPERATORS[name].operand],
    )
)
RULES = st.recursive(
    COMPARISONS,
    lambda below: (
        st.builds(lambda rules: {"And": rules}, st.lists(below, min_size=1, max_size=3))
        | st.builds(lambda rules: {"Or": rules}, st.lists(below, min_size=1, max_size=3))
        | st.builds(lambda rule: {"Not": rule}, below)
    ),
    max_leaves=6,
)
DATA = st.fixed_dictionaries({"v": VALUES, "w": VALUES})


@given(RULES, DATA)
def test_rule_never_raises(rule: Any, data: Any) -> None:
    """No JSON value makes an operator raise, or answer anything else."""
    assert holds(rule, data) in (True, False)


@given(RULES, DATA)
def test_double_negation(rule: Any, data: Any) -> None:
    """Not is an involution."""
    assert holds({"Not": {"Not": rule}}, data) is holds(rule, data)
    assert holds({"Not": rule}, data) is not holds(rule, data)


@given(st.lists(RULES, min_size=1, max_size=4), DATA)
def test_de_morgan(rules: list[Any], data: Any) -> None:
    """De Morgan's laws."""
    negated = [{"Not": rule} for rule in rules]
    assert holds({"Not": {"And": rules}}, data) is holds({"Or": negated}, data)
    assert holds({"Not": {"Or": rules}}, data) is holds({"And": negated}, data)


TWINS = sorted(name for name in OPERATORS if f"{name}Path" in OPERATORS)
LITERALS = {**OPERANDS, "timestamp": TIMESTAMPS}


@given(
    st.sampled_from(TWINS).flatmap(
        lambda name: st.tuples(st.just(name), LITERALS[OPERATORS[name].operand])
    ),
    VALUES,
)
def test_path_operator_agrees_with_literal_operator(chosen: tuple[str, Any], value: Any) -> None:
    """Whether the operand is written down or read from the data makes no difference."""
    name, operand = chosen
    twin = {"Variable": "$.v", f"{name}Path": "$.w"}
    for each in (value, operand):
        data = {"v": each, "w": operand}
        assert holds(twin, data) is holds({"Variable": "$.v", name: operand}, data)


@given(st.sampled_from(TWINS), DATA)
def test_path_operator_false_for_other_types(name: str, data: Any) -> None:
    """And so is the comparison the other way round."""
    kinds: dict[str, Any] = {
        "string": lambda value: type(value) is str,
        "number": lambda value: type(value) in (int, float),
        "boolean": lambda value: type(value) is bool,
        "timestamp": lambda value: comparison("IsTimestamp", value, True),
    }
    if not kinds[OPERATORS[name].operand](data["w"]):
        assert not holds({"Variable": "$.v", f"{name}Path": "$.w"}, data)
        assert not holds({"Variable": "$.w", f"{name}Path": "$.v"}, data)
