"""Commands that continue, fork and stop executions: resume, redrive, fork and stop."""

from typing import TYPE_CHECKING

import click

from asl.cli import console
from asl.cli.arguments import DEFAULT_ORIGIN, read_document, read_input
from asl.cli.binding_options import BindingOptions, binding_options
from asl.cli.console import Exit
from asl.cli.stores import (
    STORE,
    add_recorded_command,
    command_for,
    default_store,
    find_execution,
    is_on_server,
    open_store,
    print_outcome,
)
from asl.core.errors import AslError
from asl.executions import ExecutionBusy

if TYPE_CHECKING:
    from asl.executions.store import Store

__all__ = ["fork_command", "redrive_command", "resume_command", "stop_command"]


@click.command("resume")
@click.argument("execution", metavar="EXECUTION", required=False)
@STORE
@click.option("--due", is_flag=True, help="Resume all executions that are due.")
@click.option(
    "--from", "checkpoint", metavar="NAME", help="Resume from the checkpoint with this name or id."
)
@click.option(
    "--document", metavar="FILE", help="Resume from the checkpoint with another document (--force)."
)
@click.option("--force", is_flag=True, help="Accept a checkpoint of another document.")
@binding_options
def resume_command(
    execution: str | None,
    store_file: str | None,
    due: bool,
    checkpoint: str | None,
    document: str | None,
    force: bool,
    binding: BindingOptions,
) -> Exit:
    """Resume a paused or interrupted execution and print its output.

    With --from, an execution resumes from a checkpoint, even if it has failed. With --due, all
    executions resume that were answered, that have reached an escalation or timeout, or whose
    process has died.

    \b
        asl resume order-17 --agents agents.yaml
        asl resume order-17 --from charged
        asl resume --due

    \f
    Raises:
        UsageError: The options contradict each other.
    """
    if due is (execution is not None):
        raise click.UsageError("give either EXECUTION or --due")
    if due and (checkpoint is not None or document is not None or force):
        raise click.UsageError("--due cannot be combined with --from, --document or --force")
    if execution is None:
        return _resume_due(store_file, binding)
    other = None if document is None else read_document(document, DEFAULT_ORIGIN)
    with open_store(store_file) as store:
        name = store.root(find_execution(store, execution).name)
        binding.record(store)
        with console.stdout_to_stderr(), add_recorded_command(store, "resume", name):
            result = store.resume(
                name,
                from_checkpoint=checkpoint,
                document=other,
                force=force,
                **binding.bindings(store.program(name)),
            )
        return print_outcome(store, result)


def _resume_due(store_file: str | None, binding: BindingOptions) -> Exit:
    """Resume all executions that are due or interrupted; print their statuses."""
    code = Exit.OK
    with open_store(store_file) as store:
        binding.record(store)
        for name in [*store.due(), *store.interrupted()]:
            try:
                with console.stdout_to_stderr(), add_recorded_command(store, "resume", name):
                    result = store.resume(name, **binding.bindings(store.program(name)))
            except ExecutionBusy as busy:
                console.print_message(f"asl: {busy}", style="yellow")
            except AslError as error:  # the others are resumed nevertheless
                console.print_message(f"asl: {name}: {error}", style="red")
                code = Exit.USAGE
            else:
                console.write_line(f"{name}  {result.status}")
    return code


@click.command("redrive")
@click.argument("execution", metavar="EXECUTION")
@STORE
@click.option("--document", metavar="FILE", help="Continue with a corrected document.")
@binding_options
def redrive_command(
    execution: str, store_file: str | None, document: str | None, binding: BindingOptions
) -> Exit:
    """Resume an execution that failed, timed out or was stopped; print its output.

    It continues from the states that failed; states that succeeded do not run again.

    \b
        asl redrive order-17 --agents agents.yaml
        asl redrive order-17 --document corrected.asl.json
    """
    corrected = None if document is None else read_document(document, DEFAULT_ORIGIN)
    with open_store(store_file) as store:
        name = store.root(find_execution(store, execution).name)
        binding.record(store)
        with console.stdout_to_stderr(), add_recorded_command(store, "redrive", name):
            bindings = binding.bindings(store.program(name))
            result = store.redrive(name, document=corrected, **bindings)
        return print_outcome(store, result)


@click.command("fork")
@click.argument("execution", metavar="EXECUTION")
@STORE
@click.option(
    "--at",
    "place",
    metavar="STATE[#VISIT]",
    required=True,
    help="State to start at; by default its latest visit.",
)
@click.option(
    "-i",
    "--input",
    "input_",
    metavar="JSON",
    help="Input of the state; by default its recorded input.",
)
@click.option("--name", metavar="NAME", help="Name of the new execution; random if absent.")
@click.option(
    "--document", metavar="FILE", help="Document of the new execution; by default the same."
)
def fork_command(
    execution: str,
    store_file: str | None,
    place: str,
    input_: str | None,
    name: str | None,
    document: str | None,
) -> Exit:
    """Create an execution that starts at a state of another one; print its name.

    The other execution is not changed. A worker or 'asl resume' runs the new one.

    \b
        asl fork order-17 --at Charge
        asl fork order-17 --at 'Ask#2' --input '{"amount": 5}'
    """
    given = {} if input_ is None else {"input": read_input(input_)}
    other = None if document is None else read_document(document, DEFAULT_ORIGIN)
    with open_store(store_file) as store:
        source = find_execution(store, execution).name
        handle = store.fork(source, place, new_name=name, document=other, **given)
        console.write_line(handle.name)
        if not store.workers():
            resume = command_for("resume", handle.name)
            console.print_message(
                f"asl: no worker runs: {resume} runs the execution", style="yellow"
            )
    return Exit.OK


STOP_TIMEOUT = 2.0
"""Seconds to wait for the end of the execution."""


def _end_of_stopped(store: "Store", store_file: str | None) -> str:
    """Return when a stopped execution ends that has not ended yet."""
    if is_on_server(store_file or default_store()) and not store.workers():
        return f"when a worker runs: {command_for('worker')}"
    return "after its current call"


@click.command("stop")
@click.argument("execution", metavar="EXECUTION")
@STORE
@click.option("--error", metavar="NAME", help="Error name of the execution.")
@click.option("--cause", metavar="TEXT", help="Cause of the error.")
def stop_command(
    execution: str, store_file: str | None, error: str | None, cause: str | None
) -> Exit:
    """Stop an execution; its status becomes ABORTED.

    A worker stops it within a second, any other process after the current call.
    """
    with open_store(store_file) as store:
        handle = store.handle(find_execution(store, execution).name)
        handle.cancel(cause, error=error)
        try:
            handle.result(STOP_TIMEOUT)
        except TimeoutError:
            text = f"asl: {handle.name} ends {_end_of_stopped(store, store_file)}"
        else:
            text = f"asl: {handle.name} is {handle.status()}"
    console.print_message(text, style="yellow")
    return Exit.OK
