"""`asl stop`: end an execution."""

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.stores import STORE, found, opened

__all__ = ["command"]

PATIENCE = 2.0
"""Seconds to wait for the end of the execution."""


@click.command("stop")
@click.argument("execution", metavar="EXECUTION")
@STORE
@click.option("--error", metavar="NAME", help="An error name to keep with it.")
@click.option("--cause", metavar="TEXT", help="A cause to keep with it.")
def command(execution: str, store_file: str | None, error: str | None, cause: str | None) -> Exit:
    """End an execution, whoever is at work on it: its status becomes ABORTED.

    A worker ends what it runs within a second; another process ends it behind the call that is
    under way.
    """
    with opened(store_file) as store:
        handle = store.handle(found(store, execution).name)
        handle.cancel(cause, error=error)
        try:
            handle.result(PATIENCE)
        except TimeoutError:
            text = f"asl: {handle.name} ends when the call that is under way has ended"
        else:
            text = f"asl: {handle.name} is {handle.status()}"
    streams.say(text, style="yellow")
    return Exit.OK
