"""Patterns: what they describe, whatever the value is."""

from typing import Any

import pytest

from asl.core.patterns import matches, mismatches

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


def test_work_of_a_regular_expression_is_counted() -> None:
    """With either engine; a text that takes too much is not matched."""
    (told,) = mismatches({"$like": "(a|b|ab){1,99}x" * 3}, "ab" * 400_000)
    assert "cannot be matched: " in told
    assert matches({"$like": "(a|b)*"}, "ab" * 1_000)
