"""`asl rm`: delete executions."""

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.stores import STORE, found, opened

__all__ = ["command"]


@click.command("rm")
@click.argument("executions", metavar="EXECUTION...", nargs=-1, required=True)
@STORE
def command(executions: tuple[str, ...], store_file: str | None) -> Exit:
    """Delete executions that have ended, with their histories and all that they started.

    All are looked up before one is deleted. 'asl stop' ends one that is paused.

    \b
        asl rm order-17 order-18
    """
    with opened(store_file) as store:
        names = dict.fromkeys(found(store, each).name for each in executions)
        for name in names:
            store.delete(name)
            streams.say(f"asl: {name} is deleted")
    return Exit.OK
