"""`asl expand`: a document with all that it imports put in its place."""

import click

from asl.cli import streams
from asl.cli.arguments import Origin, origin_options, read_document
from asl.cli.exits import Exit
from asl.core.diagnostics import place
from asl.dialects.layout import laid_out

__all__ = ["command"]


@click.command("expand")
@click.argument("document", metavar="DOC")
@origin_options
def command(document: str, origin: Origin) -> Exit:
    """Print a document with all that it imports put in its place.

    Every Include holds its machine, with the parameters filled in that are known before a run. What
    is printed runs like DOC and needs no other file. Exits with 3 if something cannot be included.
    """
    read = read_document(document, origin)
    composing = () if read.composition is None else read.composition.findings
    report = place(read, [*read.findings, *composing])
    if not report.ok:
        streams.report(report)
        return Exit.INVALID
    streams.document(laid_out(read.whole))
    return Exit.OK
