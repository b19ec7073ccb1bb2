"""What is read without the library is read just as the library reads it."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.core.errors import ExpressionFault
from asl.expr.jsonata import plain
from asl.expr.jsonata.plain import Node
from asl.expr.jsonata.syntax import by_library

OWN = ("called", "member")
PARTS = sorted(name for name in vars(Node) if not name.startswith("__") and name not in OWN)


def shape(node: Any) -> Any:
    """A tree as data: what its nodes say beyond what all nodes do."""
    if isinstance(node, list):
        return [shape(each) for each in node]
    if not hasattr(node, "keep_array"):
        return type(node).__name__, node
    said = {part: getattr(node, part) for part in PARTS}
    return {part: shape(value) for part, value in said.items() if value or part == "value"}


def as_by_library(source: str) -> bool:
    """Whether a source is read here at all; then, hold the tree against the library's."""
    found = plain.read(source)
    if found is not None:
        tree, *told = by_library(source)
        assert shape(found.tree) == shape(tree)
        assert [*found[1:]] == told
    return found is not None


READ = [
    "1",
    " -1.50 ",
    "-$a",
    "--2",
    "1e3 + 0.1E-2",
    "12345678901234567890",
    "'a\"b'",
    '"\\u0041\\n\\\\\\""',
    "''",
    "'a\\\\\"b\\\\'",
    "'\\n\"\\n'",
    "'\\ud83d\\ude00'",
    "true",
    "$",
    "$$.a",
    "a",
    "`a b`.c",
    "a.b.c",
    "$states.input.eval = 'x'",
    "$states.input.eval in ['tool_call', 'tool-call']",
    "$f()",
    "$f(1, $g($states.input), {'a': [1, {}], 'b': null})",
    "$f($x, b, $, $$).messages",
    "$a.$f($, b).c(d)",
    "a.$f(b).c",
    "f(1)",
    "$f(1)(2)",
    "a ? b : c ? d : e",
    "a ? b",
    "(a ? b : c).d",
    "a or b and c = d + e * -f & g",
    "1 - 2 - 3",
    "[ ]",
    "a / b % c",
    "$a != $b",
]
LEFT = [
    *("", " ", "a[0]", "a{b: c}", "$a := 1", "(a; b)", "()", "function($x){$x}", "λ($x){$x}"),
    *("a ~> $f", "/a/", "a@$b", "a#$b", "a^(b)", "%.a", "*", "**", "a.*", "[1..2]", "$f(?)"),
    *("a ?: b", "a ?? b", "/* a */ b", "'\\x'", "'a", "a b", "1 2", "and", "a.'b'", "'a'.b"),
    *("a.true", "1.a", "é", "a'b", "|a|{}|", "a +", "f(", "[1,]", "{'a'}", "1e999", "-'a'.b"),
    "(" * 70 + "1" + ")" * 70,
]


@pytest.mark.parametrize("source", READ)
def test_a_usual_source_is_read_as_by_the_library(source: str) -> None:
    assert as_by_library(source)


@pytest.mark.parametrize("source", LEFT)
def test_any_other_is_left_to_the_library(source: str) -> None:
    assert plain.read(source) is None


WORDS = re.findall(
    r"\S+",
    r"""a b1 _c `d` $ $$ $a $f $states . . .. ( ( ) ) [ ] { } , : ; := ? ?: ?? = != < <= > >= !
    ~> + - * ** / % | @ # ^ & and or in true false null function λ é 0 1 07 1.5 2e3 .5 1. 'x' "y"
    'a\n' '\u00e9' '\x' ' " \ /* */ /x/""",
)


@given(st.lists(st.sampled_from([*WORDS, " "])).map("".join))
def test_what_is_read_is_never_read_otherwise(source: str) -> None:
    try:
        as_by_library(source)
    except ExpressionFault as fault:
        raise AssertionError(f"the library refuses {source!r}") from fault
