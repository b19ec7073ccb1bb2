"""`asl checkpoints`: what executions have saved."""

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.places import name_of
from asl.cli.stores import STORE, found, opened
from asl.expr.times import format_timestamp

__all__ = ["command"]


@click.command("checkpoints")
@click.argument("execution", metavar="[EXECUTION]", required=False)
@STORE
@click.option("--json", "as_json", is_flag=True, help="Print each checkpoint as a line of JSON.")
def command(execution: str | None, store_file: str | None, as_json: bool) -> Exit:
    """List the checkpoints of an execution, or of all, the oldest first.

    'asl resume EXECUTION --from NAME' goes on from one.
    """
    with opened(store_file) as store:
        name = None if execution is None else found(store, execution).name
        checkpoints, now = store.checkpoints(name), store.clock.now()
        if as_json:
            for of in dict.fromkeys(each.execution for each in checkpoints):
                for checkpoint in store.result(of).checkpoints_to_json():
                    streams.result(streams.as_text(checkpoint))
            return Exit.OK
    width = max((len(each.name) for each in checkpoints), default=0)
    for each in checkpoints:
        of = each.execution.rpartition(":")[2]
        until = "for ever" if each.expires is None else f"until {format_timestamp(each.expires)}"
        if each.expires is not None and each.expires <= now:
            until = f"expired {format_timestamp(each.expires)}"
        where = "at the end" if each.next is None else f"at {each.next}"
        if each.path:
            where = f"not resumable: within {name_of(each.path)}"
        made = format_timestamp(each.created)
        streams.line(f"{of}  {each.name:<{width}}  {made}  {until}  {where}")
    if not checkpoints:
        streams.say("asl: nothing has been saved")
    return Exit.OK
