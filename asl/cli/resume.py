"""`asl resume`: go on with an execution of a store."""

import click

from asl.cli import streams
from asl.cli.arguments import AS_IT_IS, read_document
from asl.cli.exits import Exit
from asl.cli.given import Given, given_options
from asl.cli.stores import STORE, came_to, found, missing_bindings_hinted, opened
from asl.core.errors import AslError
from asl.executions import ExecutionBusy

__all__ = ["command"]


@click.command("resume")
@click.argument("execution", metavar="EXECUTION", required=False)
@STORE
@click.option("--due", is_flag=True, help="Go on with all that have something to go on with.")
@click.option(
    "--from", "checkpoint", metavar="NAME", help="Go on from this checkpoint, by name or id."
)
@click.option("--document", metavar="FILE", help="Go on from it by another document (--force).")
@click.option("--force", is_flag=True, help="Take a checkpoint of another document.")
@given_options
def command(
    execution: str | None,
    store_file: str | None,
    due: bool,
    checkpoint: str | None,
    document: str | None,
    force: bool,
    given: Given,
) -> Exit:
    """Go on with an execution that was decided on, is due or was left behind; print its output.

    With --from it goes on from what it has saved, after a failure too. With --due all executions go
    on that were answered, for which the time of an escalation or a timeout has come, or whose
    process has died.

    \b
        asl resume order-17 --agents agents.yaml
        asl resume order-17 --from charged
        asl resume --due
    """
    if due is (execution is not None):
        raise click.UsageError("name an execution, or say --due")
    if due and (checkpoint is not None or document is not None or force):
        raise click.UsageError("--due goes on where executions are: leave out --from")
    if execution is None:
        return _all_due(store_file, given)
    other = None if document is None else read_document(document, AS_IT_IS)
    with opened(store_file) as store:
        name = store.root(found(store, execution).name)
        given.record(store)
        with streams.aside(), missing_bindings_hinted(store, "resume", name):
            result = store.resume(
                name,
                from_checkpoint=checkpoint,
                document=other,
                force=force,
                **given.bindings(store.program(name)),
            )
        return came_to(store, result)


def _all_due(store_file: str | None, given: Given) -> Exit:
    """Go on with whatever has something to go on with; print what each came to."""
    code = Exit.OK
    with opened(store_file) as store:
        given.record(store)
        for name in [*store.due(), *store.interrupted()]:
            try:
                with streams.aside(), missing_bindings_hinted(store, "resume", name):
                    result = store.resume(name, **given.bindings(store.program(name)))
            except ExecutionBusy as busy:
                streams.say(f"asl: {busy}", style="yellow")
            except AslError as error:  # one that cannot go on does not hold up the others
                streams.say(f"asl: {name}: {error}", style="red")
                code = Exit.USAGE
            else:
                streams.line(f"{name}  {result.status}")
    return code
