"""Each field of a policy has a case in which it has its effect, and one in which it is violated."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bundled import bundled

from . import test_reach, test_sandbox

Json = Any
ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ("Tools", "RateLimit", "Sandbox")


def fields(schema: Json, path: str) -> Iterator[str]:
    """Yield the way to every field that a schema describes."""
    for name, part in schema.get("properties", {}).items():
        yield f"{path}/{name}"
        yield from fields(part, f"{path}/{name}")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from fields(schema["additionalProperties"], path)


FIELDS = [
    field
    for name in SCHEMAS
    for field in fields(
        json.loads((ROOT / "schemas" / "blocks" / f"{name}.schema.json").read_text()), name
    )
]
SHOWN = {tag for case in bundled("blocks") for tag in case.tags} | {
    tag
    for module in (test_reach, test_sandbox)
    for test in vars(module).values()
    for tag in getattr(test, "shown", ())
}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("what", ["effect", "violation"])
def test_a_field_is_shown(field: str, what: str) -> None:
    """A tag of a conformance case names it, or a test says that it shows it."""
    assert f"{what}:{field}" in SHOWN


def test_tags_name_fields() -> None:
    """No tag names what there is not."""
    named = {tag.partition(":")[2] for tag in SHOWN if tag.startswith(("effect:", "violation:"))}
    assert named == set(FIELDS)
