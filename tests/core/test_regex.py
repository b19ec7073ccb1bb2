"""Regular expressions: the automaton agrees with RE2, and its work is bounded."""

import random
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import asl
from asl.core.automaton import Pattern
from asl.core.regex import escape, linear
from asl.core.regex_syntax import parse
from asl.core.work import WorkExceeded

PIECES = (
    *("a", "b", "c", ".", "^", "$", r"\b", "(", "(?:", ")", ")", "|", "*", "+", "?", "*?", "+?"),
    *("??", "{2}", "{1,3}", "{0,2}?", "{,2}", "[ab]", "[^a]", "[a-c]", r"\w", r"\d", r"\s", r"\W"),
    *("[[:alpha:]]", "[[:^alpha:]]", r"[\d-z]", "[]a]", r"\pL", r"\p{Lu}", r"\P{^Nd}", r"\x61"),
    *(r"\x{62}", r"\Q.a\E", "(?i:", "(?m:", "(?-s:", "(?P<n>", r"\z", r"\A", "é", r"\n", r"\."),
    *("\u212a", "ß", "{", "}", "]", "-", r"\1", r"\01", r"\_", r"[^\W\d]"),
)
TEXT = "aabbcAB \n.éÉ1_-k\u212a"


def found(pattern: Any, text: str) -> tuple[object, ...]:
    """What each method finds; RE2's package yields some empty matches twice."""
    matches = dict.fromkeys((each.span(), each.groups()) for each in pattern.finditer(text))
    others = (pattern.search(text), pattern.match(text), pattern.fullmatch(text))
    return (*matches, *(each and (each.span(), each.groups()) for each in others))


@pytest.mark.parametrize("seed", range(8))
def test_the_automaton_agrees_with_re2(seed: int) -> None:
    re2 = pytest.importorskip("re2", reason="RE2 is the oracle; it is in the dev extra")
    options = re2.Options()
    options.log_errors = False
    source = random.Random(seed)
    valid = 0
    for _ in range(400):
        pattern = "".join(source.choice(PIECES) for _ in range(source.randint(1, 8)))
        flags = source.choice(["", "", "i", "m", "s", "ims", "U"])
        text = "".join(source.choice(TEXT) for _ in range(source.randint(0, 9)))
        try:
            oracle = re2.compile(f"(?{flags}){pattern}" if flags else pattern, options)
        except re2.error:
            with pytest.raises(ValueError, match=r"\S"):
                Pattern(pattern, flags)
            continue
        valid += 1
        assert found(Pattern(pattern, flags), text) == found(oracle, text), (pattern, flags, text)
    assert valid > 100


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a(?=b)", "perl operator"),
        ("(?<!a)b", "perl operator"),
        (r"(a)\1", "escape sequence"),
        ("(a", r"missing \)"),
        ("a)", r"unexpected \)"),
        ("[a", "missing ]"),
        ("[b-a]", "class range"),
        ("*a", "no argument"),
        ("a**", "bad repetition"),
        ("a{1001}", "repetition size"),
        ("a\\", "trailing"),
        (r"\p{Greek}", "google-re2"),
        ("(" * 60 + ")" * 60, "too deeply"),
        ("((a{100}){100}){100}", "too large"),
        ("((){1000}){1000}", "too large"),
        ("(?", "perl operator"),
        ("(?P<n>a)(?P<n>b)", "name of a group"),
    ],
)
def test_a_pattern_that_is_refused_says_why(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+$", "a" * 50_000 + "b"),
        ("(a|aa)+$", "a" * 50_000 + "b"),
        ("(a*)*b", "a" * 50_000),
        ("(.*)(.*)(.*)(.*)(.*)x", "a" * 50_000),
        ("(x+x+)+y", "x" * 50_000),
    ],
)
def test_ambiguous_patterns_take_linear_work(pattern: str, text: str) -> None:
    counted: list[int] = []
    compiled = Pattern(pattern)
    assert next(compiled.finditer(text, counted.append), None) is None
    assert sum(counted) < len(text)


def test_the_work_of_a_search_is_bounded() -> None:
    """Large counted repetitions have as many threads as they count."""
    with pytest.raises(WorkExceeded):
        Pattern("((a{0,30}){0,30})b").search("a" * 100_000)


def test_what_is_remembered_is_bounded() -> None:
    compiled = Pattern("[a-z]+x|é")
    compiled.search("".join(map(chr, range(0x4E00, 0x9FFF))))
    program = compiled._searching
    assert program.remembered <= 110_000
    assert sum(map(len, program.states.values())) < 12_000


def test_half_of_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        Pattern("a").search("\ud800")


@pytest.mark.parametrize("text", ["a.b", "x|y[z]", "-\n\0 {é} \\d", "1_2"])
def test_escape_returns_the_pattern_of_a_literal(text: str) -> None:
    assert Pattern(escape(text)).fullmatch(text)
    assert re.fullmatch(escape(text), text)
    assert parse(escape(text))[2] == 0


@pytest.fixture
def without_re2(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    linear.cache_clear()
    monkeypatch.setitem(sys.modules, "re2", None)
    yield
    linear.cache_clear()


def evaluate(query: str) -> Any:
    """Return what a JSONata query evaluates to."""
    state = {"Type": "Pass", "Output": f"{{% {query} %}}", "End": True}
    return asl.run({"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": state}})


@pytest.mark.usefixtures("without_re2")
def test_queries_match_patterns_without_re2() -> None:
    assert type(linear("a")) is Pattern
    query = r"$replace('Ada Lovelace', /(\w+) (\w+)/, '$2, $1') & $string($contains('x', /X/i))"
    assert evaluate(query).output == "Lovelace, Adatrue"
    assert evaluate("$toMillis('2026-02-03', '[Y0001]-[M01]-[D01]')").output == 1770076800000


@pytest.mark.usefixtures("without_re2")
def test_the_work_of_patterns_counts_in_queries_without_re2() -> None:
    """Many searches, each below the bound of one, end as too much work of the evaluation."""
    query = "$map([1..1000], function($i) { $contains($pad('', 200, 'a'), /((a{0,30}){0,30})b/) })"
    result = evaluate(query)
    assert result.error == "States.QueryEvaluationError"
    assert "limit" in result.cause or "steps" in result.cause or "timeout" in result.cause


@pytest.mark.usefixtures("without_re2")
def test_filters_and_guardrails_match_patterns_without_re2() -> None:
    rule = {"Type": "regex", "Pattern": r"\d{3}-\d{4}", "Action": "redact"}
    agent = {"Type": "Task", "Agent": "A", "Guardrails": {"Output": {"Rules": [rule]}}, "End": True}
    document = {"StartAt": "A", "States": {"A": agent}}
    result = asl.run(document, agents={"A": lambda parameters: "call 555-1234"})
    assert "555-1234" not in str(result.output)
