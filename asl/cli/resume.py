"""`asl resume`: go on with an execution of a store."""

import sys
from contextlib import redirect_stdout

import click

from asl.cli import streams
from asl.cli.arguments import AS_IT_IS, NOTIFY, bindings, workflows
from asl.cli.exits import Exit, of_status
from asl.cli.stores import STORE, found, opened, say_paused

__all__ = ["command"]


@click.command("resume")
@click.argument("execution", metavar="EXECUTION")
@STORE
@click.option(
    "--agents",
    "agent_files",
    metavar="FILE",
    multiple=True,
    help="Agents file: who answers for the names in the document.",
)
@click.option(
    "--agent",
    "agent_pairs",
    metavar="NAME=MODULE:FUNCTION",
    multiple=True,
    help="Bind one agent to a Python function.",
)
@click.option(
    "--workflow",
    "workflow_pairs",
    metavar="NAME=FILE",
    multiple=True,
    help="A workflow that the document may start, by name or ARN.",
)
@NOTIFY
def command(
    execution: str,
    store_file: str | None,
    agent_files: tuple[str, ...],
    agent_pairs: tuple[str, ...],
    workflow_pairs: tuple[str, ...],
    channels: tuple[str, ...],
) -> Exit:
    """Go on with an execution that was decided on, is due or was left behind; print its output."""
    bound = bindings(agent_files, agent_pairs)
    startable = workflows(workflow_pairs, AS_IT_IS)
    with opened(store_file) as store:
        name = found(store, execution).name
        with redirect_stdout(sys.stderr):  # what agents print is not the result
            result = store.resume(
                name,
                agents=bound.agents,
                resources=bound.resources,
                workflows=startable or None,
                notify=channels or None,
            )
    if result.ok:
        streams.result(streams.as_text(result.output))
    elif result.status == "PAUSED":
        say_paused(result)
    else:
        why = ": ".join(each for each in (result.error, result.cause) if each)
        streams.say(f"asl: {result.name} {result.status} {why}".rstrip(), style="red")
    return of_status(result.status)
