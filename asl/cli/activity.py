"""`asl activity`: take the next task of an activity, as a worker does."""

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.stores import STORE, command_for, opened

__all__ = ["command"]


@click.command("activity")
@click.argument("activity", metavar="ARN")
@STORE
@click.option("--worker", metavar="NAME", help="Who takes it; stands in the history.")
@click.option(
    "--wait",
    metavar="SECONDS",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0),
    help="How long to wait for one.",
)
def command(activity: str, store_file: str | None, worker: str | None, wait: float) -> Exit:
    """Take the next task of an activity; print its taskToken and its input, both as text.

    'asl answer' gives what came of it. Without a task within --wait seconds both are null.
    """
    with opened(store_file) as store:
        task = store.tokens.get_activity_task(activity, worker, wait=wait)
    streams.result(streams.as_text(task))
    if task["taskToken"] is not None:
        answer = command_for("answer", task["taskToken"])
        streams.say(f"asl: {answer} answers it")
    return Exit.OK
