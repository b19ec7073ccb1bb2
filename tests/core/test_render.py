"""Reports as text, JSON, SARIF and GitHub annotations."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.core.diagnostics import Finding, InvalidDocument, Report, place
from asl.core.document import read
from asl.core.render.formats import RENDERERS, render_github, render_json, render_sarif
from asl.core.render.text import WIDTH, render_text

pytestmark = pytest.mark.quick

TEXT = """\
{
  "StartAt": "A",
  "States": {
\t"A": {"Type": "Task", "Nxt": "B"},
    "B": {"Type": "Succeed"}
  }
}"""


def report(*findings: Finding, text: str = TEXT, name: str | None = "a.json") -> Report:
    return place(read(text.encode(), name=name), findings)


def refused(text: str) -> Report:
    with pytest.raises(InvalidDocument) as caught:
        read(text.encode(), name="a.json")
    return caught.value.report


FINDINGS = (
    Finding("V-TOP-04", "no state 'A'", "/StartAt", related=(("/States/B", "this is one"),)),
    Finding(
        "V-TOP-09", "unknown field 'Nxt'", "/States/A/Nxt", "did you mean 'Next'?", at_key=True
    ),
)


def test_text_shows_the_line_and_a_caret() -> None:
    """Place, rule, message, source line, caret, related place, hint and a summary."""
    assert (
        render_text(report(*FINDINGS))
        == """\
a.json:2:14: error V-TOP-04: no state 'A'
  |
2 |   "StartAt": "A",
  |              ^^^
  :
5 |     "B": {"Type": "Succeed"}
  |     --- this is one

a.json:4:24: warning V-TOP-09: unknown field 'Nxt'
  |
4 |     "A": {"Type": "Task", "Nxt": "B"},
  |                           ^^^^^
  = hint: did you mean 'Next'?

a.json: 1 error, 1 warning"""
    )


def test_marks_on_one_line_share_it() -> None:
    """The line is printed once, the marks below each other."""
    assert (
        render_text(refused('{"a": 1, "a": 2}'))
        == """\
a.json:1:10: error V-TOP-01: the key 'a' is given twice
  |
1 | {"a": 1, "a": 2}
  |  --- it is first given here
  |          ^^^
  = hint: keep one of them

a.json: 1 error"""
    )


def test_without_text_the_pointer_is_the_place() -> None:
    """A dict has no lines to show."""
    found = place(read({"StartAt": 1}), [Finding("V-TOP-02", "not a string", "/StartAt")])
    assert render_text(found) == "/StartAt: error V-TOP-02: not a string\n\n<document>: 1 error"


def test_no_findings_is_said() -> None:
    """Success is one line; several files are counted, and several documents of one are not."""
    assert render_text(report()) == "a.json: no findings"
    assert render_text([report(), report(name="b.json")]) == "2 files: no findings"
    assert render_text([report(name=None), report(name=None)]) == "2 files: no findings"
    assert render_text([report(), report()]) == "a.json: no findings"


def test_several_reports_share_one_summary() -> None:
    """Each file keeps its own places."""
    shown = render_text([report(*FINDINGS, name="b.json"), refused("{a}")])
    assert shown.endswith("2 files: 2 errors, 1 warning")
    assert "a.json:1:2: error READ-01" in shown


def test_colour_only_adds_colour() -> None:
    """Without the escape sequences the text is the same."""
    import re

    plain, coloured = render_text(report(*FINDINGS)), render_text(report(*FINDINGS), color=True)
    assert coloured != plain
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain


@pytest.mark.parametrize("before", ["", "x" * 20, "x" * 90, "x" * 500, "日本" * 60, "\t" * 40])
@pytest.mark.parametrize("after", ["", "y" * 500])
def test_long_lines_are_clipped_around_the_caret(before: str, after: str) -> None:
    """The marked word stays visible, with the caret under its first column."""
    text = json.dumps({"k": before, "Nxt": 1, "z": after}, ensure_ascii=False).replace("\\t", " ")
    _, _, shown, marks, *_ = render_text(
        report(Finding("V-TOP-09", "m", "/Nxt", at_key=True), text=text)
    ).split("\n")
    at = _column(marks, "^")
    assert _column(shown, '"Nxt"') == at
    assert marks.count("^") == 5
    assert _width(shown) <= WIDTH + 4


def _width(text: str) -> int:
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def _column(line: str, what: str) -> int:
    return _width(line[: line.index(what)])


def test_control_characters_cannot_reach_the_terminal() -> None:
    """Escape sequences from a document are shown, not obeyed."""
    found = refused('{"a": "\x1b[2J"}')
    text = render_text(
        report(Finding("V-TOP-09", "\x1b[31m\nx", "", hint="\x07"), name="\x1b.json")
    )
    assert "\x1b" not in render_text(found) + text
    assert "\x07" not in text


def test_json_is_flat_and_complete() -> None:
    """Every diagnostic has the same members, related places included."""
    shown: Any = json.loads(render_json(report(*FINDINGS)))
    assert (shown["ok"], shown["errors"], shown["warnings"], shown["infos"]) == (False, 1, 1, 0)
    assert shown["diagnostics"][0] == {
        "code": "V-TOP-04",
        "severity": "error",
        "title": "StartAt names no state",
        "message": "no state 'A'",
        "file": "a.json",
        "line": 2,
        "column": 14,
        "pointer": "/StartAt",
        "hint": None,
        "related": [
            {
                "message": "this is one",
                "file": "a.json",
                "line": 5,
                "column": 5,
                "pointer": "/States/B",
            }
        ],
        "aws": None,
    }


def test_sarif_has_rules_and_results() -> None:
    """Each result refers to its rule; places and related places are regions."""
    (run,) = json.loads(render_sarif(report(*FINDINGS, name="my dir/a.json")))["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    physical = run["results"][0]["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "my%20dir/a.json"
    assert physical["region"] == {"startLine": 2, "startColumn": 14}
    assert run["results"][0]["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 5
    assert [result["level"] for result in run["results"]] == ["error", "warning"]


def test_github_annotations_are_escaped() -> None:
    """Percent signs and line ends are escaped, in properties also colons and commas."""
    found = report(Finding("V-TOP-08", "100%\nsure: yes, no", ""), name="a,b:c.json")
    assert render_github(found) == (
        "::notice file=a%2Cb%3Ac.json,line=1,col=1,title=V-TOP-08 Version other than 1.0"
        "::100%25%0Asure: yes, no"
    )


@given(st.binary(max_size=40), st.sampled_from(sorted(RENDERERS)))
def test_every_report_can_be_rendered(raw: bytes, name: str) -> None:
    """No renderer fails, whatever text the faults are in."""
    try:
        document = read(raw)
        found = place(document, [])
    except InvalidDocument as error:
        found = error.report
    RENDERERS[name](found).encode()
