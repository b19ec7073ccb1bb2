"""Options of processes that run for a long time: `asl serve` and `asl worker`."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, Final, NamedTuple

import click

from asl.cli import console
from asl.cli.arguments import Command, with_options
from asl.engine.events import Event
from asl.telemetry.log_lines import LogFormat, log, write_logs

__all__ = ["ServiceOptions", "service_options"]

OPTIONS: Final = (
    click.option(
        "--grace",
        metavar="SECONDS",
        type=click.FloatRange(0, 86_400),
        default=25.0,
        show_default=True,
        help="Time that running calls have to end when the process is stopped.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(("json", "text")),
        help="Log requests, outcomes and messages to standard error, a line for each.",
    ),
    click.option(
        "--telemetry",
        type=click.Choice(("console", "otlp")),
        help="Export OpenTelemetry spans to standard error or to a collector.",
    ),
)


class ServiceOptions(NamedTuple):
    """The values of the options.

    Attributes:
        grace: Seconds that running calls have to end when the process is stopped.
        is_logging: Whether there are logs instead of messages.
        listener: Exports telemetry of executions; None without it.
    """

    grace: float
    is_logging: bool
    listener: Callable[[Event], None] | None


@contextmanager
def _observing(
    log_format: LogFormat | None, telemetry: str | None
) -> Iterator[Callable[[Event], None] | None]:
    """Write logs and export telemetry while the block runs; yields the listener of executions."""
    with ExitStack() as stack:
        if log_format is not None:
            write_logs(log_format, sys.stderr)
            stack.enter_context(console.redirect_messages(_log_message))
        if telemetry is None:
            yield None
            return
        from asl.telemetry.exporters import export_telemetry

        yield stack.enter_context(export_telemetry(telemetry))


def _log_message(text: str) -> None:
    log("asl", text.removeprefix("asl: ").strip())


def service_options(command: Command) -> Command:
    """Add the options to a command, which receives them as `service`."""

    @wraps(command)
    def with_service(
        *args: Any,
        grace: float,
        log_format: LogFormat | None,
        telemetry: str | None,
        **options: Any,
    ) -> Any:
        with _observing(log_format, telemetry) as listener:
            service = ServiceOptions(grace, log_format is not None, listener)
            return command(*args, service=service, **options)

    return with_options(OPTIONS, with_service)
