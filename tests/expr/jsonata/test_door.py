"""The door of the JSONata engine: which strings are expressions, what a query reads and gives."""

import pytest

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.expr.jsonata import UNDEFINED, parse
from asl.expr.query_protocol import query_source
from tests.expr.jsonata.frames import evaluate, still


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("{% 1 %}", "1"),
        ("{%1%}", "1"),
        ("{% \n10         %}", "10"),
        ("{%%}", ""),
        (" {% 1 %}", None),
        ("{% 1 %} ", None),
        ("{% 1 %", None),
        ("{%}", None),
        ("a {% 1 %}", None),
        ("", None),
    ],
)
def test_query_source_delimiters(text: str, source: str | None) -> None:
    """The delimiters stand at the very ends; the blanks inside do not belong to the source."""
    assert query_source(text) == source


@pytest.mark.parametrize(
    ("source", "variables"),
    [
        ("$x", {"x"}),
        ("$x.a[$y].b", {"x", "y"}),
        ("$states.input", set()),
        ("$sum($xs)", {"xs"}),
        ("$unknown($x)", {"x"}),
        ("($x := 1; $x + $y)", {"y"}),
        ("($x := $x + 1; $x)", {"x"}),
        ("function($a){ $a + $b }(1)", {"b"}),
        ("($f := function($n){ $n = 0 ? 1 : $f($n - 1) }; $f(3))", set()),
        ("($f := function($n){ $g($n) }; $g := function($n){ $h }; $f(3))", {"h"}),
        ("$l.a@$v#$i.b[$v = $i]{$i: $w}", {"l", "w"}),
        ("$l@$v; $v", {"l", "v"}),
        ("$l[$ = $$.x]^(>$k)", {"l", "k"}),
        ("$s ~> |a|{'b': $u}, [$d]|", {"s", "u", "d"}),
        ("(true ? ($x := 1) : 2; $x)", {"x"}),
        ("[$a, {'k': -$b}, $c in $d, $e ~> $string]", {"a", "b", "c", "d", "e"}),
    ],
)
def test_query_variables(source: str, variables: set[str]) -> None:
    """Names that the query binds itself, functions and `$states` are no workflow variables."""
    if ";" in source and not source.startswith("("):
        source = f"({source})"
    assert parse(source).variables == variables


@pytest.mark.parametrize(
    ("source", "members"),
    [
        ("1", set()),
        ("$states.input.x", {"input"}),
        ("$states.'input'.x & $states.context.State.Name", {"input", "context"}),
        ("$states.inptu", {"inptu"}),
        ("$states", None),
        ("$states.*", None),
        ("$states.input[$states]", None),
        ("$lookup($states, 'input')", None),
        ("($s := $states; $s.input)", None),
    ],
)
def test_query_members_of_states(source: str, members: set[str] | None) -> None:
    """None stands for the whole object."""
    assert parse(source).members == members


def test_query_reference_offsets() -> None:
    """Every reading of a variable is at the offset of its dollar sign."""
    found = parse("$a + $count( $bc )").references
    assert [(each.name, each.offset, each.called) for each in found] == [
        ("a", 0, False),
        ("count", 5, True),
        ("bc", 13, False),
    ]


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("$states.input.none", None),
        ("$states.input.absent", UNDEFINED),
        ("null", None),
        ("[null]", [None]),
        ("$", UNDEFINED),
        ("$$", UNDEFINED),
        ("{'a': null, 'b': $states.input.absent}", {"a": None}),
        ("$states.input.none = null", True),
        ("$states.input.absent = null", False),
        ("$exists($states.input.none)", True),
        ("[1..3]", [1, 2, 3]),
        ("2.0", 2),
        ("$states.input.list", [1, None, [2]]),
        ("$partition([1, 2, 3], 2)", [[1, 2], [3]]),
        ("$parse('[1, null]')", [1, None]),
    ],
)
def test_query_results(source: str, value: Json) -> None:
    """Null and undefined are two things, and whole numbers are integers."""
    found = evaluate(source, {"none": None, "list": [1, None, [2]]})
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("source", ["", "1 +", "(1", "$.a[?(@.b)]", "'a", "/a", "1 2", "}"])
def test_syntax_errors(source: str) -> None:
    """A syntax error has its place and the rule's id."""
    with pytest.raises(ExpressionFault) as raised:
        parse(source)
    assert raised.value.code == "V-JSONATA-01"
    assert 0 <= raised.value.offset <= len(source)


def test_query_reads_bindings() -> None:
    """What is bound to a name is found under it; `$states` is a binding like any other."""
    assert evaluate("$n + $states.input.n", {"n": 2}, n=40) == 42
    assert evaluate("$count", None, count=7) == 7
    assert evaluate("$n") is UNDEFINED


def test_query_does_not_copy_input() -> None:
    """What a query only selects is not copied."""
    given = {"list": [{"a": 1}], "object": {"b": [1, 2]}}
    assert evaluate("$states.input", given) is given
    assert evaluate("$states.input.object", given) is given["object"]
    assert evaluate("{'x': $states.input.list}", given)["x"] is given["list"]


def test_query_without_bindings() -> None:
    """Bindings hold what a query reads, and no more."""
    assert parse("1 + 1")({}, still()) == 2
