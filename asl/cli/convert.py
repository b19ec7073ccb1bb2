"""`asl convert`: a document in another language, and what is lost on the way."""

import sys
from dataclasses import replace

import click

from asl.cli import streams
from asl.cli.arguments import Origin, origin_options, read_document
from asl.cli.exits import Exit
from asl.core.diagnostics import Report, Severity
from asl.core.render import RENDERERS, render_text

__all__ = ["command"]


@click.command("convert")
@click.argument("document", metavar="DOC")
@click.option("--to", "to", metavar="DIALECT", required=True, help="The language to write.")
@click.option("-o", "--output", metavar="FILE", help="Write to this file.")
@click.option(
    "--report",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to tell what is lost, on standard error.",
)
@click.option("--strict", is_flag=True, help="Write nothing if behaviour is lost or approximated.")
@click.option(
    "--no-implicit-retry", is_flag=True, help="Leave out retries that a platform makes unasked."
)
@origin_options
def command(
    document: str,
    to: str,
    output: str | None,
    form: str,
    strict: bool,
    no_implicit_retry: bool,
    origin: Origin,
) -> Exit:
    """Write a document in another language, and tell what is lost.

    \b
        asl convert flow.yaml --to asl -o flow.asl.json
        asl convert flow.asl.json --to codemie --strict

    Exits with 3 if DOC has errors, or with --strict if something is lost.
    """
    from asl.dialects import converted

    reading = {"implicit_retry": False} if no_implicit_retry else {}
    conversion = converted(read_document(document, origin, reading), to)
    losses = _stricter(conversion.losses) if strict else conversion.losses
    if form == "json":
        streams.say(RENDERERS["json"]([losses]))
    elif losses:
        streams.say(render_text(losses, color=streams.colour(sys.stderr)))
    if strict and not losses.ok:
        return Exit.INVALID
    if output is None:
        streams.result(conversion.text)
    else:
        streams.write_file(output, conversion.text)
    return Exit.OK


def _stricter(report: Report) -> Report:
    """Return a report in which every warning is an error."""
    return replace(
        report,
        diagnostics=tuple(
            replace(each, severity=Severity.ERROR) if each.severity is Severity.WARNING else each
            for each in report
        ),
    )
