"""Layer 8: conformance cases as data, run on this interpreter or on any other by a command.

`load_suite` reads cases, `run_suite` runs them and returns a `SuiteReport`. The format and the
protocol for other interpreters are described in `conformance/README.md`.

pytest imports this package at every start, so what it offers is loaded when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asl.conformance.case import Case, InvalidSuite, load_suite
    from asl.conformance.coverage import DocumentCoverage, coverage_of, with_events
    from asl.conformance.recorder import Recording
    from asl.conformance.runner import (
        CaseResult,
        Implementation,
        SuiteReport,
        judge,
        run_case,
        run_suite,
    )

__all__ = [
    "Case",
    "CaseResult",
    "DocumentCoverage",
    "Implementation",
    "InvalidSuite",
    "Recording",
    "SuiteReport",
    "coverage_of",
    "judge",
    "load_suite",
    "run_case",
    "run_suite",
    "with_events",
]

_MODULES = {
    "Case": "case",
    "DocumentCoverage": "coverage",
    "InvalidSuite": "case",
    "Recording": "recorder",
    "coverage_of": "coverage",
    "load_suite": "case",
    "with_events": "coverage",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'runner')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
