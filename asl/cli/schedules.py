"""Commands about schedules: executions that start at planned times."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import click

from asl.cli import console
from asl.cli.arguments import read_input
from asl.cli.console import Exit
from asl.cli.stores import STORE, command_for, open_store
from asl.core.environment import require_extra
from asl.core.printable import printable
from asl.core.values import Json
from asl.documents.loading import load
from asl.expr.times import format_timestamp
from asl.states.effects import ABSENT

if TYPE_CHECKING:
    from asl.executions.schedules import CatchUp, Overlap
    from asl.server.projects import Access

__all__ = [
    "schedules_add_command",
    "schedules_ls_command",
    "schedules_next_command",
    "schedules_pause_command",
    "schedules_resume_command",
    "schedules_rm_command",
]

NAME = click.argument("name", metavar="NAME")


@contextmanager
def opened_service(store_file: str | None, what: str, *, make: bool = False) -> "Iterator[Access]":
    """Open a store for actions of the service.

    Args:
        store_file: The file; None for the default store.
        what: The feature, for the message about a missing package.
        make: Whether to create a missing store.

    Raises:
        AslError: The packages of the extra "server" are missing.
    """
    for package in ("cronsim", "starlette"):
        require_extra(package, "server", what)
    from asl.server.local import local_access

    with open_store(store_file, make=make) as store:
        yield local_access(store)


def published_name(access: "Access", document: str) -> str:
    """Return the name of a published document; publish it if it is a file."""
    from asl.server.local import publish

    return publish(access, load(document)) if os.path.isfile(document) else document


@click.command("schedules add")
@NAME
@click.argument("expression", metavar="EXPRESSION")
@click.argument("document", metavar="DOC")
@STORE
@click.option("--timezone", metavar="ZONE", default="UTC", help="Time zone, as Europe/Berlin.")
@click.option(
    "--input",
    "data",
    metavar="JSON",
    help="Input of the executions as JSON, @FILE, or - for standard input; by default the time.",
)
@click.option(
    "--catch-up",
    type=click.Choice(["skip", "last", "all"]),
    default="last",
    help="Which times that passed while no process ran are made up for; by default the last.",
)
@click.option(
    "--catch-up-limit",
    metavar="N",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="Maximum number of times that are made up for.",
)
@click.option(
    "--overlap",
    type=click.Choice(["skip", "queue", "allow", "cancel"]),
    default="skip",
    help="While an earlier execution runs: skip the time, queue one, start anyway, cancel it.",
)
@click.option("--start", metavar="TIME", type=click.DateTime(), help="The earliest time.")
@click.option("--end", metavar="TIME", type=click.DateTime(), help="The latest time.")
@click.option("--paused", is_flag=True, help="Start nothing until 'asl schedules resume'.")
def schedules_add_command(
    name: str,
    expression: str,
    document: str,
    store_file: str | None,
    timezone: str,
    data: str | None,
    catch_up: "CatchUp",
    catch_up_limit: int,
    overlap: "Overlap",
    start: datetime | None,
    end: datetime | None,
    paused: bool,
) -> Exit:
    """Create a schedule, or replace the one of this name.

    EXPRESSION is 'rate(5 minutes)', 'cron(0 12 * * ? *)', 'at(2027-01-31T12:00:00)' or five fields
    of cron. DOC is a file, which is published, or a published document. 'asl serve' and
    'asl worker' start the executions.

    \b
        asl schedules add nightly '30 2 * * *' report.asl.json --timezone Europe/Berlin
    """
    with opened_service(store_file, "'asl schedules'", make=True) as access:
        from asl.executions.recurrence import read_zone
        from asl.server import schedules

        zone = read_zone(timezone)
        bounds = [
            None if each is None else each.replace(tzinfo=zone).timestamp() for each in (start, end)
        ]
        given: Json = ABSENT if data is None else read_input(data)
        schedules.put(
            access,
            name,
            published_name(access, document),
            expression,
            timezone=timezone,
            data=given,
            catch_up=catch_up,
            limit=catch_up_limit,
            overlap=overlap,
            start=bounds[0],
            end=bounds[1],
            paused=paused,
        )
        _print_next(access, name)
    return Exit.OK


def _print_next(access: "Access", name: str) -> None:
    from asl.server import schedules

    schedule = schedules.find(access, name)
    following = schedules.upcoming(access, schedule)
    when = format_timestamp(following[0]) if following else "never"
    state = "is paused" if schedule.paused else f"starts next at {when}"
    console.print_message(f"asl: {name} {state}")


@click.command("schedules ls")
@STORE
@click.option("--json", "as_json", is_flag=True, help="Print each schedule as a line of JSON.")
def schedules_ls_command(store_file: str | None, as_json: bool) -> Exit:
    """List the schedules of a store with their next times."""
    with opened_service(store_file, "'asl schedules'") as access:
        from asl.server import schedules

        found = schedules.schedules_of(access)
        for each in found:
            document = schedules.document_name(each)
            times = schedules.upcoming(access, each)
            following = format_timestamp(times[0]) if times else None
            when = "paused" if each.paused else following or "over"
            if as_json:
                fields: dict[str, Json] = {"name": each.name, "document": document}
                fields |= {"expression": each.expression, "timezone": each.timezone}
                fields |= {"paused": each.paused, "next": following}
                fields |= {"latest": each.latest, "skipped": each.skipped, "error": each.error}
                console.write_result(console.as_text(fields))
                continue
            why = f"  failed: {each.error}" if each.error else ""
            zone = "" if each.timezone == "UTC" else f" {each.timezone}"
            console.write_line(
                printable(f"{each.name}  {when}  {document}  {each.expression}{zone}{why}")
            )
        if not found:
            console.print_message("asl: there are no schedules")
    return Exit.OK


@click.command("schedules next")
@NAME
@STORE
@click.option(
    "-n",
    "--limit",
    metavar="N",
    type=click.IntRange(1, 100),
    default=5,
    show_default=True,
    help="Maximum number of times.",
)
def schedules_next_command(name: str, store_file: str | None, limit: int) -> Exit:
    """Print the next times of a schedule in UTC."""
    with opened_service(store_file, "'asl schedules'") as access:
        from asl.server import schedules

        for time in schedules.upcoming(access, schedules.find(access, name), limit):
            console.write_line(format_timestamp(time))
    return Exit.OK


@click.command("schedules pause")
@NAME
@STORE
def schedules_pause_command(name: str, store_file: str | None) -> Exit:
    """Pause a schedule: nothing is started until it is resumed."""
    return _pause(name, store_file, True)


@click.command("schedules resume")
@NAME
@STORE
def schedules_resume_command(name: str, store_file: str | None) -> Exit:
    """Resume a schedule; the times that passed meanwhile are not made up for."""
    return _pause(name, store_file, False)


def _pause(name: str, store_file: str | None, paused: bool) -> Exit:
    with opened_service(store_file, "'asl schedules'") as access:
        from asl.server import schedules

        schedules.pause(access, name, paused)
        _print_next(access, name)
    return Exit.OK


@click.command("schedules rm")
@NAME
@STORE
def schedules_rm_command(name: str, store_file: str | None) -> Exit:
    """Delete a schedule; its executions stay."""
    with opened_service(store_file, "'asl schedules'") as access:
        from asl.server import schedules

        schedules.delete(access, name)
    console.print_message(f"asl: {name} is deleted; {command_for('ls')} lists its executions")
    return Exit.OK
