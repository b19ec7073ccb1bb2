"""Regular expressions: the automaton agrees with RE2, and its work is bounded."""

import random
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asl
from asl.core.automaton import RegexAutomaton
from asl.core.regex import escape, find_all, linear
from asl.core.regex_syntax import parse
from asl.core.work import WorkExceeded, WorkMeter
from asl.sources.terraform import formatting

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
                RegexAutomaton(pattern, flags)
            continue
        valid += 1
        assert found(RegexAutomaton(pattern, flags), text) == found(oracle, text), (
            pattern,
            flags,
            text,
        )
    assert valid > 100


PLAIN = ["a", "b", "ab", ".", "[ab]", "[^a]", r"\w", r"\d", r"\W", r"[\w-]", "-", "^", r"\b"]
"""Parts of patterns that the standard library reads alike."""
OTHERS = [
    "é",
    "k",
    "\u017f",
    "\u03c3",
    r"\pL",
    r"\p{Lu}",
    "[[:^digit:]]",
    r"\x{e9}",
    "\u65e5",
    "\u0131",
]
OTHERS += ["[A-Z]", r"\n", r"\S", r"\A", r"\z", "$"]
BEGINNINGS = ["(", "(", "(?:", "(?i:", "(?m:", "(?s:"]
COUNTS = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{0,2}?", "{2,}"])
CHARACTERS = "aabbABK \n.\u00e91_-kS\u017f\u03c3\u03c2\u65e5\u0131"


def patterns(atoms: list[str], beginnings: list[str]) -> st.SearchStrategy[str]:
    """Return patterns that are made of parts; no empty match is repeated.

    The spans of a group that matches nothing in its last repetition differ between engines.
    """

    def larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        alternatives = st.lists(st.one_of(parts, st.just("")), min_size=2, max_size=3)
        filled = parts.filter(lambda each: RegexAutomaton(each).fullmatch("") is None)
        return st.one_of(
            st.lists(parts, min_size=1, max_size=4).map("".join),
            st.builds("{}{})".format, st.sampled_from(beginnings), alternatives.map("|".join)),
            st.builds("({}){}".format, filled, COUNTS),
            st.builds("(?:{}){}".format, filled, COUNTS),
        )

    return st.recursive(st.sampled_from(atoms), larger, max_leaves=8)


@settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(
    patterns([*PLAIN, *OTHERS], [*BEGINNINGS, "(?U:"]),
    st.sampled_from(["", "i", "m", "is"]),
    st.text(CHARACTERS, max_size=30),
)
def test_structured_patterns_agree_with_re2(pattern: str, flags: str, text: str) -> None:
    re2 = pytest.importorskip("re2", reason="RE2 is the oracle; it is in the dev extra")
    oracle = re2.compile(f"(?{flags}){pattern}" if flags else pattern)
    assert found(RegexAutomaton(pattern, flags), text) == found(oracle, text)


@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(patterns(PLAIN, BEGINNINGS), st.text("aabbABC .1_-", max_size=9).map("{}b".format))
def test_structured_patterns_agree_with_the_standard_library(pattern: str, text: str) -> None:
    oracle = re.compile(pattern, re.ASCII)
    ours = RegexAutomaton(pattern)
    for name in ("search", "match", "fullmatch"):
        one, other = getattr(ours, name)(text), getattr(oracle, name)(text)
        assert (one and (one.span(), one.groups())) == (other and (other.span(), other.groups()))


def test_spans_of_groups_over_large_texts_take_linear_work() -> None:
    text = "name: value; " * 20_000
    for pattern in (r"(?s)(.*);(.*)", r"^((?:(\w+): (\w+); )*)$", r"(?s)^(.*?)value(.*)$"):
        counted: list[int] = []
        match = next(RegexAutomaton(pattern).finditer(text, counted.append))
        assert match.span() == (0, len(text))
        assert match.groups() == re.match(pattern, text).groups()  # type: ignore[union-attr]
        assert sum(counted) < 5 * len(text)


def test_characters_of_many_kinds_are_remembered_within_bounds() -> None:
    text = "".join(map(chr, range(0x4E00, 0x9FFF)))
    compiled = RegexAutomaton("(.*)")
    assert compiled.fullmatch(text)
    program = compiled._filling
    assert program.remembered <= 110_000
    assert len(program.symbols) < 12_000


@pytest.mark.parametrize(
    ("pattern", "text", "spans"),
    [
        ("[A-Z]", "\u0131", []),
        ("\u03b2", "\u0392\u03d0", [(0, 1), (1, 2)]),
        ("[\u03d0-\u03d1]", "\u03b2\u0398", [(0, 1), (1, 2)]),
        ("\u00df", "\u1e9e", [(0, 1)]),
        ("\u1f80", "\u1f88", [(0, 1)]),
    ],
)
def test_cases_of_characters_are_those_of_unicode(
    pattern: str, text: str, spans: list[tuple[int, int]]
) -> None:
    assert [each.span() for each in RegexAutomaton(pattern, "i").finditer(text)] == spans


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"\p{Greek}+", "\u03b1\u03b2"),
        (r"\p{Han}+", "\u65e5\u672c"),
        (r"\p{Hiragana}+", "\u306e"),
        (r"\p{^Latin}", " "),
        (r"[\p{Cyrillic}\d]+", "\u0436"),
    ],
)
def test_scripts_of_unicode(pattern: str, expected: str) -> None:
    text = "ab \u03b1\u03b2 \u65e5\u672c\u306e \u0436"
    match = RegexAutomaton(pattern).search(text)
    assert match is not None
    assert match[0] == expected


def test_no_boundary_is_between_the_bytes_of_a_character() -> None:
    assert [each.span() for each in find_all(linear(r"\B"), "\u65e5b", lambda steps: None)] == [
        (0, 0)
    ]


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
        (r"\p{Runic}", "google-re2"),
        ("(" * 60 + ")" * 60, "too deeply"),
        ("((a{100}){100}){100}", "too large"),
        ("((){1000}){1000}", "too large"),
        ("(?", "perl operator"),
        ("(?P<n>a)(?P<n>b)", "name of a group"),
    ],
)
def test_a_pattern_that_is_refused_says_why(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        RegexAutomaton(pattern)


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
    compiled = RegexAutomaton(pattern)
    assert next(compiled.finditer(text, counted.append), None) is None
    assert sum(counted) < len(text)


def test_the_work_of_a_search_is_bounded() -> None:
    """Large counted repetitions have as many threads as they count."""
    with pytest.raises(WorkExceeded):
        RegexAutomaton("((a{0,30}){0,30})b").search("a" * 100_000)


def test_what_is_remembered_is_bounded() -> None:
    compiled = RegexAutomaton("[a-z]+x|é")
    compiled.search("".join(map(chr, range(0x4E00, 0x9FFF))))
    program = compiled._searching
    assert program.remembered <= 110_000
    assert sum(map(len, program.states.values())) < 12_000


def test_half_of_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        RegexAutomaton("a").search("\ud800")


@pytest.mark.parametrize("text", ["a.b", "x|y[z]", "-\n\0 {é} \\d", "1_2"])
def test_escape_returns_the_pattern_of_a_literal(text: str) -> None:
    assert RegexAutomaton(escape(text)).fullmatch(text)
    assert re.fullmatch(escape(text), text)
    assert parse(escape(text))[2] == 0


@pytest.fixture
def without_re2(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    linear.cache_clear()
    monkeypatch.setitem(sys.modules, "re2", None)
    yield
    linear.cache_clear()


def evaluate(query: str, text: str = "") -> Any:
    """Return what a JSONata query evaluates to."""
    state = {"Type": "Pass", "Output": f"{{% {query} %}}", "End": True}
    return asl.run({"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": state}}, text)


@pytest.mark.usefixtures("without_re2")
def test_queries_match_patterns_without_re2() -> None:
    assert type(linear("a")) is RegexAutomaton
    query = r"$replace('Ada Lovelace', /(\w+) (\w+)/, '$2, $1') & $string($contains('x', /X/i))"
    assert evaluate(query).output == "Lovelace, Adatrue"
    assert evaluate("$toMillis('2026-02-03', '[Y0001]-[M01]-[D01]')").output == 1770076800000


ANSWERS = [
    (r"$count($match($states.input, /([a-z]+)@([a-z]+)\.com/))", 1000),
    (r"$length($replace($states.input, /(\w+) (\w+)/, '$2 $1'))", 46_000),
    (r"$count($split($states.input, /\s*[,;]\s*/))", 2001),
    (r"$match($states.input, /^([\s\S]*)$/).$length(groups[0])", 46_000),
    (r"$match($states.input, /<(.+?)>[\s\S]*<(.+?)>/).groups", ["ada@example.com"] * 2),
    (r"$replace($substring($states.input, 0, 12), /\bA(.*?)e\b/, '[$1]')", "[da Lovelac]"),
    (r"$contains($states.input, /(\d{4})-(\d{2})/)", True),
]


@pytest.mark.parametrize("engine", ["installed", "own"])
def test_queries_match_large_texts_with_either_engine(
    engine: str, request: pytest.FixtureRequest
) -> None:
    if engine == "own":
        request.getfixturevalue("without_re2")
    text = "Ada Lovelace <ada@example.com>, 2026-01-02; \u65e5\n" * 1000
    for query, expected in ANSWERS:
        assert evaluate(query, text).output == expected, query


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


@pytest.mark.parametrize("engine", ["installed", "own"])
@pytest.mark.parametrize("pattern", [".*b|a", "(?:(?:a{0,30}){0,30})b", "a?"])
def test_the_work_of_patterns_counts_in_guardrails(
    pattern: str, engine: str, request: pytest.FixtureRequest
) -> None:
    if engine == "own":
        request.getfixturevalue("without_re2")
    rule = {"Type": "regex", "Pattern": pattern, "Action": "redact"}
    agent = {"Type": "Task", "Agent": "A", "Guardrails": {"Output": {"Rules": [rule]}}, "End": True}
    document = {"StartAt": "A", "States": {"A": agent}}
    result = asl.run(document, agents={"A": lambda parameters: "a" * 200_000})
    assert result.error == "States.Runtime"
    assert "steps" in str(result.cause)


@pytest.mark.parametrize("engine", ["installed", "own"])
@pytest.mark.parametrize(
    ("pattern", "text", "found", "replaced"),
    [
        ("x*", "abxc", ["", "", "x", ""], "-a-b-c-"),
        ("(?m)^", "a\nb", ["", ""], "-a\n-b"),
        ("a|b*", "abba", ["a", "bb", "a"], "---"),
        (r"(\w)@(\w)", "a@b c@d", [["a", "b"], ["c", "d"]], "- -"),
    ],
)
def test_terraform_matches_as_go_does_with_either_engine(
    pattern: str,
    text: str,
    found: list[Any],
    replaced: str,
    engine: str,
    request: pytest.FixtureRequest,
) -> None:
    if engine == "own":
        request.getfixturevalue("without_re2")
    assert formatting.regex_all(WorkMeter(), pattern, text) == found
    assert formatting.replace(WorkMeter(), text, f"/{pattern}/", "-") == replaced
