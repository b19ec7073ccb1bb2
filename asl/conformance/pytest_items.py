"""pytest collectors: suites, their cases, and coverage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from asl.conformance.case import Case, load_suite
from asl.conformance.coverage import CoverageRun, coverage_of, record_runs, with_events
from asl.conformance.local import LocalImplementation
from asl.conformance.plugin import COVERAGE
from asl.conformance.report import coverage_text, verdict_text
from asl.conformance.runner import CaseResult, run_case
from asl.core.errors import AslError
from asl.engine.result import Result

__all__ = ["CaseItem", "SuiteFile", "coverage_lines", "recorded_run"]

VERDICTS: Final[pytest.StashKey[list[CaseResult]]] = pytest.StashKey()
RUNS: Final[pytest.StashKey[list[CoverageRun]]] = pytest.StashKey()
"""What tests in Python have run with the fixture `asl_run`."""


def recorded_run(run: Callable[..., Result], config: pytest.Config) -> Callable[..., Result]:
    """Return `asl.run` or its like, whose executions count as covered."""
    return record_runs(run, config.stash.setdefault(RUNS, []))


def coverage_lines(config: pytest.Config) -> Iterator[str]:
    """Yield what the cases and the tests in Python have taken of each document."""
    verdicts, runs = config.stash.setdefault(VERDICTS, []), config.stash.setdefault(RUNS, [])
    for covered in coverage_of(verdicts, runs):
        yield coverage_text(covered)


class SuiteFile(pytest.File):
    """A suite; its items are its cases."""

    def collect(self) -> Iterator[CaseItem]:
        """Yield the cases of the suite; raises CollectError for an invalid one."""
        try:
            cases = load_suite(self.path)
        except AslError as error:
            raise self.CollectError(str(error)) from None
        for case in cases:
            yield CaseItem.from_parent(self, name=case.id, case=case)


class DifferentOutcome(Exception):
    """A case failed; the text is its report."""


class CaseItem(pytest.Item):
    """One case, run on this interpreter."""

    def __init__(self, *, case: Case, **more: Any) -> None:
        super().__init__(**more)
        self.case = case
        self.extra_keyword_matches.update(case.tags)

    def runtest(self) -> None:
        """Run the case; raises DifferentOutcome if it fails."""
        case, covers = self.case, self.config.getoption(COVERAGE)
        if covers:
            case = with_events(case)
        verdict = run_case(case, LocalImplementation())
        if covers:
            self.config.stash.setdefault(VERDICTS, []).append(verdict)
        if verdict.outcome == "skipped":
            pytest.skip(verdict.reasons[0])
        if verdict.outcome == "failed":
            raise DifferentOutcome(verdict_text(verdict))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, DifferentOutcome):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.line - 1, self.case.title or self.name
