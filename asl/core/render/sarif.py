"""Reports for code scanning (SARIF 2.1.0)."""

from asl.core.codes import lookup
from asl.core.diagnostics import Diagnostic, Related, Severity
from asl.core.render.reports import Reports, dumped, every_diagnostic
from asl.core.values import Json

__all__ = ["render_sarif"]

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render_sarif(reports: Reports) -> str:
    """For code scanning: SARIF 2.1.0, one run, with the rules that were broken."""
    found = every_diagnostic(reports)
    ids = sorted({each.code for each in found})
    index = {id: number for number, id in enumerate(ids)}
    return dumped(
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
