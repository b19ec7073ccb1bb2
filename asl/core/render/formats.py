"""The formats of reports, by name: text, JSON, SARIF, GitHub annotations and AWS's answer."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from asl.core.codes import lookup
from asl.core.diagnostics import Diagnostic, Report, ReportedPlace, Severity
from asl.core.printable import printable, printable_json
from asl.core.render import Reports, every_diagnostic, every_report
from asl.core.render.text import further_places, render_text
from asl.core.values import Json

__all__ = ["RENDERERS", "aws_answer", "diagnostic_to_json", "reports_to_json"]


def _dumped(value: Json) -> str:
    """Return indented JSON, safe for a terminal."""
    return printable_json(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


# JSON


def render_json(reports: Reports) -> str:
    """Render reports as one JSON object with counts and a flat array of diagnostics.

    `{"ok", "errors", "warnings", "infos", "diagnostics": [{"code", "severity", "title", "message",
    "file", "line", "column", "pointer", "hint", "related": [...], "places": [...], "aws":
    {"code", "message", "location"}}]}`; lines and columns from 1; `aws` is null except in the `aws`
    profile. `places` is empty for a diagnostic with one place.
    """
    return _dumped(reports_to_json(reports))


def reports_to_json(reports: Reports) -> dict[str, Json]:
    """Return the object that `render_json` prints."""
    found = every_diagnostic(reports)
    count = {severity: sum(each.severity is severity for each in found) for severity in Severity}
    return {
        "ok": count[Severity.ERROR] == 0,
        "errors": count[Severity.ERROR],
        "warnings": count[Severity.WARNING],
        "infos": count[Severity.INFO],
        "diagnostics": [diagnostic_to_json(each) for each in found],
    }


def diagnostic_to_json(each: Diagnostic) -> dict[str, Json]:
    """Return a diagnostic as `render_json` prints it."""
    return {
        "code": each.code,
        "severity": str(each.severity),
        "title": lookup(each.code).title,
        "message": each.message,
        **_place(each),
        "hint": each.hint,
        "related": [{"message": other.message, **_place(other)} for other in each.related],
        "places": [
            {"message": other.message, **_place(other), "hint": other.hint} for other in each.places
        ],
        "aws": each.aws and each.aws.to_json(),
    }


def _place(each: Diagnostic | ReportedPlace) -> dict[str, Json]:
    return {
        "file": each.file,
        "line": each.line,
        "column": each.column,
        "pointer": each.pointer,
    }


# GitHub annotations

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_GITHUB_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_GITHUB_PROPERTY = {**_GITHUB_DATA, ":": "%3A", ",": "%2C"}


def render_github(reports: Reports) -> str:
    """Render reports as GitHub workflow commands, one annotation a line."""
    return "\n".join(_command(each) for each in every_diagnostic(reports))


def _command(each: Diagnostic) -> str:
    properties = {
        "file": each.file,
        "line": each.line,
        "col": each.column,
        "title": f"{each.code} {lookup(each.code).title}",
    }
    given = ",".join(
        f"{name}={_escape(str(value), _GITHUB_PROPERTY)}"
        for name, value in properties.items()
        if value is not None
    )
    text = "\n".join(filter(None, (each.message, further_places(each), each.hint)))
    return f"::{_COMMANDS[each.severity]} {given}::{_escape(text, _GITHUB_DATA)}"


def _escape(text: str, table: Mapping[str, str]) -> str:
    shown = printable(text, lines=True)
    return "".join(table.get(character, character) for character in shown)


# SARIF

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render_sarif(reports: Reports) -> str:
    """Render reports as SARIF 2.1.0 with one run and the violated rules."""
    found = every_diagnostic(reports)
    ids = sorted({each.code for each in found})
    index = {id: number for number, id in enumerate(ids)}
    return _dumped(
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
        "locations": [_location(other) for other in each.all_places],
    }
    if each.aws:
        result["properties"] = {"aws": each.aws.to_json()}
    if each.related:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": other.message}, **_location(other)}
            for number, other in enumerate(each.related, 1)
        ]
    return result


def _location(each: ReportedPlace) -> dict[str, Json]:
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


# AWS


def render_aws(reports: Reports) -> str:
    """Render reports like the answer of AWS's ValidateStateMachineDefinition.

    `{"result": "OK" or "FAIL", "diagnostics": [{"severity", "code", "message", "location"}]}`, for
    reports of the `aws` profile. The message is our own if AWS's is unknown.
    """
    return _dumped(aws_answer(reports))


def aws_answer(reports: Reports) -> dict[str, Any]:
    """Return the answer of `render_aws` as a value."""
    each = every_report(reports)
    found = [answer for report in each for answer in _answers(report)]
    distinct = [one for index, one in enumerate(found) if one not in found[:index]]
    result = "OK" if all(report.ok for report in each) else "FAIL"
    return {"result": result, "diagnostics": distinct}


def _answers(report: Report) -> list[Json]:
    """Return AWS's diagnostics: MISSING_END_STATE last, and then no unreachable states."""
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


RENDERERS: Final[Mapping[str, Callable[[Reports], str]]] = {
    "text": render_text,
    "json": render_json,
    "sarif": render_sarif,
    "github": render_github,
    "aws": render_aws,
}
"""The renderer of each format."""
