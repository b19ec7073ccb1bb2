"""The store that commands look at, and how an execution in it is found."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

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
    "command_for",
    "continue_command",
    "default_store",
    "digest_of",
    "find_execution",
    "hint_missing_bindings",
    "open_store",
    "print_outcome",
    "prompt_of",
    "say_paused",
    "say_redrivable",
]

DIGITS = 12
"""Digits of the digest of a request that are shown, and suffice for `asl approve --digest`."""
LISTED = 10
"""How many requests are listed where others come after them."""
VARIABLE = "ASL_STORE"
STORE = click.option(
    "--store",
    "store_file",
    metavar="FILE",
    envvar=VARIABLE,
    help="Store of executions; by default $ASL_STORE, or runs.db in the state folder of the user.",
)


def default_store() -> Path:
    """Return the store that is used where none is named: that of the variable, or of the user."""
    from asl.stores.checkpoint_folder import state_folder

    return Path(os.environ.get(VARIABLE) or os.path.join(state_folder(), "runs.db"))


def open_store(file: str | None, *, make: bool = False, synchronous: str = "FULL") -> "Store":
    """Open a store; one that is not there is made only if *make* says so."""
    from asl.executions import Store

    path = Path(file) if file else default_store()
    if os.path.isdir(path):
        raise AslError(f"{path} is a folder: a store is a file")
    if not os.path.exists(path):
        if not make:
            other = "" if file else f", and --store FILE or ${VARIABLE} names another"
            raise AslError(f"there is no store {path}: 'asl run DOC --store FILE' makes one{other}")
        console.make_folder(str(path.parent), private=True)
    elif not (make or path.stat().st_size):
        raise AslError(f"{path} is empty: if it was a store, all that it held is gone")
    store = Store(path, synchronous=synchronous)
    if store.session.refusal is not None:
        console.say(f"asl: {path} is opened read-only: {store.session.refusal}", style="yellow")
    return store


def find_execution(store: "Store", name: str) -> "StoredExecution":
    """Return an execution by its name or its id."""
    from asl.executions import ExecutionNotFound

    try:
        return store.get(name)
    except ExecutionNotFound as error:
        hint = did_you_mean(name, [each.name for each in store.executions(limit=1000)])
        raise AslError(
            f"{error} ({hint})" if hint else f"{error} ({command_for('ls')} lists them)"
        ) from None


def print_outcome(store: "Store", result: "Result") -> Exit:
    """Print what an execution of a store came to; returns the exit code."""
    if result.ok:
        console.write_result(console.as_text(result.output))
    elif result.status == "PAUSED":
        say_paused(result, store)
    else:
        why = console.reason(result.error, result.cause)
        console.say(f"asl: {result.name} {result.status} {why}".rstrip(), style="red")
        for line in describe_item_failures(result.failed_items):
            console.say(f"  {line}", style="red")
        if result.error == "States.AgentNotFound":
            console.say("  hint: bind it with --agent NAME=module:function or --agents FILE")
        say_redrivable(result, store)
    return exit_of_status(result.status)


@contextmanager
def hint_missing_bindings(store: "Store", command: str, name: str) -> Iterator[None]:
    """Add the command with the recorded options to the refusal of an execution."""
    from asl.executions import BindingsMissing

    try:
        yield
    except BindingsMissing as refusal:
        if store.command(name) is None:
            raise
        hint = continue_command(store, command, name)
        raise AslError(f"{refusal} (it was run with the options of {hint})") from refusal


def say_redrivable(result: "Result", store: "Store") -> None:
    """Say how an execution that has not succeeded goes on."""
    console.say(f"  hint: {continue_command(store, 'redrive', result.name)} continues from there")


def say_paused(result: "Result", store: "Store | None") -> None:
    """Say what an execution waits for, and how to answer; without a *store* nobody can."""
    for request in result.pending[:LISTED]:
        console.say(f"asl: asks: {prompt_of(request)} ({' | '.join(request['options'])})")
    for failure in _undelivered(result):
        console.say(f"asl: a notification could not be sent: {failure}", style="yellow")
    for task in result.pending_callbacks[:LISTED]:
        console.say(f"asl: {task['state']} waits: {command_for('answer', task['taskToken'])}")
    if more := _unlisted(result):
        all_of_them = "" if store is None else f": {command_for('inbox')} lists all"
        console.say(f"asl: and {more} more{all_of_them}")
    if store is None:
        console.say("asl: paused, and not kept: run it with --store FILE to answer", style="yellow")
        return
    go_on = f"{continue_command(store, 'resume', result.name)} continues it"
    if result.pending:
        go_on = f"{command_for('approve', result.name)} decides, {go_on}"
    console.say(f"asl: {result.name} is paused: {go_on}", style="yellow")


def _unlisted(result: "Result") -> int:
    """Return how many requests are not listed: they are too many."""
    return sum(max(0, len(each) - LISTED) for each in (result.pending, result.pending_callbacks))


def _undelivered(result: "Result") -> list[str]:
    """Return why people have not heard of what they are asked, each reason once."""
    asked = {request["requestId"] for request in result.pending}
    failures = [
        event.details["cause"]
        for event in (result.events if asked else ())
        if event.type == "NotificationFailed" and event.details["requestId"] in asked
    ]
    return list(dict.fromkeys(failures))


def prompt_of(request: dict[str, Json]) -> str:
    """Return what is asked, in one line: a structured prompt may have no text of its own."""
    return printable(request["promptText"] or excerpt(request["prompt"], 400))


def digest_of(request: dict[str, Json]) -> str:
    """Return the digits of the digest of a request that people see."""
    return request_digest(request)[:DIGITS]


def command_for(command: str, *names: str, folder: str | None = None) -> str:
    """Return a command to be told to the user, for the store that the present one was given.

    Args:
        command: The name of the command.
        names: Its other words.
        folder: The folder in which it has to be called, None for any.
    """
    from shlex import quote

    context = click.get_current_context()
    words = ["asl", command, *names]
    given = context.get_parameter_source("store_file") is ParameterSource.COMMANDLINE
    elsewhere = folder is not None and folder != os.getcwd()
    if given and (file := context.params["store_file"]):
        words += ["--store", os.path.abspath(file) if elsewhere else file]
    text = " ".join(map(quote, words))
    return f"'cd {quote(folder)} && {text}'" if elsewhere and folder else f"'{text}'"


def continue_command(store: "Store", command: str, name: str) -> str:
    """Return the command that resumes or redrives an execution, with the options that it needs."""
    recorded = store.command(name)
    if recorded is None:
        return command_for(command, name)
    options, folder = recorded
    return command_for(command, name, *options, folder=folder)
