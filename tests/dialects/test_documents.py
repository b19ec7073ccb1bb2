"""Documents that together have every construct of their language: checked, run and converted."""

from pathlib import Path
from typing import Any

import pytest

import asl
from asl.dialects import load
from tests.dialects.behaviour import observe, scripted
from tests.dialects.law import convert_and_back, violation
from tests.matrix_page import WRITTEN

FOLDER = Path(__file__).with_name("documents")
DOCUMENTS = sorted(each.relative_to(FOLDER).as_posix() for each in FOLDER.rglob("*.*"))
DATA: dict[str, Any] = {
    "ticket": "it is broken",
    "topic": {"title": "tea", "text": "green"},
    "question": "why",
    "customer": {"id": 7, "name": "Ann", "address": {"city": "Bonn"}},
    "readers": ["all", "some"],
    "items": [{"title": "one"}, {"title": "two"}],
    "names": ["Ann", "Bob"],
    "text": "words",
    "subject": "tea",
    "reasons": ["short", "dull"],
    "title": "Tea",
    "words": 120,
    "n": 3,
    "flag": False,
    "size": "small",
    "score": 8,
    "user": {"name": "Ann", "tags": ["x"]},
}
INPUTS: dict[str, Any] = {
    "codemie": DATA,
    "contenox": "tea=green; kind=a",
    "flujo": {"input": "text", "context": DATA},
}
ANSWERS: list[Any] = [
    "yes",
    "no",
    {"kind": "refund", "urgency": 5, "verdict": "valid", "score": 8, "due": 2.0, "code": "201"},
    {"kind": "bug", "score": 3, "notes": "short", "documents": ["a", "b"], "currency": "EUR"},
    {"documents": [{"id": 1}], "parts": {"chapters": ["one", "two"]}, "items": [], "customer": {}},
    ["one", "two"],
    "7",
]
SCRIPTS = [scripted(seed, ANSWERS, failing=0.1 if seed % 2 else 0) for seed in range(10)]
PREPARED: dict[str, Any] = {
    "planner1": {"parts": {"chapters": ["one", "two"]}},
    "planner2": ["first", "second"],
    "planner3": ["third"],
    "orders1": {"orders": [{"id": 1}]},
    "lookup1": {"found": True},
    "word1": "coffee",
    "kettle1": "done",
    "http1": {"code": 201},
}
"""Answers of agents that a document needs to succeed, by name and number of the call."""


def document(path: str) -> asl.Document:
    """Read one of the documents."""
    found = load((FOLDER / path).read_bytes(), dialect=path.partition("/")[0])
    assert asl.check(found).ok, str(asl.check(found))
    return found


def prepared(name: str, count: int) -> Any:
    """Return the answer that a run to the end needs."""
    return PREPARED.get(f"{name}{count}", "yes")


def test_each_language_has_ten_documents() -> None:
    languages = [each.partition("/")[0] for each in DOCUMENTS]
    assert {each: languages.count(each) for each in INPUTS} == dict.fromkeys(INPUTS, 10)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_document_runs(path: str) -> None:
    """To its end, with one of the scripts."""
    found = document(path)
    runs = [observe(found, INPUTS[found.dialect], script) for script in (prepared, *SCRIPTS)]
    assert any(each.status == "SUCCEEDED" for each in runs), [each.error for each in runs]


@pytest.mark.parametrize("target", WRITTEN)
@pytest.mark.parametrize("path", DOCUMENTS)
def test_conversion_changes_only_what_its_report_names(path: str, target: str) -> None:
    """There, and back again."""
    found = document(path)
    if found.dialect == target:
        return
    ways = convert_and_back(found, target)
    assert violation(ways, INPUTS[found.dialect], [prepared, *SCRIPTS]) is None
