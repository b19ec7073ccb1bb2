"""With `ok`, a conversion takes the path of its source and has its outputs."""

from collections import Counter

import pytest

from asl.core.codes import all_codes
from tests.dialects.corpora import PRESENT
from tests.dialects.law import PAIRS, same_payload, violations

QUICK = (12, 3)
FULL = (4, 8)
"""One document of so many of the corpora and the cases, and how many random ones are made."""

LEFT = {
    ("asl", "amazon"): 1,
    ("asl", "codemie"): 1,
    ("asl", "flujo"): 3,
    ("codemie", "amazon"): 7,
}
"""How many documents of the quick run still break the law; these numbers only fall."""
LEFT_FULL = {
    ("asl", "amazon"): 3,
    ("asl", "codemie"): 1,
    ("asl", "contenox"): 1,
    ("asl", "flujo"): 4,
    ("codemie", "amazon"): 20,
}
"""How many of the larger sample."""


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_path_and_output_are_kept_unless_the_report_names_them(source: str, target: str) -> None:
    """Of a sample, the same one at all times."""
    found = [*violations(source, target, *QUICK)]
    assert len(found) <= LEFT.get((source, target), 0), found


@pytest.mark.full
@pytest.mark.skipif(not PRESENT, reason="the documents are not at hand")
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_more_documents_keep_path_and_output(source: str, target: str) -> None:
    """Of a larger sample."""
    found = [*violations(source, target, *FULL)]
    kinds = Counter(each.kind for each in found)
    assert len(found) <= LEFT_FULL.get((source, target), 0), (kinds, found)


def test_changes_are_named_for_losses_that_are_no_errors() -> None:
    """In the closed vocabulary, in which there is neither path nor status."""
    known = {"payload", "value", "output", "input", "error", "time"}
    for code in all_codes():
        assert known.issuperset(code.changes), code.id


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("i1", "Work on i1", True),
        ("i1", 'Work on ["i1","i2"]', False),
        ("i1", "Work on i12", False),
        ({"text": "tea", "n": 7}, "text: tea\nn: 7", True),
        ({"text": "tea", "n": 7}, "text: tea", False),
        ({"user": {"name": "Ann"}}, 'user: {"name": "Ann"}', True),
        (["i1", "i2"], "i1, i2", False),
        ({"text": "tea"}, "tea", True),
    ],
)
def test_payloads_are_compared_by_values(one: object, other: object, same: bool) -> None:
    """A text that shows a list does not hold its items."""
    assert same_payload(one, other) is same
