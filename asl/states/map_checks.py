"""What is wrong with a Map and no schema can say: V-MAP-*.

Specification 6.3; where AWS alone refuses, its documentation and recorded answers.
"""

import re
from collections.abc import Iterator, Mapping

from asl.core import aws_messages
from asl.core.diagnostics import Finding, Severity, Wording
from asl.core.values import Json
from asl.states.base import Node

__all__ = ["check_map"]


def check_map(node: Node) -> Iterator[Finding]:
    """One processor, one selector, one bound of each pair; what reads and writes fits together."""
    yield from _processor(node)
    yield from _pairs(node, _PAIRS)
    if node.query_language == "JSONPath":
        yield from _advice(node)
    yield from _mode(node)
    yield from _reader(node)
    yield from _batcher(node)
    yield from _writer(node)


def _advice(node: Node) -> Iterator[Finding]:
    if not node.value.keys() & {"ItemsPath", "ItemsPath.$", "ItemReader"}:
        yield Finding(
            "V-MAP-11",
            "without 'ItemsPath' the whole input is taken as the array of items",
            node.pointer,
            'write "ItemsPath": "$" if this is intended',
            at_key=True,
        )
    if "Parameters" in node.value:
        yield Finding(
            "V-MAP-13",
            "'Parameters' is the older name of 'ItemSelector'",
            node.at("Parameters"),
            at_key=True,
        )


_PAIRS = (
    ("ItemsPath", "Items", "V-MAP-03"),
    ("ItemSelector", "Parameters", "V-MAP-04"),
    ("MaxConcurrency", "MaxConcurrencyPath", "V-MAP-05"),
    ("ToleratedFailureCount", "ToleratedFailureCountPath", "V-MAP-05"),
    ("ToleratedFailurePercentage", "ToleratedFailurePercentagePath", "V-MAP-05"),
)
_READER_PAIRS = (("MaxItems", "MaxItemsPath", "V-MAP-05"),)
_BATCHER_PAIRS = (
    ("MaxItemsPerBatch", "MaxItemsPerBatchPath", "V-MAP-10"),
    ("MaxInputBytesPerBatch", "MaxInputBytesPerBatchPath", "V-MAP-10"),
)


def _pairs(node: Node, pairs: tuple[tuple[str, str, str], ...], *steps: str) -> Iterator[Finding]:
    holder = _below(node, *steps)
    for one, other, rule in pairs:
        if one in holder and other in holder:
            yield Finding(
                rule,
                f"{one!r} and {other!r} exclude each other",
                node.at(*steps, other),
                related=((node.at(*steps, one), f"{one!r} is here"),),
                at_key=True,
                aws=Wording(aws_messages.at_most_one(one, other), at=node.at(*steps)),
            )


def _processor(node: Node) -> Iterator[Finding]:
    if "ItemProcessor" in node.value and "Iterator" in node.value:
        yield Finding(
            "V-MAP-01",
            "'ItemProcessor' and 'Iterator' exclude each other",
            node.pointer,
            "'Iterator' is the older name",
            related=((node.at("Iterator"), "'Iterator' is here"),),
            at_key=True,
            aws=Wording(aws_messages.at_most_one("ItemProcessor", "Iterator")),
        )
    elif "ItemProcessor" not in node.value and "Iterator" not in node.value:
        yield Finding(
            "V-MAP-01",
            f"'ItemProcessor' of {node.name!r} is missing",
            node.pointer,
            "add 'ItemProcessor' with the states that process an item",
            at_key=True,
            aws=Wording(aws_messages.exactly_one("ItemProcessor", "Iterator")),
        )
    elif "Iterator" in node.value:
        yield Finding(
            "V-MAP-13",
            "'Iterator' is the older name of 'ItemProcessor'",
            node.at("Iterator"),
            at_key=True,
        )


# --------------------------------------------------------------------------------------------
# Inline or distributed

_DISTRIBUTED = (
    "ItemReader",
    "ItemBatcher",
    "ResultWriter",
    "ToleratedFailureCount",
    "ToleratedFailureCountPath",
    "ToleratedFailurePercentage",
    "ToleratedFailurePercentagePath",
    "Label",
)
"""The fields that are documented for a distributed Map only; AWS takes them in any (recorded)."""


def _mode(node: Node) -> Iterator[Finding]:
    field = next((f for f in ("ItemProcessor", "Iterator") if f in node.value), "ItemProcessor")
    config = _below(node, field, "ProcessorConfig")
    pointer = node.at(field, "ProcessorConfig")
    if config.get("Mode") == "DISTRIBUTED":
        if "ExecutionType" not in config:
            yield Finding(
                "V-MAP-07",
                "a distributed Map needs 'ExecutionType'",
                pointer,
                "STANDARD or EXPRESS",
                at_key=True,
                aws=Wording(aws_messages.required_fields(["ExecutionType"])),
            )
        return
    if type(node.value.get("Items")) is dict:
        message = "'Items' must be an array or {% JSONata %}, an object only in a distributed Map"
        yield Finding("V-MAP-03", message, node.at("Items"))
    for each in _DISTRIBUTED:
        if each in node.value:
            yield Finding(
                "V-MAP-06",
                f"{each!r} belongs to a distributed Map",
                node.at(each),
                'set the ProcessorConfig to {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}',
                at_key=True,
            )
    if "ExecutionType" in config:
        inline = config.get("Mode") == "INLINE"
        yield Finding(
            "V-MAP-07",
            "'ExecutionType' has no effect on an inline Map",
            f"{pointer}/ExecutionType",
            'set "Mode": "DISTRIBUTED", or remove it',
            severity=Severity.ERROR if node.profile.aws and inline else Severity.WARNING,
            at_key=True,
            aws=Wording(aws_messages.unknown_field("ExecutionType"), at=pointer)
            if inline
            else None,
        )


# --------------------------------------------------------------------------------------------
# Reading

_READERS = r"arn:[^:]+:states:::s3:(getObject|listObjectsV2)"
_WRITERS = r"arn:[^:]+:states:::s3:putObject"
_OF_CSV = ("CSVHeaderLocation", "CSVHeaders", "CSVDelimiter")


def _reader(node: Node) -> Iterator[Finding]:
    yield from _integration(node, "ItemReader", _READERS, "s3:getObject or s3:listObjectsV2")
    yield from _pairs(node, _READER_PAIRS, "ItemReader", "ReaderConfig")
    config = _below(node, "ItemReader", "ReaderConfig")
    pointer = node.at("ItemReader", "ReaderConfig")
    if config.get("InputType") == "CSV":
        if "CSVHeaderLocation" not in config:
            yield Finding(
                "V-MAP-09",
                "'CSVHeaderLocation' is missing: the first row is taken as the names",
                pointer,
                "FIRST_ROW or GIVEN",
                severity=_stricter(node),
                at_key=True,
                aws=Wording("The field 'CSVHeaderLocation' is required"),
            )
    elif "InputType" in config:
        for field in _OF_CSV:
            if field in config:
                yield Finding(
                    "V-MAP-09",
                    f"{field!r} belongs to the input type CSV",
                    f"{pointer}/{field}",
                    severity=_stricter(node),
                    at_key=True,
                    aws=Wording(aws_messages.unknown_field(field), at=pointer),
                )
    yield from _headers(node, config, pointer)
    yield from _read(node, config, pointer)


def _read(node: Node, config: Mapping[str, Json], pointer: str) -> Iterator[Finding]:
    """Find what does not fit together in what is read and how."""
    kind, items = config.get("InputType"), config.get("ItemsPointer")
    if config.get("Transformation") == "LOAD_AND_FLATTEN" and kind is None:
        yield Finding(
            "V-MAP-16",
            "'LOAD_AND_FLATTEN' loads objects of an 'InputType', which is missing",
            pointer,
            severity=_stricter(node),
            at_key=True,
            aws=Wording("The field 'InputType' is required"),
        )
    if config.get("ManifestType") == "S3_INVENTORY" and kind not in (None, "MANIFEST"):
        yield Finding(
            "V-MAP-16",
            f"the manifest of an inventory lists CSV files: it has no 'InputType' {kind!r}",
            f"{pointer}/InputType",
            "remove 'InputType', or name the 'ManifestType' ATHENA_DATA",
            severity=_stricter(node),
            at_key=True,
            aws=Wording(aws_messages.unknown_field("InputType"), at=pointer),
        )
    if config.get("ManifestType") == "ATHENA_DATA" and kind == "JSON":
        yield Finding(
            "V-MAP-16",
            "a manifest of Athena lists no objects of the type JSON",
            f"{pointer}/ManifestType",
            severity=_stricter(node),
            at_key=True,
            aws=Wording(aws_messages.unknown_field("ManifestType"), at=pointer),
        )
    if type(items) is str and items and not items.startswith("/"):
        words = f"Invalid input: JSON Pointer expression must start with '/': \"{items}\""
        yield Finding(
            "V-MAP-16",
            f"{items!r} is no JSON Pointer",
            f"{pointer}/ItemsPointer",
            f"write {'/' + items!r}",
            severity=_stricter(node),
            aws=Wording(words),
        )


def _headers(node: Node, config: Mapping[str, Json], pointer: str) -> Iterator[Finding]:
    headers = config.get("CSVHeaders")
    if config.get("CSVHeaderLocation") == "GIVEN" and headers is None:
        wording = Wording(aws_messages.required_fields(["CSVHeaders"]))
        yield Finding("V-MAP-09", "'CSVHeaders' is missing", pointer, at_key=True, aws=wording)
    seen: set[str] = set()
    for index, name in enumerate(headers if type(headers) is list else ()):
        if type(name) is str and name in seen:
            # AWS finds this only when it reads the file (recorded).
            yield Finding(
                "V-MAP-09",
                f"the column {name!r} is listed twice",
                f"{pointer}/CSVHeaders/{index}",
                severity=Severity.WARNING if node.profile.aws else None,
            )
        elif type(name) is str:
            seen.add(name)


def _batcher(node: Node) -> Iterator[Finding]:
    yield from _pairs(node, _BATCHER_PAIRS, "ItemBatcher")
    batcher = node.value.get("ItemBatcher")
    if type(batcher) is dict and not any(field.startswith("Max") for field in batcher):
        yield Finding(
            "V-MAP-10",
            "'ItemBatcher' does not bound its batches",
            node.at("ItemBatcher"),
            "add 'MaxItemsPerBatch' or 'MaxInputBytesPerBatch'",
            at_key=True,
        )


# --------------------------------------------------------------------------------------------
# Writing


def _writer(node: Node) -> Iterator[Finding]:
    yield from _integration(node, "ResultWriter", _WRITERS, "s3:putObject")
    writer = node.value.get("ResultWriter")
    if type(writer) is not dict:
        return
    place = "Arguments" if node.query_language == "JSONata" else "Parameters"
    if not writer:
        message, hint = (
            "'ResultWriter' is empty",
            f"give 'Resource' and {place!r}, or 'WriterConfig'",
        )
    elif ("Resource" in writer) is not bool(writer.keys() & {"Parameters", "Arguments"}):
        message = f"'Resource' and {place!r} of 'ResultWriter' must be given together"
        hint = "give both, or neither and a 'WriterConfig'"
    else:
        return
    yield Finding(
        "V-MAP-16",
        message,
        node.at("ResultWriter"),
        hint,
        severity=_stricter(node),
        at_key=True,
    )


def _integration(node: Node, holder: str, allowed: str, names: str) -> Iterator[Finding]:
    resource = _below(node, holder).get("Resource")
    if node.profile.aws and type(resource) is str and not re.fullmatch(allowed, resource):
        yield Finding(
            "V-MAP-16",
            f"AWS has no such {'reader' if holder == 'ItemReader' else 'writer'}: {resource!r}",
            node.at(holder, "Resource"),
            f"arn:aws:states:::{names}",
            severity=Severity.ERROR,
            aws=Wording("The field 'Resource' does not match any of the allowed values"),
        )


def _stricter(node: Node) -> Severity:
    """Return how bad it is what AWS refuses and this interpreter makes sense of."""
    return Severity.ERROR if node.profile.aws else Severity.WARNING


def _below(node: Node, *steps: str) -> Mapping[str, Json]:
    value: Json = node.value
    for step in steps:
        value = value.get(step) if type(value) is dict else None
    return value if type(value) is dict else {}
