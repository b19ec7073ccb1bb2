"""Chains that are written of published documents: the engine takes them, and a person owns them."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import asl
from asl.core.document import Document
from asl.states.machines import nested_machines

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
SOURCES = {"agent-asl": ".json", "codemie": ".yaml", "flujo": ".yaml"}
WARNINGS = 6
"""Entries with the severity `warning` in the median report."""
TIMES = 2.0
"""Tasks of a chain for each state of the document."""

pytestmark = pytest.mark.skipif(not CORPUS.exists(), reason="the documents are not here")


@cache
def conversions(source: str) -> list[tuple[Document, asl.Conversion]]:
    return [(each, asl.convert(each, "contenox")) for each in documents(source)]


def documents(source: str) -> Iterator[Document]:
    for path in sorted((CORPUS / source).glob(f"*{SOURCES[source]}")):
        try:
            document = asl.load(path)
            if path.stem != "cases" and asl.check(document).ok:
                asl.convert(document, "contenox")
                yield document
        except (asl.InvalidDocument, asl.AslError):
            continue  # as other tests hold


def states(machine: Mapping[str, Any]) -> int:
    inner = (each for state in machine["States"].values() for _, each in nested_machines(state))
    return len(machine["States"]) + sum(states(each) for each in inner if "States" in each)


@pytest.mark.parametrize("source", SOURCES)
def test_a_written_chain_passes_the_rules_of_its_engine(source: str) -> None:
    for _, conversion in conversions(source):
        assert conversion.document["x-engine"] == "2026-06"
        read = asl.load(conversion.text, reading={"profile": "runtime"})
        assert asl.check(read).ok
        assert asl.load(conversion.text).value == read.value


@pytest.mark.parametrize("source", SOURCES)
def test_reports_are_short(source: str) -> None:
    counts = [
        sum(each.severity is asl.Severity.WARNING for each in conversion.losses)
        for _, conversion in conversions(source)
    ]
    assert median(counts) <= WARNINGS


def test_a_chain_has_a_task_for_each_state() -> None:
    factors = [
        len(conversion.document["tasks"]) / states(document.composed_value)
        for document, conversion in conversions("agent-asl")
    ]
    assert max(factors) <= TIMES
    assert median(factors) == 1


def test_tasks_have_the_names_of_their_states() -> None:
    for document, conversion in conversions("agent-asl"):
        known = document.composed_value["States"].keys()
        for task in conversion.document["tasks"]:
            base = re.sub(r" (output|choice)$|_\d+$", "", task["id"])
            assert base in known or task["id"] in known, task["id"]


def test_no_provider_is_an_arn() -> None:
    for source in SOURCES:
        for _, conversion in conversions(source):
            tools = [each.get("tools", {}) for each in conversion.document["tasks"]]
            assert not any(each.get("name", "").startswith("arn:") for each in tools)
