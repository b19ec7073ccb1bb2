"""Requests and responses of services: the JSON of Step Functions and the values of botocore."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from asl.aws.names import field_name, legacy_field_name
from asl.core.values import Json, compact, type_name
from asl.expr.times import format_timestamp

__all__ = [
    "MODERN",
    "ResponseForm",
    "WrongParameter",
    "body_text",
    "json_value",
    "legacy_form",
    "request_value",
]


class WrongParameter(Exception):
    """A parameter that cannot be sent; the text is that of Step Functions."""


class ResponseForm(NamedTuple):
    """The form of responses."""

    field: Callable[[str], str]
    """Returns the name of a field."""
    time: Callable[[float], Json]
    """Returns a time, given in seconds since the epoch."""


def _milliseconds(seconds: float) -> Json:
    return round(seconds * 1000)


MODERN = ResponseForm(field_name, format_timestamp)
"""Version 2 of AWS's SDK for Java, behind `aws-sdk` and the newer integrations."""
_LEGACY = ResponseForm(legacy_field_name, _milliseconds)


def legacy_form(legacy: bool) -> ResponseForm:
    """Return the form of version 1 of the SDK if *legacy*, else that of version 2."""
    return _LEGACY if legacy else MODERN


def request_value(shape: Any, value: Json, name: str) -> Any:
    """Return a parameter as botocore takes it.

    Texts and blobs take any JSON value, which is sent as JSON text (AWS, recorded).

    Args:
        shape: The shape of the parameter in botocore's model.
        value: The value in the document.
        name: The name of the field, for messages.

    Raises:
        WrongParameter: The value has a wrong type, or an unknown field.
    """
    kind = shape.type_name
    if kind == "structure" and not shape.is_document_type:
        return _structure(shape, value, name)
    if kind == "list":
        _require(type(value) is list, value, name)
        return [request_value(shape.member, each, name) for each in value]
    if kind == "map":
        _require(type(value) is dict, value, name)
        return {key: request_value(shape.value, each, name) for key, each in value.items()}
    if kind in ("string", "character"):
        return value if type(value) is str else compact(value)
    if kind == "blob":
        return (value if type(value) is str else compact(value)).encode(errors="replace")
    if kind in ("integer", "long"):
        _require(type(value) is int or (type(value) is float and value.is_integer()), value, name)
        return int(value)
    if kind in ("float", "double"):
        _require(type(value) in (int, float), value, name)
        return float(value)
    if kind == "boolean":
        _require(type(value) is bool, value, name)
    if kind == "timestamp":
        return _time(value, name)
    return value


def _structure(shape: Any, value: Json, name: str) -> dict[str, Any]:
    _require(type(value) is dict, value, name)
    known = {member.lower(): member for member in shape.members}
    found: dict[str, Any] = {}
    for key, each in value.items():
        member = known.get(key.lower())
        if member is None:
            raise WrongParameter(f'The field "{key}" is not supported by Step Functions')
        if each is not None:
            found[member] = request_value(shape.members[member], each, key)
    return found


def _require(right: bool, value: Json, name: str) -> None:
    if not right:
        raise WrongParameter(
            f"The value of the field '{name}' has an invalid format (got {type_name(value)})"
        )


def _time(value: Json, name: str) -> datetime:
    from botocore.utils import parse_to_aware_datetime

    try:
        moment: datetime = parse_to_aware_datetime(value)
    except (ValueError, TypeError, OverflowError, RuntimeError):
        raise WrongParameter(f"The value of the field '{name}' has an invalid format") from None
    return moment


def json_value(shape: Any, value: Any, form: ResponseForm) -> Json:
    """Return a part of a response as Step Functions shows it.

    Args:
        shape: The shape of the value in botocore's model; None for a value without a model.
        value: The value that botocore has parsed.
        form: The form of names and times.
    """
    kind = None if shape is None else shape.type_name
    if isinstance(value, datetime):
        return form.time(value.timestamp())
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    if kind == "structure" and isinstance(value, dict) and not shape.is_document_type:
        return {
            form.field(name): json_value(shape.members[name], each, form)
            for name, each in value.items()
            if name in shape.members
        }
    if kind == "list" and isinstance(value, list):
        return [json_value(shape.member, each, form) for each in value]
    if kind == "map" and isinstance(value, dict):
        return {str(key): json_value(shape.value, each, form) for key, each in value.items()}
    return value


def body_text(data: bytes) -> str:
    """Return a body as text, or in base64 if it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return b64encode(data).decode()
