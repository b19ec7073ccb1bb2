"""The matrix of conversions: what the page says of every pair is what happens."""

from typing import Any

import pytest

import asl
from asl.core.codes import all_codes
from asl.core.diagnostics import Finding
from tests.dialects.behaviour import (
    EXCUSES,
    Seen,
    adapted,
    excused,
    observe,
    scripted,
    unreported,
)
from tests.dialects.features import FEATURES
from tests.matrix_page import PAGE, WRITTEN, converted, matrix_page

INPUT = {"kind": "a", "n": 7, "list": ["p", "q"]}
ANSWERS: list[Any] = [
    "yes",
    "no",
    7,
    {"kind": "a", "n": 7, "list": ["x", "y"]},
    {"kind": "b", "n": 1},
]

CELLS = [
    (source, feature, target)
    for source in FEATURES
    for feature in FEATURES[source]
    for target in WRITTEN
    if source != target
]


def test_the_page_is_up_to_date() -> None:
    """`python -m tests.matrix_page` rewrites it."""
    assert PAGE.read_text(encoding="utf-8") == matrix_page()


@pytest.mark.parametrize(("source", "feature", "target"), CELLS)
def test_a_conversion_does_what_the_report_says(source: str, feature: str, target: str) -> None:
    """There, and back again."""
    document = asl.load(FEATURES[source][feature], dialect=source)
    conversion = converted(source, feature, target)
    there = asl.load(conversion.text, dialect=target)
    assert asl.check(there).ok, str(asl.check(there).errors)
    back = asl.convert(there, source) if source in WRITTEN else None
    for seed in range(3):
        script = scripted(seed, ANSWERS)
        before = observe(document, INPUT, script)
        after = observe(there, adapted(INPUT, conversion), script)
        changed = unreported(before, after, conversion, target)
        assert not changed, (changed, before, after, conversion.text)
        if back is not None:
            given = adapted(adapted(INPUT, conversion), back)
            home = observe(asl.load(back.text, dialect=source), given, script)
            changed = unreported(before, home, back, source)
            changed &= unreported(before, home, conversion, source)
            assert not changed, (changed, before, home, back.text)


def test_a_note_excuses_no_change_of_a_run_that_works() -> None:
    """What changes behaviour is a warning at least; a pause may be rounded."""
    notes = {code.id for code in all_codes() if code.severity == "info"} & EXCUSES.keys()
    changing = {code for code in notes if EXCUSES[code].changes and not EXCUSES[code].when}
    assert changing == {"L-RETRY"}


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("L-TIMEOUT", "output"),
        ("L-WAIT", "asked"),
        ("L-CATCH", "asked"),
        ("FL-OUTPUT", "given"),
        ("L-MISSING", "status"),
    ],
)
def test_a_loss_excuses_only_what_it_names(code: str, changed: str) -> None:
    """A lost time limit is no reason for another output."""
    seen = Seen("SUCCEEDED", None, "a", ["x"], [{}], 0)
    loss = Finding(code, "", "/States/A")
    assert changed not in excused(loss, seen, seen)
