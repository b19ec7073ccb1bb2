"""`asl approve`: decide on what an execution asks."""

from typing import TYPE_CHECKING

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.stores import STORE, execution_of, found, opened
from asl.core.values import Json

if TYPE_CHECKING:
    from asl.executions import Store

__all__ = ["command"]


@click.command("approve")
@click.argument("execution", metavar="EXECUTION")
@STORE
@click.option("--request", "request_id", metavar="ID", help="Which one, where several are open.")
@click.option("--option", help="The decision; by default the first option, which approves.")
@click.option("--comment", help="Why.")
@click.option("--edit", "edits", metavar="KEY=VALUE", multiple=True, help="Change a value.")
@click.option("--as", "user", metavar="USER", help="Who decides.")
@click.option("--role", "roles", multiple=True, help="A role of whoever decides.")
def command(
    execution: str,
    store_file: str | None,
    request_id: str | None,
    option: str | None,
    comment: str | None,
    edits: tuple[str, ...],
    user: str | None,
    roles: tuple[str, ...],
) -> Exit:
    """Decide on what a paused execution asks; `asl resume` goes on with it.

    \b
        asl approve order-17 --as ann --comment "fine by me"
        asl approve order-17 --option reject
    """
    with opened(store_file) as store:
        name = found(store, execution).name
        request = _request(store, name, request_id)
        record = store.answer(
            request["requestId"],
            request["options"][0] if option is None else option,
            by=user,
            comment=comment,
            edited=dict(map(_edit, edits)) or None,
            roles=roles,
        )
    if record is None:
        streams.say(f"asl: {name} waits for more approvals", style="yellow")
        return Exit.PAUSED
    streams.result(streams.as_text(record))
    streams.say(f"asl: decided; 'asl resume {name}' goes on with it")
    return Exit.OK


def _request(store: "Store", name: str, request_id: str | None) -> dict[str, Json]:
    """Return the request that is meant, which must be clear."""
    open_ones = [each for each in store.pending() if execution_of(each) == name]
    if request_id is not None:
        open_ones = [each for each in open_ones if each["requestId"] == request_id]
    if len(open_ones) == 1:
        return open_ones[0]
    if not open_ones:
        raise click.UsageError(f"{name} asks nothing that is open: see 'asl inbox'")
    listed = "\n".join(f"  {each['requestId']}  {each['promptText']}" for each in open_ones)
    raise click.UsageError(f"{name} has several open requests; name one by --request:\n{listed}")


def _edit(text: str) -> tuple[str, Json]:
    """Return key and value; a value that is no JSON is a text."""
    import json

    key, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE", param_hint="--edit")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
