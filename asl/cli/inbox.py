"""`asl inbox`: what people are asked and have not decided."""

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.stores import STORE, execution_of, opened

__all__ = ["command"]


@click.command("inbox")
@STORE
@click.option("--json", "as_json", is_flag=True, help="Print each request as a line of JSON.")
def command(store_file: str | None, as_json: bool) -> Exit:
    """List the requests that wait for people, the oldest first."""
    with opened(store_file) as store:
        requests = store.pending()
    for request in requests:
        if as_json:
            streams.result(streams.as_text(request))
            continue
        until = f"  (until {request['expiresAt']})" if "expiresAt" in request else ""
        streams.result(f"{execution_of(request)}  {request['promptText']}{until}")
        streams.result(f"  {' | '.join(request['options'])}  {request['requestId']}")
    if not requests:
        streams.say("asl: nothing waits for a decision")
    return Exit.OK
