"""Output schemas: which texts are one, and what an answer has against one."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from asl.core.errors import StateError
from asl.core.schemas import judge, malformed
from asl.core.values import Json, compact, excerpt
from asl.core.work import WorkExceeded
from asl.expr.codemie.outputs import NOTHING, as_text, parsed

__all__ = ["usable", "valid"]

SHOWN: Final = 20
"""How many faults of one answer are told."""


def usable(text: str) -> dict[str, Json] | None:
    """Return the JSON Schema that a text is, None for one that only hints at a shape."""
    try:
        schema = orjson.loads(text)
    except ValueError:
        return None
    if type(schema) is not dict or type(schema.get("type")) is not str:
        return None
    if type(schema.get("properties")) is not dict or not _local(schema):
        return None
    return None if malformed(schema, "Draft7Validator") else schema


def _local(schema: Json) -> bool:
    """Whether every reference stays within the schema."""
    if type(schema) is list:
        return all(map(_local, schema))
    if type(schema) is not dict:
        return True
    target = schema.get("$ref")
    if type(target) is str and not target.startswith("#/"):
        return False
    return all(map(_local, schema.values()))


def valid(result: Json, schema: Mapping[str, Json]) -> Json:
    """Return an answer that fits a schema; raises StateError("CM.OutputSchema") for another.

    Its cause tells every fault, for the agent that is asked again.
    """
    output = parsed(as_text(result))
    value = as_text(result) if output is NOTHING else output
    faults = sorted(_faults(value, compact(schema)))
    if faults:
        raise StateError("CM.OutputSchema", "; ".join(faults[:SHOWN]))
    return result


def _faults(value: Json, schema: str) -> set[str]:
    try:
        return {_told(error) for error in judge(schema, "Draft7Validator", value)}
    except WorkExceeded as error:
        return {f"the answer cannot be judged: {error}"}


def _told(error: Any) -> str:
    place = "".join(f"/{step}" for step in error.absolute_path)
    return f"{place or 'the answer'}: {excerpt(error.message, 200)}"
