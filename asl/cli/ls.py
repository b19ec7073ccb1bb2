"""`asl ls`: the executions of a store, the newest first."""

import sys

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.stores import STORE, command_for, continue_command, opened
from asl.core.printable import printable
from asl.expr.times import format_timestamp

__all__ = ["command"]

STATUSES = ("RUNNING", "PAUSED", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED")
COLOURS = {
    "SUCCEEDED": "green",
    **dict.fromkeys(("FAILED", "TIMED_OUT", "DAMAGED"), "red"),
    "PAUSED": "yellow",
}


@click.command("ls")
@STORE
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False), help="Only these.")
@click.option(
    "-n",
    "--limit",
    metavar="N",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="So many at most.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line.")
def command(store_file: str | None, status: str | None, limit: int, as_json: bool) -> Exit:
    """List the executions of a store, the newest first."""
    with opened(store_file) as store:
        rows = store.executions(status=status and status.upper(), limit=limit)
        left = {
            each.name: continue_command(store, "resume", each.name)
            for each in rows
            if each.status == "RUNNING" and store.left_behind(each.name)
        }
    if not rows:
        streams.say("asl: there are no executions" + (f" that are {status}" if status else ""))
    coloured = streams.colour(sys.stdout)
    width = max((len(each.name) for each in rows), default=0)
    for each in rows:
        started = format_timestamp(each.started)
        if as_json:
            fields = {"name": each.name, "workflow": each.workflow, "status": each.status}
            streams.result(streams.as_text({**fields, "started": started}))
            continue
        label = f"{each.status:<9}"
        if coloured:
            label = click.style(label, fg=COLOURS.get(each.status))
        why = f"  {each.error}" if each.error else ""
        if each.status == "DAMAGED":
            why = f"  {each.cause}: {command_for('doctor')} says more"
        if each.name in left:
            why = f"  nobody is at work on it: {left[each.name]}"
        what = printable(each.workflow + why)
        streams.result(f"{each.name:<{width}}  {label}  {started}  {what}")
    return Exit.OK
