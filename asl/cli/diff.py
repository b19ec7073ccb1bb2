"""`asl diff`: compares two documents."""

import click

import asl
from asl.cli import streams
from asl.cli.arguments import Origin, origin_options, read_document
from asl.cli.exits import Exit

__all__ = ["command"]

_MARKS = {"added": ("+", "green"), "removed": ("-", "red")}


@click.command("diff")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line for each change.")
@origin_options
def command(before: str, after: str, as_json: bool, origin: Origin) -> Exit:
    """Say what two documents differ in, as graphs: states, transitions, data flow, behaviour.

    Exits with 1 if they differ in anything but remarks.
    """
    if before == after == "-":
        raise click.UsageError("standard input can be read only once: name - once")
    found = asl.diff(read_document(before, origin), read_document(after, origin))
    for change in found:
        if as_json:
            streams.result(streams.json_line(change.to_json()))
            continue
        mark, colour = _MARKS.get(change.kind, ("~", "yellow"))
        place = f"{change.place}: " if change.place and change.about != "state" else ""
        line = f"{mark} {change.about:<10} {place}{change.text}"
        streams.line(line, style=colour)
    if not as_json:
        streams.say(
            "the documents do the same" if found.same else streams.counted(len(found), "difference")
        )
    return Exit.OK if found.same else Exit.FAILED
