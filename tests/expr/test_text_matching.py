"""StringMatches patterns."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.expr.text_matching import compile_glob


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "", True),
        ("", "a", False),
        ("abc", "abc", True),
        ("abc", "abcd", False),
        ("*", "", True),
        ("*", "line\nbreak", True),
        ("**", "x", True),
        ("a*", "a", True),
        ("a*", "abc", True),
        ("a*", "ba", False),
        ("*a", "bba", True),
        ("*a", "ab", False),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*b*c", "a-b-c", True),
        ("a*b*c", "acb", False),
        ("*ab*ab*", "abab", True),
        ("*ab*ab*", "aab", False),
        ("ab*ba", "aba", False),
        ("a*bc*c", "abcc", True),
        ("a*bc*c", "abc", False),
        (r"a\*", "a*", True),
        (r"a\*", "ab", False),
        (r"a\\", "a\\", True),
        (r"a\\*", "a\\tail", True),
        (r"a\\\*", r"a\*", True),
        (r"a\d", r"a\d", True),
        (r"a\d", "a5", False),
        ("a\\", "a\\", True),
        ("a?c", "abc", False),
        ("a?c", "a?c", True),
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
        ("log-*.txt", "log-2026.txt", True),
        ("é*", "étude", True),
    ],
)
def test_pattern_star(pattern: str, text: str, expected: bool) -> None:
    """A pattern matches the whole text, case-sensitively."""
    assert compile_glob(pattern)(text) is expected


@given(st.text(st.characters(exclude_characters="*\\")), st.text())
def test_pattern_without_star(pattern: str, text: str) -> None:
    """Without `*` and backslashes a pattern matches itself alone."""
    matches = compile_glob(pattern)
    assert matches(pattern)
    assert matches(text) is (text == pattern)


@given(st.text())
def test_escaped_pattern(text: str) -> None:
    """Escaping stars and backslashes makes a pattern for exactly that text."""
    pattern = text.replace("\\", "\\\\").replace("*", "\\*")
    assert compile_glob(pattern)(text)
    assert not compile_glob(pattern)(text + "x")


def _matches_slowly(pattern: str, text: str) -> bool:
    """The definition, for patterns without backslashes."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(_matches_slowly(pattern[1:], text[at:]) for at in range(len(text) + 1))
    return text[:1] == pattern[0] and _matches_slowly(pattern[1:], text[1:])


@given(st.text("ab*", max_size=7), st.text("ab", max_size=9))
def test_pattern_agrees_with_definition(pattern: str, text: str) -> None:
    """The search from left to right finds a match whenever there is one."""
    assert compile_glob(pattern)(text) is _matches_slowly(pattern, text)


def test_pattern_does_not_backtrack() -> None:
    """A pattern that takes a backtracking matcher for ever is decided at once."""
    start = process_time()
    assert not compile_glob("a*" * 1000 + "b")("a" * 100_000)
    assert process_time() - start < 2
