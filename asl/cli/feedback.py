"""`asl feedback`: what people are asked about results, and what they say."""

import click

import asl
from asl.cli import streams
from asl.cli.arguments import value_or_text
from asl.cli.exits import Exit
from asl.cli.stores import STORE, found, opened

__all__ = ["command"]


@click.command("feedback")
@click.argument("execution", metavar="EXECUTION")
@click.argument("feedback_id", metavar="[ID]", required=False)
@click.argument("answer", metavar="[ANSWER]", required=False)
@STORE
@click.option("--memory", metavar="WHERE", help="Where to keep the answer: a file, redis://...")
@click.option("--as", "user", metavar="USER", default="anonymous", help="Who answers.")
def command(
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
    with opened(store_file) as store:
        result = store.result(found(store, execution).name)
        asked = result.feedback
        if feedback_id is None:
            for request in asked:
                streams.result(streams.as_text(request))
            if not asked:
                streams.say("asl: nobody is asked about this execution")
            return Exit.OK
        if answer is None or memory is None:
            raise click.UsageError("an answer needs ANSWER and --memory")
        ids = [each["feedbackId"] for each in asked if each["feedbackId"].endswith(feedback_id)]
        chosen = ids[0] if len(ids) == 1 else feedback_id
        record = asl.give_feedback(result, chosen, value_or_text(answer), memory=memory, by=user)
    streams.result(streams.json_line(record))
    return Exit.OK
