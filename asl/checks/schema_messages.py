"""Messages for values that fail a JSON Schema: ours, and AWS's."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from asl.core import aws_messages
from asl.core.diagnostics import Wording
from asl.core.lazy import lazy_pattern
from asl.core.pointers import split_pointer
from asl.core.values import Json, compact, type_name

__all__ = ["abbreviate", "aws_wording", "complaint_of", "expected_types", "with_article"]

_OR_JSONATA = lazy_pattern(r",? or \{% JSONata %\}$")


def complaint_of(error: Any, jsonata: bool) -> str:
    """Return what is wrong with a value: `must be a string, not 5`."""
    written: str | None = error.schema.get("x-message")
    if written is not None:
        written = written if jsonata else _OR_JSONATA.sub("", written)
        if not written.startswith("must be"):
            return written
        return f"{written}, not {abbreviate(error.instance)}"
    describe: Callable[[Any], str] | None = _COMPLAINTS.get(error.validator)
    return describe(error) if describe else "does not have the form that is expected here"


def _type(error: Any) -> str:
    wanted = error.validator_value
    kinds = [wanted] if type(wanted) is str else list(wanted)
    nouns = " or ".join(with_article(kind) for kind in kinds)
    found = type_name(error.instance)
    if found in ("number", "boolean"):
        return f"must be {nouns}, not {compact(error.instance)}"
    return f"must be {nouns}, not {with_article(found)}"


def _enum(error: Any) -> str:
    values = [v if type(v) is str else json.dumps(v) for v in error.validator_value]
    return f"must be {_either(values)}, not {abbreviate(error.instance)}"


def _either(values: list[str]) -> str:
    if len(values) == 1:
        return values[0]
    return f"{', '.join(values[:-1])} or {values[-1]}"


def _length(error: Any) -> str:
    least = error.validator_value
    return "must not be empty" if least == 1 else f"must have at least {least} members"


_COMPLAINTS: Mapping[str, Callable[[Any], str]] = {
    "type": _type,
    "enum": _enum,
    "minimum": lambda e: f"must be at least {e.validator_value}, not {abbreviate(e.instance)}",
    "maximum": lambda e: f"must be at most {e.validator_value}, not {abbreviate(e.instance)}",
    "exclusiveMinimum": lambda e: (
        f"must be greater than {e.validator_value}, not {abbreviate(e.instance)}"
    ),
    "exclusiveMaximum": lambda e: (
        f"must be less than {e.validator_value}, not {abbreviate(e.instance)}"
    ),
    "minLength": lambda e: "must not be empty",
    "maxLength": lambda e: f"must have at most {e.validator_value} characters",
    "minItems": _length,
    "minProperties": _length,
    "maxItems": lambda e: f"must have at most {e.validator_value} members",
    "uniqueItems": lambda e: "must not hold the same value twice",
    "not": lambda e: "is not allowed here",
}


# --------------------------------------------------------------------------------------------
# AWS's messages


def aws_wording(error: Any, pointer: str) -> Wording | None:
    """Return AWS's message for a failure, None if it is not known."""
    written: str | None = error.schema.get("x-aws")
    if written is not None:
        text = type(error.instance) is str
        return Wording(written if text else str(aws_messages.wrong_type("string")))
    if error.validator == "type":  # whatever the rule: AWS holds types against its schema alone
        return Wording(_expected(error), code=aws_messages.SCHEMA)
    describe = _AWS.get(error.validator)
    message = describe(error) if describe else None
    if error.validator == "not":  # a field that is not allowed: AWS names its holder
        holder, field = split_pointer(pointer)
        return Wording(aws_messages.unknown_field(field), at=holder)
    return Wording(message) if message else None


def _expected(error: Any) -> str | None:
    kinds = expected_types(error)
    return aws_messages.wrong_type("integer" if "integer" in kinds else kinds[0])


def _pattern(error: Any) -> str | None:
    if error.instance.startswith("{%"):
        return aws_messages.DELIMITERS
    return aws_messages.wrong_type("integer") if "integer" in expected_types(error) else None


def expected_types(error: Any) -> list[str]:
    """Return the types that AWS expects where a value failed."""
    kinds = error.schema.get("x-aws-type") or error.schema["type"]
    return [kinds] if type(kinds) is str else kinds


def _allowed(error: Any) -> str | None:
    values = error.validator_value
    if type(error.instance) is not str:
        return aws_messages.wrong_type("string")
    return aws_messages.one_of(values) if all(type(value) is str for value in values) else None


def _minimum(error: Any) -> str | None:
    least = error.schema.get("x-aws-minimum", _bound(error))
    return aws_messages.minimum(least) if error.instance < least else None


def _bound(error: Any) -> float:
    return (
        float(error.validator_value) if "number" in expected_types(error) else error.validator_value
    )


_AWS: Mapping[str, Callable[[Any], str | None]] = {
    "pattern": _pattern,
    "enum": _allowed,
    "minimum": _minimum,
    "maximum": lambda e: aws_messages.maximum(_bound(e)),
    "exclusiveMaximum": lambda e: aws_messages.maximum(_bound(e)),
    "minLength": lambda e: aws_messages.EMPTY,
    "minItems": lambda e: aws_messages.EMPTY,
    "minProperties": lambda e: aws_messages.EMPTY,
}


def with_article(kind: str) -> str:
    """Return the name of a type with its article: `a string`."""
    noun = {"integer": "whole number"}.get(kind, kind)
    if noun == "null":
        return noun
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def abbreviate(value: Json) -> str:
    """Return a value as a message shows it, cut after 60 characters."""
    text = repr(value) if type(value) is str else compact(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
