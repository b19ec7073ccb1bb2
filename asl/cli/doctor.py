"""`asl doctor`: whether a store is whole."""

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.stores import STORE, opened

__all__ = ["command"]


@click.command("doctor")
@STORE
def command(store_file: str | None) -> Exit:
    """Check a store: the file, the chain of every history, and that all refer to what is there."""
    with opened(store_file) as store:
        faults = store.faults()
        count = 0
        for fault in faults:
            count += 1
            streams.result(fault)
    streams.say("asl: the store is whole" if not count else f"asl: {count} faults", style="red")
    return Exit.OK if not count else Exit.FAILED
