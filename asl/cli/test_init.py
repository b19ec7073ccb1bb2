"""`asl test init`: test cases for the paths through a document."""

import os
from pathlib import Path

import click

from asl.cli import console
from asl.cli.arguments import Origin, origin_options, read_document, read_input
from asl.cli.console import Exit
from asl.conformance.drafts import draft_cases
from asl.core.errors import AslError
from asl.core.profile import PROFILES
from asl.core.values import Json

__all__ = ["test_init_command"]


@click.command("test init")
@click.argument("document", metavar="DOC")
@origin_options
@click.option(
    "-o", "--output", metavar="FILE", help="Write the cases to this file; by default next to DOC."
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="Maximum number of paths.",
)
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="default",
    show_default=True,
    help="Profile of the cases.",
)
@click.option(
    "--input",
    "given",
    metavar="FILE",
    help="Input to start from, if none can be generated: FILE, @FILE, - or JSON.",
)
def test_init_command(
    document: str,
    origin: Origin,
    output: str | None,
    limit: int,
    profile: str,
    given: str | None,
) -> Exit:
    """Generate a test case for each path through a document.

    A case has the input and the agent results that lead along its path, and expects the present
    outcome: review it. Paths enter a loop once. Paths without data are reported with the reason.
    Existing files are not overwritten. Exits with 1 if no case is found.

    \f
    Raises:
        AslError: The output file exists.
    """
    stem = Path(document).stem.removesuffix(".asl")
    file = Path(output or Path(document).parent / f"{stem}.asl-test.yaml")
    if os.path.lexists(file):
        raise AslError(f"{str(file)!r} would be overwritten: choose another --output")
    read = read_document(document, origin)
    data = None if given is None else _read_input(given)
    cases, missed, complete = draft_cases(read, limit, profile, data)
    for names, why in dict.fromkeys(missed):  # several transitions may lead to one state
        way = " > ".join(names)
        console.print_message(
            f"asl: no data was found that leads through {way}: {why}", style="yellow"
        )
    if not complete:
        console.print_message(
            "asl: not all paths were tried: their number or length exceeds a limit (see --limit)",
            style="yellow",
        )
    if not cases:
        hint = "" if given else ": give one with --input FILE"
        console.print_message(
            f"asl: no case written, because no input leads to an end{hint}", style="yellow"
        )
        return Exit.FAILED
    beside = os.path.relpath(document, file.parent)
    suite = {
        "suite": f"Paths through {read.name}",
        "document_file": beside,
        **({} if profile == "default" else {"profile": profile}),
        **({} if read.dialect == "asl" else {"dialect": read.dialect}),
        **_origin_members(origin),
        "cases": cases,
    }
    console.write_file(str(file), _yaml(suite))
    console.print_message(
        f"asl: wrote {console.count_noun(len(cases), 'case')} to {file}", style="green"
    )
    return Exit.OK


def _read_input(given: str) -> Json:
    """Read an input; a file needs no `@`."""
    return read_input(f"@{given}" if os.path.isfile(given) else given)


def _origin_members(origin: Origin) -> dict[str, object]:
    """Return the members of a suite that say how to read its document."""
    told = {
        "reading": origin["reading"],
        "resource": origin["resource"],
        "variables": {**origin["defaults"], **origin["variables"]},
        "parameters": origin["parameters"],
    }
    return {name: value for name, value in told.items() if value}


def _yaml(value: object) -> str:
    from io import StringIO

    from ruamel.yaml import YAML

    text = StringIO()
    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = 100
    yaml.representer.ignore_aliases = lambda *each: True
    yaml.dump(value, text)
    return text.getvalue()
