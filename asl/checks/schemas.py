"""JSON Schemas that a document or an agents file holds."""

from collections.abc import Iterator

from asl.core.diagnostics import Finding
from asl.core.pointers import escape
from asl.core.schemas import malformed
from asl.core.values import Json
from asl.core.work import WorkExceeded

__all__ = ["schema_faults"]


def schema_faults(rule: str, schema: Json, pointer: str) -> Iterator[Finding]:
    """Yield why a value at *pointer* is no JSON Schema (2020-12)."""
    try:
        errors = malformed(schema, "Draft202012Validator")
    except WorkExceeded as excess:
        yield Finding(rule, f"the schema is too large or too deep to check: {excess}", pointer)
        return
    for error in errors:
        place = "".join(f"/{escape(str(step))}" for step in error.absolute_path)
        yield Finding(rule, f"no JSON Schema: {error.message[:200]}", pointer + place)
