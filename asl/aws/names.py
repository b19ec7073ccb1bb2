"""Names of AWS's SDKs for Java, which Step Functions shows in results and errors."""

import re

__all__ = ["class_name", "exception_name", "field_name", "legacy_field_name", "service_name"]

_STEPS = (
    (re.compile(r"[^A-Za-z0-9]+"), " "),
    (re.compile(r"(?<=[a-z])(?=[A-Z][A-Za-z0-9])"), " "),
    (re.compile(r"([A-Z]+)([A-Z][a-z])"), r"\1 \2"),
    (re.compile(r"([0-9])([A-Za-z])"), r"\1 \2"),
)
"""Replacements that put a blank between the words of a name."""
_REDUNDANT = re.compile(r"^(?:Amazon|Aws)(?=.)|(?<=.)Service$")
_CAPITALS = re.compile(r"[A-Z]+(?![a-z])|.")


def class_name(name: str) -> str:
    """Return the name of a class for a service or an error: `DynamoDB` is `DynamoDb`."""
    for pattern, replacement in _STEPS:
        name = pattern.sub(replacement, name)
    return "".join(word.capitalize() for word in name.split())


def service_name(id: str) -> str:
    """Return the name of the classes of a service by its id: `Config Service` is `Config`."""
    return _REDUNDANT.sub("", class_name(id))


def exception_name(shape: str, *, legacy: bool = False) -> str:
    """Return the name of the exception for an error of a service.

    Args:
        shape: The name of the error in the model of the service: `NoSuchKey`.
        legacy: Whether the name is that of version 1 of the SDK, which keeps capitals.
    """
    name = shape.removesuffix("Fault")
    name = name if legacy else class_name(name)
    return name if name.endswith("Exception") else f"{name}Exception"


def field_name(member: str) -> str:
    """Return the name of a field: `DBClusters` is `DbClusters`, `jobId` is `JobId`."""
    first = _CAPITALS.match(member)
    lead = "" if first is None else first[0]
    return lead.capitalize() + member[len(lead) :]


def legacy_field_name(member: str) -> str:
    """Return the name of a field in version 1 of the SDK: the first letter is a capital."""
    return member[:1].upper() + member[1:]
