"""Random documents of every language, in every other one and back: nothing changes unreported."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import asl
from asl.core.document import Document
from asl.dialects import load
from tests.dialects.behaviour import observe, scripted, told_apart
from tests.dialects.generated import GENERATED, INPUTS, Draw
from tests.dialects.test_behaviour import ANSWERS
from tests.dialects.ways import changes, there_and_back, way
from tests.matrix_page import WRITTEN

PAIRS = [(source, target) for source in GENERATED for target in WRITTEN if source != target]
QUICK, FULL = 3, 40
"""How many documents of a language are converted to each other one."""
PLAIN = scripted(2, ["yes", "no", "a", "a b"], failing=0)
SCRIPTS = (
    scripted(0, ANSWERS),
    scripted(1, ANSWERS),
    PLAIN,
    scripted(3, ["yes", 7, "a"], failing=0.3),
    told_apart,
)
"""Agents of all kinds; some whose answers are plain, so that less of what a report says excuses."""
BACK = 3
"""One document of so many is converted back as well."""


DRAWS = 16
"""How often a document is drawn until one works."""
ANY = 4
"""One document of so many is taken as it is drawn, whether it works or not."""


ENDLESS = {"V-TOP-12", "CX-NO-END"}
"""What is said of a document that cannot end, so that there is no output to compare."""


class Case(NamedTuple):
    """A document that may run, and an input of it."""

    document: Document
    input: Any

    def works(self) -> bool:
        """Whether a run asks somebody, and data leads no state nowhere: most of it is compared."""
        seen = observe(self.document, self.input, PLAIN)
        return bool(seen.asked) and "stumbled" not in seen.happened


def drawn(source: str, seed: int) -> Iterator[Case]:
    """Yield random documents that may run, as often as one was drawn."""
    for count in range(DRAWS):
        draw = Draw(f"{source}:{seed}:{count}")
        made = GENERATED[source](draw)
        document = load(made.document, dialect=source, files=made.files)
        report = asl.check(document)
        if report.ok and not ENDLESS.intersection(each.code for each in report):
            yield Case(document, draw.choice(INPUTS[source]))


def generated(source: str, seed: int) -> Case:
    """Return a random document, in most cases one that works if any does."""
    cases = drawn(source, seed)
    first = next(cases)
    if seed % ANY == 0 or first.works():
        return first
    return next((each for each in cases if each.works()), first)


def untold(source: str, target: str, seed: int) -> Any:
    """Return what a document does otherwise there, or back again, without a word in the report."""
    document, input = generated(source, seed)
    back = seed % BACK == 0
    ways = there_and_back(document, target) if back else [way(document, target)]
    found = (changes(ways, input, script) for script in SCRIPTS)
    return next(filter(None, found), None)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_random_document_changes_nothing_unreported(source: str, target: str) -> None:
    """A few of them, the same ones at all times."""
    found = {seed: untold(source, target, seed) for seed in range(QUICK)}
    assert {seed: each for seed, each in found.items() if each} == {}


@pytest.mark.full
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_many_random_documents_change_nothing_unreported(source: str, target: str) -> None:
    """More of them."""
    found = {seed: untold(source, target, seed) for seed in range(QUICK, FULL)}
    assert {seed: each for seed, each in found.items() if each} == {}


@pytest.mark.parametrize("source", [*GENERATED])
def test_random_documents_work(source: str) -> None:
    """Most of them ask somebody, and data leads no state nowhere."""
    assert sum(generated(source, seed).works() for seed in range(20)) > 13
