"""Options of processes that run for a long time: `asl serve` and `asl worker`."""

from functools import wraps
from typing import Any, Final, NamedTuple

import click

from asl.cli.arguments import Command, with_options

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
)


class ServiceOptions(NamedTuple):
    """The values of the options."""

    grace: float


def service_options(command: Command) -> Command:
    """Add the options to a command, which receives them as `service`."""

    @wraps(command)
    def with_service(*args: Any, **options: Any) -> Any:
        service = ServiceOptions(*[options.pop(field) for field in ServiceOptions._fields])
        return command(*args, service=service, **options)

    return with_options(OPTIONS, with_service)
