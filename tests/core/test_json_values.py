"""Counting the values of a JSON text while it arrives."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.core.json_text import ValueCounter

JSON: Any = st.recursive(
    st.integers() | st.text(',"{[\\\\:\\n1', max_size=9),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=4)
        | st.dictionaries(st.text(',"{\\\\', max_size=4), inner, min_size=1, max_size=4)
    ),
    max_leaves=12,
)


def values(value: Any) -> int:
    """Return how many values there are in a value, itself included."""
    items = list(value.values()) if isinstance(value, dict) else value
    return 1 + (sum(map(values, items)) if isinstance(items, list) else 0)


@given(JSON, st.sampled_from([None, 1]), st.integers(1, 5))
def test_values_are_counted_in_pieces_of_any_size(
    value: Any, indent: int | None, size: int
) -> None:
    """Commas and brackets within strings are none, and an escape may be cut in two."""
    text = json.dumps(value, indent=indent).encode()
    counter = ValueCounter(values(value))
    assert all(counter.feed(text[at : at + size]) for at in range(0, len(text), size))
    assert counter.count == values(value)
    assert values(value) == 1 or not ValueCounter(values(value) - 1).feed(text)


@pytest.mark.parametrize("text", [b"1," * 100, b"[" * 100, b'""' * 100, b'{"a":' * 100])
def test_counting_ends_at_the_limit(text: bytes) -> None:
    """What is no JSON has no more values than JSON."""
    counter = ValueCounter(10)
    assert not counter.feed(text)
    assert max(counter.count, counter.strings) <= 100 + 1


@pytest.mark.parametrize("before", [b"", b'event: "\n', b": it's \"\r", b'id: "a\\"\r\n', b"[],\n"])
def test_values_of_one_text_of_several_are_counted(before: bytes) -> None:
    """Texts follow one another as in a stream of events, whatever stands in lines between them."""
    event = before + b'data: {"a": [1, {"b": "[,,,"}, 2], "c": 3}\n\n'
    counter = ValueCounter(10_000, 8)
    assert all(counter.feed(event) for _ in range(100))
    assert not counter.feed(before + b"data: [" + b"{}," * 8)
    assert counter.exceeded_limit == 8


def test_texts_that_never_end_are_one_text() -> None:
    counter = ValueCounter(10_000, 50)
    assert not all(counter.feed(b'data: [{"a": 1}\n\n') for _ in range(100))
