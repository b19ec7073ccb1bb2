"""Reports for programs, as JSON."""

from asl.core.codes import lookup
from asl.core.diagnostics import Diagnostic, Related, Severity
from asl.core.render.reports import Reports, dumped, every_diagnostic
from asl.core.values import Json

__all__ = ["render_json"]


def render_json(reports: Reports) -> str:
    """For programs: one object with the counts and a flat array of diagnostics.

    `{"ok", "errors", "warnings", "infos", "diagnostics": [{"code", "severity", "title", "message",
    "file", "line", "column", "pointer", "hint", "related": [...], "aws": {"code", "message",
    "location"}}]}`; lines and columns from 1; `aws` is null but for the profile of that name.
    """
    found = every_diagnostic(reports)
    count = {severity: sum(each.severity is severity for each in found) for severity in Severity}
    return dumped(
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
