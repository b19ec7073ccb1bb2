"""`asl ls`: the executions of a store, the newest first."""

import sys

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.stores import STORE, command_for, continue_command, found, opened
from asl.core.printable import printable
from asl.expr.times import format_timestamp

__all__ = ["command"]

STATUSES = ("RUNNING", "PAUSED", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED")
PAGE = 50
"""Executions that are listed at once."""
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
    default=PAGE,
    show_default=True,
    help="So many at most.",
)
@click.option(
    "--after", metavar="EXECUTION", help="The next page: those that follow this one in the list."
)
@click.option("--stuck", is_flag=True, help="Only those that no worker can go on with, and why.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line.")
def command(
    store_file: str | None,
    status: str | None,
    limit: int,
    after: str | None,
    stuck: bool,
    as_json: bool,
) -> Exit:
    """List the executions of a store, the newest first, a page at a time."""
    if stuck:
        return _list_stuck(store_file, as_json)
    with opened(store_file) as store:
        before = None if after is None else found(store, after).number
        rows = store.executions(status=status and status.upper(), before=before, limit=limit + 1)
        rows, more = rows[:limit], len(rows) > limit
        left = {
            each.name: continue_command(store, "resume", each.name)
            for each in rows
            if each.status == "RUNNING" and store.is_interrupted(each.name)
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
        name, what = printable(each.name), printable(each.workflow + why)
        streams.result(f"{name:<{width}}  {label}  {started}  {what}")
    if more:
        chosen = [] if status is None else ["--status", status.upper()]
        chosen += [] if limit == PAGE else ["-n", str(limit)]
        following = command_for("ls", *chosen, "--after", rows[-1].name)
        streams.say(f"asl: there are more: {following} lists the next ones")
    return Exit.OK


def _list_stuck(store_file: str | None, as_json: bool) -> Exit:
    """List the executions that need what no worker has bound."""
    with opened(store_file) as store:
        stuck = store.stuck()
    if not stuck:
        streams.say("asl: no execution waits for what no worker has bound")
    for name, needs in stuck.items():
        if as_json:
            streams.result(streams.as_text({"name": name, "needs": needs}))
        else:
            streams.line(f"{name}  {'; '.join(needs)}")
    return Exit.OK
