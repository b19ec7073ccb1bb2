"""JSON Schemas that a document or an agents file holds."""

from collections.abc import Iterator

from asl.core.diagnostics import Finding
from asl.core.pointers import escape
from asl.core.values import Json

__all__ = ["schema_faults"]


def schema_faults(rule: str, schema: Json, pointer: str) -> Iterator[Finding]:
    """Yield why a value at *pointer* is no JSON Schema (2020-12)."""
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    for error in validator.iter_errors(schema):
        place = "".join(f"/{escape(str(step))}" for step in error.absolute_path)
        yield Finding(rule, f"no JSON Schema: {error.message[:200]}", pointer + place)
