"""`asl convert`: documents in another workflow language, and reports of losses."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import click

from asl.cli import console
from asl.cli.arguments import (
    DOCUMENTS,
    Origin,
    origin_options,
    read_document,
    read_table,
    split_pair,
)
from asl.cli.console import Exit
from asl.cli.explanation import explanation_json, write_explanation
from asl.core.diagnostics import InvalidDocument, Report, Severity
from asl.core.errors import AslError
from asl.core.render.formats import RENDERERS
from asl.dialects.base import Conversion
from asl.dialects.conversion import convert_document
from asl.dialects.registry import dialect

__all__ = ["convert_command"]

ENDINGS: Final = (".asl.json", ".asl.yaml", ".asl.yml", ".json", ".yaml", ".yml")


@click.command("convert")
@DOCUMENTS
@click.option("--to", "to", metavar="DIALECT", required=True, help="Target language.")
@click.option("-o", "--output", metavar="FILE|FOLDER/", help="Write to this file or folder.")
@click.option("--force", is_flag=True, help="Overwrite existing files in a folder.")
@click.option(
    "--report",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the report of losses on standard error.",
)
@click.option("--strict", is_flag=True, help="Write nothing if the conversion changes behaviour.")
@click.option(
    "--explain", is_flag=True, help="Show each state next to its counterpart, with the losses."
)
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as JSON.")
@click.option(
    "--no-implicit-retry", is_flag=True, help="Omit the retries that a platform makes by default."
)
@click.option(
    "--as",
    "renamed",
    metavar="NAME=NAME",
    multiple=True,
    help="Rename an agent to a resource of AWS, or a resource to an agent.",
)
@click.option("--names", metavar="FILE", help="Read the names of --as from a JSON or YAML file.")
@click.option(
    "--tool",
    "tools",
    metavar="NAME",
    multiple=True,
    help="Write this agent as a tool of the target language.",
)
@click.option(
    "--chain",
    type=click.Choice(["seed", "union"]),
    help="Format of a written chain: as documented (seed), or as engines read it (union).",
)
@origin_options
def convert_command(
    documents: tuple[str, ...],
    to: str,
    output: str | None,
    force: bool,
    form: str,
    strict: bool,
    explain: bool,
    as_json: bool,
    no_implicit_retry: bool,
    renamed: tuple[str, ...],
    names: str | None,
    tools: tuple[str, ...],
    chain: str | None,
    origin: Origin,
) -> Exit:
    """Convert documents to another workflow language and report losses.

    \b
        asl convert flow.yaml --to asl -o flow.asl.json
        asl convert flow.asl.json --to codemie --strict
        asl convert flows/*.yaml --to asl -o converted/
        asl convert flow.asl.json --to amazon --as Judge=arn:aws:lambda:eu-west-1:1:function:judge

    With --explain nothing is written but the comparison of DOC with its conversion.

    Several documents need a folder as --output. Exits with 3 if a DOC has errors or, with --strict,
    losses; the other documents are written.
    """
    if no_implicit_retry:
        origin["reading"] = {**origin["reading"], "implicit_retry": False}
    writing = _writer_options(renamed, names, tools, chain)
    dialect(to)
    _check_usage(documents, output, explain=explain, as_json=as_json)
    if explain:
        return _explain(documents[0], to, writing, origin, as_json=as_json)
    targets = _targets(documents, output, to)
    batch, unread = _Batch(strict), 0
    for name, target in targets.items():
        try:
            conversion = convert_document(read_document(name, origin), to, writing)
        except InvalidDocument as refusal:
            batch.refuse(refusal.report)
        except AslError as error:
            if len(targets) == 1:
                raise
            console.print_message(f"asl: {name}: {error}", style="red")
            unread += 1
        else:
            batch.add(conversion, target)
    _print_reports(batch.reports, form)
    _write_files(batch.written, output, force=force)
    if batch.printed is not None:
        console.write_document(batch.printed)
    if len(targets) > 1 and form == "text":
        done = len(targets) - batch.refused - unread
        console.print_message(f"asl: wrote {done} of {len(targets)} documents to {output}")
    return Exit.USAGE if unread else Exit.INVALID if batch.refused else Exit.OK


def _check_usage(
    documents: tuple[str, ...], output: str | None, *, explain: bool, as_json: bool
) -> None:
    """Check the options of an explanation.

    Raises:
        UsageError: `--json` without `--explain`, or that with several documents or an output.
    """
    if as_json and not explain:
        raise click.UsageError("--json prints an explanation: add --explain")
    if explain and (len(documents) != 1 or output is not None):
        raise click.UsageError("--explain takes one document, and no --output")


def _explain(
    name: str, to: str, writing: Mapping[str, Any], origin: Origin, *, as_json: bool
) -> Exit:
    """Print the explanation of the conversion of one document."""
    document = read_document(name, origin)
    try:
        conversion = convert_document(document, to, writing)
    except InvalidDocument as refusal:
        console.print_report([refusal.report])
        return Exit.INVALID
    if as_json:
        console.write_result(console.as_text(explanation_json(document, conversion)))
    else:
        write_explanation(document, conversion)
    return Exit.OK


def _writer_options(
    renamed: Iterable[str], names: str | None, tools: tuple[str, ...], chain: str | None
) -> dict[str, Any]:
    """Return the options of the writer that are set."""
    writing: dict[str, Any] = {}
    if renamed or names is not None:
        given = dict(split_pair(each, "NAME=NAME", "--as") for each in renamed)
        writing["names"] = {**_read_names(names), **given}
    if tools:
        writing["tools"] = tools
    if chain is not None:
        writing["profile"] = chain
    return writing


@dataclass(slots=True)
class _Batch:
    """The reports and the files of one call."""

    strict: bool
    reports: list[Report] = field(default_factory=list)
    written: dict[str, str] = field(default_factory=dict)
    """Texts by path."""
    printed: str | None = None
    refused: int = 0

    def refuse(self, report: Report) -> None:
        """Record why a document is not written."""
        self.reports.append(report)
        self.refused += 1

    def add(self, conversion: "Conversion", target: str | None) -> None:
        """Add a document to the files, or to the output if *target* is None.

        Raises:
            AslError: The document imports files and is printed, or two documents share a file.
        """
        losses = _warnings_as_errors(conversion.losses) if self.strict else conversion.losses
        if self.strict and not losses.ok:
            self.refuse(losses)
            return
        self.reports.append(losses)
        if target is None:
            _refuse_imports(conversion)
            self.printed = conversion.text
        else:
            _add_files(self.written, conversion, target)


def _targets(documents: Iterable[str], output: str | None, to: str) -> dict[str, str | None]:
    """Return the path for each document; None for standard output."""
    names = [*dict.fromkeys(documents)]
    folder = output is not None and (output.endswith("/") or os.path.isdir(output))
    if len(names) > 1 and not folder:
        raise click.UsageError("several documents need a folder: add -o FOLDER/")
    if output is None or not folder:
        _refuse_overwrite(names[0], output)
        return {names[0]: output}
    found: dict[str, str | None] = {}
    for name in names:
        if name == "-":
            raise click.UsageError("standard input has no name for a file: add -o FILE")
        base = os.path.basename(name)
        stem = next((base.removesuffix(each) for each in ENDINGS if base.endswith(each)), base)
        target = os.path.join(output, stem + dialect(to).file_ending)
        other = next((each for each in found if found[each] == target), None)
        if other is not None:
            raise click.UsageError(f"{other!r} and {name!r} would both be written to {target!r}")
        _refuse_overwrite(name, target)
        found[name] = target
    return found


def _refuse_overwrite(name: str, target: str | None) -> None:
    if target is not None and os.path.realpath(name) == os.path.realpath(target):
        raise click.UsageError(f"the output would overwrite {name!r}: choose another --output")


def _refuse_imports(conversion: "Conversion") -> None:
    """Refuse to print a document that imports further files."""
    if conversion.files:
        listed = ", ".join(sorted(conversion.files))
        raise AslError(f"the document imports files ({listed}): write all of them with -o FILE")


def _add_files(written: dict[str, str], conversion: "Conversion", target: str) -> None:
    """Add the files of a conversion to those that are to be written."""
    folder = os.path.dirname(target)
    imported = conversion.files.items()
    others = ((os.path.normpath(os.path.join(folder, path)), text) for path, text in imported)
    for path, text in ((target, conversion.text), *others):
        if written.setdefault(path, text) != text:
            raise AslError(f"two different documents would be written to {path!r}")


def _write_files(written: Mapping[str, str], named: str | None, *, force: bool) -> None:
    """Write files; an existing file other than *named* is overwritten only with *force*."""
    there = [path for path in written if path != named and not force and _differs(path, written)]
    if there:
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise AslError(f"{there[0]!r}{more} would be overwritten: use --force to overwrite")
    for path, text in written.items():
        console.make_folder(os.path.dirname(path) or ".")
        console.write_file(path, text)


def _differs(path: str, written: Mapping[str, str]) -> bool:
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read() != written[path]
    except (OSError, UnicodeDecodeError):
        return os.path.exists(path)


def _print_reports(reports: list[Report], form: str) -> None:
    if form == "json":
        console.print_message(RENDERERS["json"](reports))
    elif any(reports):
        console.print_report(reports)


def _read_names(file: str | None) -> dict[str, str]:
    """Read the names of a file; empty if there is no file."""
    found = {} if file is None else read_table(file)
    for name, other in found.items():
        if type(other) is not str:
            raise click.BadParameter(
                f"the new name of {name!r} must be a string, got {other!r}", param_hint="--names"
            )
    return found


def _warnings_as_errors(report: Report) -> Report:
    """Return a report in which every warning is an error."""
    return replace(
        report,
        diagnostics=tuple(
            each._replace(severity=Severity.ERROR) if each.severity is Severity.WARNING else each
            for each in report
        ),
    )
