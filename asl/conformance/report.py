"""Reports on a suite: text for people, JSON for programs, JUnit XML for build servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from asl.conformance.coverage import DocumentCoverage
from asl.conformance.runner import CaseResult, SuiteReport
from asl.core.printable import printable
from asl.core.values import Json

__all__ = ["as_json", "as_junit", "as_text", "coverage_text", "summary", "verdict_text"]

_COLOURS = {"passed": "32", "failed": "31", "skipped": "33"}


def as_text(
    report: SuiteReport,
    covered: Sequence[DocumentCoverage] | None = None,
    *,
    colour: bool = False,
    verbose: bool = False,
) -> str:
    """Return what failed, with the differences, and the summary; `verbose` for every case.

    With *covered* also what the cases have taken of each document, and what they have not.
    """
    shown = report.verdicts if verbose else report.failed
    lines = [verdict_text(verdict, colour=colour) for verdict in shown]
    lines += [coverage_text(each) for each in covered or ()]
    return "\n".join([*lines, summary(report, colour=colour)])


def coverage_text(covered: DocumentCoverage) -> str:
    """Return what was taken of one document, and a line for each part that was not."""
    states, ways = (f"{taken} of {every}" for taken, every in (covered.states, covered.transitions))
    lines = [f"{covered.name}: {states} states and {ways} transitions are taken"]
    lines += [f"    {missed.place}: {missed.what}" for missed in covered.missed]
    return "\n".join(map(printable, lines))


def verdict_text(verdict: CaseResult, *, colour: bool = False) -> str:
    """Return the result of a case as lines: outcome, id, title, place and reasons."""
    case = verdict.case
    head = f"{_painted(verdict.outcome, verdict.outcome, colour)} {printable(case.id)}"
    lines = [f"{head}: {printable(case.title)}" if case.title else head]
    if verdict.outcome == "failed":
        section = f" (section {case.spec})" if case.spec else ""
        lines.append(f"    {printable(case.location)}{section}")
    lines.extend(f"    {printable(reason, lines=True)}" for reason in verdict.reasons)
    return "\n".join(lines)


def summary(report: SuiteReport, *, colour: bool = False) -> str:
    """Return one line: how many cases passed, failed and were skipped."""
    parts = [
        _painted(f"{len(verdicts)} {outcome}", outcome, colour)
        for outcome in _COLOURS
        if (verdicts := report.with_outcome(outcome)) or outcome == "passed"
    ]
    return f"{', '.join(parts)} in {report.seconds:.2f} s"


def _painted(text: str, outcome: str, colour: bool) -> str:
    return f"\x1b[{_COLOURS[outcome]}m{text}\x1b[0m" if colour else text


def as_json(
    report: SuiteReport, covered: Sequence[DocumentCoverage] | None = None
) -> dict[str, Json]:
    """Return the report as a JSON object; seconds are real ones."""
    written: dict[str, Json] = {
        **{outcome: len(report.with_outcome(outcome)) for outcome in _COLOURS},
        "seconds": round(report.seconds, 3),
        "cases": [_case(verdict) for verdict in report.verdicts],
    }
    if covered is not None:
        written["coverage"] = [each.to_json() for each in covered]
    return written


def _case(verdict: CaseResult) -> dict[str, Json]:
    case = verdict.case
    return {
        "id": case.id,
        "title": case.title,
        "spec": case.spec,
        "file": case.file,
        "line": case.line,
        "outcome": verdict.outcome,
        "reasons": list(verdict.reasons),
        "seconds": round(verdict.seconds, 6),
    }


def as_junit(report: SuiteReport) -> str:
    """Return the report as JUnit XML: one test suite for each title of a suite."""
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    root = Element("testsuites", time=f"{report.seconds:.3f}")
    for name, verdicts in _by_suite(report):
        suite = SubElement(
            root,
            "testsuite",
            name=_xml(name),
            tests=str(len(verdicts)),
            failures=str(sum(each.outcome == "failed" for each in verdicts)),
            skipped=str(sum(each.outcome == "skipped" for each in verdicts)),
            errors="0",
        )
        for verdict in verdicts:
            case = verdict.case
            attributes = {
                "name": _xml(case.id),
                "classname": _xml(case.suite or case.file),
                "file": _xml(case.file),
                "line": str(case.line),
                "time": f"{verdict.seconds:.6f}",
            }
            test = SubElement(suite, "testcase", attributes)
            if verdict.outcome == "passed":
                continue
            why = _xml("\n".join(verdict.reasons))
            first = why.partition("\n")[0]
            if verdict.outcome == "failed":
                failure = SubElement(test, "failure", message=first)
                failure.text = _xml(f"{case.location}: {case.title}\n{why}")
            else:
                SubElement(test, "skipped", message=first)
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _by_suite(report: SuiteReport) -> Iterator[tuple[str, list[CaseResult]]]:
    suites: dict[str, list[CaseResult]] = {}
    for verdict in report.verdicts:
        suites.setdefault(verdict.case.suite or verdict.case.file, []).append(verdict)
    yield from suites.items()


def _xml(text: str) -> str:
    """Replace the characters that XML cannot hold, and those that control a terminal."""
    return printable(text, lines=True)
