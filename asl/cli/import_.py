"""`asl import`: read exported executions into a store."""

import json
from collections.abc import Iterator
from typing import IO, Final

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.stores import STORE, opened
from asl.core.errors import AslError
from asl.core.json_text import ValueCounter
from asl.core.values import Json

__all__ = ["command"]

MIB: Final = 1024 * 1024
MOST: Final = 48
"""MiB of a line, at most: reading one takes about five times as much memory."""
DENSEST: Final = 48
"""Bytes of a line for each of its values, at least."""


@click.command("import")
@click.argument("file", metavar="FILE", type=click.File("rb"))
@STORE
@click.option(
    "--max-mib",
    metavar="N",
    type=click.IntRange(1, 2048),
    default=MOST,
    show_default=True,
    help="Largest execution to read, as MiB of its line.",
)
def command(file: IO[bytes], store_file: str | None, max_mib: int) -> Exit:
    """Add what 'asl export' has written to a store, which is made if there is none.

    FILE may be - for standard input. A line whose digest is wrong, that is too large, or whose
    execution the store has, ends the command; the lines before it stay.
    """
    count = 0
    with opened(store_file, make=True) as store:
        for number, text in enumerate(_lines(file, max_mib * MIB), start=1):
            try:
                store.import_execution(_read(text, max_mib))
            except RecursionError:
                raise AslError(f"{file.name}:{number}: it is nested too deep") from None
            except (ValueError, AslError) as error:
                raise AslError(f"{file.name}:{number}: {error}") from None
            count += 1
    streams.say(f"asl: {streams.counted(count, 'execution')} imported")
    return Exit.OK


def _lines(file: IO[bytes], limit: int) -> Iterator[bytes]:
    """Yield the lines of a file, of one that is longer than *limit* bytes only one byte more."""
    while text := file.readline(limit + 1):
        yield text


def _read(text: bytes, max_mib: int) -> Json:
    """Return the value of a line; raises AslError for one that would take too much memory."""
    limit = max_mib * MIB
    if len(text) > limit or not ValueCounter(limit // DENSEST).feed(text):
        raise AslError(
            f"it is longer than {max_mib} MiB, or has more than {limit // DENSEST:,} values: "
            "if you trust the file, allow more by --max-mib"
        )
    return json.loads(text)
