"""`asl worker`: run the due executions of a store until stopped."""

import asyncio
import signal

import click

from asl.cli import console
from asl.cli.binding_options import BindingOptions, binding_options
from asl.cli.console import Exit
from asl.cli.stores import STORE, command_for, open_store, prompt_text
from asl.engine.result import Result
from asl.executions import Store
from asl.executions.runner import Runner
from asl.stores.errors import LeaseLost

__all__ = ["worker_command"]


@click.command("worker")
@STORE
@click.option(
    "--concurrency",
    metavar="N",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Maximum number of concurrent executions.",
)
@click.option("--until-idle", is_flag=True, help="Exit when no execution is due.")
@click.option("-q", "--quiet", is_flag=True, help="Do not print the outcome of executions.")
@binding_options
def worker_command(
    store_file: str | None, concurrency: int, until_idle: bool, quiet: bool, binding: BindingOptions
) -> Exit:
    """Run the executions of a store that are due, until stopped.

    An execution is due when it is new or answered, when a timer fires, or when its process has
    died. Several workers may share a store. An execution waits if no worker binds an agent that it
    needs; 'asl ls --stuck' lists it. SIGINT and SIGTERM stop the worker; another one continues its
    executions.

    \b
        asl run order.asl.json --store runs.db --detach
        asl worker --store runs.db --agents agents.yaml
    """
    with open_store(store_file, make=True) as store:
        asyncio.run(_work(store, concurrency, until_idle, quiet, binding))
    return Exit.OK


async def _work(
    store: "Store", concurrency: int, until_idle: bool, quiet: bool, binding: BindingOptions
) -> None:
    binding.record(store)
    report = _print_nothing if quiet else _print_outcome
    while True:
        context = store.runner(
            concurrency=concurrency, report=report, **binding.bindings(None, quiet=quiet)
        )
        try:
            async with context as runner:
                if not quiet:
                    console.print_message(
                        f"asl: worker {runner.id} runs the executions of {store.path}"
                    )
                _stop_on_signals(runner)
                await (runner.drain() if until_idle else runner.wait_until_stopped())
            return
        except LeaseLost as error:
            console.print_message(f"asl: {error}; the worker restarts", style="yellow")
            store.reopen()


def _stop_on_signals(runner: "Runner") -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, runner.stop)


def _print_outcome(name: str, outcome: "Result | str") -> None:
    """Print the outcome of an execution, or why it cannot run."""
    if isinstance(outcome, str):
        console.print_message(f"asl: {name} cannot run here: {outcome}", style="yellow")
    elif outcome.needs:
        needs = "; ".join(outcome.needs)
        hint = command_for("ls", "--stuck")
        console.print_message(
            f"asl: {name} waits for a worker: {needs} ({hint} lists all)", style="yellow"
        )
    elif outcome.status != "PAUSED":
        why = console.error_text(outcome.error, outcome.cause) if outcome.error else ""
        console.write_line(f"{name}  {outcome.status} {why}".rstrip())
    elif outcome.pending:
        asked = "; ".join(map(prompt_text, outcome.pending))
        console.write_line(f"{name}  waits for: {asked}")


def _print_nothing(name: str, outcome: "Result | str") -> None:
    """Print nothing."""
