"""Random documents of every language, in every other one and back: nothing changes unreported."""

from typing import Any

import pytest

import asl
from asl.core.document import Document
from asl.dialects import load
from tests.dialects.behaviour import scripted
from tests.dialects.generated import GENERATED, INPUT, Draw
from tests.dialects.test_behaviour import ANSWERS
from tests.dialects.ways import changes, there_and_back, way
from tests.matrix_page import WRITTEN

PAIRS = [(source, target) for source in GENERATED for target in WRITTEN if source != target]
QUICK, FULL = 3, 40
"""How many documents of a language are converted to each other one."""
SCRIPTS = (
    scripted(0, ANSWERS),
    scripted(1, ANSWERS),
    scripted(2, ["yes", "no", "a", "a b"], failing=0),
    scripted(3, ["yes", 7, "a"], failing=0.3),
)
"""Agents of all kinds; some whose answers are plain, so that less of what a report says excuses."""
BACK = 3
"""One document of so many is converted back as well."""


def generated(source: str, seed: int) -> Document | None:
    """Return a random document, None where the draw is no document that may run."""
    made = GENERATED[source](Draw(f"{source}:{seed}"))
    document = load(made.document, dialect=source, files=made.files)
    return document if asl.check(document).ok else None


def untold(source: str, target: str, seed: int) -> Any:
    """Return what a document does otherwise there, or back again, without a word in the report."""
    document = generated(source, seed)
    if document is None:
        return None
    back = seed % BACK == 0
    ways = there_and_back(document, target) if back else [way(document, target)]
    input = {"input": "text", "context": {**INPUT}} if source == "flujo" else {**INPUT}
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
def test_random_documents_are_documents(source: str) -> None:
    """Nearly all of them may run."""
    assert sum(generated(source, seed) is not None for seed in range(20)) > 15
