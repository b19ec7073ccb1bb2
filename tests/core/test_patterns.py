"""Patterns: what they describe, whatever the value is."""

from typing import Any

import pytest

from asl.core.patterns import matches

ANY: Any = {"$any": True}


@pytest.mark.parametrize("text", ['{"a": [1, 2.0]}', '  {"a":[1,2]}\n'])
def test_json_in_a_text(text: str) -> None:
    """It is compared as the value that it says."""
    assert matches({"$json": {"a": [1, 2]}}, text)
    assert not matches({"$json": {"a": [2, 1]}}, text)


@pytest.mark.parametrize("value", ["", "{", "NaN", '"\\ud800"', "[" * 100_000, 1, None, ["1"]])
def test_what_is_no_json_in_a_text(value: Any) -> None:
    """Neither a number that JSON does not have, nor what nests without end."""
    assert matches(ANY, value)
    assert not matches({"$json": ANY}, value)
