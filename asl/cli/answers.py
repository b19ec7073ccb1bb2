"""Commands that answer task tokens, activities and feedback requests."""

import click

import asl
from asl.cli import console
from asl.cli.arguments import read_input, value_or_text
from asl.cli.console import Exit
from asl.cli.stores import STORE, command_for, continued_by, find_execution, open_store
from asl.effects.task_tokens import TokenError

__all__ = ["activity_command", "answer_command", "feedback_command"]


@click.command("answer")
@click.argument("token", metavar="TOKEN")
@STORE
@click.option(
    "-o",
    "--output",
    metavar="JSON",
    help="Result of the task as JSON, @FILE, or - for standard input.",
)
@click.option("--error", metavar="NAME", help="Fail the task with this error name.")
@click.option("--cause", metavar="TEXT", help="Fail the task with this cause.")
@click.option("--heartbeat", is_flag=True, help="Send a heartbeat; the task stays open.")
def answer_command(
    token: str,
    store_file: str | None,
    output: str | None,
    error: str | None,
    cause: str | None,
    heartbeat: bool,
) -> Exit:
    """Answer the task token of a .waitForTaskToken task or an activity.

    'asl inbox' lists the open tokens; 'asl resume' continues the execution.

    \b
        asl answer 5f3c... --output '{"approved": true}'
        asl answer 5f3c... --error Refused --cause "not today"
        asl answer 5f3c... --heartbeat

    \f
    Raises:
        UsageError: Not exactly one kind of answer is given.
    """
    failed = error is not None or cause is not None
    if (output is not None) + failed + heartbeat != 1:
        raise click.UsageError("use one of --output, --error with --cause, and --heartbeat")
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
            console.print_message(f"asl: {type(refusal).__name__}: {refusal}", style="red")
            return Exit.USAGE
        if heartbeat:
            return Exit.OK
        name = store.root(store.execution_of(token))
        console.print_message(
            f"asl: the task is answered; {continued_by(store, name)} continues {name}"
        )
    return Exit.OK


@click.command("activity")
@click.argument("activity", metavar="ARN")
@STORE
@click.option("--worker", metavar="NAME", help="Name of the worker, recorded in the history.")
@click.option(
    "--wait",
    metavar="SECONDS",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Maximum time to wait for a task.",
)
def activity_command(
    activity: str, store_file: str | None, worker: str | None, wait: float
) -> Exit:
    """Get the next task of an activity and print its taskToken and input.

    'asl answer' reports the result. Both fields are null if no task is scheduled within --wait
    seconds.
    """
    with open_store(store_file) as store:
        task = store.tokens.get_activity_task(activity, worker, wait=wait)
    console.write_result(console.as_text(task))
    if task["taskToken"] is not None:
        answer = command_for("answer", task["taskToken"], "--output", "JSON")
        console.print_message(f"asl: {answer} answers the task")
    return Exit.OK


@click.command("feedback")
@click.argument("execution", metavar="EXECUTION")
@click.argument("feedback_id", metavar="[ID]", required=False)
@click.argument("answer", metavar="[ANSWER]", required=False)
@STORE
@click.option(
    "--memory", metavar="WHERE", help="Memory that stores the answer: a file, redis://..."
)
@click.option("--as", "user", metavar="USER", default="anonymous", help="User who answers.")
def feedback_command(
    execution: str,
    feedback_id: str | None,
    answer: str | None,
    store_file: str | None,
    memory: str | None,
    user: str,
) -> Exit:
    """List the feedback requests of an execution, or answer one.

    ID may be the end of a request id. ANSWER is JSON or text, and is saved in --memory.

    \b
        asl feedback order-17
        asl feedback order-17 /Write@0 4 --memory ratings.db --as ann

    \f
    Raises:
        UsageError: ANSWER or --memory is missing.
    """
    with open_store(store_file) as store:
        result = store.result(find_execution(store, execution).name)
        asked = result.feedback
        if feedback_id is None:
            for request in asked:
                console.write_result(console.as_text(request))
            if not asked:
                console.print_message("asl: the execution has no feedback requests")
            return Exit.OK
        if answer is None or memory is None:
            raise click.UsageError("to answer a request, give ANSWER and --memory")
        ids = [each["feedbackId"] for each in asked if each["feedbackId"].endswith(feedback_id)]
        chosen = ids[0] if len(ids) == 1 else feedback_id
        record = asl.give_feedback(result, chosen, value_or_text(answer), memory=memory, by=user)
    console.write_result(console.json_line(record))
    return Exit.OK
