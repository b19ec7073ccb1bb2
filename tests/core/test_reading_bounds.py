"""Hostile texts: what is read, located and reported of them is bounded."""

import json
import random
import subprocess
import sys

import pytest

import asl
from asl.core import json_text, yaml_text
from asl.core.diagnostics import (
    MAX_FINDINGS,
    InvalidDocument,
    Suggestions,
    bounded_suggestions,
    did_you_mean,
)
from asl.core.source import DOCUMENT_LIMITS, Limits, Source
from asl.dialects.formatter import format_json

STATES = '{"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true, %s}}}'


@pytest.mark.parametrize("content", ["x", r"\n", r"\u00e4", "x\\\\", "\u00e4", r"\"", ""])
@pytest.mark.parametrize("times", [0, 1, 999, 1_000, 1_001, 30_000])
def test_strings_end_where_their_quote_is(content: str, times: int) -> None:
    """However many escapes they have; one without a quote is placed at its begin."""
    text = f'["{content * times}", 1, ]'
    (fault,) = json_text.scan(text, DOCUMENT_LIMITS)[1]
    assert (fault.message, fault.offset) == ("a comma before the end", text.rindex(","))
    (fault,) = json_text.scan(f'["{content * times}', DOCUMENT_LIMITS)[1]
    assert (fault.message, fault.offset) == ("the string is not closed", 1)


@pytest.mark.parametrize("value", ["1", "[]", "{}", '"a"', '{"a":1}'])
def test_values_are_counted(value: str) -> None:
    """The bound is exact, whatever the values are."""
    text = f"[{','.join([value] * 100)}]"
    size = 201 if value == '{"a":1}' else 101
    assert json_text.loads(text, Limits(max_values=size))[1] == []
    (fault,) = json_text.loads(text, Limits(max_values=size - 1))[1]
    assert fault.code == "READ-04"


def test_documents_have_fewer_values_than_data() -> None:
    """Each value of a document is work for many rules."""
    document = STATES % f'"Result": [{",".join(["1"] * 200_000)}]'
    with pytest.raises(InvalidDocument, match="READ-04"):
        asl.load(document)


@pytest.mark.parametrize(
    "text", ["a: 1\nb: 1\n", "- 1\n- 2\n- 3\n", "{a: 1, b: 1}", "[&a 1, &b 1]"]
)
def test_yaml_nodes_are_counted(text: str) -> None:
    """Keys as well as values: the parser takes as long for either."""
    assert yaml_text.loads(text, Limits(max_yaml_nodes=10))[2] == []
    (fault,) = yaml_text.loads(text, Limits(max_yaml_nodes=5))[2]
    assert fault.code == "READ-04"


@pytest.mark.parametrize("seed", range(5))
def test_places_are_those_of_the_text(seed: int) -> None:
    """Every offset has the line and column that counting gives, and every line its text."""
    chance = random.Random(seed)
    text = "".join(chance.choice("ab\n" + "c" * 10 ** (seed % 4)) for _ in range(20_000))
    source = Source("x", text, "json")
    for offset in [0, 4095, 4096, 4097, len(text), *chance.sample(range(len(text)), 200)]:
        before = text[:offset]
        expected = before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
        assert source.place(offset) == expected
    lines = text.split("\n")
    assert [source.line(number) for number in range(1, len(lines) + 1)] == lines
    assert source.line(len(lines) + 1) == ""


def test_findings_beyond_the_bound_are_counted() -> None:
    """Errors go first; the report says how many others there are."""
    fields = ", ".join(f'"Wrong{index}": 1' for index in range(6_000))
    report = asl.check(asl.load(STATES % f'"Retry": 1, {fields}'))
    assert len(report) == MAX_FINDINGS + 1
    (counting,) = (each for each in report if each.code == "READ-20")
    assert counting.message.startswith(f"{6_001 - MAX_FINDINGS} more findings are not listed")
    assert all(each.line == 1 for each in report if each is not counting)
    assert len(str(report)) < 1_000 * MAX_FINDINGS


def test_messages_that_quote_long_names_are_short() -> None:
    """A name of a megabyte is quoted in part."""
    report = asl.check(asl.load(STATES % f'"{"k" * 1_000_000}": 1'))
    assert all(len(each.message) < 3_000 for each in report)
    assert len(str(report)) < 10_000


def test_suggestions_are_bounded_together() -> None:
    """Looking for a near name among thousands, thousands of times, ends."""
    names = [f"name{index}" for index in range(10_000)]
    suggestions = Suggestions()
    found = [suggestions.near(f"nome{index}", names) for index in range(5_000)]
    assert found.count(None) > 4_900
    with bounded_suggestions():
        for index in range(5_000):
            did_you_mean(f"nome{index}", names)
    assert did_you_mean("nome1", ["name1"]) == "did you mean 'name1'?"


def test_layout_of_nested_values() -> None:
    """Each part is written once, however deep it stands."""
    value: object = list(range(5_000))
    for _ in range(150):
        value = {"a": value, "b": [{}]}
    assert json.loads(format_json(value)) == value


GRAMMARS = """
import sys
from importlib.util import find_spec
from asl.core.schemas import jsonschema
checker = jsonschema().FormatChecker()
assert "rfc3987_syntax" not in sys.modules
if find_spec("rfc3987_syntax") is not None:
    assert checker.conforms("https://example.org/", "iri") and not checker.conforms("<", "iri")
    assert "rfc3987_syntax" in sys.modules
"""


def test_jsonschema_is_loaded_without_grammars() -> None:
    """The grammars of its formats are compiled when a format is checked, not before."""
    subprocess.run([sys.executable, "-c", GRAMMARS], check=True)
