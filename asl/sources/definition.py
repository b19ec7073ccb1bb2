"""Turn a definition in a template into a document with positions in the template."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from asl.core import json_text, yaml_text
from asl.core.diagnostics import Finding
from asl.core.document import Document, as_object, clip, invalid, too_large
from asl.core.opaque import PLACEHOLDER
from asl.core.pointers import escape
from asl.core.source import Fault, Source, Span
from asl.core.values import Json, compact
from asl.core.yaml_schema import CORE, Schema
from asl.sources.read_context import ReadContext
from asl.sources.text import TrackedText, join_texts

__all__ = [
    "Lookup",
    "SourcePart",
    "UnknownValue",
    "document_from_file",
    "document_from_part",
    "document_from_text",
    "document_from_value",
    "document_from_yaml",
    "json_from_part",
    "substitute",
]

SHOWN = 5
"""Number of other places named for a placeholder without a value."""

Lookup = Callable[[str], str | None]
"""Returns the value of a placeholder; None if it has none."""

_NAME_FIELDS = ("/Resource", ".$", "Path", "/Variable", "/Next", "/Default", "/StartAt")
"""Ends of the pointers of strings that are names, paths or function calls."""
_REFERENCE = re.compile(r"\$\{([^${}]+)\}")


@dataclass(frozen=True, slots=True)
class UnknownValue:
    """A value known only after deployment: a reference or an expression with a reference."""

    text: str


@dataclass(slots=True)
class SourcePart:
    """A value with its offset; objects and arrays hold parts, strings are tracked texts."""

    value: "SourceValue"
    at: int
    key_at: int | None = None


SourceValue: TypeAlias = (
    dict[str, SourcePart]
    | list[SourcePart]
    | TrackedText
    | UnknownValue
    | bool
    | int
    | float
    | None
)
"""The value of a part: objects and arrays hold parts, strings are tracked texts."""


def substitute(
    text: TrackedText, lookup: Lookup, source: Source, context: ReadContext
) -> TrackedText:
    """Return the text with every known `${Name}` replaced; values are not searched again."""
    pieces = []
    end = 0
    for found in _REFERENCE.finditer(text.string):
        value = None if text.is_inserted(found.start()) else lookup(found[1])
        if value is not None:
            if end < found.start():
                pieces.append(text.part(end, found.start()))
            pieces.append(context.insert(value, source, text.origin(found.start())))
            end = found.end()
    if pieces and end < len(text.string):
        pieces.append(text.part(end, len(text.string)))
    return join_texts(pieces, text.begin) if pieces else text


def document_from_file(
    source: Source, lookup: Lookup, context: ReadContext, resource: str | None = None
) -> Document:
    """Return the document of a whole file with its placeholders filled.

    Raises:
        InvalidDocument: The text cannot be read, or is too large.
    """
    assert source.text is not None
    text = TrackedText.from_source(source.text, 0)
    if source.format != "yaml":
        return document_from_text(
            substitute(text, lookup, source, context), source, context, resource
        )
    if len(source.text) > context.limits.max_yaml_bytes:
        raise too_large(source.name, context.limits.max_yaml_bytes)
    # The text around a value could change its meaning in YAML. The text is therefore parsed with a
    # marker for each value, which every scalar replaces afterwards.
    mark = "Q"
    while mark in source.text:
        mark += "Q"
    values: list[str] = []

    def word(name: str) -> str:
        value = lookup(name)
        values.append(f"${{{name}}}" if value is None else value)
        context.spend(len(values[-1]), source, 0)
        return f"{mark}{len(values) - 1}{mark}"

    marked = re.compile(f"{mark}([0-9]+){mark}")

    def expand(scalar: str) -> str:
        return marked.sub(lambda found: values[int(found[1])], scalar)

    schema = CORE._replace(expand=expand)
    return document_from_yaml(
        substitute(text, word, source, context), source, context, resource, schema
    )


def document_from_value(document: Document, lookup: Lookup, context: ReadContext) -> Document:
    """Return the document of a value without text, with its placeholders filled."""
    text = TrackedText.from_source(compact(document.value), 0)
    filled = document_from_text(
        substitute(text, lookup, document.source, context), document.source, context
    )
    return replace(filled, _spans=[], _written=None)


def document_from_yaml(
    text: TrackedText,
    source: Source,
    context: ReadContext,
    resource: str | None = None,
    schema: Schema = CORE,
) -> Document:
    """Return the document of a composed YAML text.

    Raises:
        InvalidDocument: The text is not YAML, or its definition is unknown before deployment.
    """
    value, span, faults = yaml_text.loads(text.string, context.limits, schema)
    if faults:
        raise invalid(source, [_move_fault(fault, text) for fault in faults])
    return _document(value, span, source, context, resource, text)


def document_from_text(
    text: TrackedText, source: Source, context: ReadContext, resource: str | None = None
) -> Document:
    """Return the document of a composed JSON text.

    Raises:
        InvalidDocument: The text is not JSON, or its definition is unknown before deployment.
    """
    ready, escaped = text.escape_for_json()
    value, faults = json_text.loads(ready.string, context.limits)
    if faults:
        raise invalid(source, [_move_fault(fault, ready) for fault in faults])
    for each in escaped:
        message = f"the inserted value {clip(each)!r} would end its string; it is escaped here"
        hint = "AWS inserts it unescaped and refuses the definition: escape it in the value"
        context.note("READ-15", message, hint, each)
    span = json_text.scan(ready.string, context.limits)[0]
    return _document(value, span, source, context, resource, ready)


def _move_fault(fault: Fault, text: TrackedText) -> Fault:
    related = fault.related and (text.origin(fault.related[0]), fault.related[1])
    return fault._replace(offset=text.origin(fault.offset), related=related)


def document_from_part(
    part: SourcePart, source: Source, context: ReadContext, resource: str | None = None
) -> Document:
    """Return the document of a value in a template."""
    value, span = _value_and_span(part, source, context)
    return _document(value, span, source, context, resource)


def _value_and_span(part: SourcePart, source: Source, context: ReadContext) -> tuple[Json, Span]:
    """Return the value and the span of a part."""
    context.count(source, part.at)
    value = part.value
    span = Span(part.at)
    span.key_at = part.key_at
    if isinstance(value, dict):
        each = {key: _value_and_span(member, source, context) for key, member in value.items()}
        span.members = {key: inner for key, (_, inner) in each.items()}
        return {key: member for key, (member, _) in each.items()}, span
    if isinstance(value, list):
        items = [_value_and_span(item, source, context) for item in value]
        span.members = [inner for _, inner in items]
        return [item for item, _ in items], span
    return value.string if isinstance(value, TrackedText) else value, span


def _document(
    value: Json,
    span: Span,
    source: Source,
    context: ReadContext,
    resource: str | None = None,
    written: TrackedText | None = None,
) -> Document:
    if type(value) is str and PLACEHOLDER.fullmatch(value.strip()):
        at = span.at if written is None else written.origin(span.at)
        message = f"the definition is known only after deployment: {clip(value.strip())}"
        hint = "give it a value with --var, or name the file of the definition"
        raise context.error(source, at, "READ-18", message, hint)
    unfilled = () if context.literal_placeholders else _placeholder_findings(value, context)
    return as_object(
        Document(
            value,
            source,
            _spans=[span],
            resource=resource,
            findings=(*_note_findings(value, context), *unfilled),
            _written=written,
        )
    )


def _note_findings(value: Json, context: ReadContext) -> Iterator[Finding]:
    """Yield the notes, each at the first value that contains its text."""
    texts = {note.text for note in context.notes if note.text}
    pointers: dict[str | None, str] = {}
    if texts:
        anyone = re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))))
        for pointer, string in _strings(value):
            for found in anyone.findall(string):
                pointers.setdefault(found, pointer)
    for note in context.notes:
        yield Finding(note.code, note.message, pointers.get(note.text, ""), note.hint)


def _placeholder_findings(value: Json, context: ReadContext) -> Iterator[Finding]:
    """Yield the placeholders without a value: READ-11.

    `${...}` may be literal text, so only whole strings count, and strings that must be names or
    paths. The first finding names all places of a placeholder.
    """
    known = {note.text for note in context.notes}
    places: dict[str, list[str]] = {}
    for pointer, string in _strings(value):
        if "${" not in string or string in known:
            continue
        found = json_text.PLACEHOLDER.fullmatch(string)
        if found is None and pointer.endswith(_NAME_FIELDS):
            found = json_text.PLACEHOLDER.search(string)
        if found is not None and found[0] not in known:
            places.setdefault(found[1], []).append(pointer)
    for name, (first, *others) in places.items():
        yield Finding(
            "READ-11",
            f"no value is given for ${{{name}}}",
            first,
            f"give it one: --var {name}=...",
            related=tuple((each, "and here") for each in others[:SHOWN]),
        )


def _strings(value: Json) -> Iterator[tuple[str, str]]:
    """Yield every string of a value with its pointer, in the order of their appearance."""
    todo = [("", value)]
    while todo:
        pointer, each = todo.pop()
        if type(each) is str:
            yield pointer, each
        elif type(each) is dict:
            todo += [(f"{pointer}/{escape(key)}", item) for key, item in reversed(each.items())]
        elif type(each) is list:
            todo += [(f"{pointer}/{index}", item) for index, item in reversed([*enumerate(each)])]


def json_from_part(part: SourcePart) -> Json:
    """Return the JSON value of a part."""
    value = part.value
    if isinstance(value, dict):
        return {key: json_from_part(item) for key, item in value.items()}
    if isinstance(value, list):
        return [json_from_part(item) for item in value]
    return value.string if isinstance(value, TrackedText) else value
