"""JSON values: equality, size and the border to foreign code."""

import datetime
import enum
import json
import math
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.core.errors import NotJson, StateError
from asl.core.values import (
    MAX_DEPTH,
    MAX_INTEGER,
    compact,
    copy_for_agent,
    copy_foreign,
    copy_result,
    deep_copy,
    fits,
    index_of,
    is_integer,
    is_number,
    json_equal,
    measure,
    type_name,
)

pytestmark = pytest.mark.quick

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def json_values(integers: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    floats = st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        st.none() | st.booleans() | integers | floats | TEXT,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
        max_leaves=20,
    )


JSON = json_values(st.integers())
COMMON = json_values(st.integers(-(2**63), 2**64 - 1))
"""Beyond 64 bits another encoder writes the text, with other exponents: 1e-05 for 1e-5."""


class Colour(enum.StrEnum):
    RED = "red"


class Mine(dict[str, Any]):
    pass


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def laughs(levels: int) -> list[Any]:
    value: list[Any] = ["ha"]
    for _ in range(levels):
        value = [value, value]
    return value


def cycle() -> list[Any]:
    value: list[Any] = []
    value.append({"again": value})
    return value


@pytest.mark.parametrize(
    ("value", "number", "integer", "name"),
    [
        (None, False, False, "null"),
        (True, False, False, "boolean"),
        (3, True, True, "number"),
        (3.0, True, True, "number"),
        (3.5, True, False, "number"),
        ("3", False, False, "string"),
        ([], False, False, "array"),
        ({}, False, False, "object"),
    ],
)
def test_types_are_those_of_json(value: Any, number: bool, integer: bool, name: str) -> None:
    """A boolean is no number, and 3.0 is an integer."""
    assert (is_number(value), is_integer(value), type_name(value)) == (number, integer, name)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ([1], [True], False),
        ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}, True),
        ({"a": None}, {}, False),
        ({"a": 1}, {"b": 1}, False),
        ([1, 2], [2, 1], False),
        ([], {}, False),
        ("1", 1, False),
        (None, False, False),
    ],
)
def test_equality_is_that_of_json(one: Any, other: Any, equal: bool) -> None:
    """Numbers are equal by value, booleans equal no number, the order of keys is free."""
    assert json_equal(one, other) is equal
    assert json_equal(other, one) is equal


def test_equality_of_shared_and_cyclic_values_ends() -> None:
    """Two values of 2^60 shared parts are compared at once, and so are two cycles."""
    assert json_equal(laughs(60), laughs(60))
    assert json_equal(cycle(), cycle())


@given(JSON)
def test_compact_text_reads_back(value: Any) -> None:
    """Writing then reading gives the same value."""
    assert json_equal(json.loads(compact(value)), value)


def test_compact_keeps_order_and_characters() -> None:
    """Keys keep their order, non-ASCII characters and large integers are written as they are."""
    assert compact({"b": "é", "a": 10**30}) == '{"b":"é","a":1000000000000000000000000000000}'


@given(COMMON)
def test_measure_is_the_length_of_the_compact_text(value: Any) -> None:
    """The size is exact up to the limit and more than the limit beyond it."""
    size = len(compact(value).encode())
    assert measure(value, size) == size
    assert measure(value, size - 1) > size - 1


def test_measure_counts_shared_values_each_time() -> None:
    """A shared value counts as often as it is written, also within other shared values."""
    value = laughs(10)
    assert measure(value, 10**9) == len(compact(value))


def test_measure_of_shared_and_cyclic_values_ends() -> None:
    """2^100 shared parts are measured at once; a cycle is larger than any limit."""
    assert measure(laughs(100), 2**200) > 2**100
    assert measure(laughs(100), 1000) > 1000
    assert measure(cycle(), 10**6) > 10**6


@given(JSON)
def test_a_detached_value_is_equal_and_independent(value: Any) -> None:
    """The copy equals the original and shares no container with it."""
    copy = copy_foreign(value)
    assert json_equal(copy, value)
    assert containers(copy).isdisjoint(containers(value))


@given(JSON)
def test_a_value_that_is_handed_over_is_equal_and_independent(value: Any) -> None:
    """To the last type of a number: whoever gets it may keep and change it."""
    copy = copy_for_agent(value, 10**6, "S")
    assert json.dumps(copy) == json.dumps(value)
    assert containers(copy).isdisjoint(containers(value))


@given(COMMON)
def test_a_copy_is_equal_and_independent(value: Any) -> None:
    """Also of what has no text by orjson: long integers, half a character."""
    for each in (value, [value, 2**70], [value, "\ud800"]):
        copy = deep_copy(each)
        assert json.dumps(copy) == json.dumps(each)
        assert containers(copy).isdisjoint(containers(each))


def test_shared_and_deep_values_are_copied_at_once() -> None:
    """What was the same is the same in the copy, so it takes no more room."""
    copy = deep_copy(laughs(100))
    assert copy[0] is copy[1]
    assert deep_copy(nested(MAX_DEPTH)) == nested(MAX_DEPTH)


@given(COMMON)
def test_what_is_handed_over_is_no_larger_than_the_limit(value: Any) -> None:
    """The limit is exact, but for what is flat and small, which is below every limit there is."""
    size = len(compact(value).encode())
    assert fits(value, size)
    assert not fits(value, size - 1)
    if size > 10:
        with pytest.raises(StateError, match="DataLimitExceeded"):
            copy_for_agent([value], size + 1, "S")
        assert copy_for_agent([value], size + 2, "S") == [value]


def test_shared_and_deep_values_are_handed_over_or_refused_at_once() -> None:
    """No text of a size that nobody has seen is made."""
    with pytest.raises(StateError, match="DataLimitExceeded"):
        copy_for_agent(laughs(100), 10**8, "S")
    with pytest.raises(StateError, match="DataLimitExceeded"):
        copy_for_agent([{"same": "x" * 10**6}] * 10**5, 10**8, "S")
    assert copy_for_agent(nested(MAX_DEPTH), 10**6, "S") == nested(MAX_DEPTH)
    with pytest.raises(StateError, match="nested deeper"):
        copy_for_agent(nested(MAX_DEPTH + 1), 10**6, "S")
    assert not fits(cycle(), 10**8)


def containers(value: Any) -> set[int]:
    if not isinstance(value, list | dict):
        return set()
    members = value.values() if isinstance(value, dict) else value
    return {id(value)}.union(*map(containers, members))


@pytest.mark.parametrize(
    ("value", "place", "found"),
    [
        ((1, 2), "$", "tuple"),
        ({"a": [0, {1}]}, "$['a'][1]", "set"),
        ({"a": {1: 2}}, "$['a'][1]", "int"),
        ({"a": math.nan}, "$['a']", "float"),
        ([math.inf], "$[0]", "float"),
        ({"when": datetime.date(2030, 1, 1)}, "$['when']", "date"),
        ([b"x"], "$[0]", "bytes"),
        ({"c": Colour.RED}, "$['c']", "Colour"),
        ([Mine()], "$[0]", "Mine"),
        (["\ud800"], "$[0]", "str"),
        ({"\udfff": 1}, "$['\\udfff']", "str"),
        ([MAX_INTEGER + 1], "$[0]", "int"),
        ({"a": ()}, "$['a']", "tuple"),
        ({Colour.RED: 1}, "$[<Colour.RED: 'red'>]", "Colour"),
        ({10**5000: 1}, "$[int]", "int"),  # which Python does not write
        (object(), "$", "object"),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(value: Any, place: str, found: str) -> None:
    """The error names the JSONPath and the Python type, whichever way a value is copied."""
    for taken in (copy_foreign, lambda value: copy_result(value, 10**6, "S")):
        with pytest.raises(NotJson) as caught:
            taken(value)
        assert (caught.value.place, caught.value.found) == (place, found)
        assert found in str(caught.value)


@pytest.mark.parametrize("value", [cycle(), nested(MAX_DEPTH + 1)])
def test_cycles_and_deep_values_are_refused(value: Any) -> None:
    """A value within itself or nested too deeply ends in an error, not in a crash."""
    with pytest.raises(NotJson, match="nested deeper"):
        copy_foreign(value)


def test_the_deepest_value_passes() -> None:
    """The limit of depth itself is allowed."""
    assert copy_foreign(nested(MAX_DEPTH)) == nested(MAX_DEPTH)


def test_detaching_shared_values_ends() -> None:
    """A value of 2^100 shared parts is copied once per part."""
    assert measure(copy_foreign(laughs(100)), 2**200) == measure(laughs(100), 2**200)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (StateError("States.Timeout", "too late"), "States.Timeout: too late"),
        (StateError("Mine"), "Mine"),
        (StateError(None, "why"), "why"),
        (StateError(None), ""),
    ],
)
def test_a_state_error_reads_as_name_and_cause(error: StateError, text: str) -> None:
    """Absent parts are left out."""
    assert str(error) == text


@pytest.mark.parametrize(
    ("step", "index"),
    [("0", 0), ("2", 2), ("02", 2), ("3", None), ("", None), ("-1", None), ("1.0", None),
     ("²", None), ("٢", None), ("9" * 5000, None)],
)  # fmt: skip
def test_a_step_of_digits_names_a_position_that_is_there(step: str, index: int | None) -> None:
    assert index_of(step, [1, 2, 3]) == index


@given(st.lists(st.none()), st.integers(0, 20))
def test_every_position_of_a_list_is_found(items: list[None], index: int) -> None:
    assert index_of(str(index), items) == (index if index < len(items) else None)


@pytest.mark.parametrize("wrap", [lambda text: text, lambda text: {"t": text, "n": 1}])
def test_size_of_a_long_text_with_a_wide_character_is_counted_in_pieces(wrap: Any) -> None:
    """Neither its text as JSON nor its UTF-8 is held as a whole."""
    value = wrap("\U0001f600" + 'x"' * 1_000_000)
    wanted = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    del value
    value = wrap("\U0001f600" + 'x"' * 1_000_000)
    tracemalloc.start()
    try:
        assert copy_result(value, wanted, "s") == value
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000
    assert measure(value, wanted) == wanted
    assert fits(value, wanted)
    assert not fits(value, wanted - 1)


@pytest.mark.parametrize("container", [["é" * 300_000], {"k": "é" * 300_000}, ["x", "é" * 300_000]])
def test_size_of_a_container_with_a_long_text(container: Any) -> None:
    text = json.dumps(container, ensure_ascii=False, separators=(",", ":"))
    assert measure(container, 2**30) == len(text.encode())
