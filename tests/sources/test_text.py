"""Texts that know where their characters were written, and scalars that are made into such."""

import json
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import (
    DoubleQuotedScalarString,
    FoldedScalarString,
    LiteralScalarString,
    SingleQuotedScalarString,
)

from asl.core import yaml_text
from asl.core.source import DEFAULT_LIMITS
from asl.sources.text import TrackedText, join_texts, track_scalar

SOURCE = "0123456789abcdefghijklmnopqrstuvwxyz"
cuts = st.lists(st.tuples(st.integers(0, 35), st.integers(0, 8)), max_size=8)


def places(text: TrackedText) -> list[int]:
    return [text.origin(position) for position in range(len(text.string))]


@given(cuts, st.integers(0, 40), st.integers(0, 40))
def test_part_of_joined_texts_has_its_positions(
    pieces: list[tuple[int, int]], start: int, length: int
) -> None:
    """Whatever is joined and cut out, every character stands where it was written."""
    whole = join_texts(
        [TrackedText.from_source(SOURCE[at : at + size], at) for at, size in pieces], 0
    )
    assert "".join(SOURCE[place] for place in places(whole)) == whole.string
    start = min(start, len(whole.string))
    part = whole.part(start, min(len(whole.string), start + length))
    assert part.string == whole.string[start : start + length]
    assert places(part) == places(whole)[start : start + length]


def test_inserted_value_has_the_position_of_its_placeholder() -> None:
    """All characters of a value have one place, and are told from what was written."""
    text = join_texts(
        [
            TrackedText.from_source("ab", 0),
            TrackedText.insertion("value", 2),
            TrackedText.from_source("c", 6),
        ],
        0,
    )
    assert places(text) == [0, 1, 2, 2, 2, 2, 2, 6]
    assert [text.is_inserted(at) for at in range(8)] == [False] * 2 + [True] * 5 + [False]


@pytest.mark.parametrize(
    ("before", "value", "after", "expected", "escaped"),
    [
        ('{"a": "', "x", '"}', {"a": "x"}, False),
        ('{"a": "', 'say "x"', '"}', {"a": 'say "x"'}, True),
        ('{"a": "', r"say \"x\"", '"}', {"a": 'say "x"'}, False),
        ('{"a": "', "two\nlines", '"}', {"a": "two\nlines"}, True),
        ('{"a": "', "C:\\dir", '"}', {"a": "C:\\dir"}, True),
        ('{"a": "', 'x", "b": "y', '"}', {"a": 'x", "b": "y'}, True),
        ('{"a": ', "30", "}", {"a": 30}, False),
        ('{"a": ', '{"b": "c"}', "}", {"a": {"b": "c"}}, False),
        ('{"a": "q \\" ', 'x"', '", "b": 1}', {"a": 'q " x"', "b": 1}, True),
    ],
)
def test_value_is_escaped_in_a_string(
    before: str, value: str, after: str, expected: object, escaped: bool
) -> None:
    """A value is inserted as it is, but for one that would break the string around it."""
    pieces = [
        TrackedText.from_source(before, 0),
        TrackedText.insertion(value, 100),
        TrackedText.from_source(after, 200),
    ]
    text, changed = join_texts(pieces, 0).escape_for_json()
    assert json.loads(text.string) == expected
    assert changed == ([value] if escaped else [])


@given(st.text(st.characters(codec="utf-8")), st.booleans())
def test_positions_of_json_strings(value: str, ascii_only: bool) -> None:
    """A character of a string stands where it, or the escape for it, is written."""
    source = "  " + json.dumps(value, ensure_ascii=ascii_only)
    text = track_scalar(value, source, 2)
    assert text.string == value
    assert [source[text.origin(at) : text.origin(at + 1)] for at in range(len(value) - 1)] == [
        json.dumps(each, ensure_ascii=ascii_only)[1:-1] for each in value[:-1]
    ]


words = st.lists(st.text("ab'\"{}:#\\é😀", min_size=1, max_size=5), max_size=8)
styles = st.sampled_from(
    [
        str,
        DoubleQuotedScalarString,
        SingleQuotedScalarString,
        LiteralScalarString,
        FoldedScalarString,
    ]
)


@given(words, st.sampled_from([" ", "\n", "\n\n", "\n  "]), styles)
def test_positions_of_yaml_scalars(parts: list[str], between: str, style: type[str]) -> None:
    """However a scalar is written, its visible characters are found where they stand."""
    written = StringIO()
    yaml = YAML()
    yaml.width = 20
    yaml.dump({"key": style(between.join(parts)), "other": 1}, written)
    source = written.getvalue()
    value, span, faults = yaml_text.loads(source, DEFAULT_LIMITS)
    if faults or type(value["key"]) is not str:
        return
    found = span.member("key")
    assert found is not None
    text = track_scalar(value["key"], source, found.at)
    for at, character in enumerate(text.string):
        if not character.isspace():
            assert source[text.origin(at)] in (character, "\\"), (source, at)
