"""`asl resume`: go on with an execution of a store."""

import sys
from contextlib import redirect_stdout

import click

from asl.cli.arguments import AS_IT_IS, Given, binding_options, read_document
from asl.cli.exits import Exit
from asl.cli.stores import STORE, came_to, found, opened

__all__ = ["command"]


@click.command("resume")
@click.argument("execution", metavar="EXECUTION")
@STORE
@click.option(
    "--from", "checkpoint", metavar="NAME", help="Go on from this checkpoint, by name or id."
)
@click.option("--document", metavar="FILE", help="Go on from it by another document (--force).")
@click.option("--force", is_flag=True, help="Take a checkpoint of another document.")
@binding_options
def command(
    execution: str,
    store_file: str | None,
    checkpoint: str | None,
    document: str | None,
    force: bool,
    given: Given,
) -> Exit:
    """Go on with an execution that was decided on, is due or was left behind; print its output.

    With --from it goes on from what it has saved, after a failure too.

    \b
        asl resume order-17 --agents agents.yaml
        asl resume order-17 --from charged
    """
    other = None if document is None else read_document(document, AS_IT_IS)
    with opened(store_file) as store:
        name = found(store, execution).name
        with redirect_stdout(sys.stderr):  # what agents print is not the result
            result = store.resume(
                name,
                from_checkpoint=checkpoint,
                document=other,
                force=force,
                **given.bindings(store.program(name)),
            )
        return came_to(result)
