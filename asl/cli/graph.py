"""`asl graph`: draws a document."""

import click

from asl.cli import streams
from asl.cli.arguments import Origin, origin_options, read_document
from asl.cli.exits import Exit

__all__ = ["command"]

FORMATS = ("mermaid", "dot", "svg")


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
    import asl

    suffix = (output or "").rpartition(".")[2]
    format = chosen or {"svg": "svg", "dot": "dot", "gv": "dot"}.get(suffix, "mermaid")
    text = asl.graph(read_document(document, origin), format=format)
    if output is None:
        streams.result(text)
    else:
        streams.write_file(output, text)
    return Exit.OK
