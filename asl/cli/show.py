"""`asl show`: one execution of a store, and what happened in it."""

from typing import TYPE_CHECKING

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.places import name_of
from asl.cli.stores import STORE, found, opened
from asl.core.values import excerpt
from asl.engine.history import Event
from asl.engine.result import Result
from asl.expr.times import format_timestamp

if TYPE_CHECKING:
    from asl.stores.sqlite import Stored

__all__ = ["command"]

SHOWN = 200
"""Characters of a value that are shown."""


@click.command("show")
@click.argument("execution", metavar="EXECUTION")
@STORE
@click.option("--json", "as_json", is_flag=True, help="Print what it came to as an object.")
@click.option("--events", is_flag=True, help="Print every event, as a line of JSON.")
def command(execution: str, store_file: str | None, as_json: bool, events: bool) -> Exit:
    """Show an execution: its status, what it came to, and its history with durations."""
    if as_json and events:
        raise click.UsageError("--json and --events exclude each other")
    with opened(store_file) as store:
        stored = found(store, execution)
        result = store.result(stored.name)
        if events:
            for event in result.events:
                streams.result(streams.as_text(event.to_json()))
        elif as_json:
            streams.result(streams.as_text({"name": stored.name, **result.to_json()}))
        else:
            streams.result(_summary(result, store.started_by(stored.name)))
    return Exit.OK


def _summary(result: Result, below: "list[Stored]") -> str:
    started = format_timestamp(result.execution.started)
    lines = [
        f"{result.name}  {result.status}",
        f"workflow  {result.execution.workflow}",
        f"started   {started}",
    ]
    if result.status == "SUCCEEDED":
        lines.append(f"output    {_clipped(result.output)}")
    elif result.error or result.cause:
        why = ": ".join(each for each in (result.error, result.cause) if each)
        lines.append(f"error     {why}")
    for each in below:
        lines.append(f"runs      {each.name}  {each.status}  {each.workflow}")
    spent = result.usage
    if spent["tokens"] or spent["cost"]:
        lines.append(f"spent     {spent['tokens']} tokens, {spent['cost']:g}")
    return "\n".join([*lines, "", *_history(result.events)])


def _history(events: list[Event]) -> list[str]:
    """Return a line for each event: when, where, what."""
    begin = events[0].timestamp
    width = max(len(event.type) for event in events)
    return [
        f"{event.timestamp - begin:>10.3f} s  {event.type:<{width}}  {name_of(event.path)}".rstrip()
        for event in events
    ]


def _clipped(value: object) -> str:
    text = excerpt(value, 1_000_000)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"
