"""What is read without the library is read just as the library reads it."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.core.errors import ExpressionFault
from asl.expr.jsonata import parser
from asl.expr.jsonata.library import parse_with_library
from asl.expr.jsonata.parser import SyntaxNode

OWN = ("called", "member")
PARTS = sorted(name for name in vars(SyntaxNode) if not name.startswith("__") and name not in OWN)


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
    found = parser.parse_common(source)
    if found is not None:
        tree, *told = parse_with_library(source)
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
def test_common_source_agrees_with_library(source: str) -> None:
    assert as_by_library(source)


TEXTS = [
    "$f('a', \"b\\n\", $g(['c']), '') = 'd'",
    "{'a': 'b', \"c\" : {'d': $x('e', $y)}}",
    "$a ? 'b' : 'c' & $d",
    "$f('\\ud83d\\ude00', '`', '/* ', $a)",
    "'a' in ['b', 'it\\u0027s', \"it's\"]",
    "'a'",
]


@pytest.mark.parametrize("source", [*READ, *TEXTS])
def test_lifted_texts_and_form(source: str) -> None:
    assert as_by_form(source) or "`" in source


def as_by_form(source: str) -> bool:
    """Whether texts are lifted out of a source at all; then, put them back and compare."""
    found = parser.lift_texts(source)
    if found is None:
        return False
    form, texts = found
    whole, parsed = parser.parse_common(source), parser.parse_common(form, form=True)
    if parsed is None:
        assert whole is None or re.search(r"['\"]\s*\(", source)  # one that is called
        return False
    assert whole is not None
    assert without_places(parsed.tree, texts) == without_places(whole.tree, ())
    for each, other in zip(parsed.references, whole.references, strict=True):
        assert each._replace(offset=parser.source_offset(source, each.offset)) == other
    assert [(name, parser.source_offset(source, at)) for name, at in parsed.context] == [
        *whole.context
    ]
    return True


def without_places(node: Any, texts: tuple[str, ...]) -> Any:
    """A tree as data, with these texts in it and without where its nodes stand."""
    if isinstance(node, list):
        return [without_places(each, texts) for each in node]
    if not isinstance(node, SyntaxNode):
        return type(node).__name__, node
    if node.type in ("text", "string"):
        return "string", texts[node.value] if node.type == "text" else parser.join_surrogates(
            node.value
        )
    return {k: without_places(v, texts) for k, v in vars(node).items() if k != "position"}


@pytest.mark.parametrize("source", LEFT)
def test_uncommon_source_needs_library(source: str) -> None:
    assert parser.parse_common(source) is None


WORDS = re.findall(
    r"\S+",
    r"""a b1 _c `d` $ $$ $a $f $states . . .. ( ( ) ) [ ] { } , : ; := ? ?: ?? = != < <= > >= !
    ~> + - * ** / % | @ # ^ & and or in true false null function λ é 0 1 07 1.5 2e3 .5 1. 'x' "y"
    'a\n' '\u00e9' '\x' ' " \ /* */ /x/""",
)


@given(st.lists(st.sampled_from([*WORDS, " "])).map("".join))
def test_form_agrees_with_source(source: str) -> None:
    as_by_form(source)
    try:
        as_by_library(source)
    except ExpressionFault as fault:
        raise AssertionError(f"the library refuses {source!r}") from fault
