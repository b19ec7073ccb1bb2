"""The store of a command: how to open it, find executions and print their outcome."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from asl.bindings import Bindings
from asl.cli import console
from asl.cli.console import Exit, exit_of_status
from asl.cli.failures import describe_item_failures
from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.core.printable import printable
from asl.core.values import Json, excerpt
from asl.engine.result import Result
from asl.states.approval_request import request_digest

if TYPE_CHECKING:
    from asl.executions import Store
    from asl.stores.executions import StoredExecution

__all__ = [
    "DIGITS",
    "LISTED",
    "STORE",
    "add_recorded_command",
    "command_for",
    "continue_command",
    "continued_by",
    "default_store",
    "find_execution",
    "is_on_server",
    "open_store",
    "print_outcome",
    "print_paused",
    "print_redrive_hint",
    "prompt_text",
    "short_digest",
]

DIGITS = 12
"""Number of printed digits of a request's digest; enough for `asl approve --digest`."""
LISTED = 10
"""Maximum number of listed requests."""
VARIABLE = "ASL_STORE"
STORE = click.option(
    "--store",
    "store_file",
    metavar="FILE",
    envvar=VARIABLE,
    help="Store of executions, a file or temporal://HOST:PORT/NAMESPACE; by default $ASL_STORE, or "
    "runs.db in the state folder of the user.",
)


def default_store() -> str:
    """Return the default store: that of the variable ASL_STORE, or of the user."""
    from asl.stores.checkpoint_folder import state_folder

    return os.environ.get(VARIABLE) or os.path.join(state_folder(), "runs.db")


def is_on_server(place: str) -> bool:
    """Return whether a store is at the address of a server, not in a file."""
    return "://" in place


def open_store(
    file: str | None,
    *,
    make: bool = False,
    synchronous: str = "FULL",
    bindings: Bindings | None = None,
) -> "Store":
    """Open a store.

    Args:
        file: The file, or the address of a server; None for the default store.
        make: Whether to create a missing store.
        synchronous: Durability of the store, as `--synchronous` of `asl run`.
        bindings: Bindings of executions on a server that other processes perform; None for none.

    Raises:
        AslError: The store does not exist, or cannot be opened.
    """
    from asl.executions import store

    place = file or default_store()
    if is_on_server(place):
        return store.open_store(place, **(bindings or {}))
    path = Path(place)
    if os.path.isdir(path):
        raise AslError(f"{path} is a folder: a store must be a file")
    if not os.path.exists(path):
        if not make:
            other = "" if file else f"; --store FILE or ${VARIABLE} selects another"
            raise AslError(
                f"there is no store {path}: 'asl run DOC --store FILE' creates one{other}"
            )
        console.make_folder(str(path.parent), private=True)
    elif path.is_file() and not (make or path.stat().st_size):
        raise AslError(f"{path} is empty: if it was a store, its content is lost")
    opened = store.Store(path, synchronous=synchronous)
    if opened.session.refusal is not None:
        console.print_message(
            f"asl: {path} is opened read-only: {opened.session.refusal}", style="yellow"
        )
    return opened


def find_execution(store: "Store", name: str) -> "StoredExecution":
    """Return an execution by its name or id.

    Raises:
        AslError: The store has no such execution.
    """
    from asl.executions import ExecutionNotFound

    try:
        return store.get(name)
    except ExecutionNotFound as error:
        hint = did_you_mean(name, [each.name for each in store.executions(limit=1000)])
        raise AslError(
            f"{error} ({hint})" if hint else f"{error} ({command_for('ls')} lists them)"
        ) from None


def print_outcome(store: "Store", result: "Result") -> Exit:
    """Print the output or the error of an execution; return the exit code."""
    if result.ok:
        console.write_result(console.as_text(result.output))
    elif result.status == "PAUSED":
        print_paused(result, store)
    else:
        why = console.error_text(result.error, result.cause)
        console.print_message(f"asl: {result.name} {result.status} {why}".rstrip(), style="red")
        for line in describe_item_failures(result.failed_items):
            console.print_message(f"  {line}", style="red")
        if result.error == "States.AgentNotFound":
            console.print_message(
                "  hint: bind it with --agent NAME=module:function or --agents FILE"
            )
        print_redrive_hint(result, store)
    return exit_of_status(result.status)


@contextmanager
def add_recorded_command(store: "Store", command: str, name: str) -> Iterator[None]:
    """Add the recorded command to the error about missing bindings.

    Raises:
        AslError: Bindings are missing.
    """
    from asl.executions import BindingsMissing

    try:
        yield
    except BindingsMissing as refusal:
        if store.command(name) is None:
            raise
        hint = continue_command(store, command, name)
        raise AslError(f"{refusal} (recorded options: {hint})") from refusal


def print_redrive_hint(result: "Result", store: "Store") -> None:
    """Print how to continue an execution that has not succeeded."""
    console.print_message(
        f"  hint: {continue_command(store, 'redrive', result.name)} continues from the failed state"
    )


def print_paused(result: "Result", store: "Store | None") -> None:
    """Print the open requests of an execution and how to answer them.

    Args:
        result: The result of the paused execution.
        store: Its store; None for an execution that is not saved and cannot be answered.
    """
    for request in result.pending[:LISTED]:
        console.print_message(
            f"asl: asks: {prompt_text(request)} ({' | '.join(request['options'])})"
        )
    for failure in _delivery_failures(result):
        console.print_message(f"asl: a notification could not be sent: {failure}", style="yellow")
    for task in result.pending_callbacks[:LISTED]:
        console.print_message(
            f"asl: {task['state']} waits for an answer: "
            f"{command_for('answer', task['taskToken'], '--output', 'JSON')}"
        )
    if more := _count_unlisted(result):
        all_of_them = "" if store is None else f": {command_for('inbox')} lists all"
        console.print_message(f"asl: and {more} more{all_of_them}")
    if store is None:
        console.print_message(
            "asl: paused but not saved: run it with --store FILE to answer", style="yellow"
        )
        return
    go_on = f"{continue_command(store, 'resume', result.name)} continues it"
    if result.pending:
        go_on = f"{command_for('approve', result.name)} decides, {go_on}"
    console.print_message(f"asl: {result.name} is paused: {go_on}", style="yellow")


def _count_unlisted(result: "Result") -> int:
    """Return the number of requests beyond the listed ones."""
    return sum(max(0, len(each) - LISTED) for each in (result.pending, result.pending_callbacks))


def _delivery_failures(result: "Result") -> list[str]:
    """Return the distinct causes of failed notifications about open requests."""
    asked = {request["requestId"] for request in result.pending}
    failures = [
        event.details["cause"]
        for event in (result.events if asked else ())
        if event.type == "NotificationFailed" and event.details["requestId"] in asked
    ]
    return list(dict.fromkeys(failures))


def prompt_text(request: dict[str, Json]) -> str:
    """Return the prompt of a request on one line; a structured prompt as JSON."""
    return printable(request["promptText"] or excerpt(request["prompt"], 400))


def short_digest(request: dict[str, Json]) -> str:
    """Return the printed digits of a request's digest."""
    return request_digest(request)[:DIGITS]


def command_for(command: str, *names: str, folder: str | None = None) -> str:
    """Return a command for messages, with the `--store` option of the current command.

    Args:
        command: Name of the command.
        names: Its other words.
        folder: Folder to run it in; None for any.
    """
    from shlex import quote

    context = click.get_current_context()
    words = ["asl", command, *names]
    given = context.get_parameter_source("store_file") is ParameterSource.COMMANDLINE
    elsewhere = folder is not None and folder != os.getcwd()
    if given and (file := context.params["store_file"]):
        moved = elsewhere and not is_on_server(file)
        words += ["--store", os.path.abspath(file) if moved else file]
    text = " ".join(map(quote, words))
    return f"'cd {quote(folder)} && {text}'" if elsewhere and folder else f"'{text}'"


def continued_by(store: "Store", name: str) -> str:
    """Return what continues an answered execution: a worker, or a command."""
    return "a worker" if store.workers() else continue_command(store, "resume", name)


def continue_command(store: "Store", command: str, name: str) -> str:
    """Return the command that resumes or redrives an execution, with its recorded options."""
    recorded = store.command(name)
    if recorded is None:
        return command_for(command, name)
    options, folder = recorded
    return command_for(command, name, *options, folder=folder)
