"""ResultPath builds a new value around a result and leaves the old one alone."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.core.errors import StateError
from asl.expr.paths import parse_path
from asl.expr.result_path import compile_result_path

NAMES = st.sampled_from(["a", "b", "c"])
TREES = st.dictionaries(
    NAMES,
    st.recursive(
        st.integers() | st.none(),
        lambda below: st.dictionaries(NAMES, below, max_size=3) | st.lists(below, max_size=3),
        max_leaves=10,
    ),
    max_size=3,
)
STEPS = st.lists(NAMES, min_size=1, max_size=4)


def put(raw: Any, text: str, result: Any) -> Any:
    place = compile_result_path(parse_path(text))
    return result if place is None else place(raw, result, None)


def get(data: Any, steps: list[str]) -> Any:
    for step in steps:
        data = data[step]
    return data


@given(TREES, STEPS, st.integers())
def test_result_path_reads_back_the_result(tree: Any, steps: list[str], value: int) -> None:
    """Placing then reading gives the value, and the raw input is untouched."""
    before = copy.deepcopy(tree)
    try:
        placed = put(tree, "$." + ".".join(steps), value)
    except StateError as error:
        assert error.name == "States.ResultPathMatchFailure"
    else:
        assert get(placed, steps) == value
    assert tree == before


@given(TREES, STEPS, st.integers())
def test_result_path_shares_other_members(tree: Any, steps: list[str], value: int) -> None:
    """Every member beside the way is the very same object."""
    try:
        placed = put(tree, "$." + ".".join(steps), value)
    except StateError:
        return
    old, new = tree, placed
    for step in steps:
        for key in old:
            if key != step:
                assert new[key] is old[key]
        old, new = old.get(step, {}), new[step]
        if not isinstance(old, dict):
            break


@pytest.mark.parametrize(
    ("raw", "path", "expected"),
    [
        ({"x": 1}, "$", 9),
        ("scalar", "$", 9),
        ({}, "$.a.b.c", {"a": {"b": {"c": 9}}}),
        ({"a": [1, 2, 3]}, "$.a[1]", {"a": [1, 9, 3]}),
        ({"a": [{"b": 1}]}, "$.a[0].b", {"a": [{"b": 9}]}),
        ({"a": [{}]}, "$.a[0].b.c", {"a": [{"b": {"c": 9}}]}),
        ({"a": 1, "b": 2}, "$.a", {"a": 9, "b": 2}),
        ({"a": {"b": 1, "c": 2}}, "$.a.b", {"a": {"b": 9, "c": 2}}),
    ],
)
def test_result_path_inserts_result(raw: Any, path: str, expected: Any) -> None:
    """Members are replaced, missing objects made, array elements replaced."""
    assert put(raw, path, 9) == expected


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ("scalar", "$.a"),
        ([1], "$.a"),
        (None, "$.a.b"),
        ({"a": 1}, "$.a.b"),
        ({"a": None}, "$.a.b"),
        ({"a": [1]}, "$.a.b"),
        ({"a": [1]}, "$.a[1]"),
        ({"a": {}}, "$.a[0]"),
        ({}, "$.a[0]"),
    ],
)
def test_result_path_match_failure(raw: Any, path: str) -> None:
    """A scalar or array on the way, or an index beyond the end."""
    with pytest.raises(StateError) as failure:
        put(raw, path, 9)
    assert failure.value.name == "States.ResultPathMatchFailure"


def test_result_path_null_returns_raw_input() -> None:
    """ResultPath null drops the result."""
    place = compile_result_path(None)
    assert place is not None
    raw = {"a": 1}
    assert place(raw, 9, None) is raw
