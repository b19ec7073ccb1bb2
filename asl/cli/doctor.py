"""`asl doctor`: whether a store is whole."""

import sys

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.stores import STORE, opened
from asl.stores.errors import StoreDamaged
from asl.stores.registry import open_backend

__all__ = ["command"]


def _report(part: str) -> None:
    """Show on a terminal what is checked: a large store takes a while."""
    if streams.on_terminal(sys.stderr):
        streams.say(f"asl: checking {part}")


@click.command("doctor")
@STORE
@click.option(
    "--release", is_flag=True, help="Release reservations of executions that have ended first."
)
def command(store_file: str | None, release: bool) -> Exit:
    """Check a store: the file, the chain of every history, and that all refer to what is there.

    Exits with 1 if there is a fault.
    """
    count = 0
    try:
        with opened(store_file) as store:
            for budget in store.release_reservations() if release else ():
                streams.say(f"asl: {budget}: reservations of ended executions are released")
            for fault in store.faults(_report):
                count += 1
                streams.line(fault)
    except StoreDamaged as damage:  # it cannot even be opened
        found = open_backend(str(damage.place), "FULL").faults()
        for fault in [*found, damage.what]:
            count += 1
            streams.line(f"the file: {fault}")
    if count:
        streams.say(f"asl: {streams.counted(count, 'fault')}", style="red")
        return Exit.FAILED
    streams.say("asl: the store is whole", style="green")
    return Exit.OK
