"""The options that run the Lambda functions of templates on this machine."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

import click

from asl.cli.arguments import Origin, split_pair
from asl.cli.console import print_message

__all__ = ["FUNCTIONS", "RUNTIME", "bind_functions"]

FUNCTIONS: Final = click.option(
    "--functions",
    "templates",
    metavar="[TEMPLATE]",
    is_flag=False,
    flag_value="",
    multiple=True,
    help="Run the code of the Lambda functions of a template, by default of DOC.",
)
RUNTIME: Final = click.option(
    "--runtime",
    "runtime_pairs",
    metavar="NAME=COMMAND",
    multiple=True,
    help="Run functions of a runtime by a command: the interpreter of Python and Node.",
)
_OPEN: Final = "asl.cli.function_options"
"""The key of the bound functions of a command."""


def bind_functions(
    templates: Iterable[str],
    runtime_pairs: Iterable[str],
    bound: Iterable[str],
    origin: Origin,
    variables: Mapping[str, str],
    *,
    watch: bool,
    quiet: bool,
) -> Mapping[str, Any]:
    """Return the functions of templates by ARN; their processes end with the command.

    Args:
        templates: Files of templates.
        runtime_pairs: Pairs of `--runtime`.
        bound: Resources that are bound already.
        origin: Values of parameters, and the folder that contains all code.
        variables: Environment variables of all functions.
        watch: Whether to replace processes when code changes.
        quiet: Whether not to print what is bound.

    Raises:
        UsageError: No template is named.
        AslError: A template cannot be read or has no functions.
    """
    context = click.get_current_context()
    if _OPEN not in context.meta:
        context.meta[_OPEN] = _start(
            templates, runtime_pairs, bound, origin, variables, watch, quiet
        )
    resources: Mapping[str, Any] = context.meta[_OPEN].resources
    return resources


def _start(
    templates: Iterable[str],
    runtime_pairs: Iterable[str],
    bound: Iterable[str],
    origin: Origin,
    environment: Mapping[str, str],
    watch: bool,
    quiet: bool,
) -> Any:
    from asl.functions import LocalFunctions
    from asl.sources.functions import load_functions

    commands = {}
    for pair in runtime_pairs:
        name, command = split_pair(pair, "NAME=COMMAND", "--runtime")
        commands[name] = shlex.split(command)
    found = []
    for each in templates:
        if each in ("", "-"):
            raise click.UsageError("--functions needs the file of a template: --functions FILE")
        variables = {**origin["defaults"], **origin["variables"]}
        found += load_functions(each, variables=variables, root=origin["root"])
    functions = LocalFunctions(
        found,
        commands=commands,
        bound=bound,
        watch=watch,
        log=_print_log,
        variables=environment,
    )
    click.get_current_context().call_on_close(functions.close)
    for line in () if quiet else functions.lines():
        print_message(f"asl: function {line}")
    return functions


def _print_log(function: str, line: str) -> None:
    print_message(f"{function}: {line}", style="cyan")
