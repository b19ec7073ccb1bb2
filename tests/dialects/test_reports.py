"""Reports of conversions: few entries, one for each cause."""

from collections import Counter
from collections.abc import Iterator
from statistics import median

import pytest

import asl
from asl.core.diagnostics import Severity
from tests.dialects.corpora import PRESENT, corpus
from tests.matrix_page import WRITTEN

pytestmark = pytest.mark.skipif(not PRESENT, reason="the documents are not at hand")

MOST = {"asl": 3, "amazon": 3, "codemie": 3, "contenox": 6, "flujo": 6}
"""The median number of warnings that a report of a conversion to a language may have."""
EACH = 4
"""One document of so many is in the quick run."""

PAIRS = [(source, target) for source in WRITTEN for target in WRITTEN if source != target]


def reports(source: str, target: str, each: int = 1) -> Iterator[asl.Report]:
    """Yield the reports of the conversions of one document of so many."""
    for document in [*corpus(source).values()][::each]:
        yield asl.convert(document, target).losses


def of_severity(found: list[asl.Report], severity: Severity) -> float:
    """Return the median number of entries of a severity."""
    return median(len(each.of(severity)) for each in found)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_one_cause_is_one_entry(source: str, target: str) -> None:
    """No two entries have the same code, severity and message."""
    for report in reports(source, target, EACH):
        causes = Counter((each.code, each.severity, each.message) for each in report)
        assert max(causes.values(), default=1) == 1


@pytest.mark.full
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_report_has_few_warnings(source: str, target: str) -> None:
    """At the median, over all documents."""
    found = [*reports(source, target)]
    assert of_severity(found, Severity.WARNING) <= MOST[target]


if __name__ == "__main__":
    for one, other in PAIRS:
        listed = [*reports(one, other)]
        counts = {each.value: of_severity(listed, each) for each in Severity}
        mark = "  exceeds" if counts["warning"] > MOST[other] else ""
        print(f"{one:9}{other:9}{len(listed):4}  {counts}{mark}")
