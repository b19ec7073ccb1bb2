"""`asl test`: run test cases with this or another interpreter."""

import sys
from collections.abc import Sequence

import click

from asl.cli import console
from asl.cli.console import Exit
from asl.conformance import Case, CaseResult, DocumentCoverage, SuiteReport, load_suite, run_suite
from asl.core.diagnostics import InvalidDocument
from asl.core.errors import AslError

__all__ = ["test_command"]


@click.command("test")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "junit"]),
    default="text",
    show_default=True,
    help="Format of the report.",
)
@click.option("--output", metavar="FILE", help="Write the report to a file.")
@click.option(
    "--implementation",
    metavar="CMD",
    help="Command of another interpreter to test; see conformance/README.md.",
)
@click.option(
    "-k", "substring", metavar="TEXT", help="Run only cases with this text in their id or title."
)
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Run only cases with this tag.")
@click.option("--jobs", metavar="N", type=click.IntRange(1), default=1, help="Number of processes.")
@click.option("-v", "--verbose", is_flag=True, help="List passed cases too.")
@click.option(
    "--coverage", "covers", is_flag=True, help="Report states and transitions that no case covers."
)
def test_command(
    paths: tuple[str, ...],
    format_: str,
    output: str | None,
    implementation: str | None,
    substring: str | None,
    tags: tuple[str, ...],
    jobs: int,
    verbose: bool,
    covers: bool,
) -> Exit:
    """Run test cases.

    PATH is a file or folder with cases; by default the conformance suite of asl is run. Exits with
    1 if a case fails.

    \f
    Raises:
        UsageError: --coverage is combined with --format junit.
    """
    if covers and format_ == "junit":
        raise click.UsageError("--coverage needs --format text or json")
    cases = _select(_load(paths), substring, tags)
    if covers:
        from asl.conformance.coverage import with_events

        cases = [with_events(case) for case in cases]
    counter = _Counter(len(cases))
    try:
        report = run_suite(
            cases, _split_command(implementation), jobs=jobs, on_verdict=counter.count
        )
    finally:
        counter.clear()
    covered = _coverage(report) if covers else None
    _write(_render(report, covered, format_, verbose, plain=output is not None), output)
    if output is not None:
        from asl.conformance.report import summary

        console.print_message(f"{summary(report)}; the report is in {output}")
    return Exit.OK if report.ok else Exit.FAILED


def _load(paths: tuple[str, ...]) -> "list[Case]":
    try:
        each = [load_suite(path) for path in paths] if paths else [load_suite()]
    except InvalidDocument as refusal:  # a suite is not a document: exit as for wrong usage
        raise AslError(str(refusal)) from None
    cases: dict[str, Case] = {}
    for case in (case for suite in each for case in suite):
        if case.id in cases:
            raise AslError(
                f"{case.location}: the id {case.id!r} is already used at {cases[case.id].location}"
            )
        cases[case.id] = case
    return list(cases.values())


def _select(cases: "list[Case]", substring: str | None, tags: tuple[str, ...]) -> "list[Case]":
    wanted = (substring or "").casefold()
    found = [
        case
        for case in cases
        if wanted in f"{case.id} {case.title}".casefold() and set(tags) <= set(case.tags)
    ]
    if not found:
        raise AslError(f"no case is selected of {console.count_noun(len(cases), 'case')}")
    return found


def _split_command(command: str | None) -> Sequence[str] | None:
    if command is None:
        return None
    import shlex

    try:
        words = shlex.split(command)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--implementation") from None
    if not words:
        raise click.BadParameter("the command is empty", param_hint="--implementation")
    return words


class _Counter:
    """Counter of finished cases on a terminal."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.shown = console.is_terminal(sys.stderr)

    def count(self, verdict: "CaseResult") -> None:
        self.done += 1
        if self.shown:
            sys.stderr.write(f"\r{self.done}/{self.total}")

    def clear(self) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")


def _coverage(report: "SuiteReport") -> "list[DocumentCoverage]":
    from asl.conformance.coverage import coverage_of

    return coverage_of(report.verdicts)


def _render(
    report: "SuiteReport",
    covered: "list[DocumentCoverage] | None",
    format_: str,
    verbose: bool,
    *,
    plain: bool,
) -> str:
    from asl.conformance.report import as_json, as_junit, as_text

    if format_ == "json":
        return console.as_text(as_json(report, covered))
    if format_ == "junit":
        return as_junit(report)
    coloured = not plain and console.has_colour(sys.stdout)
    return as_text(report, covered, colour=coloured, verbose=verbose)


def _write(text: str, file: str | None) -> None:
    if file is None:
        console.write_result(text)
        return
    console.write_file(file, text if text.endswith("\n") else f"{text}\n")
