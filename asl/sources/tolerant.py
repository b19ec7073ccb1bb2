"""Templates read as deployment tools read them: a fault in one part leaves the others readable."""

import json
from collections.abc import Iterable, Iterator

from asl.core import json_text, yaml_text
from asl.core.document import Document, invalid, too_large
from asl.core.source import Fault, Limits, Source
from asl.core.yaml_schema import Schema
from asl.sources.reading import Note

__all__ = ["DUPLICATE", "read_template", "remarks"]

DUPLICATE = "V-TOP-01"
"""The code of a fault that deployment tools accept: of equal keys the last one counts."""


def read_template(source: Source, limits: Limits, schema: Schema) -> tuple[Document, list[Fault]]:
    """Read a template and the faults that concern only some of its parts.

    Raises InvalidDocument for a text without a value.
    """
    text = source.text
    assert text is not None
    if source.format == "yaml":
        if len(text.encode()) > limits.max_yaml_bytes:
            raise too_large(source.name, limits.max_yaml_bytes, "write large documents as JSON")
        value, span, faults = yaml_text.loads(text, limits, schema)
        if faults and value is None:
            raise invalid(source, faults)
        return Document(value, source, _spans=[span]), faults
    value, faults = json_text.loads(text, limits)
    if not faults:
        return Document(value, source), faults
    if any(fault.code != DUPLICATE for fault in faults):
        raise invalid(source, faults)
    return Document(json.loads(text), source, _spans=[json_text.scan(text, limits)[0]]), faults


def remarks(source: Source, faults: Iterable[Fault]) -> Iterator[Note]:
    """Yield a note for each fault that keeps no definition from being read."""
    for fault in faults:
        line = source.place(fault.offset).line
        taken = ", the last one counts" if fault.code == DUPLICATE else ""
        yield Note("READ-19", f"line {line} of the template: {fault.message}{taken}", fault.hint)
