"""`asl import`: read exported executions into a store."""

import json
from typing import IO

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.stores import STORE, opened
from asl.core.errors import AslError

__all__ = ["command"]


@click.command("import")
@click.argument("file", metavar="FILE", type=click.File("rb"))
@STORE
def command(file: IO[bytes], store_file: str | None) -> Exit:
    """Add what 'asl export' has written to a store, which is made if there is none.

    FILE may be - for standard input. A line whose digest is wrong, or whose execution the store
    has, ends the command; the lines before it stay.
    """
    count = 0
    with opened(store_file, make=True) as store:
        for number, text in enumerate(file, start=1):
            try:
                store.import_execution(json.loads(text))
            except RecursionError:
                raise AslError(f"{file.name}:{number}: it is nested too deep") from None
            except (ValueError, AslError) as error:
                raise AslError(f"{file.name}:{number}: {error}") from None
            count += 1
    streams.say(f"asl: {streams.counted(count, 'execution')} imported")
    return Exit.OK
