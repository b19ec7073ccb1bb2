"""`asl answer`: answer the task token of an execution that waits for it."""

import click

from asl.cli import streams
from asl.cli.arguments import read_input
from asl.cli.exits import Exit
from asl.cli.stores import STORE, continue_command, opened
from asl.effects.task_tokens import TokenError

__all__ = ["command"]


@click.command("answer")
@click.argument("token", metavar="TOKEN")
@STORE
@click.option("-o", "--output", metavar="JSON", help="The result: JSON, @FILE, or - (stdin).")
@click.option("--error", metavar="NAME", help="Fail the task with this error.")
@click.option("--cause", metavar="TEXT", help="And with this cause.")
@click.option("--heartbeat", is_flag=True, help="Say only that the work goes on.")
def command(
    token: str,
    store_file: str | None,
    output: str | None,
    error: str | None,
    cause: str | None,
    heartbeat: bool,
) -> Exit:
    """Answer a task token, which a task with .waitForTaskToken or of an activity waits for.

    'asl inbox' lists the tokens that are waited for, 'asl resume' goes on with the execution.

    \b
        asl answer 5f3c... --output '{"approved": true}'
        asl answer 5f3c... --error Refused --cause "not today"
        asl answer 5f3c... --heartbeat
    """
    failed = error is not None or cause is not None
    if (output is not None) + failed + heartbeat != 1:
        raise click.UsageError("say --output, or --error and --cause, or --heartbeat")
    with opened(store_file) as store:
        try:
            if heartbeat:
                store.tokens.send_task_heartbeat(token)
            elif failed:
                store.tokens.send_task_failure(token, error, cause)
            else:
                value = read_input(output or "", "--output")
                store.tokens.send_task_success(token, streams.as_text(value))
        except TokenError as refusal:
            streams.say(f"asl: {type(refusal).__name__}: {refusal}", style="red")
            return Exit.USAGE
        if heartbeat:
            return Exit.OK
        name = store.root(store.execution_of(token))
        streams.say(f"asl: answered; {continue_command(store, 'resume', name)} goes on with it")
    return Exit.OK
