"""The matrix of conversions: what the page says of every pair is what happens."""

from dataclasses import replace
from typing import Any

import pytest

import asl
from asl.core.codes import all_codes
from asl.core.diagnostics import Finding
from tests.dialects.behaviour import (
    EXCUSES,
    Part,
    Seen,
    adapted,
    excused,
    observe,
    places_of,
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
        changed = unreported(before, after, conversion, document)
        assert not changed, (changed, before, after, conversion.text)
        if back is not None:
            given = adapted(adapted(INPUT, conversion), back)
            home = observe(asl.load(back.text, dialect=source), given, script)
            changed = unreported(after, home, back, there)
            assert not changed, (changed, after, home, back.text)


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
    assert not excused(loss, Part(changed, 0), seen, seen, lambda loss: frozenset())


def test_a_loss_excuses_nothing_before_its_state() -> None:
    """What is lost at B does not change what A is asked, or what a run comes to without B."""
    document = asl.load(
        {
            "StartAt": "A",
            "States": {
                "A": {"Type": "Task", "Agent": "a", "Next": "B"},
                "B": {"Type": "Task", "Agent": "b", "End": True},
            },
        }
    )
    places = places_of(document)
    loss = asl.Diagnostic("L-JSONATA", asl.Severity.ERROR, "", "/States/B/Output")
    entered = {"A": (2, 0), "B": (6, 1)}
    seen = Seen("SUCCEEDED", None, "a", ["a", "b"], [{}, {}], 0, entered=entered)
    assert places(loss) == {"B"}
    assert not excused(loss, Part("given", 0), seen, seen, places)
    assert excused(loss, Part("given", 1), seen, seen, places)
    seen = replace(seen, entered={"A": (2, 0)})
    assert not excused(loss, Part("output", "x"), seen, seen, places)
