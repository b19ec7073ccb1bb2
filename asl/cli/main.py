"""The command `asl`: the table of its commands and its entry point."""

import os
import re
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from asl import __version__
from asl.cli import console
from asl.cli.console import MEANINGS, Exit
from asl.cli.project import find_project
from asl.core.diagnostics import InvalidDocument, did_you_mean
from asl.core.errors import AslError
from asl.core.printable import printable

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["COMMANDS", "COMPLETION_VARIABLE", "SECTIONS", "cli", "main"]


class _Row(NamedTuple):
    """One command of the table.

    Args:
        module: The module of this package that defines it; loaded when the command is used.
        help: The text in the list of commands.
    """

    module: str
    help: str


SECTIONS = {
    "Writing documents": {
        "init": _Row("init", "Create a first document with its agents file and test cases."),
        "check": _Row("check", "Check documents and report errors and warnings."),
        "fmt": _Row("edits", "Format documents."),
        "plan": _Row("graphs", "Show the paths, agents and maximum cost of a document."),
        "graph": _Row("graphs", "Draw a document as Mermaid, DOT or SVG."),
        "diff": _Row("graphs", "Compare two documents."),
        "convert": _Row("convert", "Convert documents to another workflow language."),
        "expand": _Row("edits", "Print a document with its imports inlined."),
        "lock": _Row("edits", "Lock the imports of a document to their content."),
        "lsp": _Row("lsp", "Serve editors: the Language Server Protocol."),
    },
    "Running and testing": {
        "run": _Row("run", "Run a document and print its output."),
        "test": _Row("test", "Run test cases."),
        "test init": _Row("test_init", "Generate a test case for each path through a document."),
        "test-state": _Row("test_state", "Run a single state, like TestState of AWS."),
    },
    "Executions in a store": {
        "start": _Row("remote", "Start an execution of a running service."),
        "serve": _Row("serve", "Serve workflows: the API of Step Functions, REST, and pages."),
        "mcp": _Row("mcp", "Serve workflows as tools for assistants (MCP)."),
        "worker": _Row("worker", "Run the executions of a store until stopped."),
        "ls": _Row("listings", "List executions."),
        "show": _Row("show", "Show an execution and its history."),
        "costs": _Row("listings", "Show the cost and the tokens of an execution."),
        "logs": _Row("listings", "Print the events of an execution."),
        "inbox": _Row("inbox", "List open approval requests and task tokens."),
        "approve": _Row("approve", "Answer an approval request."),
        "answer": _Row("answers", "Answer a task token."),
        "activity": _Row("answers", "Get the next task of an activity."),
        "feedback": _Row("answers", "List the feedback requests of an execution, or answer one."),
        "resume": _Row("lifecycle", "Resume a paused or interrupted execution."),
        "fork": _Row("lifecycle", "Create an execution that starts at a state of another one."),
        "redrive": _Row("lifecycle", "Resume a failed execution from the states that failed."),
        "checkpoints": _Row("listings", "List checkpoints."),
        "stop": _Row("lifecycle", "Stop an execution."),
        "rm": _Row("maintenance", "Delete executions."),
        "prune": _Row("maintenance", "Delete old executions."),
        "export": _Row("maintenance", "Print executions as JSON Lines."),
        "import": _Row("maintenance", "Add exported executions to a store."),
        "backup": _Row("maintenance", "Copy a store to a file."),
        "doctor": _Row("maintenance", "Verify the integrity of a store."),
    },
    "Users of a service": {
        "token": _Row("audit", "Make a token for a user of a service."),
        "rotate-secret": _Row("audit", "Change the secret that signs sessions and links."),
        "audit": _Row("audit", "List what users did with a service."),
    },
    "Schedules and webhooks": {
        "schedules ls": _Row("schedules", "List schedules."),
        "schedules add": _Row("schedules", "Start executions of a document at planned times."),
        "schedules next": _Row("schedules", "Print the next times of a schedule."),
        "schedules pause": _Row("schedules", "Pause a schedule."),
        "schedules resume": _Row("schedules", "Resume a schedule."),
        "schedules rm": _Row("schedules", "Delete a schedule."),
        "webhooks ls": _Row("webhooks", "List webhooks."),
        "webhooks add": _Row("webhooks", "Start executions of a document by signed requests."),
        "webhooks rm": _Row("webhooks", "Delete a webhook."),
    },
    "Reference": {
        "explain": _Row("reference", "Explain a rule or an error name."),
        "schema": _Row("reference", "Print the JSON Schema of documents."),
        "completion": _Row("completion", "Print the script that completes commands in a shell."),
    },
}
"""The commands by name, in the order of the help."""
COMPLETION_VARIABLE = "_ASL_COMPLETE"
"""The variable by which a shell asks for completions; click derives its name from the command's."""
COMMANDS = {name: row for section in SECTIONS.values() for name, row in section.items()}


class Commands(click.Group):
    """The group of all commands; each returns its exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"asl.cli.{COMMANDS[cmd_name].module}")
        command: click.Command = getattr(module, f"{re.sub('[ -]', '_', cmd_name)}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command of one or two words; suggest a similar one for an unknown name."""
        if " ".join(args[:2]) in COMMANDS:  # a command of two words
            args = [" ".join(args[:2]), *args[2:]]
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(_unknown_command(name))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, without importing them, and the exit codes."""
        width = max(map(len, COMMANDS))
        for title, rows in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", row.help) for name, row in rows.items()])
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), text) for code, text in MEANINGS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command and exit with its code; only bugs show a traceback.

        Raises:
            UsageError: The command line is wrong; click prints it.
        """
        try:
            code = super().invoke(ctx)
            console.flush()
        except InvalidDocument as refusal:
            console.print_report(refusal.report)
            code = Exit.INVALID
        except AslError as error:
            hints = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
            console.print_message(f"asl: {error}{hints}", style="red")
            code = Exit.USAGE
        except click.UsageError as error:
            shown = printable(error.format_message(), lines=True)
            raise click.UsageError(shown, error.ctx) from None
        except KeyboardInterrupt:
            console.print_message("asl: aborted", style="yellow")
            code = Exit.ENDED_EARLY
        except BrokenPipeError:
            console.discard_stdout()
            code = Exit.ENDED_EARLY
        ctx.exit(code or Exit.OK)


def _unknown_command(name: str) -> str:
    if "." in name or "/" in name:
        hint = f"did you mean 'asl run {name}'?"
    else:
        hint = did_you_mean(name, COMMANDS) or "'asl --help' lists all"
    return f"there is no command {name!r} ({hint})"


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="asl %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Run, check and test Agent State Language and Amazon States Language documents.

    Results are written to standard output, messages to standard error. Set defaults of options in
    asl.toml, or in pyproject.toml under [tool.asl].
    """
    ctx.obj = project = find_project()
    ctx.default_map = dict.fromkeys(COMMANDS, project.options())
    command = ctx.invoked_subcommand
    if command is not None:
        ctx.default_map[command] = project.options_of(command)


def _handle_sigterm(number: int, frame: "FrameType | None") -> None:
    """Handle SIGTERM like Ctrl-C, even if the process ignores SIGINT."""
    import signal

    on_interrupt = signal.getsignal(signal.SIGINT)
    (on_interrupt if callable(on_interrupt) else signal.default_int_handler)(number, frame)


def _printed_by_click(error: OSError) -> bool:
    """Return whether click failed to print help or the version."""
    from traceback import walk_tb

    *_, (frame, _) = walk_tb(error.__traceback__)
    return bool(frame.f_globals["__name__"] == "click.utils")


def main() -> NoReturn:
    """Run the command line: the entry point of `asl` and `python -m asl`.

    Raises:
        SystemExit: Always, with the exit code.
    """
    import atexit
    import gc
    import signal

    # Most processes are short; garbage collection would take a sixth of their time.
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # the caller closed it
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # UTF-8 whatever the locale
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    console.reserve_stdout()
    if COMPLETION_VARIABLE in os.environ:
        import_module("asl.cli.completion").register_shells()
    # A supervisor ends a run like Ctrl-C does, so that no child process remains.
    signal.signal(signal.SIGTERM, _handle_sigterm)
    try:
        cli(prog_name="asl")
    except OSError as error:
        if not _printed_by_click(error):
            raise
        console.print_message(f"asl: {console.output_error(error)}", style="red")
        sys.exit(Exit.USAGE)
    raise AssertionError("a click command ends by SystemExit")
