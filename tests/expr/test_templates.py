"""Payload templates: keys ending in `.$` are computed, everything else is as it is written."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.core.errors import StateError
from asl.core.pointers import escape, tokens
from asl.core.work import WorkMeter
from asl.expr.frame import Evaluate
from asl.expr.paths import PathUse, compile_path, parse_path
from asl.expr.templates import compile_template, dynamic_fields, template_faults

pytestmark = pytest.mark.quick

FRAME: Any = SimpleNamespace(now=0.0, variables={"x": [1]}, work=WorkMeter())


def expression(field: str, text: str) -> Evaluate:
    return compile_path(parse_path(text), PathUse(field, "State"))


def evaluate(template: Any, data: Any) -> Any:
    return compile_template(template, expression)(data, FRAME)


DATA = {"a": 1, "b": {"c": [2, 3]}, "n": None}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ({}, {}),
        ([], []),
        ("$.a", "$.a"),
        (None, None),
        ({"a": "$.a"}, {"a": "$.a"}),
        ({"x.$": "$.a"}, {"x": 1}),
        ({"x.$": "$.n"}, {"x": None}),
        ({"x.$": "$x[0]"}, {"x": 1}),
        ({"x.$": "$"}, {"x": DATA}),
        ({"x.$": "$.a", "y": 2}, {"x": 1, "y": 2}),
        ({"x": {"y.$": "$.b.c"}, "z": 0, "w.$": "$.a"}, {"x": {"y": [2, 3]}, "z": 0, "w": 1}),
        ([{"x.$": "$.a"}, "$.a", [{"y.$": "$.b"}]], [{"x": 1}, "$.a", [{"y": {"c": [2, 3]}}]]),
        ({"x.$.$": "$.a"}, {"x.$": 1}),
        ({"$": 1, ".$x": 2, "x$": 3}, {"$": 1, ".$x": 2, "x$": 3}),
    ],
)
def test_template_results(template: Any, value: Any) -> None:
    """Values at any depth, with the suffix taken off the key."""
    assert evaluate(template, DATA) == value


def test_template_key_order() -> None:
    """Of the template, whether dynamic or not."""
    template = {"z.$": "$.a", "y": 1, "x": {"b.$": "$.a", "a": 2}, "w.$": "$.n"}
    assert list(evaluate(template, DATA)) == ["z", "y", "x", "w"]
    assert list(evaluate(template, DATA)["x"]) == ["b", "a"]


def test_template_missing_value() -> None:
    """However deep it is asked for."""
    with pytest.raises(StateError):
        evaluate({"x": [{"y.$": "$.missing"}]}, DATA)


def test_template_shares_constant_parts() -> None:
    """Two evaluations build only what differs between them."""
    compiled = compile_template({"x.$": "$.a", "y": {"z": [1]}}, expression)
    one, other = compiled({"a": 1}, FRAME), compiled({"a": 2}, FRAME)
    assert one is not other
    assert one["y"] is other["y"]


@pytest.mark.parametrize(
    ("template", "places"),
    [
        ({"x.$": 1}, ["/x.$"]),
        ({"x.$": {"y.$": 1}}, ["/x.$"]),
        ({".$": "$.a"}, ["/.$"]),
        ({"x": 1, "x.$": "$.a"}, ["/x.$"]),
        ({"x": [{"y.$": None}], "~/": {"z.$": []}}, ["/x/0/y.$", "/~0~1/z.$"]),
        ({"x.$": "$.a", "y": {"x": 1}}, []),
    ],
)
def test_template_faults(template: Any, places: list[str]) -> None:
    """A dynamic value is a string, its key has a name, and that name is given once."""
    faults = list(template_faults(template))
    assert [pointer for pointer, _ in faults] == places
    assert {fault.code for _, fault in faults} <= {"V-ST-09"}


KEYS = st.text("ab~/$.", max_size=3).filter(lambda key: not key.endswith(".$"))
LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("$.a{}", max_size=4),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=3),
    max_leaves=8,
)
PATHS = st.sampled_from(["$", "$.a", "$.b.c", "$.b.c[1]", "$.b.c[*]", "$x", "$.n"])
TEMPLATES = st.recursive(
    LITERALS | st.builds(lambda key, path: {f"{key}.$": path}, KEYS, PATHS),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(KEYS, below, max_size=2)
        | st.builds(
            lambda members, path: {**members, "dynamic.$": path},
            st.dictionaries(KEYS, below, max_size=3),
            PATHS,
        )
    ),
    max_leaves=10,
)


@given(LITERALS)
def test_constant_template_is_returned_unchanged(template: Any) -> None:
    """The very same object, every time."""
    compiled = compile_template(template, expression)
    assert compiled(DATA, FRAME) is template
    assert compiled(None, FRAME) is template


@given(TEMPLATES)
def test_dynamic_field_value(template: Any) -> None:
    """At any depth; and everything else is as it is written."""

    def expected(part: Any) -> Any:
        if type(part) is list:
            return [expected(each) for each in part]
        if type(part) is not dict:
            return part
        return {
            (key[:-2] if key.endswith(".$") else key): (
                expression(key, value)(DATA, FRAME) if key.endswith(".$") else expected(value)
            )
            for key, value in part.items()
        }

    assert evaluate(template, DATA) == expected(template)


@given(TEMPLATES)
def test_dynamic_fields_pointers(template: Any) -> None:
    """Following the pointer leads to the text of the expression."""
    for pointer, key, text in dynamic_fields(template):
        found = template
        for name in tokens(pointer):
            found = found[int(name)] if type(found) is list else found[name]
        assert found == text
        assert pointer.endswith(escape(key))


@given(TEMPLATES, st.integers())
def test_template_evaluation_changes_no_input(template: Any, value: int) -> None:
    """Both are shared with everybody."""
    from copy import deepcopy

    data = {**DATA, "a": value}
    before = deepcopy((template, data))
    evaluate(template, data)
    assert (template, data) == before
