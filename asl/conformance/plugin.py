"""pytest plugin: files named `*.asl-test.yaml`, `.yml` or `.json` are collected as tests.

Nothing of the interpreter is imported before such a file is met.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import asl

if TYPE_CHECKING:
    from asl.conformance.pytest_items import SuiteFile

SUITES: Final = (".asl-test.yaml", ".asl-test.yml", ".asl-test.json")
COVERAGE: Final = "--asl-coverage"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--asl-coverage`."""
    text = "report states and transitions of documents that no case and no use of asl_run takes"
    parser.getgroup("asl").addoption(COVERAGE, action="store_true", help=text)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Report the coverage of documents by cases and by tests in Python."""
    if not config.getoption(COVERAGE):
        return
    from asl.conformance.pytest_items import coverage_lines

    lines = [*coverage_lines(config)]
    if getattr(config.option, "numprocesses", None):
        note = "with -n the cases ran in other processes"
        lines.insert(0, f"{note}: leave -n out, or use 'asl test --coverage'")
    if lines:
        terminalreporter.section("coverage of documents")
    for line in lines:
        terminalreporter.write_line(line)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
    """Collect suites by the ending of their names."""
    if not file_path.name.endswith(SUITES):
        return None
    from asl.conformance.pytest_items import SuiteFile

    return SuiteFile.from_parent(parent, path=file_path)


@pytest.fixture
def asl_run(pytestconfig: pytest.Config) -> Callable[..., asl.Result]:
    """`asl.run` on the virtual clock: Waits and timeouts take no time."""
    run = partial(asl.run, clock="virtual")
    if not pytestconfig.getoption(COVERAGE):
        return run
    from asl.conformance.pytest_items import recorded_run

    return recorded_run(run, pytestconfig)
