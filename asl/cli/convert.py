"""`asl convert`: a document in another language, and what is lost on the way."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import click

from asl.cli import streams
from asl.cli.arguments import Origin, origin_options, read_document, read_table
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
@click.option(
    "--as",
    "renamed",
    metavar="NAME=NAME",
    multiple=True,
    help="What an agent is called at Amazon, or a resource here.",
)
@click.option("--names", metavar="FILE", help="The same from a JSON or YAML file.")
@click.option(
    "--tool", "tools", metavar="NAME", multiple=True, help="An agent that is a tool there."
)
@click.option(
    "--chain",
    type=click.Choice(["seed", "union"]),
    help="Write a chain of Contenox in the words of its documentation, or of its engines.",
)
@origin_options
def command(
    document: str,
    to: str,
    output: str | None,
    form: str,
    strict: bool,
    no_implicit_retry: bool,
    renamed: tuple[str, ...],
    names: str | None,
    tools: tuple[str, ...],
    chain: str | None,
    origin: Origin,
) -> Exit:
    """Write a document in another language, and tell what is lost.

    \b
        asl convert flow.yaml --to asl -o flow.asl.json
        asl convert flow.asl.json --to codemie --strict
        asl convert flow.asl.json --to amazon --as Judge=arn:aws:lambda:eu-west-1:1:function:judge

    Exits with 3 if DOC has errors, or with --strict if something is lost.
    """
    from asl.dialects import converted

    if no_implicit_retry:
        origin["reading"] = {**origin["reading"], "implicit_retry": False}
    writing: dict[str, Any] = {}
    if renamed or names is not None:
        writing["names"] = dict([*_listed(names), *map(_pair, renamed)])
    if tools:
        writing["tools"] = tools
    if chain is not None:
        writing["profile"] = chain
    conversion = converted(read_document(document, origin), to, writing)
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


def _pair(text: str) -> tuple[str, str]:
    name, _, other = text.partition("=")
    if not name or not other:
        raise click.BadParameter(f"{text!r} is not NAME=NAME", param_hint="--as")
    return name, other


def _listed(file: str | None) -> Iterable[tuple[str, str]]:
    """Read the names of a file; there are none without one."""
    if file is None:
        return ()
    found = read_table(file).items()
    for name, other in found:
        if type(other) is not str:
            raise click.BadParameter(f"{name!r} has no name: {other!r}", param_hint="--names")
    return found


def _stricter(report: Report) -> Report:
    """Return a report in which every warning is an error."""
    return replace(
        report,
        diagnostics=tuple(
            replace(each, severity=Severity.ERROR) if each.severity is Severity.WARNING else each
            for each in report
        ),
    )
