"""`asl stop`: end an execution that waits."""

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.stores import STORE, found, opened

__all__ = ["command"]


@click.command("stop")
@click.argument("execution", metavar="EXECUTION")
@STORE
@click.option("--error", metavar="NAME", help="An error name to keep with it.")
@click.option("--cause", metavar="TEXT", help="A cause to keep with it.")
def command(execution: str, store_file: str | None, error: str | None, cause: str | None) -> Exit:
    """End an execution that is paused or was left behind: its status becomes ABORTED."""
    with opened(store_file) as store:
        stored = found(store, execution)
        store.stop(stored.name, error=error, cause=cause)
    streams.say(f"asl: {stored.name} is aborted", style="yellow")
    return Exit.OK
