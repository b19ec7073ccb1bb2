"""Findings, their places, and reports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.core.diagnostics import Finding, InvalidDocument, Report, Severity, did_you_mean, place
from asl.core.document import read

pytestmark = pytest.mark.quick

TEXT = """\
{
  "StartAt": "A",
  "States": {
    "A": {"Type": "Task", "Next": "C"},
    "B": {"Type": "Succeed"}
  }
}"""


def test_findings_are_ordered_by_the_text() -> None:
    """By line, column and code, whatever order the checks ran in."""
    findings = [
        Finding("V-ST-03", "c", "/States/A/Next"),
        Finding("V-TOP-11", "b", "/States/B", at_key=True),
        Finding("V-TOP-04", "a", "/StartAt"),
        Finding("V-ST-02", "d", "/States/A/Next"),
    ]
    report = place(read(TEXT), findings)
    assert [(each.code, each.line, each.column) for each in report] == [
        ("V-TOP-04", 2, 14),
        ("V-ST-02", 4, 35),
        ("V-ST-03", 4, 35),
        ("V-TOP-11", 5, 5),
    ]


def test_without_text_the_order_is_that_of_the_value() -> None:
    """A dict has no places, but its members have an order."""
    document = read({"b": {"y": 1, "x": [1, 2]}, "a": 2})
    findings = [Finding("V-TOP-09", "", p) for p in ("/a", "/b/x/1", "/b/x", "/b/y", "")]
    report = place(document, findings)
    assert [each.pointer for each in report] == ["", "/b/y", "/b/x", "/b/x/1", "/a"]
    assert all(each.line is None for each in report)


def test_the_profile_decides_the_severity() -> None:
    """None drops a finding; a finding's own severity is kept."""
    findings = [
        Finding("V-TOP-09", "raised", "/StartAt"),
        Finding("V-TOP-11", "dropped", "/StartAt"),
        Finding("V-ST-02", "own", "/StartAt", severity=Severity.INFO),
    ]

    def severity(code: str, default: Severity) -> Severity | None:
        assert default is Severity.ERROR or code == "V-TOP-09"
        return None if code == "V-TOP-11" else Severity.ERROR

    report = place(read(TEXT), findings, severity)
    assert [(each.message, each.severity) for each in report] == [
        ("own", Severity.INFO),
        ("raised", Severity.ERROR),
    ]


def test_related_places_point_to_keys() -> None:
    """What is related is shown by its name."""
    finding = Finding("V-ST-03", "", "/States/A/Next", related=(("/States/B", "this one"),))
    (found,) = place(read(TEXT, name="a.json"), [finding])
    (other,) = found.related
    assert (other.file, other.line, other.column, other.message) == ("a.json", 5, 5, "this one")


def test_report_text_equals_the_printed_one() -> None:
    """With the lines of the text, as `asl check` does."""
    from asl.core.render.text import render_text

    report = place(read('{"A": 1}', name="a.json"), [Finding("V-TOP-09", "what is it?", "/A")])
    assert str(report) == render_text(report)
    assert '1 | {"A": 1}' in str(report)


def test_only_errors_make_a_report_fail() -> None:
    """Warnings and notes do not stop a document."""
    document = read(TEXT)
    warned = place(document, [Finding("V-TOP-09", "w", ""), Finding("V-TOP-08", "i", "")])
    warned.raise_for_errors()
    assert warned.ok
    assert (len(warned), len(warned.errors), len(warned.warnings)) == (2, 0, 1)
    assert Report().ok
    failed = place(document, [Finding("V-TOP-04", "no such state", "/StartAt", hint="try")])
    with pytest.raises(InvalidDocument, match=r":2:14: error V-TOP-04: no such state \(try\)"):
        failed.raise_for_errors()


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Nxet", "did you mean 'Next'?"),
        ("next", "did you mean 'Next'?"),
        ("ResultPaht", "did you mean 'ResultPath'?"),
        ("Resultpath", "did you mean 'ResultPath'?"),
        ("Next", None),
        ("Foo", None),
        ("", None),
        ("Completely", None),
    ],
)
def test_near_words_are_suggested(word: str, expected: str | None) -> None:
    """Case does not count, a swap counts once, and a far word is not suggested."""
    assert did_you_mean(word, ["Next", "ResultPath", "InputPath", "Type"]) == expected


def test_a_word_of_which_no_letter_is_left_is_another_one() -> None:
    """One slip makes any letter of any other; a letter more, or another case, is near."""
    assert did_you_mean("C", ["A", "B"]) is None
    assert did_you_mean("a", ["A", "B"]) == "did you mean 'A'?"
    assert did_you_mean("p", ["pp"]) == "did you mean 'pp'?"


@given(st.text(max_size=12), st.lists(st.text(max_size=12), max_size=6))
def test_a_suggestion_is_always_a_candidate(word: str, candidates: list[str]) -> None:
    """Only what exists is suggested, and never the word itself."""
    hint = did_you_mean(word, candidates)
    assert hint is None or hint in {
        f"did you mean {each!r}?" for each in candidates if each != word
    }
