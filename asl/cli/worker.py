"""`asl worker`: run the due executions of a store until stopped."""

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

import click

from asl.cli import console
from asl.cli.binding_options import BindingOptions, binding_options
from asl.cli.console import Exit
from asl.cli.service_options import ServiceOptions, service_options
from asl.cli.stores import (
    STORE,
    command_for,
    default_store,
    is_on_server,
    open_store,
    prompt_text,
)
from asl.core.environment import require_extra
from asl.engine.result import Result
from asl.executions import Store
from asl.executions.runner import RunnerProtocol
from asl.stores.errors import LeaseLost
from asl.telemetry.log_lines import log_outcome

if TYPE_CHECKING:
    from asl.executions.scheduler import Scheduler

__all__ = ["worker_command"]

Report: TypeAlias = Callable[[str, Result | str], object]
"""Takes the name of an execution and its outcome."""
PROJECT: Final = "default"
"""Name of the project in logs and metrics."""


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
@click.option(
    "--workflows-only",
    "only",
    flag_value="workflows",
    help="Run executions on Temporal, but call no agents.",
)
@click.option(
    "--activities-only",
    "only",
    flag_value="activities",
    help="Call agents of executions on Temporal, but run none.",
)
@click.option(
    "--build",
    metavar="ID",
    help="Version of the worker on Temporal: executions stay on workers of their version.",
)
@click.option("--until-idle", is_flag=True, help="Exit when no execution is due.")
@click.option("-q", "--quiet", is_flag=True, help="Do not print the outcome of executions.")
@click.option(
    "--metrics-port",
    metavar="N",
    type=click.IntRange(0, 65535),
    help="Serve /metrics, /healthz and /readyz on this port; 0 for a free one.",
)
@click.option(
    "--metrics-host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address of this port; requests need no credentials.",
)
@service_options
@binding_options
def worker_command(
    store_file: str | None,
    concurrency: int,
    only: str | None,
    build: str | None,
    until_idle: bool,
    quiet: bool,
    metrics_port: int | None,
    metrics_host: str,
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

    \f
    Raises:
        UsageError: An option is for executions on Temporal alone.
    """
    option = "--build" if build is not None else None if only is None else f"--{only}-only"
    if option is not None and not is_on_server(store_file or default_store()):
        raise click.UsageError(f"{option} needs --store temporal://HOST:PORT/NAMESPACE")
    with open_store(store_file, make=True) as store:
        binding.record(store)
        bindings = {**binding.bindings(None, quiet=quiet), "listener": service.listener}
        report: Report = _print_nothing if quiet else _print_outcome
        if service.is_logging:
            report = partial(log_outcome, PROJECT)
        worker = _Worker(
            store,
            concurrency,
            report,
            bindings,
            only=only,
            build=build,
            quiet=quiet,
            grace=service.grace,
        )
        with worker.monitored(metrics_host, metrics_port):
            asyncio.run(worker.run(until_idle))
    return Exit.OK


class _Worker:
    """Runs what is due in a store, and starts what is due by its schedules.

    Args:
        store: The store.
        concurrency: Maximum number of concurrent executions.
        report: Called with the outcome of each execution.
        bindings: Bindings of the executions.
        only: What it runs on Temporal, as for `asl.Store.runner`.
        build: Its version on Temporal, as for `asl.Store.runner`.
        quiet: Whether to print no message about the start.
        grace: Seconds that running calls have to end when the worker is stopped.
    """

    def __init__(
        self,
        store: "Store",
        concurrency: int,
        report: Report,
        bindings: Mapping[str, Any],
        *,
        only: str | None,
        build: str | None,
        quiet: bool,
        grace: float,
    ) -> None:
        self._store = store
        self._concurrency = concurrency
        self._reports = [report]
        self._bindings = bindings
        self._only = only
        self._build = build
        self._quiet = quiet
        self._grace = grace
        self._scheduler = _scheduler(store)
        self._runners: list[RunnerProtocol] = []

    @contextmanager
    def monitored(self, host: str, port: int | None) -> Iterator[None]:
        """Serve metrics and probes while the block runs, in a thread.

        Raises:
            AslError: The packages of the extra "server" are missing, or the address is in use.
        """
        if port is None:
            yield
            return
        require_extra("starlette", "server", "--metrics-port")
        from asl.server.monitoring import ProcessMetrics, serve_monitoring

        metrics = ProcessMetrics()
        self._reports.append(lambda name, outcome: metrics.count_outcome(PROJECT, outcome))
        stores = {PROJECT: self._store}
        with serve_monitoring(stores, metrics, lambda: self._runners, host, port) as url:
            console.print_message(f"asl: metrics at {url}/metrics")
            yield

    def _report(self, name: str, outcome: "Result | str") -> None:
        for report in self._reports:
            report(name, outcome)

    async def run(self, until_idle: bool) -> None:
        """Run until a signal arrives, or until nothing is due."""
        while True:
            context = self._store.runner(
                concurrency=self._concurrency,
                report=self._report,
                grace=self._grace,
                only=self._only,
                build=self._build,
                **self._bindings,
            )
            try:
                async with context as runner:
                    self._runners[:] = [runner]
                    await self._run(runner, until_idle)
                return
            except LeaseLost as error:
                console.print_message(f"asl: {error}; the worker restarts", style="yellow")
                self._store.reopen()

    def _hints(self) -> Iterator[str]:
        """Yield what makes the version of the worker the current one."""
        if self._build is not None:
            (queue,) = parse_qs(urlsplit(str(self._store.path)).query)["queue"]
            version = f"--deployment-name {queue} --build-id {self._build}"
            yield (
                "new executions begin on the current version: 'temporal worker deployment "
                f"set-current-version {version}' makes it this one"
            )

    async def _run(self, runner: RunnerProtocol, until_idle: bool) -> None:
        if not self._quiet:
            place = self._store.path
            console.print_message(f"asl: worker {runner.id} runs the executions of {place}")
            for hint in self._hints():
                console.print_message(f"    {hint}")
        _stop_on_signals(runner, self._grace)
        if until_idle:
            if self._scheduler is not None:
                self._scheduler.start_due()
            await runner.drain()
            return
        task = None if self._scheduler is None else asyncio.create_task(self._scheduler.run())
        try:
            await runner.wait_until_stopped()
        finally:
            if task is not None:
                task.cancel()


def _scheduler(store: "Store") -> "Scheduler | None":
    """Return the scheduler of a store; None without the packages for it."""
    if find_spec("cronsim") is None:
        return None
    from asl.executions.scheduler import Scheduler

    return Scheduler(store)


def _stop_on_signals(runner: RunnerProtocol, grace: float) -> None:
    """Stop the runner at the first signal; at the second one interrupt what it runs."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, partial(_stop, runner, grace))


def _stop(runner: RunnerProtocol, grace: float) -> None:
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
