"""The messages and locations of AWS's own validation of definitions.

Source: recorded answers of the service. Faults without a known AWS message have none here.
"""

from collections.abc import Iterable

from asl.core.java import sort_by_hash
from asl.core.pointers import tokens
from asl.core.values import Json, index_of

__all__ = [
    "DELIMITERS",
    "EMPTY",
    "JAVA_TYPES",
    "LAST_AND_ALONE",
    "NOWHERE",
    "NO_DOLLAR",
    "NO_PATH",
    "NO_REFERENCE",
    "NO_RESOURCE",
    "NO_TIMESTAMP",
    "SCHEMA",
    "at_most_one",
    "exactly_one",
    "location",
    "maximum",
    "minimum",
    "missing_field",
    "no_expression",
    "one_of",
    "required_fields",
    "unknown_field",
    "wrong_type",
]

SCHEMA = "SCHEMA_VALIDATION_FAILED"
"""The code of every fault without a code of its own."""

NOWHERE = frozenset({"MISSING_END_STATE", "INVALID_JSON_DESCRIPTION"})
"""Codes for which AWS gives no location."""

EMPTY = "Value cannot be empty"
DELIMITERS = "JSONata string must start with {% and end with %}"
LAST_AND_ALONE = "States.ALL must appear alone and at end of list"
NO_TIMESTAMP = "String does not match RFC3339 timestamp"
NO_PATH = "Value must be a valid JSONPath."
NO_REFERENCE = "Value is not a Reference Path"
NO_DOLLAR = "Reference path didn't start with '$'"
NO_RESOURCE = "Value is not a valid resource ARN"
JAVA_TYPES = {"string": "[STRING]", "integer": "Integer"}
"""AWS's names of the JSON types, as far as they are known."""


def required_fields(fields: Iterable[str]) -> str:
    """Return the message for an object without required fields."""
    return f"These fields are required: {_set(fields)}"


def missing_field(field: str) -> str:
    """Return the message for a service integration without a field."""
    return f"The field '{field}' is required but was missing"


def unknown_field(field: str) -> str:
    """Return the message for an unknown field."""
    return f"Field '{field}' is not supported"


def at_most_one(*fields: str) -> str:
    """Return the message for several fields that exclude each other."""
    return f"There should only be one of the following fields: {_set(fields)}"


def exactly_one(*fields: str) -> str:
    """Return the message for an object without exactly one of these fields."""
    return f"This object should have only one of the following fields: {_set(fields)}"


def one_of(values: Iterable[str]) -> str:
    """Return the message for a value outside of an enumeration."""
    return f"Value should be one of the following: [{', '.join(values)}]"


def wrong_type(kind: str) -> str | None:
    """Return the message for a value of the wrong JSON type, None where it is unknown."""
    return f"Expected value of type {JAVA_TYPES[kind]}" if kind in JAVA_TYPES else None


def minimum(value: float) -> str:
    """Return the message for a number that is too small."""
    return f"Minimum value is {value}"


def maximum(value: float) -> str:
    """Return the message for a number that is too large."""
    return f"Maximum value is {value}"


def no_expression(field: str) -> str:
    """Return the message for a dynamic field without a path or intrinsic call."""
    return (
        f"The value for the field '{field}' must be a valid JSONPath or a valid intrinsic "
        "function call"
    )


def location(value: Json, pointer: str) -> str:
    """Return a JSON Pointer in AWS's form: names are not escaped, positions are in brackets."""
    written = ""
    for step in tokens(pointer):
        if type(value) is list:
            written += f"[{step}]"
            index = index_of(step, value)
            value = None if index is None else value[index]
        else:
            written += f"/{step}"
            value = value.get(step) if type(value) is dict else None
    return written or "/"


def _set(names: Iterable[str]) -> str:
    """List names in the order of a Java hash set, as in the recordings."""
    return f"[{', '.join(sort_by_hash(names))}]"
