"""pytest plugin: files named `*.asl-test.yaml`, `.yml` or `.json` are collected as tests.

Nothing of the interpreter is imported before such a file is met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from asl.conformance.case import Case
    from asl.engine.result import Result

SUITES = (".asl-test.yaml", ".asl-test.yml", ".asl-test.json")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
    """Collect suites by the ending of their names."""
    if not file_path.name.endswith(SUITES):
        return None
    return SuiteFile.from_parent(parent, path=file_path)


@pytest.fixture
def asl_run() -> Callable[..., Result]:
    """`asl.run` on the virtual clock: Waits and timeouts take no time."""
    import asl

    return partial(asl.run, clock="virtual")


class SuiteFile(pytest.File):
    """A suite; its items are its cases."""

    def collect(self) -> Iterator[CaseItem]:
        from asl.conformance.case import load_suite
        from asl.core.errors import AslError

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
        from asl.conformance.local import Local
        from asl.conformance.report import verdict_text
        from asl.conformance.runner import run_case

        verdict = run_case(self.case, Local())
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
