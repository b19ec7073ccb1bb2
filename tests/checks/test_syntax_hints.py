"""Hints for those who come from another language."""

import json
from typing import Any

import pytest

import asl
from asl.checks import check
from asl.checks.syntax_hints import FUNCTIONS, NAMES, OPERATORS, WORDS
from asl.core.diagnostics import Diagnostic
from asl.core.profile import AWS, DEFAULT


def judged(query: str, profile: Any = DEFAULT) -> list[Diagnostic]:
    """What is found in a query that may read the variables a and b."""
    states = {
        "V": {"Type": "Pass", "Assign": {"a": 1, "b": 2}, "Next": "S"},
        "S": {"Type": "Pass", "Output": f"{{% {query} %}}", "End": True},
    }
    document = {"QueryLanguage": "JSONata", "StartAt": "V", "States": states}
    return [*check(asl.load(json.dumps(document)), profile)]


SYNTAX = {
    "==": ["$a == 1", "$contains($a, 'b') == true"],
    "===": ["$a === 1"],
    "!==": ["$a !== 1"],
    "<>": ["$a <> 1"],
    "&&": ["$a && $b"],
    "||": ["$a || $b"],
    "!": ["!$a", "$a and !$b"],
    "=>": ["$map($a, x => x.id)", "$map($a, (x) => x.id)"],
    "->": ["(x) -> x"],
    "++": ["$a++"],
    "--": ["$a--"],
    "+=": ["$a += 1"],
    "-=": ["$a -= 1"],
    "//": ["'a' // said twice"],
    "?.": ["$a.b?.c"],
    "[?": ["$a[?(@.b = 1)]"],
    "**": ["$a ** 2"],
    "^": ["$a ^ 2"],
    "..": ["$a..b"],
    ";": ["$a; $b"],
}
SPOKEN = {
    "not": ["not $a"],
    "is": ["$a is null", "$a is not null"],
    "if": ["if $a then 1 else 2"],
    "else": ["1 else 2"],
    "let": ["let x = 1"],
    "const": ["const x = 1"],
    "var": ["var x = 1"],
    "return": ["return $a"],
    "lambda": ["$map($a, lambda x: x.id)"],
    "for": ["[x for x in $a]"],
    "new": ["new Date()"],
}


def test_every_habit_has_an_example() -> None:
    """No row of a table that nobody has seen at work."""
    assert (SYNTAX.keys(), SPOKEN.keys()) == (OPERATORS.keys(), WORDS.keys())


@pytest.mark.parametrize(
    ("query", "hint"),
    [(each, OPERATORS[key]) for key, queries in SYNTAX.items() for each in queries]
    + [(each, WORDS[key]) for key, queries in SPOKEN.items() for each in queries]
    + [
        ("$a in (1, 2)", "write a list in brackets: $x in ['a', 'b']"),
        ("f'Hello {$a}'", "& joins texts, $append(...) arrays"),
    ],
)
def test_syntax_of_other_languages(query: str, hint: str) -> None:
    """The fault stands where JSONata sees it, and the hint says how that is written."""
    (found,) = judged(query)
    assert (found.code, found.hint) == ("V-JSONATA-01", hint)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_other_languages(name: str) -> None:
    """They stand for nothing: V-JSONATA-03."""
    found = judged(f"{name} = $a")
    assert [(each.code, each.hint) for each in found] == [("V-JSONATA-03", NAMES[name])]


def test_backticks_make_no_text() -> None:
    """What stands between them is a name."""
    (found,) = judged("`Hello ${$a}`")
    assert found.hint is not None
    assert found.hint.startswith("backticks are for names; texts have quotes")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_other_languages(name: str) -> None:
    """Unknown ones, and those that are called like methods: V-JSONATA-05."""
    queries = [f"$a.{name}()"] if name == "length" else [f"${name}($a)", f"$a.b.{name}()"]
    for query in queries:
        found = judged(query)
        assert [(each.code, each.hint) for each in found] == [("V-JSONATA-05", FUNCTIONS[name])]


def test_a_function_without_its_sign_is_a_member() -> None:
    """One of JSONata's own is offered with it; of any other nothing is known."""
    (known,) = judged("$a.trim() & 'x'")
    assert (known.message, known.hint) == (
        "'trim' is a member here and no function, which begins with $",
        "write $trim(...)",
    )
    (unknown,) = judged("$a.frobnicate()")
    assert unknown.hint is None


@pytest.mark.parametrize(
    "query",
    [
        "($o := {'f': function($x) {$x}}; $o.f(1))",
        "($o := {'f': $sum}; $o.f([1]))",
        "$a.b[0].$count($)",
        "$a.(b)",
        "$a.'b'",
    ],
)
def test_what_may_be_a_function_is_left_alone(query: str) -> None:
    """An object that a query makes may hold functions."""
    assert [each.code for each in judged(query)] == []


@pytest.mark.parametrize(
    ("query", "column"),
    [("'Hello ' + $a", 9), ('$a + "!"', 3), ("$a & ('x' * 2)", 10), ("'7' - 1", 4)],
)
def test_a_text_is_no_operand(query: str, column: int) -> None:
    """V-JSONATA-06: it fails whatever the data are, with a place at the operator."""
    (found,) = judged(query)
    (first,) = judged("$unassigned")
    assert (found.code, (found.column or 0) - (first.column or 0)) == ("V-JSONATA-06", column)
    assert found.hint == ("& joins texts" if "+" in query else "$number(...) reads a number")
    assert judged(query, AWS)[0].severity == "warning"


@pytest.mark.parametrize(
    "query",
    ["'a' & $a + 1", "$a + $b", "'a-b'", "$a['x' = 'y'] - 1", "$sum([1, 2]) / 2", "'+ ' & $a"],
)
def test_sums_of_what_may_be_numbers_are_left_alone(query: str) -> None:
    """Texts that are joined, compared or contain operators are right."""
    assert judged(query) == []


@pytest.mark.parametrize("query", ["$a = 1 $b", "($a := 1; $b c)", "[1, 2", "$a.", "{'a' = 1}"])
def test_other_faults_have_no_such_hint(query: str) -> None:
    """What is wrong for another reason is not explained by a habit."""
    (found,) = judged(query)
    assert found.hint is None
