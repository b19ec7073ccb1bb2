"""A suite is worth what it catches."""

import pytest

from asl.conformance import run_case, run_suite
from tests.bundled import bundled
from tests.conformance.wrong_interpreter import BUGS, Wrong

EXAMPLES = bundled("examples")


@pytest.mark.parametrize("bug", BUGS)
def test_the_suite_catches_the_bug(bug: str) -> None:
    """Each planted bug makes some case fail."""
    assert any(run_case(case, Wrong(bug)).outcome == "failed" for case in EXAMPLES)


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_pinned_down(bug: str) -> None:
    """A planted bug fails a few cases only, so the failures say what is wrong."""
    pitfalls = [case for case in EXAMPLES if case.id.startswith("pitfalls/")]
    failed = [case.id for case in pitfalls if run_case(case, Wrong(bug)).outcome == "failed"]
    assert 1 <= len(failed) <= 3, failed


def test_the_interpreter_without_a_bug_passes() -> None:
    """What catches the bugs does not cry wolf."""
    report = run_suite(EXAMPLES)
    assert [(verdict.case.id, verdict.reasons) for verdict in report.failed] == []
