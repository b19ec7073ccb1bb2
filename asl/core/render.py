"""Show reports to people and to programs.

Every renderer takes one report or several and returns the whole text, without an end of line.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from asl.core.codes import lookup
from asl.core.diagnostics import Diagnostic, Related, Report, Severity
from asl.core.values import Json

Reports: TypeAlias = Report | Iterable[Report]

WIDTH = 100
"""How many columns of a source line are shown; longer ones are clipped around the caret."""

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
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[\w$.+-]+')
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_GITHUB_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_GITHUB_PROPERTY = {**_GITHUB_DATA, ":": "%3A", ",": "%2C"}


def _each(reports: Reports) -> list[Report]:
    return [reports] if isinstance(reports, Report) else list(reports)


def _all(reports: Reports) -> list[Diagnostic]:
    return [diagnostic for report in _each(reports) for diagnostic in report]


# ---------------------------------------------------------------------------- text


def render_text(reports: Reports, color: bool = False) -> str:
    """For reading: each diagnostic with its source line, a caret, hint and related places."""
    paint = _painted if color else _plain
    each = _each(reports)
    blocks = [block for report in each for block in _blocks(report, paint)]
    return "\n\n".join([*blocks, _summary(each, paint)])


Paint: TypeAlias = Callable[[str, str], str]


def _painted(text: str, style: str) -> str:
    return f"{_STYLES[style]}{text}{_RESET}"


def _plain(text: str, _style: str) -> str:
    return text


def _blocks(report: Report, paint: Paint) -> Iterator[str]:
    lines: dict[str | None, list[str]] = {}
    for name, source in report.document.sources.items() if report.document and report else ():
        lines[name] = source.text.split("\n") if source.text is not None else []
    for diagnostic in report:
        yield "\n".join(_block(diagnostic, lines.get(diagnostic.file, []), paint))


def _block(diagnostic: Diagnostic, lines: list[str], paint: Paint) -> Iterator[str]:
    severity = str(diagnostic.severity)
    where = paint(_visible(diagnostic.where) + ":", "place")
    what = paint(f"{severity} {diagnostic.code}:", severity)
    yield f"{where} {what} {_visible(diagnostic.message)}"
    marks, notes = _marks(diagnostic, bool(lines))
    margin = len(str(marks[-1].line)) if marks else 1
    yield from _excerpt(lines, marks, margin, severity, paint)
    blank, equals = " " * margin, paint("=", "gutter")
    for note in notes:
        yield f"{blank} {equals} {paint('note:', 'gutter')} {_visible(note)}"
    if diagnostic.hint:
        yield f"{blank} {equals} {paint('hint:', 'hint')} {_visible(diagnostic.hint)}"
    if diagnostic.aws:
        yield f"{blank} {equals} {paint('aws:', 'gutter')} {_visible(str(diagnostic.aws))}"


@dataclass(frozen=True, slots=True, order=True)
class _Mark:
    """A place to be marked under its line; the label of the diagnostic itself is empty."""

    line: int
    column: int
    label: str = ""


def _marks(diagnostic: Diagnostic, shown: bool) -> tuple[list[_Mark], list[str]]:
    """The places to mark in the text, in order, and as notes those that cannot be shown."""
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
    lines: list[str], marks: list[_Mark], margin: int, severity: str, paint: Paint
) -> Iterator[str]:
    """The marked lines of the source, each with its marks beneath, as wide as what they mark."""
    if not marks:
        return
    bar, blank = paint("|", "gutter"), " " * margin
    yield f"{blank} {bar}"
    last, above = marks[0].line, ""
    for mark in marks:
        text = lines[mark.line - 1].rstrip("\r")
        token = _TOKEN.match(text, mark.column - 1)
        end = token.end() if token else mark.column
        shown, start, width = _clipped(text, mark.column - 1, end)
        if mark.line > last + 1:
            yield f"{blank} {paint(':', 'gutter')}"
        if (mark.line, shown.rstrip()) != (last, above):
            yield f"{paint(f'{mark.line:>{margin}}', 'gutter')} {bar} {shown}".rstrip()
        last, above = mark.line, shown.rstrip()
        under = f"{'-' * width} {_visible(mark.label)}" if mark.label else "^" * width
        yield f"{blank} {bar} {' ' * start}{paint(under, 'gutter' if mark.label else severity)}"


def _clipped(text: str, start: int, end: int) -> tuple[str, int, int]:
    """What to show of a line, the column of its marks and how many; all in columns."""
    before = _cells(text[max(0, start - 2 * WIDTH) : start])
    marked = _cells(text[start : min(end, start + 2 * WIDTH)]) or [(" ", 1)]
    after = _cells(text[end : end + 2 * WIDTH])
    if start <= 2 * WIDTH and _columns(before + marked + after) <= WIDTH:
        return _text(before + marked + after), _columns(before), _columns(marked)
    cut = start > 2 * WIDTH
    while before and _columns(before) > WIDTH // 3:
        before.pop(0)
        cut = True
    if cut:
        before.insert(0, ("…", 1))
    shown = before + marked + after
    clipped = False
    while _columns(shown) > WIDTH - 1:
        shown.pop()
        clipped = True
    width = _columns(shown[len(before) : len(before) + len(marked)])
    if clipped:
        shown.append(("…", 1))
    return _text(shown), _columns(before), max(1, width)


Cell: TypeAlias = tuple[str, int]


def _cells(text: str) -> list[Cell]:
    """Each character as it is shown, with the columns that it takes."""
    return [_cell(character) for character in text]


def _cell(character: str) -> Cell:
    if character == "\t":
        return " " * TAB, TAB
    if unicodedata.combining(character) or character == "\u200d":
        return character, 0
    shown = _visible(character)
    return shown, 2 if unicodedata.east_asian_width(shown) in ("W", "F") else 1


def _columns(cells: list[Cell]) -> int:
    return sum(width for _, width in cells)


def _text(cells: list[Cell]) -> str:
    return "".join(text for text, _ in cells)


def _visible(text: str) -> str:
    """Text in which no character can steer a terminal or break the line."""
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character == "\u200d"
        else chr(0x2400 + ord(character))
        if character < " "
        else "\ufffd"
        for character in text
    )


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
        return f"{_visible(where)}: {paint('no findings', 'hint')}"
    return f"{_visible(where)}: {', '.join(counts)}"


# ---------------------------------------------------------------------------- JSON


def render_json(reports: Reports) -> str:
    """For programs: one object with the counts and a flat array of diagnostics.

    `{"ok", "errors", "warnings", "infos", "diagnostics": [{"code", "severity", "title", "message",
    "file", "line", "column", "pointer", "hint", "related": [...], "aws": {"code", "message",
    "location"}}]}`; lines and columns from 1; `aws` is null but for the profile of that name.
    """
    found = _all(reports)
    count = {severity: sum(each.severity is severity for each in found) for severity in Severity}
    return _dump(
        {
            "ok": count[Severity.ERROR] == 0,
            "errors": count[Severity.ERROR],
            "warnings": count[Severity.WARNING],
            "infos": count[Severity.INFO],
            "diagnostics": [_diagnostic(each) for each in found],
        }
    )


def _diagnostic(each: Diagnostic) -> dict[str, Json]:
    return {
        "code": each.code,
        "severity": str(each.severity),
        "title": lookup(each.code).title,
        "message": each.message,
        **_place(each),
        "hint": each.hint,
        "related": [{"message": other.message, **_place(other)} for other in each.related],
        "aws": each.aws and each.aws.to_json(),
    }


def _place(each: Diagnostic | Related) -> dict[str, Json]:
    return {
        "file": each.file,
        "line": each.line,
        "column": each.column,
        "pointer": each.pointer,
    }


def _dump(value: Json) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


# ---------------------------------------------------------------------------- AWS


def render_aws(reports: Reports) -> str:
    """For programs that read the answers of AWS's ValidateStateMachineDefinition: one like it.

    `{"result": "OK" or "FAIL", "diagnostics": [{"severity", "code", "message", "location"}]}`, for
    reports under the `aws` profile. Our own message stands where AWS's words are not known.
    """
    return _dump(aws_answer(reports))


def aws_answer(reports: Reports) -> dict[str, Any]:
    """The answer of `render_aws` as a value."""
    each = _each(reports)
    found = [answer for report in each for answer in _answers(report)]
    distinct = [one for index, one in enumerate(found) if one not in found[:index]]
    result = "OK" if all(report.ok for report in each) else "FAIL"
    return {"result": result, "diagnostics": distinct}


def _answers(report: Report) -> list[Json]:
    """What AWS says of a document: a missing end last, and beside it of no unreachable state."""
    found = [each for each in report if each.aws]
    endless = [each for each in found if each.aws and each.aws.code == "MISSING_END_STATE"]
    others = [
        each for each in found if each not in endless and not (endless and each.code == "V-TOP-11")
    ]
    return [_answer(each) for each in (*others, *endless)]


def _answer(each: Diagnostic) -> Json:
    aws = each.aws
    assert aws is not None
    answer = {
        "severity": "ERROR" if each.severity is Severity.ERROR else "WARNING",
        "code": aws.code,
        "message": aws.message or each.message,
    }
    return answer if aws.location is None else {**answer, "location": aws.location}


# ---------------------------------------------------------------------------- SARIF


def render_sarif(reports: Reports) -> str:
    """For code scanning: SARIF 2.1.0, one run, with the rules that were broken."""
    found = _all(reports)
    ids = sorted({each.code for each in found})
    index = {id: number for number, id in enumerate(ids)}
    return _dump(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [
                {
                    "tool": {"driver": {"name": "asl", "rules": [_rule(id) for id in ids]}},
                    "columnKind": "unicodeCodePoints",
                    "results": [_result(each, index[each.code]) for each in found],
                }
            ],
        }
    )


def _rule(id: str) -> Json:
    code = lookup(id)
    return {
        "id": id,
        "shortDescription": {"text": code.title},
        "fullDescription": {"text": code.explain},
        "help": {"text": code.explain},
        "defaultConfiguration": {"level": _LEVELS[Severity(code.severity)]},
    }


def _result(each: Diagnostic, index: int) -> Json:
    text = f"{each.message} ({each.hint})" if each.hint else each.message
    result = {
        "ruleId": each.code,
        "ruleIndex": index,
        "level": _LEVELS[each.severity],
        "message": {"text": text},
        "locations": [_location(each)],
    }
    if each.aws:
        result["properties"] = {"aws": each.aws.to_json()}
    if each.related:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": other.message}, **_location(other)}
            for number, other in enumerate(each.related, 1)
        ]
    return result


def _location(each: Diagnostic | Related) -> dict[str, Json]:
    location: dict[str, Json] = {"logicalLocations": [{"fullyQualifiedName": each.pointer or "/"}]}
    if each.file is not None:
        physical: dict[str, Json] = {"artifactLocation": {"uri": _uri(each.file)}}
        if each.line is not None:
            physical["region"] = {"startLine": each.line, "startColumn": each.column}
        location["physicalLocation"] = physical
    return location


def _uri(path: str) -> str:
    from urllib.parse import quote

    escaped = quote(path.replace("\\", "/"), errors="surrogateescape")
    return f"file://{escaped}" if path.startswith("/") else escaped


# ---------------------------------------------------------------------------- GitHub


def render_github(reports: Reports) -> str:
    """For GitHub Actions: one workflow command a line, shown as annotations of the files."""
    return "\n".join(_command(each) for each in _all(reports))


def _command(each: Diagnostic) -> str:
    properties = {
        "file": each.file,
        "line": each.line,
        "col": each.column,
        "title": f"{each.code} {lookup(each.code).title}",
    }
    given = ",".join(
        f"{name}={_escaped(str(value), _GITHUB_PROPERTY)}"
        for name, value in properties.items()
        if value is not None
    )
    text = f"{each.message}\n{each.hint}" if each.hint else each.message
    return f"::{_COMMANDS[each.severity]} {given}::{_escaped(text, _GITHUB_DATA)}"


def _escaped(text: str, table: Mapping[str, str]) -> str:
    return "".join(table.get(character, character) for character in text)


RENDERERS: Mapping[str, Callable[[Reports], str]] = {
    "text": render_text,
    "json": render_json,
    "sarif": render_sarif,
    "github": render_github,
    "aws": render_aws,
}
"""Every output format by its name."""
