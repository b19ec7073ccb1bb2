"""Patterns: what they describe, whatever the value is."""

from typing import Any

import pytest

from asl.core.json_patterns import matches, mismatches

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


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("x{1000}.*", "x" * 262_000, True),
        ("x{1000}.*", "y" * 262_000, False),
        ("x{500}y{500}z*", "x" * 500 + "y" * 500 + "z" * 200_000, True),
        ("(eHh4){1000}.*", "eHh4" * 50_000, True),
        ("(?:(ab){10}c){40}(d?e)*", ("ab" * 10 + "c") * 40 + "de" * 90_000, True),
        (".*needle.*", "hay " * 60_000 + "needle", True),
    ],
)
def test_like_of_a_long_text(pattern: str, text: str, fits: bool) -> None:
    """Counted places in front cost as much as a single one."""
    assert matches({"$like": pattern}, text) is fits


@pytest.mark.parametrize(
    "pattern",
    [
        "(a|b)*a(a|b){900}",
        ".*a.{900}c",
        "x?.{900}.*",
        "a{900}|.*a.{900}",
        "(?:.a?){900}",
        "(.{3}b?){200}",
    ],
)
def test_like_takes_few_steps(pattern: str) -> None:
    """A pattern that is tried at many places of a long text is not, and the sentence says so."""
    (sentence,) = mismatches({"$like": pattern}, "ab" * 100_000)
    assert "cannot be matched: " in sentence
    assert "steps" in sentence
