"""`asl explain`: what a rule or an error name says, why, and what to do."""

import sys
from collections.abc import Mapping
from itertools import groupby
from typing import TypeAlias

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.core.codes import Code, ErrorName, all_codes, all_error_names
from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError

__all__ = ["command"]

Entries: TypeAlias = Mapping[str, Code | ErrorName]

LISTED = "'asl explain' lists all"
_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}


@click.command("explain")
@click.argument("codes", metavar="[CODE]...", nargs=-1)
def command(codes: tuple[str, ...]) -> Exit:
    """Explain rules and errors; without a CODE, list all of them.

    CODE is the code of a finding, or the name of the error that a workflow has failed with. What
    several codes begin with lists these.

    \b
        asl explain V-ST-03
        asl explain States.Runtime
        asl explain V-TASK
    """
    coloured = streams.colour(sys.stdout)
    rules: Entries = {code.id: code for code in all_codes()}
    errors: Entries = {failure.name: failure for failure in all_error_names()}
    if codes:
        parts = [_answer(code, {**rules, **errors}, coloured) for code in codes]
    else:
        parts = [_listed(rules, coloured), _listed(errors, coloured)]
    streams.result("\n\n".join(parts))
    return Exit.OK


def _answer(wanted: str, known: Entries, coloured: bool) -> str:
    """Explain the entry of this name, or list those whose names begin with it."""
    name = wanted.casefold().rstrip("-.")
    begun = {}
    for each, entry in known.items():
        if each.casefold() == name:
            return _explained(each, entry, coloured)
        if each.casefold().startswith((f"{name}-", f"{name}.")):
            begun[each] = entry
    if begun:
        return _listed(begun, coloured)
    hint = did_you_mean(wanted, known)
    if hint is None and "." in wanted and not wanted.startswith("States."):
        hint = "errors of other names are raised by a document, an agent or a service"
    raise AslError(f"there is no rule or error {wanted!r} ({hint or LISTED})")


def _listed(entries: Entries, coloured: bool) -> str:
    """Return a line for each entry, with blank lines between the families."""
    width = max(map(len, entries))
    return "\n\n".join(
        "\n".join(_line(f"{name:<{width}}", entries[name], coloured) for name in names)
        for _, names in groupby(entries, lambda name: entries[name].family)
    )


def _line(name: str, entry: Code | ErrorName, coloured: bool) -> str:
    if isinstance(entry, ErrorName):
        return f"{name}  {entry.title}"
    return f"{name}  {_painted(f'{entry.severity:<7}', entry, coloured)}  {entry.title}"


def _explained(name: str, entry: Code | ErrorName, coloured: bool) -> str:
    head = click.style(name, bold=True) if coloured else name
    parts = [entry.explain]
    if isinstance(entry, ErrorName):
        kind = "raised while a workflow runs"
        parts.append(entry.matched)
    else:
        kind = _painted(entry.severity, entry, coloured)
        if entry.aws_severity is not None:
            kind += f" ({entry.aws_severity} under --profile aws)"
    if entry.hint is not None:
        parts.append(f"What to do: {entry.hint}.")
    paragraphs = [each for part in parts for each in part.split("\n\n")]
    folded = [each if "\n" in each else streams.folded(each, hanging=0) for each in paragraphs]
    return "\n\n".join([f"{head}: {entry.title}\n{kind}", *folded])


def _painted(text: str, code: Code, coloured: bool) -> str:
    return click.style(text, fg=_COLOURS[code.severity]) if coloured else text
