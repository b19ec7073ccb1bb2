"""The language, construct by construct, as the reference implementation has it."""

import pytest

from asl.core.values import Json
from asl.expr.jsonata import UNDEFINED
from tests.expr.jsonata.frames import evaluate

pytestmark = pytest.mark.quick

ORDERS = [
    {"id": 1, "who": "Ann", "total": 30, "lines": [{"sku": "a", "n": 2}, {"sku": "b", "n": 1}]},
    {"id": 2, "who": "Bob", "total": 10, "lines": [{"sku": "a", "n": 5}]},
    {"id": 3, "who": "Ann", "total": 20, "lines": []},
]
GIVEN = {
    "orders": ORDERS,
    "one": {"deep": {"value": 7, "none": None}},
    "single": [{"x": 1}],
    "empty": [],
    "nested": [[1, [2]], 3],
    "odd name": True,
}


def facts(rows: dict[str, Json]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("source", "value"), rows.items(), ids=list(rows))


def check(source: str, value: Json) -> None:
    found = evaluate(source.replace("@@", "$states.input"), GIVEN)
    assert found == value
    assert type(found) is type(value)


@facts(
    {
        "@@.one.deep.value": 7,
        "@@.one.deep.none": None,
        "@@.one.deep.none.more": UNDEFINED,
        "@@.one.nothing.at.all": UNDEFINED,
        "@@.`odd name`": True,
        "@@.'odd name'": True,
        "@@.orders.id": [1, 2, 3],
        "@@.orders.lines.sku": ["a", "b", "a"],
        "@@.single.x": 1,
        "@@.single": [{"x": 1}],
        "@@.single.x[]": [1],
        "@@.single[].x": [1],
        "@@.empty": [],
        "@@.empty.x": UNDEFINED,
        "@@.empty[]": [],
        "@@.nested": [[1, [2]], 3],
        "@@.orders.lines[0].sku": ["a", "a"],
        "(@@.orders.lines)[0].sku": "a",
        "@@.orders[0].id": 1,
        "@@.orders[-1].id": 3,
        "@@.orders[1.9].id": 2,
        "@@.orders[7]": UNDEFINED,
        "@@.orders[[0, 2]].id": [1, 3],
        "@@.orders[total > 10].id": [1, 3],
        "@@.orders[who = 'Ann'][total < 30].id": 3,
        "@@.orders[lines].id": [1, 2],
        "@@.one.*.value": 7,
        "@@.one.**.value": 7,
        "$count(@@.**)": 32,
        "@@.orders.(total / id)": [30, 5, 20 / 3],
        "@@.orders.{'n': id}[0]": [{"n": 1}, {"n": 2}, {"n": 3}],
        "@@.orders.[id, total][0]": [1, 2, 3],
        "@@.orders.[id, total]": [[1, 30], [2, 10], [3, 20]],
        "@@.orders.lines.{sku: n}": [{"a": 2}, {"b": 1}, {"a": 5}],
        "@@.orders.lines{sku: $sum(n)}": {"a": 7, "b": 1},
        "@@.orders{who: id}": {"Ann": [1, 3], "Bob": 2},
        "@@.orders^(total).id": [2, 3, 1],
        "@@.orders^(>total).id": [1, 3, 2],
        "@@.orders^(who, >total).id": [1, 3, 2],
        "@@.orders.nothing[true]^(id)": [None, None, None],
        "@@.orders#$i.lines.{'i': $i, 'sku': sku}": [
            {"i": 0, "sku": "a"},
            {"i": 0, "sku": "b"},
            {"i": 1, "sku": "a"},
        ],
        "@@.orders@$o.orders@$p[$o.id = $p.id + 1].($o.id & $p.id)": ["21", "32"],
        "@@.orders.lines.%.id": [1, 1, 2],
        "@@.orders.lines.{sku: %.who}": [{"a": "Ann"}, {"b": "Ann"}, {"a": "Bob"}],
    }
)
def test_paths(source: str, value: Json) -> None:
    """Steps map over items, results are flattened, and a sequence of one is its item."""
    check(source, value)


@facts(
    {
        "1 + 2 * 3": 7,
        "(1 + 2) * 3": 9,
        "10 / 4": 2.5,
        "10 / 5": 2,
        "7 % 3": 1,
        "5.5 % 2": 1.5,
        "-7 % 3": -1,
        "-(3)": -3,
        "0.1 + 0.2": 0.30000000000000004,
        "9007199254740992 + 1": 9007199254740992,
        "@@.missing + 1": UNDEFINED,
        "-@@.missing": UNDEFINED,
        "'a' & 1 & true & null": "a1truenull",
        "'a' & @@.missing": "a",
        "'' & [1, {'a': 2}]": '[1,{"a":2}]',
        "1 = 1.0": True,
        "1 = '1'": False,
        "true = 1": False,
        "[1, 2] = [1, 2]": True,
        "{'a': 1, 'b': 2} = {'b': 2, 'a': 1}": True,
        "null = null": True,
        "@@.missing = null": False,
        "@@.missing != 1": False,
        "1 < 2": True,
        "'a' < 'b'": True,
        "@@.missing < 1": UNDEFINED,
        "1 in [1, 2]": True,
        "'a' in 'a'": True,
        "true in [1]": False,
        "@@.missing in [1]": False,
        "true and 'x'": True,
        "[] or {}": False,
        "[0] or [0, 1]": True,
        "@@.missing or false": False,
        "false and $error('no')": False,
        "true or $error('no')": True,
        "[1..3]": [1, 2, 3],
        "[3..1]": [],
        "[1..2, 5]": [1, 2, 5],
        "[1, [2, [3]]]": [1, [2, [3]]],
        "[@@.orders.id, 4]": [1, 2, 3, 4],
        "[@@.missing]": [],
        "{'a': @@.missing, 'b': 1}": {"b": 1},
        "true ? 1 : 2": 1,
        "false ? 1": UNDEFINED,
        "@@.missing ? 1 : 2": 2,
        "@@.missing ?: 5": 5,
        "@@.missing ?? 5": 5,
        "null ?? 5": None,
        "/* a remark */ 1": 1,
        "'\\u00e9\\n'": "é\n",
        "'\\ud83d\\ude00'": "😀",
    }
)
def test_operators(source: str, value: Json) -> None:
    """What an operator gives, with undefined on either side too."""
    check(source, value)


@facts(
    {
        "($x := 2; $x * $x)": 4,
        "($x := 1; ($x := 2; $x); $x)": 1,
        "($x := 1; $f := function() { $x }; $x := 2; $f())": 2,
        "()": UNDEFINED,
        "function($n) { $n + 1 }(1)": 2,
        "λ($n) { $n + 1 }(1)": 2,
        "function($a, $b) { $exists($b) }(1)": False,
        "($f := function($n) { $n < 2 ? 1 : $n * $f($n - 1) }; $f(20))": 2432902008176640000,
        "($even := function($n) { $n = 0 ? true : $odd($n - 1) };"
        " $odd := function($n) { $n = 0 ? false : $even($n - 1) }; $even(2001))": False,
        "($f := function($n, $sum) { $n = 0 ? $sum : $f($n - 1, $sum + $n) }; $f(20000, 0))": (
            200010000
        ),
        "($add := function($a) { function($b) { $a + $b } }; $add(2)(3))": 5,
        "($half := $substring(?, 0, 2); $half('word'))": "wo",
        "($f := function($a, $b) { $a - $b }; $g := $f(?, 1); $g(3))": 2,
        "'a-b' ~> $uppercase": "A-B",
        "'a-b' ~> $substringBefore('-')": "a",
        "($f := $trim ~> $uppercase; $f(' x '))": "X",
        "($keys ~> $exists)({})": False,
        "function($a)<a<n>:n> { $sum($a) }(5)": 5,
        "@@.orders.id.$string()": ["1", "2", "3"],
        "@@.orders.$uppercase(who)": ["ANN", "BOB", "ANN"],
        "@@.orders ~> |$|{'total': total * 2}, ['lines', 'who']|": [
            {"id": 1, "total": 60},
            {"id": 2, "total": 20},
            {"id": 3, "total": 40},
        ],
        "($copy := @@.one ~> |deep|{'value': 8}|; @@.one.deep.value & $copy.deep.value)": "78",
        "(@@.one ~> |$$.one|{'value': 8}|) = @@.one": True,
    }
)
def test_functions_and_blocks(source: str, value: Json) -> None:
    """Names are local to their block; functions are values and remember where they were made."""
    check(source, value)
