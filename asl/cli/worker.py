"""`asl worker`: run the due executions of a store until stopped."""

import asyncio
import signal
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from asl.cli import console
from asl.cli.binding_options import BindingOptions, binding_options
from asl.cli.console import Exit
from asl.cli.service_options import ServiceOptions, service_options
from asl.cli.stores import STORE, command_for, open_store, prompt_text
from asl.engine.result import Result
from asl.executions import Store
from asl.executions.runner import Runner
from asl.stores.errors import LeaseLost

if TYPE_CHECKING:
    from asl.executions.scheduler import Scheduler

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
@service_options
@binding_options
def worker_command(
    store_file: str | None,
    concurrency: int,
    until_idle: bool,
    quiet: bool,
    service: ServiceOptions,
    binding: BindingOptions,
) -> Exit:
    """Run the executions of a store that are due, until stopped.

    An execution is due when it is new or answered, when a timer fires, or when its process has
    died. Several workers may share a store. An execution waits if no worker binds an agent that it
    needs; 'asl ls --stuck' lists it. SIGINT and SIGTERM stop the worker: running calls may end
    within the grace period, and another worker continues the executions.

    \b
        asl run order.asl.json --store runs.db --detach
        asl worker --store runs.db --agents agents.yaml
    """
    with open_store(store_file, make=True) as store:
        asyncio.run(_work(store, concurrency, until_idle, quiet, service, binding))
    return Exit.OK


async def _work(
    store: "Store",
    concurrency: int,
    until_idle: bool,
    quiet: bool,
    service: ServiceOptions,
    binding: BindingOptions,
) -> None:
    binding.record(store)
    scheduler = _scheduler(store)
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
                _stop_on_signals(runner, service.grace)
                if until_idle:
                    await _run_until_idle(runner, scheduler)
                else:
                    await _run_until_stopped(runner, scheduler)
            return
        except LeaseLost as error:
            console.print_message(f"asl: {error}; the worker restarts", style="yellow")
            store.reopen()


def _scheduler(store: "Store") -> "Scheduler | None":
    """Return the scheduler of a store; None without the packages for it."""
    if find_spec("cronsim") is None:
        return None
    from asl.executions.scheduler import Scheduler

    return Scheduler(store)


async def _run_until_idle(runner: "Runner", scheduler: "Scheduler | None") -> None:
    if scheduler is not None:
        scheduler.start_due()
    await runner.drain()


async def _run_until_stopped(runner: "Runner", scheduler: "Scheduler | None") -> None:
    task = None if scheduler is None else asyncio.create_task(scheduler.run())
    try:
        await runner.wait_until_stopped()
    finally:
        if task is not None:
            task.cancel()


def _stop_on_signals(runner: "Runner", grace: float) -> None:
    """Stop the runner at the first signal; at the second one interrupt what it runs."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, partial(_stop, runner, grace))


def _stop(runner: "Runner", grace: float) -> None:
    if runner.busy and grace and not runner.is_stopping:
        count = console.count_noun(runner.busy, "execution")
        console.print_message(
            f"asl: stopping; {count} may run for {grace:g} s, another signal interrupts"
        )
    runner.stop(0.0 if runner.is_stopping else grace)


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
