"""`asl explain`: what a rule says, why, and what to write instead."""

import sys
from collections.abc import Iterator

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.core.codes import Code, all_codes
from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError

__all__ = ["command"]

_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}


@click.command("explain")
@click.argument("codes", metavar="[CODE]...", nargs=-1)
def command(codes: tuple[str, ...]) -> Exit:
    """Explain rules, by the codes that diagnostics carry; without one, list all of them."""
    coloured = streams.colour(sys.stdout)
    if not codes:
        streams.result("\n".join(_listed(coloured)))
        return Exit.OK
    found = [_found(code) for code in codes]
    streams.result("\n\n".join(_explained(code, coloured) for code in found))
    return Exit.OK


def _found(wanted: str) -> Code:
    known = {code.id: code for code in all_codes()}
    if wanted.upper() in known:
        return known[wanted.upper()]
    hint = did_you_mean(wanted, known) or "'asl explain' lists all"
    raise AslError(f"there is no rule {wanted!r} ({hint})")


def _listed(coloured: bool) -> Iterator[str]:
    codes = all_codes()
    width = max(len(code.id) for code in codes)
    group = None
    for code in codes:
        if group not in (None, code.id.rpartition("-")[0]):
            yield ""
        group = code.id.rpartition("-")[0]
        yield f"{code.id:<{width}}  {_painted(f'{code.severity:<7}', code, coloured)}  {code.title}"


def _explained(code: Code, coloured: bool) -> str:
    head = click.style(code.id, bold=True) if coloured else code.id
    severity = _painted(code.severity, code, coloured)
    if code.aws_severity is not None:
        severity += f" ({code.aws_severity} under --profile aws)"
    advice = f"\n\nWhat to do: {code.hint}." if code.hint is not None else ""
    return f"{head}: {code.title}\n{severity}\n\n{code.explain}{advice}"


def _painted(text: str, code: Code, coloured: bool) -> str:
    return click.style(text, fg=_COLOURS[code.severity]) if coloured else text
