"""Whatever a query says, its evaluation ends, and in the same way each time."""

import sys
from threading import Thread

import pytest

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.core.work import WorkLimits
from asl.expr.jsonata import QueryFault, parse
from asl.expr.jsonata.query import Query
from asl.expr.jsonata.scopes import QueryLimits
from tests.expr.jsonata.frames import evaluate, still

TIGHT = QueryLimits(WorkLimits(steps=150_000), items=10_000, characters=100_000)
"""So that the tests are quick; the rules are the same."""

DOUBLED = "($g := function($x, $n) { $n = 0 ? $x : $g(%s, $n - 1) }; %s)"
"""A value that shares its parts, and would be as large as the universe if it did not."""

ARRAYS, OBJECTS = "[[$x], [$x]]", "{'a': $x, 'b': $x}"

UNBOUNDED = {
    "$sum([1..9999999])": "D2014",
    "$range(1, 1e18, 1)": "D1013",
    "($f := function() { $f() }; $f())": "D1012",
    "($f := function($n) { 1 + $f($n) }; $f(0))": "D1011",
    "($c := function($f, $n) { $n = 0 ? $f : $c($f ~> $sum, $n - 1) }; $c($sum, 900)(1))": "D1011",
    "[1..9000].[1..9000]": "D1012",
    "[1..9000].{'a': $}.a.([1..9000])": "D1012",
    "$map([1..9000], function($v) { $count([1..9000]) })": "D1012",
    "$reduce([1..9000], function($a, $b) { $append($a, $b) }, [])": "D1012",
    "$reduce([1..9000], function($a, $b) { $a & 'xxxxxxxxxxxxxxxxxxxx' }, '')": "D1012",
    "$sort([1..9000], function($a, $b) { $a > $b })": "D1012",
    "$distinct([1..9000].{'a': $})": "D1012",
    "($r := [1..9000]; $r@$a.$r@$b.a)": "D1012",
    "$pad('x', 1e300)": "D1013",
    "$pad('x', -99999999999, 'ab')": "D1013",
    "$join([1..9000].('abcdefghijklmnopqrstuvwxyz'))": "D1013",
    "$replace($pad('', 90000, 'a'), 'a', 'bbb')": "D1013",
    "$replace($pad('', 900, 'a'), /a/, $pad('', 200, 'b'))": "D1013",
    DOUBLED % ("$x & $x", "$length($g('ab', 99))"): "D1013",
    DOUBLED % ("[$x, $x]", "$count($g([1], 99))"): "D1013",
    DOUBLED % (ARRAYS, "$string($g([1], 99))"): "D1012",
    DOUBLED % (ARRAYS, "$g([0], 99) = $g([0], 99)"): "D1012",
    DOUBLED % (ARRAYS, "$g([{'a': 1}], 99).a"): "D1012",
    DOUBLED % (ARRAYS, "$g([{'a': 1}], 99).*"): "D1012",
    DOUBLED % (ARRAYS, "$keys($g([{'a': 1}], 99))"): "D1012",
    DOUBLED % (ARRAYS, "$spread($g([{'a': 1}], 99))"): "D1012",
    DOUBLED % (OBJECTS, "$g(1, 99).**"): "D1012",
    DOUBLED % (OBJECTS, "$clone($g(1, 99))"): "D1012",
    DOUBLED % (OBJECTS, "$g(1, 99) ~> |a|{'c': 1}|"): "D1012",
    DOUBLED % ("[[$x]]", "$g(1, 2000)"): "D1014",
    DOUBLED % ("[[$x]]", "$string($g(1, 2000))"): "D1011",
    DOUBLED % ("[[$x]]", "$g(1, 2000).a"): "D1011",
    "$formatInteger(1e15, 'I')": "D1013",
    "$formatInteger(1, $pad('', 9000, '0'))": "D1013",
    "$formatNumber(1, '0.' & $pad('', 900, '0'))": "D1013",
    "$fromMillis(0, $pad('', 9000, '[Y]'))": "D1013",
    "$fromMillis(1e300)": "D3150",
    "$toMillis($pad('', 9000, '1'), '[Y]')": "D1013",
    "$contains('a', function($s) { ($f := function() { {'match': '', 'start': 0, 'end': 0,"
    " 'groups': [], 'next': $f} }; $f()) }) and $replace('a', function($s) { ($f := function() {"
    " {'match': '', 'start': 0, 'end': 0, 'groups': [], 'next': $f} }; $f()) }, 'b')": "D1012",
    "$parse($pad('', 9000, '['))": "D3137",
}


@pytest.mark.parametrize(("source", "code"), UNBOUNDED.items(), ids=list(UNBOUNDED))
def test_evaluation_limits(source: str, code: str) -> None:
    """Steps, depth, items and characters are counted, so the fault is the same each time."""
    query = parse(source, TIGHT)
    for _ in range(2):
        with pytest.raises(QueryFault) as raised:
            query({}, still())
        assert raised.value.code == code


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("$contains($pad('', 50000, 'a'), /(a+)+$/)", True),
        ("$contains($pad('', 50000, 'a'), /(a|aa)+b/)", False),
        ("$contains($pad('', 50000, 'a'), /^(([a-z])+.)+[A-Z]([a-z])+$/)", False),
        ("$toMillis($pad('', 900, '1') & 'x', '[Y][M][D][H][m][s][f][Y][M][D]')", None),
    ],
)
def test_patterns_linear_time(source: str, value: Json) -> None:
    """Patterns that make a backtracking engine hang are answered at once."""
    found = parse(f"[{source}]", QueryLimits())({}, still())
    assert found == ([] if value is None else [value])


def test_default_limits_allow_large_inputs() -> None:
    """Fifty thousand rows are filtered, grouped, sorted and counted."""
    rows = [{"id": number, "kind": f"k{number % 7}"} for number in range(50_000)]
    source = "{'n': $count($states.input[id % 2 = 0]), 'kinds': $states.input{kind: $count($)}}"
    found = evaluate(source, rows)
    assert found["n"] == 25_000
    assert sum(found["kinds"].values()) == 50_000
    assert evaluate("$states.input^(>id)[0].id", rows) == 49_999


def test_recursion_depth_independent_of_caller() -> None:
    """Four hundred nested calls work even when the caller has little room left."""
    query = parse("($f := function($n) { $n = 0 ? 0 : 1 + $f($n - 1) }; $f(400))")

    def deep(levels: int) -> Json:
        return query({}, still()) if levels == 0 else deep(levels - 1)

    assert query({}, still()) == 400
    assert deep(sys.getrecursionlimit() // 2) == 400


def test_recursion_limit_unchanged() -> None:
    """Neither reading nor evaluating a query changes it for the process."""
    limit = sys.getrecursionlimit()
    evaluate("1")
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize(
    "source",
    [
        "(" * 10_000 + "1" + ")" * 10_000,
        "[" * 10_000,
        "{'a':" * 10_000,
        "-" * 10_000 + "1",
        "1+" * 5_000 + "1",
        "a." * 5_000 + "a",
        "a?" * 5_000 + "1",
        "function($a){" * 500 + "1" + "}" * 500,
        "x" * 100_000,
        "/" + "(" * 5_000 + "a" + ")" * 5_000 + "/",
        "/((((a{100}){100}){100}){100})/",
    ],
    ids=lambda source: source[:12],
)
def test_source_length_and_nesting_limit(source: str) -> None:
    """A text that is too long or nested too deeply is a fault with a place."""
    with pytest.raises(ExpressionFault) as raised:
        parse(source)
    assert 0 <= raised.value.offset <= len(source)


def test_long_operator_chain() -> None:
    """Three hundred parts are no monster."""
    assert evaluate(" & ".join(["'a'"] * 300)) == "a" * 300
    assert evaluate("".join(f"$states.input = {n} ? {n} : " for n in range(60)) + "-1", 59) == 59


def test_query_thread_safety() -> None:
    """Evaluations at the same time do not see each other."""
    query = parse("($x := $n; $f := function($i) { $i = 0 ? $x : $f($i - 1) }; $f(50))")
    wrong: list[Json] = []

    def work(query: Query, n: int) -> None:
        wrong.extend(found for _ in range(50) if (found := query({"n": n}, still())) != n)

    threads = [Thread(target=work, args=(query, n)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
