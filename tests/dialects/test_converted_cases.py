"""The documents of the conformance cases, in every other language and back.

Nothing changes unreported.
"""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import asl
from asl.conformance import Case
from asl.conformance.case import CHECK_FACTS
from asl.dialects import load
from tests.bundled import bundled
from tests.dialects.behaviour import each_loss, scripted
from tests.dialects.test_behaviour import ANSWERS
from tests.dialects.ways import changes, there_and_back
from tests.matrix_page import WRITTEN

FILES, DOCUMENTS = 7, 12
"""One file of so many, and one document of so many in them, are in the quick run."""
SEEDS = 2

EXEMPT = {
    "checkpointing/storage": "its storage is there in its case only",
    "distributed-map/endless-child": "it goes round for a second",
    "execution/assign-default": "its text is longer than an expression of a chain may be",
    "execution/payload-default": "its text is longer than an expression of a chain may be",
    "execution/assign-aws": "its text is longer than an expression of a chain may be",
    "execution/payload-aws": "its text is longer than an expression of a chain may be",
    "execution/payload-aws-fits": "its text is longer than an expression of a chain may be",
}
"""Cases whose documents are not compared -> why."""


@cache
def documents(files: int = 1) -> list[tuple[Case, asl.Document]]:
    """Documents that run without anybody's help, each once, of one file of so many."""
    found = {}
    for case in bundled(each=files):
        if CHECK_FACTS.issuperset(case.observe) or case.id in EXEMPT:
            continue
        what = case.document if case.document is not None else str(case.document_text).encode()
        written = f"{case.dialect} {json.dumps(case.reading)} {case.input} {what!r}"
        # A token that nobody answers takes the time of those outside.
        if "waitForTaskToken" not in written:
            found.setdefault(written, (case, what))
    return [*loaded(found.values())]


def loaded(found: Any) -> Iterator[tuple[Case, asl.Document]]:
    for case, what in found:
        try:
            document = load(what, dialect=case.dialect, reading=case.reading)
        except asl.InvalidDocument:
            continue  # refused, as its case says
        template = "Parameters" in document.value or "Imports" in document.value
        if not template and asl.check(document).ok and "States" in document.composed_value:
            yield case, document


@pytest.mark.parametrize("target", WRITTEN)
def test_a_sample_changes_nothing_unreported(target: str) -> None:
    """Some documents of some files, the same ones at all times."""
    chosen = documents(FILES)[::DOCUMENTS]
    assert len(chosen) > 20
    assert {case.id: found for case, found in untold(chosen, target)} == {}


@pytest.mark.full
@pytest.mark.parametrize("target", WRITTEN)
def test_no_document_changes_unreported(target: str) -> None:
    """All documents."""
    assert {case.id: found for case, found in untold(documents(), target)} == {}


@pytest.mark.full
def test_aws_takes_what_is_written_unless_it_is_told() -> None:
    """Of all documents."""
    for case, document in documents():
        conversion = asl.convert(document, "amazon")
        refused = asl.check(conversion.document, profile="aws").errors
        told = [each.message for each in each_loss(conversion.losses) if each.code == "L-AWS"]
        assert all(any(each.message in one for one in told) for each in refused), case.id


def untold(chosen: list[tuple[Case, asl.Document]], target: str) -> Iterator[tuple[Case, Any]]:
    """Yield the cases whose documents do something else there, or back again, with what."""
    for case, document in chosen:
        if case.dialect == target:
            continue
        message = "codemie" in (target, case.dialect) and not isinstance(case.input, dict)
        input = {"text": case.input} if message else case.input
        try:
            ways = there_and_back(document, target, reading=case.reading)
        except asl.InvalidDocument as refused:
            yield case, str(refused)
            continue
        for seed in range(SEEDS):
            try:
                found = changes(ways, input, scripted(seed, ANSWERS))
            except asl.AslError:
                break  # it needs what only its case has
            if found:
                yield case, found
                break
