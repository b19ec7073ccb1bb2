"""Published documents of all languages, converted to every other: nothing changes unreported.

The documents lie beside the repository; without them these tests are skipped.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import asl
from tests.dialects.behaviour import scripted
from tests.dialects.ways import Way, changes, there_and_back, way
from tests.examples import sampled
from tests.matrix_page import WRITTEN

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
SUFFIXES = {"agent-asl": ".json", "codemie": ".yaml", "contenox": ".json", "flujo": ".yaml"}
INPUT: dict[str, Any] = {"kind": "a", "topic": "tea", "text": "words", "items": ["p", "q"], "n": 7}
SOME = 5
"""One recording of so many is converted."""
ANSWERS: list[Any] = ["yes", "7", {"score": 8, "items": ["x"]}, {"messages": [], "kind": "a"}]

pytestmark = pytest.mark.skipif(not CORPUS.exists(), reason="the documents are not here")


def documents() -> Iterator[tuple[str, str]]:
    for folder, suffix in SUFFIXES.items():
        for path in sorted((CORPUS / folder).glob(f"*{suffix}")):
            if path.stem != "cases":
                yield folder, path.name


@pytest.mark.parametrize("path", sampled(["/".join(each) for each in documents()], 3))
def test_nothing_changes_unreported(path: str) -> None:
    """What can be read can be written in each language, and does there what the report says."""
    document = executable(CORPUS / path)
    if document is None:
        return
    for target in WRITTEN:
        if target != document.dialect:
            found = untold([way(document, target)], INPUT)
            assert found is None, (target, found)


@pytest.mark.full
@pytest.mark.parametrize(("folder", "file"), [*documents()])
def test_nothing_changes_unreported_on_the_way_back(folder: str, file: str) -> None:
    """Through each other language."""
    document = executable(CORPUS / folder / file)
    if document is None:
        return
    for target in WRITTEN:
        if target != document.dialect:
            found = untold(there_and_back(document, target), INPUT)
            assert found is None, (target, found)


@pytest.mark.full
@pytest.mark.parametrize("target", WRITTEN)
def test_nothing_changes_unreported_in_what_aws_was_given(target: str) -> None:
    """Documents that the service itself has run, there and back."""
    found = {}
    for line in (CORPUS / "aws" / "open.jsonl").read_bytes().split(b"\n")[::SOME]:
        record = json.loads(line or b"{}")
        document = executable(record["definition"]) if record else None
        if document is not None:
            input = record.get("input", {})
            if target == "codemie" and not isinstance(input, dict):
                input = {"text": input}
            found[record["id"]] = untold(there_and_back(document, target), input)
    assert len(found) > 150
    assert {id: each for id, each in found.items() if each} == {}


def executable(what: Any) -> asl.Document | None:
    """Return a document, None if it is refused, or a template whose places are not filled in."""
    try:
        document = asl.load(what)
    except asl.InvalidDocument:
        return None  # as other tests hold
    template = "Parameters" in document.value or "Imports" in document.value
    return document if asl.check(document).ok and not template else None


def untold(ways: list[Way], input: Any) -> Any:
    """Return what changes without a word in the report."""
    try:
        return changes(ways, input, scripted(1, ANSWERS, failing=0.05))
    except asl.AslError:
        return None  # it is not executed by this version
