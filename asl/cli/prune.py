"""`asl prune`: delete old executions."""

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.stores import STORE, opened

__all__ = ["command"]


@click.command("prune")
@STORE
@click.option(
    "--keep",
    metavar="DURATION",
    required=True,
    help="Keep those that ended within this time: 30d, 12h, 90s.",
)
@click.option("--dry-run", is_flag=True, help="Print the names, and delete nothing.")
def command(store_file: str | None, keep: str, dry_run: bool) -> Exit:
    """Delete the executions that ended longer ago than --keep; running and paused ones stay.

    \b
        asl prune --keep 30d
    """
    with opened(store_file) as store:
        names = store.prune(keep, dry_run=dry_run)
    if dry_run:
        for name in names:
            streams.line(name)
    done = "would be deleted" if dry_run else "deleted"
    streams.say(f"asl: {streams.counted(len(names), 'execution')} {done}")
    return Exit.OK
