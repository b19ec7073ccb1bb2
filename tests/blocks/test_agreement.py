"""Every field of every block is executed or refused: none is ignored in silence."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asl.checks.execution import DOCUMENT_BLOCKS, STATE_BLOCKS
from asl.conformance.case import CHECK_FACTS, load_suite
from asl.states.blocks import BLOCKS

Json = Any
ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = {
    "Audit": ("Audit",),
    "Budget": ("Budget", "StateBudget", "BudgetFallback"),
    "Cache": ("Cache",),
    "Context": ("Context",),
    "Generation": ("Generation",),
    "Guardrails": ("Guardrails", "GuardrailRule"),
    "Memory": ("Memory", "MemoryBackend", "MemoryRead", "MemoryWrite"),
    "Model": ("Model",),
    "Progress": ("Progress", "WorkflowProgress", "Milestone"),
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
CASES = load_suite(ROOT / "conformance" / "blocks")


def fields(schema: Json) -> Iterator[str]:
    """Yield the names of all fields that a schema describes, at any depth."""
    if isinstance(schema, dict):
        for name in schema.get("properties", {}):
            yield name.removesuffix(".$")
        for part in schema.values():
            yield from fields(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from fields(part)


def keys(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield key.removesuffix(".$")
            yield from keys(part)
    elif isinstance(value, list):
        for part in value:
            yield from keys(part)


RUN = {
    key
    for case in CASES
    if not case.expect.keys() <= CHECK_FACTS
    for key in keys([case.document, *case.workflows.values()])
}
"""The fields that occur in cases which run."""
FOUND = {
    (step, last)
    for case in CASES
    for found in case.expect.get("diagnostics", ())
    for steps in [found.get("pointer", "").split("/")]
    for step in steps
    for last in steps[-1:]
}
"""What faults of cases are found in: the names on the way, each with the field at its end."""
PAIRED = {"Audit", "Progress", "Streaming"}
"""The blocks whose every field has a case with a violation, too."""


def every_field() -> Iterator[tuple[str, str]]:
    for block, names in SCHEMAS.items():
        for name in names:
            text = (ROOT / "schemas" / "blocks" / f"{name}.schema.json").read_text(encoding="utf-8")
            for field in dict.fromkeys(fields(json.loads(text))):
                yield block, field


def test_every_block_is_known() -> None:
    """A row of the table is a field of a state or of the document, and has a schema here."""
    assert set(BLOCKS) <= {*STATE_BLOCKS, *DOCUMENT_BLOCKS}
    assert set(BLOCKS) == SCHEMAS.keys() | SCALARS


@pytest.mark.parametrize(("block", "field"), list(every_field()))
def test_a_field_has_a_case(block: str, field: str) -> None:
    """It occurs in a case that runs, or is refused by its block."""
    refused = {way.rpartition("/")[2].removesuffix(".$") for way in BLOCKS[block].lacks}
    assert field in RUN | refused


@pytest.mark.parametrize(("block", "field"), [each for each in every_field() if each[0] in PAIRED])
def test_a_field_has_a_violation(block: str, field: str) -> None:
    """A case names what is wrong with it, at its place."""
    refused = {way.rpartition("/")[2].removesuffix(".$") for way in BLOCKS[block].lacks}
    assert field in refused or (block, field) in FOUND


@pytest.mark.parametrize("field", sorted(SCALARS))
def test_a_single_value_has_a_case(field: str) -> None:
    """It occurs in a case that runs."""
    assert field in RUN
