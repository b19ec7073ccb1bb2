"""Published documents of all languages, converted to every other: nothing changes unreported.

The documents lie beside the repository; without them these tests are skipped.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import asl
from tests.dialects.behaviour import adapted, observe, scripted, unreported
from tests.matrix_page import WRITTEN

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
SUFFIXES = {"agent-asl": ".json", "codemie": ".yaml", "contenox": ".json", "flujo": ".yaml"}
INPUT: dict[str, Any] = {"kind": "a", "topic": "tea", "text": "words", "items": ["p", "q"], "n": 7}
ANSWERS: list[Any] = ["yes", "7", {"score": 8, "items": ["x"]}, {"messages": [], "kind": "a"}]

pytestmark = pytest.mark.skipif(not CORPUS.exists(), reason="the documents are not here")


def documents() -> Iterator[tuple[str, str]]:
    for folder, suffix in SUFFIXES.items():
        for path in sorted((CORPUS / folder).glob(f"*{suffix}")):
            if path.stem != "cases":
                yield folder, path.name


@pytest.mark.parametrize(("folder", "file"), [*documents()])
def test_nothing_changes_unreported(folder: str, file: str) -> None:
    """What can be read can be written in each language, and does there what the report says."""
    try:
        document = asl.load(CORPUS / folder / file)
    except asl.InvalidDocument:
        return  # refused, as other tests hold
    if not asl.check(document).ok:
        return
    script = scripted(1, ANSWERS, failing=0.05)
    before = None
    for target in WRITTEN:
        if target == document.dialect:
            continue
        conversion = asl.convert(document, target)
        if "Parameters" in document.value:
            continue  # a template, whose places are not filled in
        there = asl.load(conversion.text, dialect=target)
        assert asl.check(there).ok, (target, str(asl.check(there).errors))
        try:
            before = before or observe(document, INPUT, script)
        except asl.AslError:
            continue  # it is not executed by this version
        after = observe(there, adapted(INPUT, conversion), script)
        changed = unreported(before, after, conversion, document)
        assert not changed, (target, changed, before)
