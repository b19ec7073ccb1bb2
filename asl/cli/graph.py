"""`asl graph`: draws a document."""

from pathlib import Path

import click

import asl
from asl.cli import streams
from asl.cli.arguments import Origin, origin_options, read_document
from asl.cli.exits import Exit

__all__ = ["command"]

FORMATS = ("mermaid", "dot", "svg")
_SUFFIXES = {
    "": "mermaid", ".mmd": "mermaid", ".mermaid": "mermaid", ".md": "mermaid", ".txt": "mermaid",
    ".dot": "dot", ".gv": "dot", ".svg": "svg",
}  # fmt: skip


@click.command("graph")
@click.argument("document", metavar="DOC")
@click.option(
    "--format",
    "chosen",
    type=click.Choice(FORMATS),
    help="What to write; by the name of --output, otherwise mermaid.",
)
@click.option("-o", "--output", metavar="FILE", help="Write to this file.")
@origin_options
def command(document: str, chosen: str | None, output: str | None, origin: Origin) -> Exit:
    """Draw a document: its states, the machines within, and its transitions.

    SVG needs no other program. A document with errors is drawn as far as it goes.
    """
    suffix = Path(output or "").suffix.lower()
    format = chosen or _SUFFIXES.get(suffix)
    if format is None:
        raise click.BadParameter(
            f"nothing is drawn as {suffix!r}: call it .svg, .dot or .mmd, or say the --format",
            param_hint="--output",
        )
    text = asl.graph(read_document(document, origin), format=format)
    if output is None:
        streams.document(text)
    else:
        streams.write_file(output, text)
    return Exit.OK
