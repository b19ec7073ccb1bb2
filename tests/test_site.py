"""The documentation site: its generated pages, its links, and the playground's Python."""

import json
import math
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
import rpds

from asl.core.codes import all_codes

pytestmark = pytest.mark.quick

DOCS = Path(__file__).resolve().parents[1] / "docs"
SITE = DOCS / "_site"


def part(name: str) -> SimpleNamespace:
    """Return the names of one of the site's modules."""
    return SimpleNamespace(**runpy.run_path(str(SITE / name)))


# Pages -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rules() -> dict[str, str]:
    pages: dict[str, str] = part("reference.py").split_rules((DOCS / "rules.md").read_text("utf-8"))
    return pages


def test_every_rule_has_a_page_with_title_and_explanation(rules: dict[str, str]) -> None:
    for code in all_codes():
        page = rules[f"reference/rules/{code.id}.md"]
        assert page.startswith(f"# {code.id}: {code.title}\n")
        assert len(page) > len(code.explain)


def test_the_overview_links_every_rule(rules: dict[str, str]) -> None:
    overview = rules["rules.md"]
    assert all(f"](reference/rules/{code.id}.md)" in overview for code in all_codes())
    assert "\n## Losses\n" in overview


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    pytest.importorskip("mkdocs", reason="it is in the extra docs")
    monkeypatch.syspath_prepend(str(SITE))
    return part("hooks.py")


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("states/map.md", "[a](../rules.md#map)", "[a](../rules.md#map)"),
        ("states/map.md", "[a](README.md)", "[a](README.md)"),
        ("dialects/flujo.md", "[a](../../CONTRIBUTING.md)", "[a](../CONTRIBUTING.md)"),
        ("CONTRIBUTING.md", "[a](docs/README.md#notes)", "[a](contents.md#notes)"),
        ("CONTRIBUTING.md", "[a](docs/states/map.md)", "[a](states/map.md)"),
        ("conformance/README.md", "[a](../docs/templates.md)", "[a](../templates.md)"),
        ("index.md", "[a](asl/py.typed)", "[a](asl/py.typed)"),
        ("index.md", "[a](#here) [b](https://c.example)", "[a](#here) [b](https://c.example)"),
        ("index.md", "[a](conformance)", "[a](conformance/README.md)"),
        ("functions.md", "[a folder](examples/functions)", "a folder"),
    ],
)
def test_links_point_to_places_on_the_site(
    hooks: SimpleNamespace, page: str, text: str, expected: str
) -> None:
    assert hooks.with_site_links(text, page) == expected


def test_the_navigation_is_read_at_any_depth(hooks: SimpleNamespace) -> None:
    navigation = ["index.md", {"Guides": ["agents.md", {"States": ["states/map.md"]}]}]
    assert [*hooks.listed_pages(navigation)] == ["index.md", "agents.md", "states/map.md"]


def test_blocks_show_the_names_of_their_files(hooks: SimpleNamespace) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="testing.md"))
    text = "1 \\< 2\n```json a.asl.json\n{}\n```\n"
    shown = hooks.on_page_markdown(text, page, None, None)
    assert shown == '1 &lt; 2\n```json title="a.asl.json"\n{}\n```\n'


# Playground --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> SimpleNamespace:
    return part("playground/browser.py")


def ask(browser: SimpleNamespace, call: str, **inputs: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(browser.answer(call, json.dumps(inputs)))
    return answer


def example(ending: str) -> str:
    return (DOCS / "examples" / f"review.{ending}").read_text("utf-8")


def test_playground_runs_an_example(browser: SimpleNamespace) -> None:
    answer = ask(
        browser,
        "run",
        document=example("asl.json"),
        agents=example("agents.yaml"),
        input=example("input.json"),
        profile="default",
    )
    assert (answer["status"], answer["elapsed"]) == ("SUCCEEDED", 35.5)
    assert answer["output"]["verdicts"] == ["approve", "skipped", "approve"]
    assert answer["events"][0] == {"at": 0.0, "type": "ExecutionStarted", "path": []}


def test_playground_checks_and_draws(browser: SimpleNamespace) -> None:
    document = '{"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"}}}'
    (found,) = ask(browser, "check", document=document, profile="default")["diagnostics"]
    assert (found["code"], found["line"]) == ("V-ST-03", 1)
    assert ask(browser, "graph", document=document)["svg"].startswith("<svg")


@pytest.mark.parametrize(
    ("agents", "input", "expected"),
    [
        ("", "{", {"problem"}),
        ("[1]", "", {"diagnostics"}),
        ("a: [", "", {"diagnostics"}),
    ],
)
def test_playground_reports_what_cannot_be_read(
    browser: SimpleNamespace, agents: str, input: str, expected: set[str]
) -> None:
    document = '{"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true}}}'
    answer = ask(browser, "run", document=document, agents=agents, input=input, profile="default")
    assert answer.keys() == expected


@pytest.fixture(scope="module")
def standin() -> SimpleNamespace:
    return part("playground/orjson.py")


TEXTS = [
    *(
        '{"a": [1, 2.5, true, null]}',
        "1e999",
        "NaN",
        "-Infinity",
        "01",
        '"\\ud800"',
        '"\\ud83d\\ude00"',
    ),
    *("18446744073709551616", "-9223372036854775809", "18446744073709551615", "", "[1,]", '"\t"'),
    *("[" * 500 + "]" * 500, "[" * 1025 + "]" * 1025, '{"a":1,"a":2}', '"é"', " 1 ", "1 2"),
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_standin_reads_like_orjson(standin: SimpleNamespace, text: str) -> None:
    def read(library: Any) -> Any:
        try:
            return repr(library.loads(text))
        except library.JSONDecodeError:
            return None

    assert read(standin) == read(orjson)


DEEP: Any = 1
for _ in range(254):
    DEEP = [DEEP]
VALUES = [
    *({"a": [1, -0.0, 1e-7, 1.5e-300, 0.1], "é\n\u2028\x7f\x00": '\\"/'}, (), {}, [[], {}]),
    *(2**64 - 1, 2**64, -(2**63) - 1, math.nan, math.inf, "\ud800", {1: 2}, {1, 2}, True),
    *(DEEP, [DEEP], {"b": 1, "a": {"d": 1, "c": 2}}),
]


@pytest.mark.parametrize("option", [0, orjson.OPT_INDENT_2, orjson.OPT_SORT_KEYS])
@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_the_standin_writes_like_orjson(standin: SimpleNamespace, value: Any, option: int) -> None:
    def write(library: Any) -> Any:
        try:
            return library.dumps(value, None, option)
        except library.JSONEncodeError:
            return None

    assert write(standin) == write(orjson)


def test_the_standin_refuses_subclasses_only_if_asked(standin: SimpleNamespace) -> None:
    class Name(str):
        __slots__ = ()

    assert standin.dumps(Name("a")) == b'"a"'
    with pytest.raises(standin.JSONEncodeError):
        standin.dumps(Name("a"), None, standin.OPT_PASSTHROUGH_SUBCLASS)


def test_the_standins_of_rpds_change_copies() -> None:
    standin = part("playground/rpds.py")
    for library in (rpds, standin):
        first = library.HashTrieMap.convert({"a": 1})
        assert dict(first.insert("b", 2).update({"c": 3}).remove("a")) == {"b": 2, "c": 3}
        assert dict(first) == {"a": 1}
        assert set(library.HashTrieSet().insert(1).update([2, 3]).discard(2)) == {1, 3}
        assert list(library.List().push_front(1).push_front(2)) == [2, 1]
