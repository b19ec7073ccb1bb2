"""Formatter of documents in JSON and YAML."""

import json
from collections.abc import Iterator
from typing import Any, Final

from asl.core.document import as_object, parse_source
from asl.core.errors import AslError
from asl.core.printable import printable_json
from asl.core.source import DOCUMENT_LIMITS, Limits, Source
from asl.core.values import Json
from asl.core.yaml_schema import CORE, PLATFORM
from asl.dialects.registry import detect

__all__ = ["format_document", "format_json"]

WIDTH: Final = 100
LIMITS: Final = DOCUMENT_LIMITS._replace(max_yaml_nodes=12_000)
"""What is laid out: comments and styles of YAML are preserved, which makes reading it slower."""


def format_document(source: Source, limits: Limits = LIMITS) -> str:
    """Return the text of a document in its usual layout; the value is the same.

    JSON is indented by two; plain values stand on the line of their object or array where they fit,
    and so do arrays of them in an object. YAML keeps its comments, quotes and styles, and is
    indented by two. Raises InvalidDocument for what cannot be read.
    """
    value = _value(source, limits)
    text = _in_yaml(source.text or "") if source.format == "yaml" else format_json(value)
    if _strictly(_value(Source(source.name, text, source.format), limits)) != _strictly(value):
        raise AslError(f"{source.name or 'the document'} cannot be laid out without changing it")
    return text


def format_json(value: Json) -> str:
    """Return a value as JSON in the usual layout, without characters that control a terminal."""
    return "\n".join(_lines(value, 0, 0, "")) + "\n"


def _value(source: Source, limits: Limits) -> Json:
    """Return what a text says; raises InvalidDocument where it says nothing."""
    foreign = source.format == "yaml" and detect(source) is not None
    document = parse_source(source, limits, PLATFORM if foreign else CORE)
    return as_object(document).value if document.value is None else document.value


def _strictly(value: Json) -> str:
    """Return a value to be compared: 1 is not 1.0, true is not 1, and members have an order."""
    return json.dumps(value)


def _lines(value: Json, indent: int, column: int, comma: str) -> Iterator[str]:
    """Yield the lines of a value; the first one begins at this column."""
    if not isinstance(value, dict | list) or not value:
        yield _written(value) + comma
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if len(value) <= WIDTH and _simple(value):
        inline = _written(value)
        blank = " " if opening == "{" else ""
        line = f"{opening}{blank}{inline[1:-1]}{blank}{closing}{comma}"
        if column + len(line) <= WIDTH:
            yield line
            return
    yield opening
    margin = " " * (indent + 2)
    members: list[tuple[str, Any]] = (
        [(f"{_written(key)}: ", each) for key, each in value.items()]
        if isinstance(value, dict)
        else [("", each) for each in value]
    )
    for index, (head, each) in enumerate(members):
        behind = "," if index + 1 < len(members) else ""
        first, *rest = _lines(each, indent + 2, indent + 2 + len(head), behind)
        yield f"{margin}{head}{first}"
        yield from rest
    yield " " * indent + closing + comma


def _written(value: Json) -> str:
    return printable_json(json.dumps(value, ensure_ascii=False))


def _simple(value: Json) -> bool:
    """Whether a value may stand on a line: its parts have none, or are lists in an object."""
    if isinstance(value, list):
        return not any(map(_has_parts, value))
    return all(
        _simple(each) if isinstance(each, list) else not _has_parts(each) for each in value.values()
    )


def _has_parts(value: Json) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _in_yaml(text: str) -> str:
    from io import StringIO

    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    written = StringIO()
    yaml.dump(yaml.load(text), written)
    return written.getvalue()
