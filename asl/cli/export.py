"""`asl export`: write executions as lines of JSON."""

import sys

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.stores import STORE, found, opened

__all__ = ["command"]


@click.command("export")
@click.argument("executions", metavar="[EXECUTION...]", nargs=-1)
@STORE
def command(executions: tuple[str, ...], store_file: str | None) -> Exit:
    """Print executions as lines of JSON for 'asl import'; without a name all of them.

    Damaged executions are left out and reported; the exit code is 1 then.

    \b
        asl export --store damaged.db > runs.jsonl
        asl import runs.jsonl --store new.db
    """
    damaged: list[str] = []
    with opened(store_file) as store:
        names = [store.root(found(store, each).name) for each in executions] or None
        for line in store.export(names, damaged=damaged):
            streams.result(streams.as_text(line))
    sys.stdout.flush()
    for each in damaged:
        streams.say(f"asl: left out, it is damaged: {each}", style="red")
    return Exit.FAILED if damaged else Exit.OK
