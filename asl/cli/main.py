"""The command `asl`: the table of its commands, and how they end."""

import os
import sys
from importlib import import_module
from io import TextIOWrapper
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, NoReturn

import click

from asl import __version__
from asl.cli import streams
from asl.cli.exits import MEANINGS, Exit
from asl.cli.project import find_project
from asl.core.diagnostics import InvalidDocument, did_you_mean
from asl.core.errors import AslError
from asl.core.printable import printable

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["COMMANDS", "SECTIONS", "cli", "main"]

SECTIONS = {
    "Writing documents": {
        "init": "Write a first document, its agents file and its cases.",
        "check": "Say what is wrong with documents, and where.",
        "fmt": "Write documents in their usual layout.",
        "plan": "Say what a document may do, and what it may cost at most.",
        "graph": "Draw a document as Mermaid, DOT or SVG.",
        "diff": "Say what two documents differ in.",
        "convert": "Write a document in another language, and tell what is lost.",
        "expand": "Print a document with all that it imports put in its place.",
        "lock": "Pin what a document imports, or see whether it has changed.",
    },
    "Running and testing": {
        "run": "Run a document and print its output.",
        "test": "Run conformance cases, or cases of your own.",
        "test init": "Write a case for each way through a document.",
        "test-state": "Run one state alone, as AWS's TestState does.",
    },
    "Executions in a store": {
        "worker": "Run what is due in a store, until it is stopped.",
        "ls": "List the executions.",
        "show": "Show an execution and its history.",
        "costs": "Say what an execution has spent, and on what.",
        "logs": "Print what happens in an execution.",
        "inbox": "List what waits for people, or for a task token.",
        "approve": "Decide on what an execution asks.",
        "answer": "Answer a task token of an execution.",
        "activity": "Take the next task of an activity, as a worker does.",
        "feedback": "List what people are asked about results, or answer it.",
        "resume": "Go on with an execution.",
        "fork": "Begin a new execution at a state of another one.",
        "redrive": "Go on with an execution from where it failed.",
        "checkpoints": "List what executions have saved.",
        "stop": "End an execution.",
        "rm": "Delete executions that have ended.",
        "prune": "Delete the executions that ended some time ago.",
        "export": "Print executions as lines of JSON, without damaged ones.",
        "import": "Read exported executions into a store.",
        "backup": "Copy a store into a file, also while executions run.",
        "doctor": "Say whether a store is whole.",
    },
    "Reference": {
        "explain": "Explain a rule, or the error of a workflow, by its name.",
        "schema": "Print the JSON Schema of documents.",
    },
}
"""The commands with what they do, as help lists them."""
COMMANDS = {name: text for section in SECTIONS.values() for name, text in section.items()}
"""Every command is a module of this package, loaded when it is asked for."""


class Commands(click.Group):
    """The commands, loaded on use; what they return is the exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"asl.cli.{_module(cmd_name)}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was named, or say which one may have been meant."""
        if " ".join(args[:2]) in COMMANDS:  # a command of two words
            args = [" ".join(args[:2]), *args[2:]]
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(_unknown(name))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them, and the exit codes."""
        width = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", text) for name, text in commands.items()])
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), text) for code, text in MEANINGS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command and end with its exit code; only our own faults show a traceback."""
        try:
            code = super().invoke(ctx)
            streams.flush()
        except InvalidDocument as refusal:
            streams.report(refusal.report)
            code = Exit.INVALID
        except AslError as error:
            hints = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
            streams.say(f"asl: {error}{hints}", style="red")
            code = Exit.USAGE
        except click.UsageError as error:
            shown = printable(error.format_message(), lines=True)
            raise click.UsageError(shown, error.ctx) from None
        except KeyboardInterrupt:
            streams.say("asl: aborted", style="yellow")
            code = Exit.ENDED_EARLY
        except BrokenPipeError:
            streams.silence()
            code = Exit.ENDED_EARLY
        ctx.exit(code or Exit.OK)


def _module(name: str) -> str:
    module = name.replace("-", "_").replace(" ", "_")
    return f"{module}_" if iskeyword(module) else module


def _unknown(name: str) -> str:
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

    A result goes to standard output, everything else to standard error. Defaults of options may be
    in asl.toml, or in pyproject.toml under [tool.asl].
    """
    ctx.obj = project = find_project()
    ctx.default_map = dict.fromkeys(COMMANDS, project.options())


def _interrupt(number: int, frame: "FrameType | None") -> None:
    """Do what Ctrl-C does now, even where a shell has told us to ignore that."""
    import signal

    on_interrupt = signal.getsignal(signal.SIGINT)
    (on_interrupt if callable(on_interrupt) else signal.default_int_handler)(number, frame)


def _printed_by_click(error: OSError) -> bool:
    """Whether it is help or the version that could not be written: click prints them by itself."""
    from traceback import walk_tb

    *_, (frame, _) = walk_tb(error.__traceback__)
    return bool(frame.f_globals["__name__"] == "click.utils")


def main() -> NoReturn:
    """Run the command line; the entry point of `asl` and `python -m asl`."""
    import atexit
    import gc
    import signal

    # Most processes are short: looking for garbage while modules load, and once more at the end,
    # takes a sixth of their time.
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it was closed
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what is written is UTF-8, whatever the locale says
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    streams.apart()
    # Ended by a supervisor, a run stops as it does on Ctrl-C: no process is left behind.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        cli(prog_name="asl")
    except OSError as error:
        if not _printed_by_click(error):
            raise
        streams.say(f"asl: {streams.unwritten(error)}", style="red")
        sys.exit(Exit.USAGE)
    raise AssertionError("a click command ends by SystemExit")
