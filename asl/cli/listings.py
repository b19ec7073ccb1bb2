"""Commands that list executions, events, costs and checkpoints."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from asl.cli import console
from asl.cli.console import Exit
from asl.cli.remote import ENDPOINT, list_remote
from asl.cli.state_paths import state_name
from asl.cli.stores import STORE, command_for, continue_command, find_execution, open_store
from asl.core.errors import AslError
from asl.core.printable import printable
from asl.core.values import Json
from asl.engine.events import Event
from asl.executions import Store
from asl.expr.times import format_timestamp

__all__ = ["checkpoints_command", "costs_command", "logs_command", "ls_command"]

STATUSES = ("RUNNING", "PAUSED", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED")
PAGE = 50
"""Default number of listed executions."""
COLOURS = {
    "SUCCEEDED": "green",
    **dict.fromkeys(("FAILED", "TIMED_OUT", "DAMAGED"), "red"),
    "PAUSED": "yellow",
}


@click.command("ls")
@STORE
@click.option(
    "--status",
    type=click.Choice(STATUSES, case_sensitive=False),
    help="List only executions with this status.",
)
@click.option(
    "-n",
    "--limit",
    metavar="N",
    type=click.IntRange(1),
    default=PAGE,
    show_default=True,
    help="Maximum number of entries.",
)
@click.option("--after", metavar="EXECUTION", help="Continue after this execution of the list.")
@click.option(
    "--stuck", is_flag=True, help="List executions that no worker can run, with the reason."
)
@click.option("--json", "as_json", is_flag=True, help="Print each execution as a line of JSON.")
@ENDPOINT
def ls_command(
    store_file: str | None,
    endpoint: str | None,
    status: str | None,
    limit: int,
    after: str | None,
    stuck: bool,
    as_json: bool,
) -> Exit:
    """List the executions of a store, the newest first, a page at a time."""
    if endpoint is not None:
        return list_remote(endpoint, status and status.upper(), limit, as_json)
    if stuck:
        return _list_stuck(store_file, as_json)
    with open_store(store_file) as store:
        before = None if after is None else store.position(find_execution(store, after).name)
        rows = store.executions(status=status and status.upper(), before=before, limit=limit + 1)
        rows, more = rows[:limit], len(rows) > limit
        left = {
            each.name: continue_command(store, "resume", each.name)
            for each in rows
            if each.status == "RUNNING" and store.is_interrupted(each.name)
        }
    if not rows:
        console.print_message(
            "asl: there are no executions" + (f" with status {status.upper()}" if status else "")
        )
    coloured = console.has_colour(sys.stdout)
    width = max((len(each.name) for each in rows), default=0)
    for each in rows:
        started = format_timestamp(each.started)
        if as_json:
            fields = {"name": each.name, "workflow": each.workflow, "status": each.status}
            console.write_result(console.as_text({**fields, "started": started}))
            continue
        label = f"{each.status:<9}"
        if coloured:
            label = click.style(label, fg=COLOURS.get(each.status))
        why = f"  {each.error}" if each.error else ""
        if each.status == "DAMAGED":
            why = f"  {each.cause}: {command_for('doctor')} shows details"
        if each.name in left:
            why = f"  its process has ended: {left[each.name]} continues it"
        name, what = printable(each.name), printable(each.workflow + why)
        console.write_result(f"{name:<{width}}  {label}  {started}  {what}")
    if more:
        chosen = [] if status is None else ["--status", status.upper()]
        chosen += [] if limit == PAGE else ["-n", str(limit)]
        following = command_for("ls", *chosen, "--after", rows[-1].name)
        console.print_message(f"asl: there are more executions: {following} lists them")
    return Exit.OK


def _list_stuck(store_file: str | None, as_json: bool) -> Exit:
    """List the executions that wait for bindings, which no worker has."""
    with open_store(store_file) as store:
        stuck = store.stuck()
    if not stuck:
        console.print_message("asl: no execution waits for a missing binding")
    for name, needs in stuck.items():
        if as_json:
            console.write_result(console.as_text({"name": name, "needs": needs}))
        else:
            console.write_line(f"{name}  {'; '.join(needs)}")
    return Exit.OK


POLL_INTERVAL = 0.2
"""Seconds between two reads of the store."""
DETAILS_LENGTH = 300
"""Maximum number of printed characters of the details of an event."""


@click.command("logs")
@click.argument("execution", metavar="EXECUTION")
@STORE
@click.option("-f", "--follow", is_flag=True, help="Print new events until the execution ends.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON.")
def logs_command(execution: str, store_file: str | None, follow: bool, as_json: bool) -> Exit:
    """Print the events of an execution.

    With --follow, exits with 1 if the process that runs the execution dies.
    """
    with open_store(store_file) as store:
        name = find_execution(store, execution).name
        wait = (lambda: _poll(store, name)) if follow else None
        try:
            for event in store.events(name, wait=wait):
                console.write_line(
                    console.as_text(event.to_json()) if as_json else _event_line(event)
                )
        except _ProcessEnded:
            go_on = f"{continue_command(store, 'resume', name)} continues it"
            console.print_message(f"asl: the process of {name} has ended: {go_on}", style="yellow")
            return Exit.FAILED
    return Exit.OK


class _ProcessEnded(Exception):
    """The process that ran the execution has ended."""


def _poll(store: "Store", name: str) -> None:
    """Wait for new events; raise if the store or the process of the execution is gone."""
    if isinstance(store.path, Path) and not store.path.exists():
        raise AslError(f"the store {store.path} has been deleted")
    if store.is_interrupted(name):
        raise _ProcessEnded
    time.sleep(POLL_INTERVAL)


def _event_line(event: Event) -> str:
    # The name of the state is in the path already; that of a checkpoint is not.
    details = {
        key: value
        for key, value in event.details.items()
        if key != "name" or value not in event.path
    }
    shown = console.clip(details, DETAILS_LENGTH) if details else ""
    place = f"  {state_name(event.path)}" if event.path else ""
    return f"{format_timestamp(event.timestamp)}  {event.type}{place}  {shown}".rstrip()


COST_TABLES = {"byState": "state", "byCategory": "category", "byModel": "model", "byTag": "tag"}
"""The tables of the report, and the title of their rows."""


@click.command("costs")
@click.argument("execution", metavar="EXECUTION")
@STORE
@click.option("--json", "as_json", is_flag=True, help="Print the report as a JSON object.")
def costs_command(execution: str, store_file: str | None, as_json: bool) -> Exit:
    """Show the cost and tokens of an execution by state, category, model, tag and attribution."""
    with open_store(store_file) as store:
        report = store.result(find_execution(store, execution).name, with_history=False).usage
    if as_json:
        console.write_result(console.as_text(_cost_report(report)))
        return Exit.OK
    for line in _cost_lines(report):
        console.write_line(line)
    return Exit.OK


def _cost_report(usage: dict[str, Json]) -> dict[str, Json]:
    """Return the report in the format of the specification (8.11)."""
    whole = {"cost": usage["cost"], "tokens": usage["tokens"]}
    rest = {name: value for name, value in usage.items() if name != "cost"}
    return {"total": usage["cost"], "byCategory": {"uncategorized": whole}, **rest}


def _cost_lines(report: dict[str, Json]) -> Iterator[str]:
    rows = [("total", "", report["cost"], report["tokens"])]
    assumed = report.get("assumed", {"cost": 0, "tokens": 0})
    if any(assumed.values()):
        rows.append(("assumed", "", assumed["cost"], assumed["tokens"]))
    tables = {kind: report.get(name, {}) for name, kind in COST_TABLES.items()}
    tables |= report.get("byAttribution", {})
    for kind, table in tables.items():
        dearest = sorted(table.items(), key=lambda row: (-row[1]["cost"], -row[1]["tokens"]))
        rows += [(kind, name, each["cost"], each["tokens"]) for name, each in dearest]
    wide, long = (max(len(row[column]) for row in rows) for column in (0, 1))
    currency = report.get("currency", "USD")
    for kind, name, cost, tokens in rows:
        yield f"{kind:<{wide}}  {name:<{long}}  {cost:>10.4f} {currency}  {tokens:>9} tokens"


@click.command("checkpoints")
@click.argument("execution", metavar="[EXECUTION]", required=False)
@STORE
@click.option("--json", "as_json", is_flag=True, help="Print each checkpoint as a line of JSON.")
def checkpoints_command(execution: str | None, store_file: str | None, as_json: bool) -> Exit:
    """List the checkpoints of an execution, or of all, the oldest first.

    'asl resume EXECUTION --from NAME' resumes from a checkpoint.
    """
    with open_store(store_file) as store:
        name = None if execution is None else find_execution(store, execution).name
        checkpoints, now = store.checkpoints(name), store.clock.now()
        if as_json:
            for of in dict.fromkeys(each.execution for each in checkpoints):
                for checkpoint in store.result(of).checkpoints_to_json():
                    console.write_result(console.as_text(checkpoint))
            return Exit.OK
    width = max((len(each.name) for each in checkpoints), default=0)
    for each in checkpoints:
        of = each.execution.rpartition(":")[2]
        until = "no expiry" if each.expires is None else f"until {format_timestamp(each.expires)}"
        if each.expires is not None and each.expires <= now:
            until = f"expired {format_timestamp(each.expires)}"
        where = "at the end" if each.next is None else f"at {each.next}"
        if each.path:
            where = f"not resumable: inside {state_name(each.path)}"
        made = format_timestamp(each.created)
        console.write_line(f"{of}  {each.name:<{width}}  {made}  {until}  {where}")
    if not checkpoints:
        console.print_message("asl: there are no checkpoints")
    return Exit.OK
