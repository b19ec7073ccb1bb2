"""`asl backup`: copy a store."""

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.stores import STORE, opened

__all__ = ["command"]


@click.command("backup")
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False))
@STORE
def command(file: str, store_file: str | None) -> Exit:
    """Copy a store into a new file, also while executions run in it.

    The copy is a store: 'asl ls --store FILE' lists what is in it.
    """
    with opened(store_file) as store:
        store.backup(file)
    streams.say(f"asl: {file} is a copy of {store.path}")
    return Exit.OK
