"""Standard output for results, standard error for messages, and the exit codes."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from enum import IntEnum
from typing import TextIO

import click

from asl.core.diagnostics import Report
from asl.core.errors import AslError
from asl.core.printable import printable, printable_json
from asl.core.private_files import make_private_folder, open_replacement
from asl.core.values import Json, compact, excerpt

__all__ = [
    "MEANINGS",
    "Exit",
    "as_text",
    "clip",
    "count_noun",
    "discard_stdout",
    "error_text",
    "exit_of_status",
    "flush",
    "fold_line",
    "has_colour",
    "is_terminal",
    "item_failures",
    "json_line",
    "make_folder",
    "output_error",
    "print_message",
    "print_report",
    "print_styled",
    "print_warnings",
    "redirect_messages",
    "reserve_stdout",
    "stdout_to_stderr",
    "write_document",
    "write_file",
    "write_line",
    "write_result",
]


def is_terminal(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that understands control sequences."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def has_colour(stream: TextIO) -> bool:
    """Return whether to write colours to a stream (no-color.org)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def reserve_stdout() -> None:
    """Reserve standard output for results, for the rest of the process.

    Child processes and libraries that write to file descriptor 1 then write to standard error.
    """
    try:
        if (sys.stdout.fileno(), sys.stderr.fileno()) != (1, 2):
            return  # a stream is closed or replaced
        results = os.dup(1)
    except OSError:
        return
    os.dup2(2, 1)
    sys.stdout = open(results, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Redirect the output of agents to standard error."""
    with redirect_stdout(sys.stderr):
        yield


def write_result(text: str, stream: TextIO | None = None) -> None:
    """Write a result to standard output or *stream* and flush; raises AslError on failure."""
    stream = stream or sys.stdout
    with _output_errors():
        stream.write(text if text.endswith("\n") else f"{text}\n")
        stream.flush()


def write_line(text: str, *, style: str | None = None, fold: bool = False) -> None:
    """Write one line of data to standard output, with control characters replaced.

    Args:
        text: The line; line breaks within it are shown as symbols.
        style: Colour of the line on a terminal; None for none.
        fold: Break the line where the terminal ends.
    """
    shown = fold_line(printable(text)) if fold else printable(text)
    write_result(click.style(shown, fg=style) if style and has_colour(sys.stdout) else shown)


def write_document(text: str) -> None:
    """Write a document to standard output; on a terminal with control characters replaced."""
    write_result(printable(text, lines=True) if sys.stdout.isatty() else text)


def flush() -> None:
    """Flush standard output; raises AslError on failure."""
    with _output_errors():
        sys.stdout.flush()


@contextmanager
def _output_errors() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise output_error(error) from None


def output_error(error: OSError) -> AslError:
    """Return the error for a failed write to standard output, and discard the rest."""
    discard_stdout()
    return AslError(f"cannot write to standard output: {_os_reason(error)}")


def count_noun(number: int, noun: str) -> str:
    """Return a number and a noun: `1 fault`, `2 faults`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def as_text(value: Json) -> str:
    """Return a JSON value as text: indented for a terminal, else on one line."""
    if is_terminal(sys.stdout):
        return printable_json(json.dumps(value, ensure_ascii=False, indent=2))
    return json_line(value)


def json_line(value: Json) -> str:
    """Return a JSON value as one printable line."""
    return printable_json(compact(value))


def fold_line(line: str, *, hanging: int = 4) -> str:
    """Wrap a line at the width of the terminal, between words.

    Args:
        line: The line.
        hanging: Additional indentation of the following lines.
    """
    if not is_terminal(sys.stdout):
        return line
    from shutil import get_terminal_size
    from textwrap import fill

    width = max(get_terminal_size().columns, 20)
    further = " " * (len(line) - len(line.lstrip()) + hanging)
    return fill(
        line,
        width,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )


def print_message(text: str, *, style: str | None = None) -> None:
    """Write a line to standard error; *style* is a colour for its first word (`asl:`)."""
    head, colon, rest = printable(text, lines=True).partition(":")
    text = head + colon + rest
    if style is not None and has_colour(sys.stderr):
        text = click.style(head + colon, fg=style, bold=True) + rest
    print_styled(text)


def print_styled(text: str) -> None:
    """Write a printable text with its colours to standard error."""
    for write in _LISTENERS or (_write_message,):
        write(text)


_LISTENERS: list[Callable[[str], object]] = []
"""Where messages go instead of standard error."""


def _write_message(text: str) -> None:
    sys.stderr.write(f"{text}\n")


@contextmanager
def redirect_messages(write: Callable[[str], object]) -> Iterator[None]:
    """Pass messages to a function instead of writing them to standard error."""
    _LISTENERS.append(write)
    try:
        yield
    finally:
        _LISTENERS.remove(write)


def print_report(found: Report | list[Report], *, end: str = "") -> None:
    """Write findings to standard error."""
    from asl.core.render.text import render_text

    print_styled(render_text(found, color=has_colour(sys.stderr)) + end)


def print_warnings(found: Report) -> None:
    """Write warnings to standard error, with a blank line after them."""
    print_report(found, end="\n")


def item_failures(counts: Mapping[str, Json], failures: Sequence[Json]) -> Iterator[str]:
    """Yield lines with the failed items of a distributed Map and their errors."""
    of = f" of {counts['total']}" if "total" in counts else ""
    yield f"{counts['failed']}{of} items failed"
    for each in failures:
        why = error_text(each.get("error"), each.get("cause")) or "no error name"
        yield f"item {each['index']}: {why}"
    if counts["failed"] > len(failures):
        yield f"... the first {len(failures)} failures"


def error_text(error: str | None, cause: str | None) -> str:
    """Return an error name with its cause; empty without either."""
    return ": ".join(printable(each) for each in (error, cause) if each)


def clip(value: Json, limit: int) -> str:
    """Return a value as JSON, truncated after *limit* characters."""
    text = excerpt(value, 1_000_000)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def discard_stdout() -> None:
    """Discard all further standard output, after its reader has closed it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_file(path: str, text: str, *, private: bool = False) -> None:
    """Write a text to a file.

    Args:
        path: The file; one that exists is replaced as a whole, or not at all, and keeps its mode.
        text: The content; halves of surrogate pairs are escaped.
        private: Whether the text may hold data of executions or secrets; a new file then has
            mode 0600, otherwise the mode that the umask of the process gives.

    Raises:
        AslError: The file cannot be written.
    """
    try:
        with open_replacement(path, private=private) as stream:
            stream.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise AslError(f"cannot write {path!r}: {_os_reason(error)}") from None


def require_writable(path: str) -> None:
    """Check before a run that a file can be written afterwards.

    Raises:
        AslError: The file cannot be written.
    """
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise AslError(f"cannot write {path!r}: is a directory")
    if not os.path.isdir(folder):
        raise AslError(f"cannot write {path!r}: there is no folder {folder!r}")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise AslError(f"cannot write {path!r}: permission denied")


def make_folder(path: str, *, private: bool = False) -> None:
    """Make a folder and the missing ones above it, *private* ones with mode 0700.

    Raises:
        AslError: The folder cannot be made.
    """
    try:
        if private:
            make_private_folder(path)
        else:
            os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise AslError(f"cannot make the folder {path!r}: {_os_reason(error)}") from None


def _os_reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


class Exit(IntEnum):
    """The exit codes of every command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    INVALID = 3
    PAUSED = 4
    ENDED_EARLY = 5


MEANINGS = {
    Exit.OK: "success",
    Exit.FAILED: "the workflow or a test failed, or diff, fmt or doctor found something",
    Exit.USAGE: "usage error, or an input, agents file, store or file cannot be read",
    Exit.INVALID: "a document has errors, or its lock is out of date",
    Exit.PAUSED: "the workflow is paused",
    Exit.ENDED_EARLY: "the workflow timed out or was aborted (Ctrl-C)",
}

_STATUSES = {
    "SUCCEEDED": Exit.OK,
    "FAILED": Exit.FAILED,
    "PAUSED": Exit.PAUSED,
    "TIMED_OUT": Exit.ENDED_EARLY,
    "ABORTED": Exit.ENDED_EARLY,
}


def exit_of_status(status: str) -> Exit:
    """Return the exit code for the status of an execution."""
    return _STATUSES[status]
