"""What all renderers take, and the form of those that give JSON."""

from collections.abc import Iterable
from typing import TypeAlias

import orjson

from asl.core.diagnostics import Diagnostic, Report
from asl.core.printable import printable_json
from asl.core.values import Json

__all__ = ["Reports", "dumped", "every_diagnostic", "every_report"]

Reports: TypeAlias = Report | Iterable[Report]


def every_report(reports: Reports) -> list[Report]:
    """Return the reports, also where it is only one."""
    return [reports] if isinstance(reports, Report) else list(reports)


def every_diagnostic(reports: Reports) -> list[Diagnostic]:
    """Return the diagnostics of all reports, in their order."""
    return [diagnostic for report in every_report(reports) for diagnostic in report]


def dumped(value: Json) -> str:
    """Return JSON for programs that people look at."""
    return printable_json(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
