"""Every field of every block is executed or refused: none is ignored in silence."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asl.checks.execution import DOCUMENT_BLOCKS, STATE_BLOCKS
from asl.conformance.case import CHECK_FACTS, Case
from asl.states.blocks import BLOCKS
from tests.bundled import bundled

Json = Any
ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = {
    "Audit": ("Audit",),
    "Budget": ("Budget", "StateBudget", "BudgetFallback"),
    "Cache": ("Cache",),
    "Context": ("Context",),
    "Events": ("Events", "WorkflowEvents"),
    "Feedback": ("Feedback",),
    "Generation": ("Generation",),
    "Guardrails": ("Guardrails", "GuardrailRule"),
    "Memory": ("Memory", "MemoryBackend", "MemoryRead", "MemoryWrite"),
    "Model": ("Model",),
    "Progress": ("Progress", "WorkflowProgress", "Milestone"),
    "RealTime": ("RealTime",),
    "Reasoning": ("Reasoning",),
    "Streaming": ("Streaming",),
    "Tools": (),  # tests/blocks/test_tools_agreement.py asks for more
}
"""The schemas of the blocks that are executed and have fields of their own."""
SCALARS = {
    "DefaultTools",
    "ToolCategories",
    "CacheResult",
    "CacheTTL",
    "IdempotencyKey",
    "Idempotent",
    "Metadata",
}
"""Those that are a single value."""
CASES = bundled("blocks")


CONSTRAINTS = {
    "type",
    "enum",
    "const",
    "$ref",
    "anyOf",
    "oneOf",
    "pattern",
    "minimum",
    "properties",
}
"""What makes a field's value wrong; without any of these it takes every value."""


def fields(schema: Json) -> Iterator[tuple[str, bool]]:
    """Yield the names of all fields that a schema describes, and whether a value may be wrong."""
    if isinstance(schema, dict):
        for name, described in schema.get("properties", {}).items():
            yield name.removesuffix(".$"), not CONSTRAINTS.isdisjoint(described)
        for part in schema.values():
            yield from fields(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from fields(part)


def keys(value: Json) -> Iterator[str]:
    """Yield the names of all members, at any depth."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key.removesuffix(".$")
            yield from keys(part)
    elif isinstance(value, list):
        for part in value:
            yield from keys(part)


def used(value: Json) -> Iterator[tuple[str, str]]:
    """Yield the blocks of a document at any depth, each with the fields that it has."""
    if isinstance(value, dict):
        for key, part in value.items():
            name = key.removesuffix(".$")
            if name in BLOCKS:
                yield name, name
                yield from ((name, field) for field in keys(part))
            yield from used(part)
    elif isinstance(value, list):
        for part in value:
            yield from used(part)


def named(case: Case) -> Iterator[tuple[str, str]]:
    """Yield the fields that a case expects to be named: by a finding, or by the cause of a failure.

    A cause names a field by a text that has its name; the document must have the field.
    """
    for finding in case.expect.get("diagnostics", ()):
        steps = [step.removesuffix(".$") for step in finding.get("pointer", "").split("/")]
        steps = [step for step in steps if step and not step.isdigit()]
        yield from ((block, steps[-1]) for block in steps if block in BLOCKS)
    cause = json.dumps(case.expect.get("cause", ""))
    documents = [case.document, *case.workflows.values()]
    yield from ((block, field) for block, field in used(documents) if field in cause)


RUN = {
    found
    for case in CASES
    if not case.expect.keys() <= CHECK_FACTS
    for found in used([case.document, *case.workflows.values()])
}
"""The fields that occur in cases which run, each with its block."""
NAMED = {found for case in CASES for found in named(case)}
"""The fields whose violation some case expects to be named."""


def every_field() -> Iterator[tuple[str, str, bool]]:
    for block, names in SCHEMAS.items():
        for name in names:
            text = (ROOT / "schemas" / "blocks" / f"{name}.schema.json").read_text(encoding="utf-8")
            for field, wrong in dict(sorted(fields(json.loads(text)))).items():
                yield block, field, wrong
    for name in sorted(SCALARS):
        yield name, name, True


FIELDS = sorted(set(every_field()))


def refused(block: str) -> set[str]:
    """Return the fields that a block refuses."""
    return {way.rpartition("/")[2].removesuffix(".$") for way in BLOCKS[block].lacks}


@pytest.mark.parametrize("block", sorted(name for name in BLOCKS if BLOCKS[name].lacks))
def test_what_a_block_refuses_stands_in_the_overview(block: str) -> None:
    """Each field, in the row of the block."""
    page = (ROOT / "docs" / "blocks" / "README.md").read_text(encoding="utf-8")
    section = page.partition("## What is refused")[2]
    (row,) = (line for line in section.splitlines() if f"[{block}](" in line)
    assert [field for field in refused(block) if f"`{field}`" not in row] == []


def test_every_block_is_known() -> None:
    """A row of the table is a field of a state or of the document, and has a schema here."""
    assert set(BLOCKS) <= {*STATE_BLOCKS, *DOCUMENT_BLOCKS}
    assert set(BLOCKS) == SCHEMAS.keys() | SCALARS


@pytest.mark.parametrize(("block", "field", "wrong"), FIELDS)
def test_a_field_has_its_effect_in_a_case(block: str, field: str, wrong: bool) -> None:
    """It occurs in its block in a case that runs, or is refused by the block."""
    assert (block, field) in RUN or field in refused(block)


@pytest.mark.parametrize(
    ("block", "field"), [(block, name) for block, name, wrong in FIELDS if wrong]
)
def test_a_violation_of_a_field_is_named_in_a_case(block: str, field: str) -> None:
    """A case expects a finding at the field, or a failure whose cause names it."""
    assert (block, field) in NAMED or field in refused(block)


def test_a_field_without_a_case_is_found() -> None:
    """The walk finds what no case has: the two tests above can fail."""
    assert ("Budget", "Agents") not in RUN
    assert ("Model", "MaxCost") not in RUN
    assert ("Model", "Preferred") in RUN
    assert ("Model", "Temperature") not in NAMED


@pytest.mark.parametrize(
    "topic",
    [
        *("model", "generation", "metadata", "idempotency", "reasoning", "guardrails", "budget"),
        *("context", "memory", "streaming", "progress"),
    ],
)
def test_a_block_has_many_cases(topic: str) -> None:
    """At least twenty cases are about each."""
    assert sum(case.id.startswith(f"{topic}/") for case in CASES) >= 20


PAGES = {"Generation": "model", "Idempotent": "model", "IdempotencyKey": "model"}
PAGES |= {"Metadata": "model", "CacheResult": "cache", "CacheTTL": "cache"}
PAGES |= {"DefaultTools": "tools", "ToolCategories": "tools"}
"""Where a block is described whose page has another name."""


@pytest.mark.parametrize(("block", "field", "wrong"), FIELDS)
def test_a_field_stands_in_the_page_of_its_block(block: str, field: str, wrong: bool) -> None:
    """As code: in a table, a sentence or an example."""
    page = ROOT / "docs" / "blocks" / f"{PAGES.get(block, block.lower())}.md"
    assert re.search(rf"[`\"\s]{re.escape(field)}[`\".]", page.read_text(encoding="utf-8"))
