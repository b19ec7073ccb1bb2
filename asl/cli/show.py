"""`asl show`: one execution of a store, and what happened in it."""

from typing import TYPE_CHECKING

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.failure import of_items
from asl.cli.places import Path, definition, name_of
from asl.cli.progress import duration, looked_up, wake
from asl.cli.stores import LISTED, STORE, command_for, continue_command, found, opened, prompt_of
from asl.core.values import Json
from asl.engine import progress
from asl.engine.events import Event
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
            decided = store.decided(stored.name) if stored.status == "PAUSED" else []
            due = stored.status == "PAUSED" and store.top(stored.name) in store.due()
            go_on = continue_command(store, "resume", stored.name)
            nobody = stored.status == "RUNNING" and store.left_behind(stored.name)
            below = store.started_by(stored.name)
            for line in _summary(result, below, decided, due, nobody, go_on):
                streams.line(line)
    return Exit.OK


def _summary(
    result: Result,
    below: "list[Stored]",
    decided: list[dict[str, Json]],
    due: bool,
    nobody: bool,
    go_on: str,
) -> list[str]:
    """Say what is known of an execution; something is *due*, *nobody* is at work on it.

    *go_on* is the command that resumes it.
    """
    started = format_timestamp(result.execution.started)
    lines = [
        f"{result.name}  {result.status}",
        f"workflow  {result.execution.workflow}",
        f"started   {started}",
    ]
    again = result.execution.redriven
    if again is not None:
        times = streams.counted(result.execution.redrives, "time")
        lines.append(f"redriven  {times}, the last time {format_timestamp(again)}")
    if result.status == "SUCCEEDED":
        lines.append(f"output    {streams.clipped(result.output, SHOWN)}")
    elif result.error or result.cause:
        lines.append(f"error     {streams.reason(result.error, result.cause)}")
        lines += [f"          {line}" for line in of_items(result)]
    for each in below:
        lines.append(f"runs      {each.name}  {each.status}  {each.workflow}")
    events = result.events
    if result.status != "SUCCEEDED":
        percentage = progress.status(events)["percentage"]
        if percentage is not None:
            lines.append(f"progress  {percentage:g} %")
        lines += [
            f"stands at {name_of(each.path)}{_since(each, result)}{_how_far(each, events)}"
            for each in _standing(events)
        ]
    waits = [*map(_request, result.pending), *map(_task, result.awaited)]
    lines += [f"waits for {each}" for each in waits[:LISTED]]
    if len(waits) > LISTED:
        lines.append(f"waits for {len(waits) - LISTED} more: {command_for('inbox')} lists all")
    if nobody:
        lines.append(f"nobody    is at work on it any more: {go_on} goes on with it")
    lines += [f"decided   {prompt_of(each)}: {go_on} goes on" for each in decided[:LISTED]]
    if due and not decided:
        lines.append(f"due       something is: {go_on} goes on with it")
    for saved in result.checkpoints[-LISTED:]:
        lines.append(f"saved     {saved.name}  {format_timestamp(saved.created)}")
    spent = result.usage
    if spent["tokens"] or spent["cost"]:
        lines.append(f"spent     {spent['tokens']} tokens, {spent['cost']:g}")
    return [*lines, "", *_history(events)]


def _standing(events: list[Event]) -> list[Event]:
    """Return with which events the states were entered that have not been left."""
    inside: dict[Path, Event] = {}
    for event in events:
        machine = event.path[:-1]
        if event.type.endswith("StateEntered"):
            inside[machine] = event
        elif event.type.endswith("StateExited"):
            inside.pop(machine, None)
            below = len(event.path)
            for each in [each for each in inside if each[:below] == event.path]:
                del inside[each]
        elif event.type.startswith("MapIteration") and not event.type.endswith("Started"):
            inside.pop(event.path, None)
        elif event.type == "ExecutionResumed" and "checkpoint" in event.details:
            inside.clear()
    around = {each[:length] for each in inside for length in range(len(each))}
    found = [event for event in inside.values() if event.path not in around]
    return sorted(found, key=lambda event: event.id)[:LISTED]


def _since(entered: Event, result: Result) -> str:
    """Say for how long it has stood there, and until when it waits."""
    if result.status not in ("RUNNING", "PAUSED"):
        return ""
    since = f"  for {duration(result.ended - entered.timestamp)}"
    if not entered.type.startswith("Wait"):
        return since
    state = definition(result.execution.program.document, entered.path)
    data = looked_up(state.get("InputPath", "$"), entered.details["input"])
    until = wake(state, data, entered.timestamp)
    return since if until is None else f"{since}, until {format_timestamp(until)}"


def _how_far(entered: Event, events: list[Event]) -> str:
    """Say what a state has told of its progress since it was entered."""
    told = progress.status(event for event in events if event.id > entered.id)
    found = told["states"].get("/".join(map(str, entered.path)), {})
    if found.get("percentage") is None:
        return ""
    said = found.get("message")
    return f", at {found['percentage']:g} %{f': {streams.clipped(said, SHOWN)}' if said else ''}"


def _request(request: dict[str, Json]) -> str:
    until = f", until {request['expiresAt']}" if "expiresAt" in request else ""
    return f"{prompt_of(request)} ({' | '.join(request['options'])}){until}"


def _task(task: dict[str, Json]) -> str:
    until = f", until {task['expiresAt']}" if "expiresAt" in task else ""
    return f"the answer to the task token {task['taskToken']} ({task['state']}){until}"


def _history(events: list[Event]) -> list[str]:
    """Return a line for each event: when, what, where; and how long a state has taken.

    They stand in the order of their times. What people decide while nobody is at work is written
    only when the execution goes on, and yet was decided before that.
    """
    begin = events[0].timestamp
    width = max(len(event.type) for event in events)
    entered: dict[Path, float] = {}
    lines = []
    for event in sorted(events, key=lambda event: event.timestamp):
        when = f"{event.timestamp - begin:>10.3f} s"
        took = ""
        if event.type.endswith("StateEntered"):
            entered[event.path] = event.timestamp
        elif event.type.endswith("StateExited") and event.path in entered:
            took = f"  ({event.timestamp - entered.pop(event.path):.3f} s)"
        lines.append(f"{when}  {event.type:<{width}}  {name_of(event.path)}{took}".rstrip())
    return lines
