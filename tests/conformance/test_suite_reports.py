"""Reports as text, JSON and JUnit XML."""

import json
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from asl.conformance import Case, CaseResult, SuiteReport, load_suite, run_suite
from asl.conformance.case import InvalidSuite
from asl.conformance.report import as_json, as_junit, as_text

CASES = [
    Case(id, {"valid": True}, title=f"Fact {id}", spec="1.1", suite="S", file="f.yaml", line=line)
    for line, id in enumerate(("good", "bad", "later"), 1)
]
REPORT = SuiteReport(
    (
        CaseResult(CASES[0], "passed", (), {}, 0.25),
        CaseResult(CASES[1], "failed", ("output: expected <1>, got \x00", "visited: no"), {}, 0.5),
        CaseResult(CASES[2], "skipped", ("not yet",), {}),
    ),
    0.75,
)


def test_text_shows_failures_with_their_places() -> None:
    """The text has what failed and why, where the case stands, and the counts."""
    assert as_text(REPORT).splitlines() == [
        "failed bad: Fact bad",
        "    f.yaml:2 (section 1.1)",
        "    output: expected <1>, got ␀",
        "    visited: no",
        "1 passed, 1 failed, 1 skipped in 0.75 s",
    ]


def test_text_is_coloured_on_request_only() -> None:
    """Escape sequences appear where they are asked for."""
    assert "\x1b" not in as_text(REPORT, verbose=True)
    assert "\x1b[31mfailed\x1b[0m bad" in as_text(REPORT, colour=True)


def test_verbose_text_shows_every_case() -> None:
    """With `verbose` passed and skipped cases are there too."""
    text = as_text(REPORT, verbose=True)
    assert "passed good: Fact good" in text
    assert "skipped later: Fact later\n    not yet" in text


def test_json_has_counts_and_cases() -> None:
    """The JSON report says for each case what became of it."""
    report = json.loads(json.dumps(as_json(REPORT)))
    assert (report["passed"], report["failed"], report["skipped"]) == (1, 1, 1)
    assert report["cases"][1]["reasons"] == list(REPORT.failed[0].reasons)
    assert (report["cases"][1]["file"], report["cases"][1]["line"]) == ("f.yaml", 2)


def test_junit_is_xml_whatever_the_text() -> None:
    """Build servers get well-formed XML with counts, also for characters that XML cannot hold."""
    suite = fromstring(as_junit(REPORT))[0]
    assert suite.attrib["tests"] == "3"
    assert (suite.attrib["failures"], suite.attrib["skipped"]) == ("1", "1")
    good, bad, later = suite
    assert list(good) == []
    assert bad[0].attrib["message"] == "output: expected <1>, got \N{SYMBOL FOR NULL}"
    assert "f.yaml:2" in (bad[0].text or "")
    assert later[0].tag == "skipped"


def test_reports_are_bounded(tmp_path: Path) -> None:
    """Of a suite with many faults, and of a case with many differences."""
    path = tmp_path / "it.asl-test.json"
    path.write_text(json.dumps({"suite": "s", "cases": [{f"x{index}": 1} for index in range(500)]}))
    with pytest.raises(InvalidSuite) as caught:
        load_suite(path)
    assert len(str(caught.value).splitlines()) == 101
    assert "there are more faults" in str(caught.value)
    document = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
    case = {"id": "a", "input": [0] * 500, "expect": {"output": [1] * 500}}
    path.write_text(json.dumps({"suite": "s", "document": document, "cases": [case]}))
    (verdict,) = run_suite(load_suite(path)).verdicts
    assert len(verdict.reasons) == 101
    assert verdict.reasons[-1] == "there are more differences"
