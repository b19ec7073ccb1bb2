"""pytest plugin: files named `*.asl-test.yaml`, `.yml` or `.json` are collected as tests.

Nothing of the interpreter is imported before such a file is met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from asl.conformance.case import Case
    from asl.conformance.coverage import Run
    from asl.conformance.runner import Verdict
    from asl.engine.result import Result


SUITES = (".asl-test.yaml", ".asl-test.yml", ".asl-test.json")
COVERAGE: Final = "--asl-coverage"
VERDICTS: Final[pytest.StashKey[list[Verdict]]] = pytest.StashKey()
RUNS: Final[pytest.StashKey[list[Run]]] = pytest.StashKey()
"""What tests in Python have run with the fixture `asl_run`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--asl-coverage`."""
    text = "say which states and transitions of documents no case and no use of asl_run takes"
    parser.getgroup("asl").addoption(COVERAGE, action="store_true", help=text)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what the cases and the tests in Python have taken."""
    verdicts, runs = config.stash.get(VERDICTS, []), config.stash.get(RUNS, [])
    if config.getoption(COVERAGE) and getattr(config.option, "numprocesses", None):
        terminalreporter.section("coverage of documents")
        terminalreporter.write_line(
            "with -n the cases ran in other processes: leave -n out, or use 'asl test --coverage'"
        )
    if verdicts or runs:
        from asl.conformance.coverage import coverage_of
        from asl.conformance.report import coverage_text

        terminalreporter.section("coverage of documents")
        for covered in coverage_of(verdicts, runs):
            terminalreporter.write_line(coverage_text(covered))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
    """Collect suites by the ending of their names."""
    if not file_path.name.endswith(SUITES):
        return None
    return SuiteFile.from_parent(parent, path=file_path)


@pytest.fixture
def asl_run(pytestconfig: pytest.Config) -> Callable[..., Result]:
    """`asl.run` on the virtual clock: Waits and timeouts take no time."""
    import asl

    run = partial(asl.run, clock="virtual")
    if not pytestconfig.getoption(COVERAGE):
        return run
    from asl.conformance.coverage import recorded

    return recorded(run, pytestconfig.stash.setdefault(RUNS, []))


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

        case, covers = self.case, self.config.getoption(COVERAGE)
        if covers:
            from asl.conformance.coverage import watched

            case = watched(case)
        verdict = run_case(case, Local())
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
