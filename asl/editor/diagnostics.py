"""Diagnostics of a document: what `asl check` reports, in the terms of the protocol."""

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from lsprotocol.types import (
    Diagnostic,
    DiagnosticRelatedInformation,
    DiagnosticSeverity,
    Location,
    Position,
    Range,
)
from pygls.uris import from_fs_path

from asl.agents.file import check_agents
from asl.agents.sections import is_agents_file
from asl.checks import check
from asl.checks.aws import unreadable
from asl.core.diagnostics import Diagnostic as Reported
from asl.core.diagnostics import InvalidDocument, Report, ReportedPlace, Severity
from asl.core.document import Document
from asl.core.errors import AslError
from asl.dialects import load_each
from asl.editor.edited import TextVersion
from asl.editor.project import ProjectNames
from asl.sources.read_context import repository_of
from asl.sources.repository import is_document_name

__all__ = ["CheckedText", "check_text", "to_diagnostics"]

SOURCE: Final = "asl"
_SEVERITIES: Final = {
    Severity.ERROR: DiagnosticSeverity.Error,
    Severity.WARNING: DiagnosticSeverity.Warning,
    Severity.INFO: DiagnosticSeverity.Information,
}


class CheckedText(NamedTuple):
    """The reports on a text, and the language that it is written in.

    `failure` is why the text was not checked, such as settings of the project that cannot be used.
    """

    kind: str | None
    reports: tuple[Report, ...]
    failure: str | None = None


def check_text(
    text: str, path: str | None, format: str | None, project: ProjectNames
) -> CheckedText:
    """Check a text as `asl check` checks the file.

    Args:
        text: The text, which may differ from that of the file.
        path: The path of its file; imports are read from its folder.
        format: `json` or `yaml`.
        project: The project around it.
    """
    folder = os.path.dirname(path) if path else None
    try:
        found = load_each(
            text.encode("utf-8", "replace"),
            name=path,
            format=format,
            root=None if folder is None else repository_of(folder),
            defaults=project.variables,
        )
    except InvalidDocument as refusal:
        found = [refusal]
    except AslError as error:
        return CheckedText(None, (), str(error))
    found = [each for each in found if _is_ours(each, text, path)]
    kinds = [_kind(each) for each in found if isinstance(each, Document)]
    return CheckedText(
        kinds[0] if kinds else None,
        tuple(report for each in found for report in _reports(each, project)),
    )


def _is_ours(document: Document | InvalidDocument, text: str, path: str | None) -> bool:
    """Return whether a text is a document, not any other file in JSON or YAML."""
    if path is not None and is_document_name(path):
        return True
    if isinstance(document, InvalidDocument):
        return "StartAt" in text or "States" in text
    value = document.value
    named = type(value) is dict and not _FIELDS.isdisjoint(value)
    return named or document.dialect != "asl" or document.resource is not None


_FIELDS: Final = frozenset(("StartAt", "States"))


def _kind(document: Document) -> str:
    return "agents" if is_agents_file(document) else document.dialect


def _reports(document: Document | InvalidDocument, project: ProjectNames) -> Iterator[Report]:
    if isinstance(document, InvalidDocument):
        yield unreadable(document.report) if project.profile.aws else document.report
    elif is_agents_file(document):
        yield check_agents(document)
    else:
        yield check(document, project.profile, agents=project.agents, resources=project.resources)


def to_diagnostics(
    checked: CheckedText, version: TextVersion, path: str | None
) -> list[Diagnostic]:
    """Return the findings for the editor.

    One in another file, such as an import, is at the start of the text, with its place as related.

    Args:
        checked: The reports.
        version: The text that was checked.
        path: The path of its file.
    """
    if checked.failure is not None:
        start = Range(Position(0, 0), Position(0, 0))
        return [Diagnostic(start, checked.failure, DiagnosticSeverity.Error, source=SOURCE)]
    found: dict[Reported, Diagnostic] = {}
    for report in checked.reports:
        for each in report:
            if each not in found:  # several resources of a template may use one definition
                found[each] = _diagnostic(each, version, path)
    return [*found.values()]


def _diagnostic(reported: Reported, version: TextVersion, path: str | None) -> Diagnostic:
    own = reported.file == path or reported.line is None
    related = [_related(each, version, path) for each in (*reported.related, *reported.places[1:])]
    if not own:
        place = ReportedPlace(
            reported.message, reported.pointer, reported.file, reported.line, reported.column
        )
        related.insert(0, _related(place, version, path))
    hint = f" ({reported.hint})" if reported.hint else ""
    return Diagnostic(
        _range(version, reported.line, reported.column) if own else version.index.range(0, 0),
        f"{reported.message}{hint}",
        _SEVERITIES[reported.severity],
        code=reported.code,
        source=SOURCE,
        related_information=[each for each in related if each is not None] or None,
        data={"hint": reported.hint, "pointer": reported.pointer} if own else None,
    )


def _related(
    place: ReportedPlace, version: TextVersion, path: str | None
) -> DiagnosticRelatedInformation | None:
    """Return a related place; None for one without a file."""
    uri = None if place.file is None else from_fs_path(os.path.abspath(place.file))
    if uri is None or place.line is None:
        return None
    if place.file == path:
        where = _range(version, place.line, place.column)
    else:
        at = Position(place.line - 1, (place.column or 1) - 1)
        where = Range(at, at)
    return DiagnosticRelatedInformation(Location(uri, where), place.message)


def _range(version: TextVersion, line: int | None, column: int | None) -> Range:
    """Return the range of the key or scalar at a place; of an object its first line alone."""
    index = version.index
    if line is None:
        return index.range(0, 0)
    start = index.place_offset(line, column or 1)
    _, _, part = version.steps_at(start)
    end = part.end if part.start == start and part.kind == "string" else start + 1
    end = min(max(end, start), index.line_end(index.position(start).line))
    return index.range(start, max(start, end))
