"""`asl logs`: what happens in an execution, as it happens."""

import time
from pathlib import Path

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.places import name_of
from asl.cli.stores import STORE, continue_command, found, opened
from asl.core.errors import AslError
from asl.engine.events import Event
from asl.executions import Store
from asl.expr.times import format_timestamp

__all__ = ["command"]

PAUSE = 0.2
"""Seconds between two looks at the store."""
SHOWN = 300
"""Characters of the details of an event that are shown."""


@click.command("logs")
@click.argument("execution", metavar="EXECUTION")
@STORE
@click.option("-f", "--follow", is_flag=True, help="Go on until the execution ends.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON.")
def command(execution: str, store_file: str | None, follow: bool, as_json: bool) -> Exit:
    """Print the history of an execution, a line for each event.

    With -f also of one that another process is at work on, until it ends; exits with 1 if that
    process dies.
    """
    with opened(store_file) as store:
        name = found(store, execution).name
        wait = (lambda: _pause(store, name)) if follow else None
        try:
            for event in store.events(name, wait=wait):
                streams.line(streams.as_text(event.to_json()) if as_json else _line(event))
        except _LeftBehindError:
            go_on = f"{continue_command(store, 'resume', name)} goes on with it"
            streams.say(f"asl: nobody is at work on {name} any more: {go_on}", style="yellow")
            return Exit.FAILED
    return Exit.OK


class _LeftBehindError(Exception):
    """The process that was at work on the execution has died."""


def _pause(store: "Store", name: str) -> None:
    """Wait a little; raises where nobody will ever go on by itself."""
    if isinstance(store.path, Path) and not store.path.exists():
        raise AslError(f"{store.path} is not there any more")
    if store.is_interrupted(name):
        raise _LeftBehindError
    time.sleep(PAUSE)


def _line(event: Event) -> str:
    # The place says of which state it is; a checkpoint has a name of its own.
    details = {
        key: value
        for key, value in event.details.items()
        if key != "name" or value not in event.path
    }
    shown = streams.clipped(details, SHOWN) if details else ""
    place = f"  {name_of(event.path)}" if event.path else ""
    return f"{format_timestamp(event.timestamp)}  {event.type}{place}  {shown}".rstrip()
