"""`asl fork`: begin a new execution at a state of another one."""

import click

from asl.cli import streams
from asl.cli.arguments import AS_IT_IS, read_document, read_input
from asl.cli.exits import Exit
from asl.cli.stores import STORE, command_for, found, opened

__all__ = ["command"]


@click.command("fork")
@click.argument("execution", metavar="EXECUTION")
@STORE
@click.option(
    "--at",
    "place",
    metavar="STATE[#VISIT]",
    required=True,
    help="The state at which it begins; by default at its latest visit.",
)
@click.option("-i", "--input", "input_", metavar="JSON", help="What the state gets instead.")
@click.option("--name", metavar="NAME", help="Name of the new execution; random if absent.")
@click.option("--document", metavar="FILE", help="Another document for the new execution.")
def command(
    execution: str,
    store_file: str | None,
    place: str,
    input_: str | None,
    name: str | None,
    document: str | None,
) -> Exit:
    """Begin a new execution at a state that another one has entered; print its name.

    The other one stays as it is, whatever became of it. A worker takes the new one up, or
    'asl resume' goes on with it.

    \b
        asl fork order-17 --at Charge
        asl fork order-17 --at 'Ask#2' --input '{"amount": 5}'
    """
    given = {} if input_ is None else {"input": read_input(input_)}
    other = None if document is None else read_document(document, AS_IT_IS)
    with opened(store_file) as store:
        source = found(store, execution).name
        handle = store.fork(source, place, new_name=name, document=other, **given)
        streams.line(handle.name)
        if not store.workers():
            resume = command_for("resume", handle.name)
            streams.say(f"asl: no worker runs on the store: {resume} goes on", style="yellow")
    return Exit.OK
