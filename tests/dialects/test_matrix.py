"""The matrix of conversions: what the page says of every pair is what happens."""

from dataclasses import replace
from typing import Any

import pytest

import asl
from asl.core.codes import all_codes, lookup
from tests.dialects.behaviour import (
    EXCUSES,
    Part,
    Places,
    Seen,
    each_loss,
    excused,
    scripted,
)
from tests.dialects.features import FEATURES
from tests.dialects.ways import changes, there_and_back
from tests.matrix_page import PAGE, WRITTEN, converted, matrix_page

INPUT = {"kind": "a", "n": 7, "list": ["p", "q"]}
ANSWERS: list[Any] = [
    "yes",
    "no",
    7,
    {"kind": "a", "n": 7, "list": ["x", "y"]},
    {"kind": "b", "n": 1},
]

TWO = {
    "StartAt": "A",
    "States": {
        "A": {"Type": "Task", "Agent": "a", "Next": "B"},
        "B": {"Type": "Task", "Agent": "b", "End": True},
    },
}

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
    ways = there_and_back(document, target, source)
    for seed in range(3):
        assert changes(ways, INPUT, scripted(seed, ANSWERS)) is None, ways[0].conversion.text


@pytest.mark.parametrize("source", [each for each in FEATURES if each != "amazon"])
def test_aws_takes_what_is_written_unless_it_is_told(source: str) -> None:
    """Of each feature."""
    for feature in FEATURES[source]:
        conversion = converted(source, feature, "amazon")
        refused = asl.check(conversion.document, profile="aws").errors
        told = [each.message for each in each_loss(conversion.losses) if each.code == "L-AWS"]
        assert all(any(each.message in one for one in told) for each in refused), feature


def test_every_loss_says_what_to_do() -> None:
    """Of its own, or for all of its code."""
    assert {code for code in EXCUSES if not lookup(code).hint} == set()
    for source, feature, target in CELLS:
        for loss in converted(source, feature, target).losses:
            assert loss.hint, loss


def test_a_note_excuses_no_change_of_a_run_that_works() -> None:
    """What changes behaviour is a warning at least; a pause may be rounded."""
    notes = {code.id for code in all_codes() if code.severity == "info"} & EXCUSES.keys()
    changing = {code for code in notes if EXCUSES[code].changes and not EXCUSES[code].when}
    assert changing == {"L-RETRY", "CX-DELAY", "L-FAIL", "FL-FAIL", "L-NODEFAULT", "L-INPUT"}


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
    loss = asl.Diagnostic(code, asl.Severity.ERROR, "", "")
    assert not excused(loss, Part(changed, 0), seen, seen, Places(asl.load(TWO)))


def test_a_loss_excuses_nothing_before_its_state() -> None:
    """What is lost at B does not change what A is asked, or what a run comes to without B."""
    document = asl.load(TWO)
    places = Places(document)
    loss = asl.Diagnostic("L-JSONATA", asl.Severity.ERROR, "", "/States/B/Output")
    entered = {"A": (2, 0), "B": (6, 1)}
    seen = Seen("SUCCEEDED", None, "a", ["a", "b"], [{}, {}], 0, entered=entered)
    assert places(loss) == {"B"}
    assert not excused(loss, Part("given", 0), seen, seen, places)
    assert excused(loss, Part("given", 1), seen, seen, places)
    seen = replace(seen, entered={"A": (2, 0)})
    assert not excused(loss, Part("output", "x"), seen, seen, places)


def test_what_an_agent_is_told_is_no_business_of_others() -> None:
    """What B's agent is told otherwise does not change what A's is told when it is asked again."""
    entered = {"A": (2, 0), "B": (6, 1)}
    seen = Seen("SUCCEEDED", None, "a", ["a", "b", "a"], [{}, {}, {}], 0, entered=entered)
    loss = asl.Diagnostic("L-PARAMETERS", asl.Severity.WARNING, "", "/States/B/Parameters")
    places = Places(asl.load(TWO))
    assert excused(loss, Part("given", 1), seen, seen, places)
    assert not excused(loss, Part("given", 2), seen, seen, places)


def test_data_that_decides_changes_nothing_before_it_does() -> None:
    """What is asked before the first decision on it, or the first failure, is the same."""
    entered = {"A": (2, 0)}
    happened = {"decided": [(1, 0), (9, 2)], "failed": [(9, 2)]}
    seen = Seen("SUCCEEDED", None, "a", ["a"] * 3, [{}] * 3, 0, entered, happened)
    places = Places(asl.load(TWO))
    for code in ("L-DEEP", "L-CATCH"):
        loss = asl.Diagnostic(code, asl.Severity.WARNING, "", "/States/A/ResultPath")
        assert not excused(loss, Part("asked", 1), seen, seen, places)
        assert excused(loss, Part("asked", 2), seen, seen, places)
