"""Texts of documents on pages: lines with findings, and the place of an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import orjson

from asl.core.diagnostics import Diagnostic, InvalidDocument, Report
from asl.core.document import Document
from asl.core.pointers import escape
from asl.core.source import Source
from asl.dialects.conversion import part_descriptions
from asl.documents.loading import load
from asl.graphs.model import MachineGraph, graph_of
from asl.server.documents import document_of
from asl.server.pages.history import StateVisit
from asl.server.projects import ServerProject
from asl.stores.executions import StoredExecution

__all__ = [
    "SourceExcerpt",
    "SourceLine",
    "graph_for",
    "numbered_lines",
    "place_of_error",
    "readable_document",
]

AROUND: Final = 3
"""Lines before and after the place of an error."""
LONGEST_LINE: Final = 2_000
MOST_LINES: Final = 20_000


@dataclass(slots=True)
class SourceLine:
    """A line of a document with its findings.

    Attributes:
        number: Counted from 1.
        text: Without its end.
        findings: What the checks report there.
        caret: Column to mark, from 1; None for none.
    """

    number: int
    text: str
    findings: list[Diagnostic] = field(default_factory=list)
    caret: int | None = None

    @property
    def pad(self) -> str:
        """What is written before the caret, so that it is below its column."""
        before = self.text[: (self.caret or 1) - 1]
        return "".join("\t" if each == "\t" else " " for each in before)


class SourceExcerpt(NamedTuple):
    """The place of an error in its document.

    Attributes:
        file: Name of the file, None if it is unknown.
        pointer: JSON Pointer of the part.
        lines: The line and those around it.
    """

    file: str | None
    pointer: str
    lines: Sequence[SourceLine]


def readable_document(project: ServerProject, stored: StoredExecution) -> Document:
    """Return the document of an execution; with lines also where its text is not known.

    Raises:
        InvalidDocument: It cannot be read.
    """
    document = document_of(project, stored)
    text = document.source.text
    if text is not None and "\n" in text.strip():
        return document
    pretty = orjson.dumps(document.composed_value, option=orjson.OPT_INDENT_2)
    return load(pretty, name=document.source.name, format="json", imports={})


def numbered_lines(source: Source, report: Report | None) -> list[SourceLine]:
    """Return the lines of a text, each with its findings."""
    text = source.text or ""
    lines = [
        SourceLine(number, line[:LONGEST_LINE])
        for number, line in enumerate(text.split("\n")[:MOST_LINES], 1)
    ]
    for each in report or ():
        known = each.line is not None and each.file == source.name
        if known and each.line is not None and each.line <= len(lines):
            lines[each.line - 1].findings.append(each)
    return lines


def place_of_error(document: Document, visit: StateVisit) -> SourceExcerpt | None:
    """Return the place in the document where a visit failed: its field, else its state."""
    if not visit.pointer:
        return None
    pointer = visit.pointer
    if visit.field:
        steps = visit.field.replace("[", "/").replace("]", "").replace(".", "/").split("/")
        pointer += "".join(f"/{escape(step)}" for step in steps if step)
    home, inner = document.origin(pointer)
    place = home.locate(inner, at_key=not visit.field)
    if place.line is None:
        return None
    lines = numbered_lines(home.source, None)[max(0, place.line - 1 - AROUND) : place.line + AROUND]
    for each in lines:
        if each.number == place.line:
            each.caret = place.column
    return SourceExcerpt(home.source.name, pointer, lines)


def graph_for(project: ServerProject, stored: StoredExecution) -> MachineGraph:
    """Return the graph of the document of an execution; an empty one if it cannot be read."""
    try:
        document = document_of(project, stored)
    except InvalidDocument:
        return MachineGraph("", "", (), ())
    return graph_of(document.composed_value, part_descriptions(document))
