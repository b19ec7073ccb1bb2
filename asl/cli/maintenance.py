"""Commands that maintain a store: rm, prune, export, import, backup and doctor."""

import json
import sys
from collections.abc import Iterator
from typing import IO, Final

import click

from asl.cli import console
from asl.cli.console import Exit
from asl.cli.stores import STORE, find_execution, open_store
from asl.core.errors import AslError
from asl.core.json_text import ValueCounter
from asl.core.values import Json
from asl.stores.errors import StoreDamaged
from asl.stores.registry import open_backend

__all__ = [
    "backup_command",
    "doctor_command",
    "export_command",
    "import_command",
    "prune_command",
    "rm_command",
]


@click.command("rm")
@click.argument("executions", metavar="EXECUTION...", nargs=-1, required=True)
@STORE
def rm_command(executions: tuple[str, ...], store_file: str | None) -> Exit:
    """Delete ended executions with their histories and the executions that they started.

    Nothing is deleted if a name is unknown. 'asl stop' ends a paused execution.

    \b
        asl rm order-17 order-18
    """
    with open_store(store_file) as store:
        names = dict.fromkeys(find_execution(store, each).name for each in executions)
        for name in names:
            store.delete(name)
            console.print_message(f"asl: {name} is deleted")
    return Exit.OK


@click.command("prune")
@STORE
@click.option(
    "--keep",
    metavar="DURATION",
    help="Delete executions that ended longer ago: 30d, 12h, 90s.",
)
@click.option(
    "--keep-latest",
    metavar="N",
    type=click.IntRange(0),
    help="Delete ended executions beyond this number of the latest ones.",
)
@click.option("--dry-run", is_flag=True, help="Print the names without deleting anything.")
def prune_command(
    store_file: str | None, keep: str | None, keep_latest: int | None, dry_run: bool
) -> Exit:
    """Delete ended executions by age or number.

    \b
        asl prune --keep 30d
        asl prune --keep-latest 10000

    \f
    Raises:
        UsageError: Neither is given.
    """
    if keep is None and keep_latest is None:
        raise click.UsageError("give --keep DURATION or --keep-latest N")
    with open_store(store_file) as store:
        names = store.prune(keep, latest=keep_latest, dry_run=dry_run)
    if dry_run:
        for name in names:
            console.write_line(name)
    done = "would be deleted" if dry_run else "deleted"
    console.print_message(f"asl: {console.count_noun(len(names), 'execution')} {done}")
    return Exit.OK


@click.command("backup")
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False))
@STORE
def backup_command(file: str, store_file: str | None) -> Exit:
    """Copy a store to a new file, even while executions run.

    The copy is a store: 'asl ls --store FILE' lists its executions.
    """
    with open_store(store_file) as store:
        store.backup(file)
    console.print_message(f"asl: {file} is a copy of {store.path}")
    return Exit.OK


@click.command("export")
@click.argument("executions", metavar="[EXECUTION...]", nargs=-1)
@STORE
def export_command(executions: tuple[str, ...], store_file: str | None) -> Exit:
    """Print executions as JSON Lines for 'asl import'; by default all.

    Damaged executions are skipped and reported; the exit code is then 1.

    \b
        asl export --store damaged.db > runs.jsonl
        asl import runs.jsonl --store new.db
    """
    damaged: list[str] = []
    with open_store(store_file) as store:
        names = [store.root(find_execution(store, each).name) for each in executions] or None
        for line in store.export(names, damaged=damaged):
            console.write_result(console.as_text(line))
    sys.stdout.flush()
    for each in damaged:
        console.print_message(f"asl: skipped a damaged execution: {each}", style="red")
    return Exit.FAILED if damaged else Exit.OK


MIB: Final = 1024 * 1024
DEFAULT_MIB: Final = 48
"""Maximum size of a line in MiB; reading one takes about five times as much memory."""
BYTES_PER_VALUE: Final = 48
"""Minimum number of bytes of a line for each of its values."""


@click.command("import")
@click.argument("file", metavar="FILE", type=click.File("rb"))
@STORE
@click.option(
    "--max-mib",
    metavar="N",
    type=click.IntRange(1, 2048),
    default=DEFAULT_MIB,
    show_default=True,
    help="Maximum size of an execution, in MiB.",
)
def import_command(file: IO[bytes], store_file: str | None, max_mib: int) -> Exit:
    """Add the executions of an 'asl export' to a store; create the store if it does not exist.

    FILE may be - for standard input. The command stops at the first line with a wrong digest, an
    execution that is too large or one that the store has; earlier lines remain imported.

    \f
    Raises:
        AslError: A line cannot be imported.
    """
    count = 0
    with open_store(store_file, make=True) as store:
        for number, text in enumerate(_read_lines(file, max_mib * MIB), start=1):
            try:
                store.import_execution(_read_execution(text, max_mib))
            except RecursionError:
                raise AslError(f"{file.name}:{number}: the line is nested too deep") from None
            except (ValueError, AslError) as error:
                raise AslError(f"{file.name}:{number}: {error}") from None
            count += 1
    console.print_message(f"asl: {console.count_noun(count, 'execution')} imported")
    return Exit.OK


def _read_lines(file: IO[bytes], limit: int) -> Iterator[bytes]:
    """Yield the lines of a file, truncated after *limit* + 1 bytes."""
    while text := file.readline(limit + 1):
        yield text


def _read_execution(text: bytes, max_mib: int) -> Json:
    """Return the value of a line.

    Raises:
        AslError: The line is not JSON, or would take too much memory.
    """
    limit = max_mib * MIB
    if len(text) > limit or not ValueCounter(limit // BYTES_PER_VALUE).feed(text):
        raise AslError(
            f"the line is longer than {max_mib} MiB, or has more than "
            f"{limit // BYTES_PER_VALUE:,} values: "
            "if you trust the file, raise the limit with --max-mib"
        )
    try:
        return json.loads(text)
    except ValueError as error:
        raise AslError(f"the line is not JSON as 'asl export' prints it: {error}") from None


def _report_progress(part: str) -> None:
    """Print the part that is checked, on a terminal: a large store takes a while."""
    if console.is_terminal(sys.stderr):
        console.print_message(f"asl: checking {part}")


@click.command("doctor")
@STORE
@click.option(
    "--release", is_flag=True, help="First release budget reservations of ended executions."
)
def doctor_command(store_file: str | None, release: bool) -> Exit:
    """Verify the integrity of a store: its file, its histories and all references.

    Exits with 1 if the store has a fault.
    """
    count = 0
    try:
        with open_store(store_file) as store:
            for budget in store.release_reservations() if release else ():
                console.print_message(
                    f"asl: released the reservations of ended executions in {budget}"
                )
            for fault in store.faults(_report_progress):
                count += 1
                console.write_line(fault)
    except StoreDamaged as damage:  # the file cannot be opened
        faults = open_backend(str(damage.place), "FULL").faults()
        for fault in [*faults, damage.what]:
            count += 1
            console.write_line(f"the file: {fault}")
    if count:
        console.print_message(f"asl: {console.count_noun(count, 'fault')}", style="red")
        return Exit.FAILED
    console.print_message("asl: the store has no faults", style="green")
    return Exit.OK
