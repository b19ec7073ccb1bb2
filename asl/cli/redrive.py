"""`asl redrive`: go on with an execution from where it failed."""

import click

from asl.cli import streams
from asl.cli.arguments import AS_IT_IS, read_document
from asl.cli.exits import Exit
from asl.cli.given import Given, given_options
from asl.cli.stores import STORE, came_to, found, missing_bindings_hinted, opened

__all__ = ["command"]


@click.command("redrive")
@click.argument("execution", metavar="EXECUTION")
@STORE
@click.option("--document", metavar="FILE", help="Go on by a corrected document.")
@given_options
def command(execution: str, store_file: str | None, document: str | None, given: Given) -> Exit:
    """Go on with an execution that failed, timed out or was stopped; print its output.

    It goes on from the states that failed. What has succeeded is not done again.

    \b
        asl redrive order-17 --agents agents.yaml
        asl redrive order-17 --document corrected.asl.json
    """
    corrected = None if document is None else read_document(document, AS_IT_IS)
    with opened(store_file) as store:
        name = store.root(found(store, execution).name)
        given.record(store)
        with streams.aside(), missing_bindings_hinted(store, "redrive", name):
            result = store.redrive(name, document=corrected, **given.bindings(store.program(name)))
        return came_to(store, result)
