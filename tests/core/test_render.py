"""Reports as text, JSON, SARIF and GitHub annotations."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.core.codes import lookup
from asl.core.diagnostics import Finding, InvalidDocument, Report, Severity, place
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


def test_report_without_findings_has_a_sentence() -> None:
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
        "places": [],
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


# One entry for one cause


def grouped(*findings: Finding) -> Report:
    """Return a report with one entry per cause."""
    return place(read(TEXT.encode(), name="a.json"), findings, by_cause=True)


WAITS = tuple(
    Finding("L-WAIT", "no state waits", at, "it is left out", at_key=True)
    for at in ("/States/B", "/States/A", "/States/A/Nxt")
)
NAMES = (
    Finding("L-NAME", "'A' is called 'a'", "/States/A", "a", at_key=True),
    Finding("L-NAME", "'B' is called 'b'", "/States/B", "b", at_key=True),
)


def test_one_cause_is_one_entry_at_its_first_place() -> None:
    """Its places are in the order of the text, its own first."""
    (entry,) = grouped(*WAITS)
    assert (entry.line, entry.hint) == (4, "it is left out")
    assert [each.pointer for each in entry.places] == ["/States/A", "/States/A/Nxt", "/States/B"]
    assert len(report(*WAITS)) == 3


def test_one_place_is_no_list() -> None:
    """The same finding twice is one, too."""
    (entry,) = grouped(WAITS[0], WAITS[0])
    assert entry.places == ()


def test_severities_are_not_mixed() -> None:
    """An approximation is no reason to overlook an error of the same code."""
    mild = WAITS[1]._replace(severity=Severity.WARNING)
    assert [each.severity for each in grouped(WAITS[0], mild)] == ["warning", "error"]


def test_a_code_with_a_cause_joins_messages() -> None:
    """The message and the hint are those of the code, each place has its own."""
    (entry,) = grouped(*NAMES)
    assert entry.message == lookup("L-NAME").cause
    assert entry.hint == lookup("L-NAME").hint
    assert [(each.message, each.hint) for each in entry.places] == [
        ("'A' is called 'a'", "a"),
        ("'B' is called 'b'", "b"),
    ]


def test_a_code_without_a_cause_does_not_join_messages() -> None:
    """Other words are another cause."""
    other = WAITS[1]._replace(message="no task waits")
    assert len(grouped(WAITS[0], other)) == 2


def test_text_names_further_lines() -> None:
    """And what is reported there, where that differs."""
    assert "  = also: and at lines 4, 5\n  = hint: it is left out" in render_text(grouped(*WAITS))
    text = render_text(grouped(*NAMES))
    assert "  = also: and at line 5\n" in text
    assert "  = note: 4: 'A' is called 'a'\n" in text
    assert "  = note: 5: 'B' is called 'b'\n" in text


def test_text_bounds_places_and_messages() -> None:
    """The others are counted."""
    lines = '{"a": [\n' + ",\n".join("0" for _ in range(40)) + "]}"
    findings = [Finding("L-NAME", f"{n} is called", f"/a/{n}") for n in range(40)]
    text = render_text(place(read(lines.encode(), name="a.json"), findings, by_cause=True))
    assert "12, 13, 14 and 27 more" in text
    assert "note: and 36 more" in text


def test_json_and_sarif_list_all_places() -> None:
    """With pointer, line and column."""
    (entry,) = json.loads(render_json(grouped(*NAMES)))["diagnostics"]
    assert entry["places"][1] == {
        "message": "'B' is called 'b'",
        "file": "a.json",
        "line": 5,
        "column": 5,
        "pointer": "/States/B",
        "hint": "b",
    }
    (result,) = json.loads(render_sarif(grouped(*NAMES)))["runs"][0]["results"]
    regions = [each["physicalLocation"]["region"] for each in result["locations"]]
    assert [each["startLine"] for each in regions] == [4, 5]
    assert "and at line 5" in render_github(grouped(*NAMES))
