"""Reports as annotations of GitHub Actions."""

from collections.abc import Mapping

from asl.core.codes import lookup
from asl.core.diagnostics import Diagnostic, Severity
from asl.core.printable import printable
from asl.core.render.reports import Reports, every_diagnostic

__all__ = ["render_github"]

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_GITHUB_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_GITHUB_PROPERTY = {**_GITHUB_DATA, ":": "%3A", ",": "%2C"}


def render_github(reports: Reports) -> str:
    """For GitHub Actions: one workflow command a line, shown as annotations of the files."""
    return "\n".join(_command(each) for each in every_diagnostic(reports))


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
    shown = printable(text, lines=True)
    return "".join(table.get(character, character) for character in shown)
