"""Render reports for people and for programs.

Every renderer takes one report or several and returns the whole text, without a final line break.
"""

from collections.abc import Iterable
from typing import TypeAlias

from asl.core.diagnostics import Diagnostic, Report

__all__ = ["Reports", "every_diagnostic", "every_report"]

Reports: TypeAlias = Report | Iterable[Report]


def every_report(reports: Reports) -> list[Report]:
    """Return the reports as a list, also for a single one."""
    return [reports] if isinstance(reports, Report) else list(reports)


def every_diagnostic(reports: Reports) -> list[Diagnostic]:
    """Return the diagnostics of all reports, in their order."""
    return [diagnostic for report in every_report(reports) for diagnostic in report]
