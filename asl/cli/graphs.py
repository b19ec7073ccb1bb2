"""Commands that analyse the graph of a document: plan, graph and diff."""

from collections.abc import Iterator
from pathlib import Path

import click

import asl
from asl.cli import console
from asl.cli.arguments import PROFILE, Origin, origin_options, read_document
from asl.cli.console import Exit
from asl.graphs.planning import Bound, Plan

__all__ = ["diff_command", "graph_command", "plan_command"]

NAMED = 4
"""Maximum number of unlimited states in a line; the JSON has all of them."""
TABLES = ("agents", "resources", "tools", "models", "workflows")
"""The tables of a plan."""
SHOWN = 10
"""Maximum number of printed paths; the JSON has all of them."""


@click.command("plan")
@click.argument("document", metavar="DOC")
@PROFILE
@origin_options
@click.option("--json", "as_json", is_flag=True, help="Print the plan as a JSON object.")
def plan_command(document: str, profile: str, origin: Origin, as_json: bool) -> Exit:
    """Show the paths, agents and maximum cost of a document without running it.

    Exits with 3 if the document has errors.
    """
    plan = asl.plan(read_document(document, origin), profile=profile)
    if as_json:
        console.write_result(console.as_text(plan.to_json()))
        return Exit.OK
    for line in _lines(plan):
        console.write_line(line)
    return Exit.OK


def _lines(plan: "Plan") -> Iterator[str]:
    more = "" if plan.complete else " at least"
    yield f"paths{more}: {len(plan.ways)}"
    for way in plan.ways[:SHOWN]:
        yield f"  {' > '.join(way)}"
    if len(plan.ways) > SHOWN:
        yield "  ..."
    tables = {title: getattr(plan, title) for title in TABLES}
    tables |= {"approval before": plan.consent, "limited calls": plan.counted}
    for title, names in tables.items():
        if names:
            yield f"{title}:"
            width = max(map(len, names))
            for name, states in names.items():
                yield f"  {name:<{width}}  {', '.join(states)}"
    if plan.people:
        yield f"approvals: {', '.join(plan.people)}"
    more = ", plus the usage that resources report" if plan.resources else ""
    yield f"cost: {_bound(plan.cost, f' {plan.currency}')}{more}"
    yield f"tokens: {_bound(plan.tokens, '')}{more}"


def _bound(bound: "Bound", unit: str) -> str:
    if bound.maximum is None:
        return f"unlimited, no budget limits {_names(bound.states)}"
    most = f"at most {bound.maximum.normalize():f}{unit}"
    if bound.states:
        return f"{most}, plus one call of the state {_names(bound.states)}"
    if bound.visits:
        return f"{most}, plus one call in each visit of the state {_names(bound.visits)}"
    return most


def _names(states: tuple[str, ...]) -> str:
    """Return the names of states as a list of alternatives."""
    names = " or ".join(states[:NAMED])
    return names if len(states) <= NAMED else f"{names} or {len(states) - NAMED} more"


FORMATS = ("mermaid", "dot", "svg")
_SUFFIXES = {
    "": "mermaid", ".mmd": "mermaid", ".mermaid": "mermaid", ".md": "mermaid", ".txt": "mermaid",
    ".dot": "dot", ".gv": "dot", ".svg": "svg",
}  # fmt: skip


@click.command("graph")
@click.argument("document", metavar="DOC")
@click.option(
    "--format",
    "chosen",
    type=click.Choice(FORMATS),
    help="Output format; by default that of the --output file, or mermaid.",
)
@click.option("-o", "--output", metavar="FILE", help="Write the drawing to this file.")
@origin_options
def graph_command(document: str, chosen: str | None, output: str | None, origin: Origin) -> Exit:
    """Draw the states and transitions of a document.

    A document with errors is drawn as far as possible. SVG needs no other program.

    \f
    Raises:
        BadParameter: The output has no known format.
    """
    suffix = Path(output or "").suffix.lower()
    format = chosen or _SUFFIXES.get(suffix)
    if format is None:
        raise click.BadParameter(
            f"there is no format for {suffix!r}: use .svg, .dot or .mmd, or --format",
            param_hint="--output",
        )
    text = asl.graph(read_document(document, origin), format=format)
    if output is None:
        console.write_document(text)
    else:
        console.write_file(output, text)
    return Exit.OK


_MARKS = {"added": ("+", "green"), "removed": ("-", "red")}


@click.command("diff")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@click.option("--json", "as_json", is_flag=True, help="Print each change as a line of JSON.")
@origin_options
def diff_command(before: str, after: str, as_json: bool, origin: Origin) -> Exit:
    """Compare the states, transitions, data flow and behaviour of two documents.

    Exits with 1 if they differ in more than comments.

    \f
    Raises:
        UsageError: Both documents are standard input.
    """
    if before == after == "-":
        raise click.UsageError("standard input can be read only once: use - once")
    found = asl.diff(read_document(before, origin), read_document(after, origin))
    for change in found:
        if as_json:
            console.write_result(console.json_line(change.to_json()))
            continue
        mark, colour = _MARKS.get(change.kind, ("~", "yellow"))
        place = f"{change.place}: " if change.place and change.about != "state" else ""
        line = f"{mark} {change.about:<10} {place}{change.text}"
        console.write_line(line, style=colour)
    if not as_json:
        console.print_message(
            "no differences" if found.same else console.count_noun(len(found), "difference")
        )
    return Exit.OK if found.same else Exit.FAILED
