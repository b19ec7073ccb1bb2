"""Render reports for people: source lines with carets, hints and related positions."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from asl.core.diagnostics import Diagnostic, Report, ReportedPlace, Severity
from asl.core.printable import printable
from asl.core.render import Reports, every_report
from asl.core.source import Source

__all__ = ["WIDTH", "further_places", "render_text"]

WIDTH = 100
"""Columns of a source line that are shown; longer lines are clipped around the caret."""

TAB = 4

_STYLES = {
    "error": "\x1b[1;31m",
    "warning": "\x1b[1;33m",
    "info": "\x1b[1;36m",
    "place": "\x1b[1m",
    "gutter": "\x1b[34m",
    "hint": "\x1b[32m",
}
_RESET = "\x1b[0m"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.){0,200}+"?|[\w$.+-]+')


def render_text(reports: Reports, color: bool = False) -> str:
    """Render each diagnostic with its source line, caret, hint and related positions."""
    paint = _painted if color else _plain
    each = every_report(reports)
    blocks = [block for report in each for block in _blocks(report, paint)]
    return "\n\n".join([*blocks, _summary(each, paint)])


Paint: TypeAlias = Callable[[str, str], str]


def _painted(text: str, style: str) -> str:
    return f"{_STYLES[style]}{text}{_RESET}"


def _plain(text: str, _style: str) -> str:
    return text


class _Lines:
    """The lines of a source that are already rendered."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.known: dict[int, str] = {}

    def line(self, number: int) -> str:
        """Return the text of a line, counted from 1."""
        if number not in self.known:
            self.known[number] = self.source.line(number)
        return self.known[number]


def _blocks(report: Report, paint: Paint) -> Iterator[str]:
    sources = report.document.sources if report.document and report else {}
    lines = {name: _Lines(each) for name, each in sources.items() if each.text is not None}
    for diagnostic in report:
        yield "\n".join(_block(diagnostic, lines.get(diagnostic.file), paint))


def _block(diagnostic: Diagnostic, lines: _Lines | None, paint: Paint) -> Iterator[str]:
    severity = str(diagnostic.severity)
    where = paint(printable(diagnostic.where) + ":", "place")
    what = paint(f"{severity} {diagnostic.code}:", severity)
    yield f"{where} {what} {printable(diagnostic.message)}"
    marks, notes = _marks(diagnostic, lines is not None)
    margin = len(str(marks[-1].line)) if marks else 1
    if lines is not None:
        yield from _excerpt(lines, marks, margin, severity, paint)
    blank, equals = " " * margin, paint("=", "gutter")
    further = further_places(diagnostic)
    if further:
        yield f"{blank} {equals} {paint('also:', 'gutter')} {printable(further)}"
    for note in (*notes, *_messages(diagnostic)):
        yield f"{blank} {equals} {paint('note:', 'gutter')} {printable(note)}"
    if diagnostic.hint:
        yield f"{blank} {equals} {paint('hint:', 'hint')} {printable(diagnostic.hint)}"
    if diagnostic.aws:
        yield f"{blank} {equals} {paint('aws:', 'gutter')} {printable(str(diagnostic.aws))}"


MAX_PLACES = 12
"""Further places of a diagnostic that are named; the others are counted."""
MAX_MESSAGES = 4
"""Messages of the places of a diagnostic that are shown; the others are counted."""


def further_places(diagnostic: Diagnostic) -> str:
    """Return where else a diagnostic applies: `and at lines 19, 23`, empty if it has one place."""
    others = diagnostic.places[1:]
    if not others:
        return ""
    names = [*dict.fromkeys(_place_name(each, diagnostic.file) for each in others)]
    if diagnostic.line is not None and names == [str(diagnostic.line)]:
        return "and again in this line"
    lines = all(map(str.isdecimal, names))
    listed = ", ".join(names[:MAX_PLACES])
    more = f" and {len(names) - MAX_PLACES} more" if len(names) > MAX_PLACES else ""
    noun = ("line " if len(names) == 1 else "lines ") if lines else ""
    return f"and at {noun}{listed}{more}"


def _messages(diagnostic: Diagnostic) -> Iterator[str]:
    """Yield the messages of the places of a diagnostic, if they differ."""
    found: dict[str, list[str]] = {}
    for each in diagnostic.places:
        found.setdefault(each.message, []).append(_place_name(each, diagnostic.file))
    if len(found) < 2:
        return
    for message, names in [*found.items()][:MAX_MESSAGES]:
        yield f"{', '.join(dict.fromkeys(names[:MAX_PLACES]))}: {message}"
    if len(found) > MAX_MESSAGES:
        yield f"and {len(found) - MAX_MESSAGES} more"


def _place_name(place: ReportedPlace, file: str | None) -> str:
    """Return the line of a place, with the name of a file other than *file*."""
    if place.line is None:
        return place.pointer
    return str(place.line) if place.file == file else f"{place.file}:{place.line}"


@dataclass(frozen=True, slots=True, order=True)
class _Mark:
    """A position to mark; the label of the diagnostic itself is empty."""

    line: int
    column: int
    label: str = ""


def _marks(diagnostic: Diagnostic, shown: bool) -> tuple[list[_Mark], list[str]]:
    """Return the positions to mark, in order, and notes for those without a source line."""
    marks, notes = [], []
    if shown and diagnostic.line is not None and diagnostic.column is not None:
        marks.append(_Mark(diagnostic.line, diagnostic.column))
    for other in diagnostic.related:
        if other.line is None or other.column is None:
            notes.append(f"{other.pointer}: {other.message}")
        elif shown and other.file == diagnostic.file:
            marks.append(_Mark(other.line, other.column, other.message))
        else:
            notes.append(f"{other.file}:{other.line}:{other.column}: {other.message}")
    return sorted(marks), notes


def _excerpt(
    lines: _Lines, marks: list[_Mark], margin: int, severity: str, paint: Paint
) -> Iterator[str]:
    """Yield the source lines, each with its marks beneath."""
    if not marks:
        return
    bar, blank = paint("|", "gutter"), " " * margin
    yield f"{blank} {bar}"
    last, above = marks[0].line, ""
    for mark in marks:
        text = lines.line(mark.line)
        token = _TOKEN.match(text, mark.column - 1)
        end = token.end() if token else mark.column
        shown, start, width = _clipped(text, mark.column - 1, end)
        if mark.line > last + 1:
            yield f"{blank} {paint(':', 'gutter')}"
        if (mark.line, shown.rstrip()) != (last, above):
            yield f"{paint(f'{mark.line:>{margin}}', 'gutter')} {bar} {shown}".rstrip()
        last, above = mark.line, shown.rstrip()
        under = f"{'-' * width} {printable(mark.label)}" if mark.label else "^" * width
        yield f"{blank} {bar} {' ' * start}{paint(under, 'gutter' if mark.label else severity)}"


def _clipped(text: str, start: int, end: int) -> tuple[str, int, int]:
    """Return the visible part of a line, and the column and width of its marks."""
    before = _cells(text[max(0, start - 2 * WIDTH) : start])
    marked = _cells(text[start : min(end, start + 2 * WIDTH)]) or [(" ", 1)]
    after = _cells(text[end : end + 2 * WIDTH])
    if start <= 2 * WIDTH and _columns(before + marked + after) <= WIDTH:
        return _text(before + marked + after), _columns(before), _columns(marked)
    kept = _fitting(before[::-1], WIDTH // 3)[::-1]
    if len(kept) < len(before) or start > 2 * WIDTH:
        kept.insert(0, ("…", 1))
    whole = kept + marked + after
    shown = _fitting(whole, WIDTH - 1)
    width = _columns(shown[len(kept) : len(kept) + len(marked)])
    if len(shown) < len(whole):
        shown.append(("…", 1))
    before = kept
    return _text(shown), _columns(before), max(1, width)


Cell: TypeAlias = tuple[str, int]


def _cells(text: str) -> list[Cell]:
    """Return the characters of a text as shown, with their widths in columns."""
    if text.isascii() and text.isprintable():
        return [(character, 1) for character in text]
    return [_cell(character) for character in text]


def _cell(character: str) -> Cell:
    if character == "\t":
        return " " * TAB, TAB
    if unicodedata.combining(character) or character == "\u200d":
        return character, 0
    shown = printable(character)
    return shown, 2 if unicodedata.east_asian_width(shown) in ("W", "F") else 1


def _fitting(cells: list[Cell], columns: int) -> list[Cell]:
    """Return the longest prefix of cells that fits into some columns."""
    for index, (_, width) in enumerate(cells):
        columns -= width
        if columns < 0:
            return cells[:index]
    return cells


def _columns(cells: list[Cell]) -> int:
    return sum(width for _, width in cells)


def _text(cells: list[Cell]) -> str:
    return "".join(text for text, _ in cells)


def _summary(reports: list[Report], paint: Paint) -> str:
    names = [report.document.source.name if report.document else None for report in reports]
    # Those of one file are one.
    several = len({name or number for number, name in enumerate(names)})
    where = f"{several} files" if several > 1 else next(filter(None, names), "<document>")
    counts = []
    for severity, noun in (
        (Severity.ERROR, "error"),
        (Severity.WARNING, "warning"),
        (Severity.INFO, "note"),
    ):
        number = sum(len(report.of(severity)) for report in reports)
        if number:
            plural = "" if number == 1 else "s"
            counts.append(paint(f"{number} {noun}{plural}", str(severity)))
    if not counts:
        return f"{printable(where)}: {paint('no findings', 'hint')}"
    return f"{printable(where)}: {', '.join(counts)}"
