"""`asl answer`: answer the task token of an execution that waits for it."""

import click

import asl
from asl.cli import console
from asl.cli.arguments import read_input, value_or_text
from asl.cli.console import Exit
from asl.cli.stores import STORE, command_for, continue_command, find_execution, open_store
from asl.effects.task_tokens import TokenError

__all__ = ["activity_command", "answer_command", "feedback_command"]


@click.command("answer")
@click.argument("token", metavar="TOKEN")
@STORE
@click.option("-o", "--output", metavar="JSON", help="The result: JSON, @FILE, or - (stdin).")
@click.option("--error", metavar="NAME", help="Fail the task with this error.")
@click.option("--cause", metavar="TEXT", help="And with this cause.")
@click.option("--heartbeat", is_flag=True, help="Say only that the work goes on.")
def answer_command(
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
    with open_store(store_file) as store:
        try:
            if heartbeat:
                store.tokens.send_task_heartbeat(token)
            elif failed:
                store.tokens.send_task_failure(token, error, cause)
            else:
                value = read_input(output or "", "--output")
                store.tokens.send_task_success(token, console.as_text(value))
        except TokenError as refusal:
            console.say(f"asl: {type(refusal).__name__}: {refusal}", style="red")
            return Exit.USAGE
        if heartbeat:
            return Exit.OK
        name = store.root(store.execution_of(token))
        console.say(f"asl: answered; {continue_command(store, 'resume', name)} goes on with it")
    return Exit.OK


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
def activity_command(
    activity: str, store_file: str | None, worker: str | None, wait: float
) -> Exit:
    """Take the next task of an activity; print its taskToken and its input, both as text.

    'asl answer' gives what came of it. Without a task within --wait seconds both are null.
    """
    with open_store(store_file) as store:
        task = store.tokens.get_activity_task(activity, worker, wait=wait)
    console.write_result(console.as_text(task))
    if task["taskToken"] is not None:
        answer = command_for("answer", task["taskToken"])
        console.say(f"asl: {answer} answers it")
    return Exit.OK


@click.command("feedback")
@click.argument("execution", metavar="EXECUTION")
@click.argument("feedback_id", metavar="[ID]", required=False)
@click.argument("answer", metavar="[ANSWER]", required=False)
@STORE
@click.option("--memory", metavar="WHERE", help="Where to keep the answer: a file, redis://...")
@click.option("--as", "user", metavar="USER", default="anonymous", help="Who answers.")
def feedback_command(
    execution: str,
    feedback_id: str | None,
    answer: str | None,
    store_file: str | None,
    memory: str | None,
    user: str,
) -> Exit:
    """List what people are asked about the results of an execution, or answer it.

    ANSWER is JSON, or a text. The end of an ID is enough.

    \b
        asl feedback order-17
        asl feedback order-17 /Write@0 4 --memory ratings.db --as ann
    """
    with open_store(store_file) as store:
        result = store.result(find_execution(store, execution).name)
        asked = result.feedback
        if feedback_id is None:
            for request in asked:
                console.write_result(console.as_text(request))
            if not asked:
                console.say("asl: nobody is asked about this execution")
            return Exit.OK
        if answer is None or memory is None:
            raise click.UsageError("an answer needs ANSWER and --memory")
        ids = [each["feedbackId"] for each in asked if each["feedbackId"].endswith(feedback_id)]
        chosen = ids[0] if len(ids) == 1 else feedback_id
        record = asl.give_feedback(result, chosen, value_or_text(answer), memory=memory, by=user)
    console.write_result(console.json_line(record))
    return Exit.OK
