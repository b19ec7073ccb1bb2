"""Random documents of every language, in every other one and back: nothing changes unreported."""

from typing import Any

import pytest

import asl
from asl.core.document import Document
from tests.dialects.behaviour import Seen, adapted, observe, scripted, unreported
from tests.dialects.generated import GENERATED, INPUT, Draw
from tests.dialects.test_behaviour import ANSWERS
from tests.matrix_page import WRITTEN

PAIRS = [(source, target) for source in GENERATED for target in WRITTEN if source != target]
QUICK, FULL = 3, 40
"""How many documents of a language are converted to each other one."""
BACK = 3
"""One document of so many is converted back as well."""


def generated(source: str, seed: int) -> Document | None:
    """Return a random document, None where the draw is no document that may run."""
    value = GENERATED[source](Draw(f"{source}:{seed}"))
    document = asl.load(value, dialect=source)
    return document if asl.check(document).ok else None


def changes(source: str, target: str, seed: int) -> Any:
    """Return what a document does otherwise there, or back again, without a word in the report."""
    document = generated(source, seed)
    if document is None:
        return None
    conversion = asl.convert(document, target)
    there = asl.load(conversion.text, dialect=target)
    asl.check(there).raise_for_errors()
    input = {"input": "text", "context": {**INPUT}} if source == "flujo" else {**INPUT}
    for script in (scripted(0, ANSWERS), scripted(1, ANSWERS)):
        before = observe(document, input, script)
        given = adapted(input, conversion)
        changed = unreported(before, observe(there, given, script), conversion, target)
        if changed:
            return changed
        if seed % BACK == 0:
            changed = back(there, before, given, conversion, source, target, script)
            if changed:
                return "back", changed
    return None


def back(
    there: Document,
    before: Seen,
    given: Any,
    conversion: asl.Conversion,
    source: str,
    target: str,
    script: Any,
) -> set[str]:
    """Return what changes on the way there and back that neither report tells."""
    conversion_back = asl.convert(there, source)
    home = asl.load(conversion_back.text, dialect=source)
    seen = observe(home, adapted(given, conversion_back), script)
    changed = unreported(before, seen, conversion_back, source)
    return changed & unreported(before, seen, conversion, target)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_random_document_changes_nothing_unreported(source: str, target: str) -> None:
    """A few of them, the same ones at all times."""
    found = {seed: changes(source, target, seed) for seed in range(QUICK)}
    assert {seed: each for seed, each in found.items() if each} == {}


@pytest.mark.full
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_many_random_documents_change_nothing_unreported(source: str, target: str) -> None:
    """More of them."""
    found = {seed: changes(source, target, seed) for seed in range(QUICK, FULL)}
    assert {seed: each for seed, each in found.items() if each} == {}


@pytest.mark.parametrize("source", [*GENERATED])
def test_random_documents_are_documents(source: str) -> None:
    """Nearly all of them may run."""
    assert sum(generated(source, seed) is not None for seed in range(20)) > 15
