"""Documents: JSON values with the positions of their parts in a text."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from asl.core import json_text
from asl.core.codes import lookup
from asl.core.diagnostics import (
    Diagnostic,
    Finding,
    InvalidDocument,
    Report,
    ReportedPlace,
    Severity,
    did_you_mean,
)
from asl.core.errors import AslError, DocumentNotFound
from asl.core.pointers import resolve_pointer
from asl.core.source import (
    DEFAULT_LIMITS,
    DOCUMENT_LIMITS,
    Fault,
    Limits,
    Place,
    Source,
    Span,
    character,
    spans_of,
)
from asl.core.values import SURROGATE, Json, copy_foreign, type_name
from asl.core.yaml_schema import CORE, Schema

UNNAMED: Final = "workflow"
"""The name of a workflow without a file or a template resource."""

_FORMATS = {".json": "json", ".yaml": "yaml", ".yml": "yaml"}


class OpenFile(Protocol):
    """An open file, of text or of bytes."""

    def read(self, size: int, /) -> str | bytes: ...


class ComposedText(Protocol):
    """A text built from a source, and the source offset of each of its characters."""

    @property
    def string(self) -> str:
        """The text."""

    def origin(self, position: int) -> int:
        """Return the source offset of the character at a position."""


Loadable: TypeAlias = str | bytes | os.PathLike[str] | dict[str, Json] | OpenFile
"""A path, a text, bytes, a dict or an open file."""


Origins: TypeAlias = "Mapping[str, tuple[Document, str]]"
"""JSON Pointers to the document and pointer where the part is written."""


class Composition(NamedTuple):
    """The parts that a document was composed from.

    `written` is the value as its file has it, `imports` are the imported documents. `origins` maps
    JSON Pointers of the value to the document and pointer where that part is written. `findings`
    were found during the composition. `heads` are the fields of included
    documents and of a filled template apart from the machine, by its pointer. `arguments` maps the
    pointer of a string that is exactly one argument of an Include to the pointer of that argument.
    """

    written: Json
    imports: Mapping[str, Document]
    origins: Origins
    findings: tuple[Finding, ...] = ()
    heads: Mapping[str, Mapping[str, Json]] = {}
    arguments: Mapping[str, str] = {}


class PlannedStart(NamedTuple):
    """A schedule of a template that starts its state machine.

    Attributes:
        name: Its name, or its logical id.
        expression: `rate(...)`, `cron(...)` or `at(...)`.
        timezone: Time zone of the expression.
        input: The input as JSON text; None without one.
        start: The earliest time as a timestamp; None for no bound.
        end: The latest time as a timestamp; None for no bound.
        paused: Whether it is disabled.
    """

    name: str
    expression: str
    timezone: str = "UTC"
    input: str | None = None
    start: str | None = None
    end: str | None = None
    paused: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Document:
    """A value, the text it was read from, and its dialect.

    `resource` is the name of the state machine within its template, `deployed` its name in ARNs,
    `express` whether it is deployed as an express workflow, `qualifiers` its versions and aliases,
    `planned_starts` its schedules there.
    `siblings` reads the other state machines of the template, by both names. `findings` were found
    while reading. `_written` is the parsed text if it was built from the source. `hints` maps texts
    that are wrong as a resource name to a correction.
    """

    value: Json
    source: Source
    dialect: str = "asl"
    _spans: list[Span] = field(default_factory=list)
    resource: str | None = None
    findings: tuple[Finding, ...] = ()
    _written: ComposedText | None = None
    composition: Composition | None = None
    deployed: str | None = None
    hints: Mapping[str, str] = field(default_factory=dict)
    siblings: Callable[[], Mapping[str, Document]] | None = None
    express: bool = False
    qualifiers: tuple[str, ...] = ()
    planned_starts: tuple[PlannedStart, ...] = ()

    def __repr__(self) -> str:
        return f"<Document {self.name!r} in {self.dialect}>"

    @property
    def name(self) -> str:
        """The name of the workflow: its resource, or its file up to the first dot."""
        if self.resource is not None:
            return self.resource
        file = os.path.basename(self.source.name or "")
        return UNNAMED if file.startswith("<") else file.split(".")[0] or UNNAMED

    @property
    def composed_value(self) -> Json:
        """The value without `Imports` and `_lock`: it needs no other file."""
        if self.composition is None:
            return self.value
        return {key: self.value[key] for key in self.value if key not in ("Imports", "_lock")}

    def origin(self, pointer: str) -> tuple[Document, str]:
        """Return the document and pointer where the value at a JSON Pointer is written."""
        origins = self.composition.origins if self.composition is not None else None
        return origin_of(pointer, self, origins) if origins else (self, pointer)

    @property
    def sources(self) -> Mapping[str | None, Source]:
        """The source texts by name; the document's own is the first."""
        found = {self.source.name: self.source}
        if self.composition is not None:
            for document, _ in self.composition.origins.values():
                found.setdefault(document.source.name, document.source)
        return found

    def offset(self, pointer: str, at_key: bool = False, inside: int | None = None) -> int:
        """Return the offset of the value (or its key) at a JSON Pointer: characters, counted from
        0.

        Args:
            pointer: The JSON Pointer.
            at_key: Whether to return the offset of the key.
            inside: A character of the string at the pointer, to locate that instead.

        Without a text it is the number of the value in the order of appearance.
        """
        offset = self.span.find(pointer, at_key)
        text = self.source.text if self._written is None else self._written.string
        if inside is not None and text is not None:
            value = resolve_pointer(self.value, pointer)
            offset = character(text, offset, value, inside) if type(value) is str else offset
        return offset if self._written is None else self._written.origin(offset)

    @property
    def span(self) -> Span:
        """The offsets of the value and its parts in the parsed text."""
        if not self._spans:
            if self.source.text is None:
                self._spans.append(spans_of(self.value))
            elif self.source.format == "yaml":
                self._spans.append(_of_yaml(self.source.text, DEFAULT_LIMITS, CORE)[1])
            else:
                self._spans.append(json_text.scan(self.source.text, DEFAULT_LIMITS)[0])
        return self._spans[0]

    def locate(self, pointer: str, at_key: bool = False, inside: int | None = None) -> Place:
        """Return the position of the value (or its key) at a JSON Pointer, or of its nearest
        ancestor.

        With *inside* the position of that character of the string.
        """
        if self.source.text is None:
            return Place()
        return self.source.place(self.offset(pointer, at_key, inside))


def origin_of(pointer: str, document: Document, origins: Origins) -> tuple[Document, str]:
    """Return where a part of a document is written, from the nearest known ancestor."""
    known = pointer
    while known not in origins:
        if not known:
            return document, pointer
        known = known.rpartition("/")[0]
    home, place = origins[known]
    return home, place + pointer[len(known) :]


def read(
    source: Loadable,
    *,
    name: str | None = None,
    format: str | None = None,
    limits: Limits = DOCUMENT_LIMITS,
) -> Document:
    """Read a document: an object in JSON or YAML.

    Args:
        source: A path, a text (begins with `{` or has several lines), bytes, a dict or an open
            file.
        name: The file name in diagnostics.
        format: `json` or `yaml`; guessed by default.
        limits: Bounds of the text and the value.

    Raises:
        InvalidDocument: The text cannot be read; every fault is reported with its position.
        DocumentNotFound: There is no such file.
        NotJson: The dict has no JSON form.
    """
    return as_object(read_value(source, name=name, format=format, limits=limits))


def is_workflow(value: Json) -> bool:
    """Return whether a value has the fields of a document, valid or not."""
    return type(value) is dict and {"StartAt", "States"} <= value.keys()


def as_object(document: Document) -> Document:
    """Return the document if its value is an object; raises `InvalidDocument` otherwise."""
    if type(document.value) is not dict:
        message = f"a document must be an object, not {_article(type_name(document.value))}"
        if document.source.text is not None and not document.source.text.strip():
            message = "the document is empty"
        raise invalid(document.source, [Fault("V-TOP-01", message, document.offset(""))])
    return document


def read_value(
    source: Loadable,
    *,
    name: str | None = None,
    format: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Document:
    """Read any value in JSON or YAML; see `read` for arguments and errors."""
    if isinstance(source, dict):
        return Document(copy_foreign(source), Source(name))
    return parse_source(open_source(source, name=name, format=format, limits=limits), limits)


def open_source(
    source: Loadable,
    *,
    name: str | None = None,
    format: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Source:
    """Return the text without parsing it; see `read` for arguments and what it raises."""
    if format not in (None, "json", "yaml"):
        raise AslError(f"unknown format {format!r}: json or yaml")
    raw, name = _raw(source, name, limits)
    text = _decoded(raw, name, limits)
    if format is None:
        format = _FORMATS.get(os.path.splitext(name or "")[1].lower())
    if format is None:
        format = "json" if text.lstrip().startswith(("{", "[")) else "yaml"
    return Source(name, text, format)


def parse_source(
    source: Source, limits: Limits = DEFAULT_LIMITS, schema: Schema | None = None
) -> Document:
    """Parse a text; raises `InvalidDocument`. A schema applies to YAML only."""
    text = source.text
    assert text is not None
    spans = []
    if source.format == "yaml":
        if len(text.encode()) > limits.max_yaml_bytes:
            raise too_large(source.name, limits.max_yaml_bytes, "write large documents as JSON")
        value, span, faults = _of_yaml(text, limits, schema or CORE)
        spans.append(span)  # this parser is too slow to be run twice
    else:
        value, faults = json_text.loads(text, limits)
    if faults:
        raise invalid(source, faults)
    return Document(value, source, _spans=spans)


def _of_yaml(text: str, limits: Limits, schema: Schema) -> tuple[Json, Span, list[Fault]]:
    """Return the value of a YAML text with the spans of its parts, or its faults."""
    from asl.core.yaml_text import loads

    return loads(text, limits, schema)


def _raw(what: Any, name: str | None, limits: Limits) -> tuple[str | bytes, str | None]:
    """Return the text or bytes to read, and their name."""
    if isinstance(what, bytes | bytearray | memoryview):
        return bytes(what), name
    path = path_of(what)
    if path is not None:
        return contents(path, limits), name or SURROGATE.sub("\ufffd", path)
    if isinstance(what, str):
        return what, name
    if not hasattr(what, "read"):
        raise AslError(f"cannot read a document from a value of type {type(what).__name__}")
    if name is None and isinstance(getattr(what, "name", None), str):
        name = what.name
    return what.read(limits.max_bytes + 1), name


def path_of(source: Loadable) -> str | None:
    """Return the path to read, None for a text or any other input."""
    if isinstance(source, str) and ("\n" in source or source.lstrip("\ufeff \t\r").startswith("{")):
        return None
    return os.fsdecode(source) if isinstance(source, str | os.PathLike) else None


def contents(path: str, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """Read a file, at most one byte beyond the limit; raises DocumentNotFound."""
    try:
        with open(path, "rb") as file:
            return file.read(limits.max_bytes + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        near = _near(path) if isinstance(error, FileNotFoundError) else None
        raise DocumentNotFound(path, reason.lower(), near) from None


def _near(path: str) -> str | None:
    """Return a hint at a file in the same folder with a similar name or the same stem."""
    folder, wanted = os.path.split(path)
    try:
        with os.scandir(folder or ".") as entries:
            names = sorted(entry.name for entry in islice(entries, 1000) if entry.is_file())
    except (OSError, ValueError):
        return None
    stem = wanted.split(".")[0]
    same = next((each for each in names if stem and each.split(".")[0] == stem), None)
    return did_you_mean(wanted, names) or (f"did you mean {same!r}?" if same else None)


def _decoded(raw: str | bytes, name: str | None, limits: Limits) -> str:
    if len(raw) > limits.max_bytes:
        raise too_large(name, limits.max_bytes)
    if isinstance(raw, str):
        if not raw.isascii() and (bad := SURROGATE.search(raw)):
            shown = SURROGATE.sub("\ufffd", raw)
            message = "a lone surrogate is not a character"
            fault = Fault("READ-09", message, bad.start(), json_text.ALONE)
            raise invalid(Source(name, shown, "text"), [fault])
        if len(raw.encode()) > limits.max_bytes:
            raise too_large(name, limits.max_bytes)
        return raw.removeprefix("\ufeff")
    try:
        return raw.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        text = raw.decode(errors="replace")
        offset = len(raw[: error.start].decode(errors="replace"))
        byte = f"the byte 0x{raw[error.start]:02X} is not UTF-8"
        hint = "save the file as UTF-8"
        raise invalid(Source(name, text, "text"), [Fault("READ-09", byte, offset, hint)]) from None


def too_large(name: str | None, limit: int, hint: str | None = None) -> InvalidDocument:
    """Return the error for a text over the byte limit."""
    fault = Fault("READ-04", f"the document is larger than {limit} bytes", 0, hint)
    return invalid(Source(name), [fault])


def invalid(source: Source, faults: list[Fault]) -> InvalidDocument:
    """Return the error for a text, with its faults in text order."""
    ordered = sorted(faults, key=lambda fault: (fault.offset, fault.code))
    diagnostics = tuple(_diagnostic(source, fault) for fault in ordered)
    return InvalidDocument(Report(diagnostics, Document(None, source)))


def _diagnostic(source: Source, fault: Fault) -> Diagnostic:
    at = source.place(fault.offset)
    related: tuple[ReportedPlace, ...] = ()
    if fault.related is not None:
        offset, message = fault.related
        other = source.place(offset)
        related = (ReportedPlace(message, fault.pointer, source.name, other.line, other.column),)
    return Diagnostic(
        fault.code,
        Severity(lookup(fault.code).severity),
        clip(fault.message),
        fault.pointer,
        source.name,
        at.line,
        at.column,
        fault.hint and clip(fault.hint),
        related,
    )


def clip(text: str) -> str:
    """Shorten a message to a bounded length."""
    return text if len(text) <= 200 else f"{text[:120]}…{text[-60:]}"


def _article(noun: str) -> str:
    if noun == "null":
        return noun
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
