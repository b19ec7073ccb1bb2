"""`asl plan`: what a document may do before anything runs."""

from collections.abc import Iterator

import click

import asl
from asl.cli import streams
from asl.cli.arguments import PROFILE, Origin, origin_options, read_document
from asl.cli.exits import Exit
from asl.graphs.planning import Bound, Plan

__all__ = ["command"]

NAMED = 4
"""How many states are named that nothing limits; all of them stand in the JSON."""
TABLES = ("agents", "resources", "tools", "models", "workflows")
"""The tables of a plan."""
SHOWN = 10
"""How many ways are printed; all of them stand in the JSON."""


@click.command("plan")
@click.argument("document", metavar="DOC")
@PROFILE
@origin_options
@click.option("--json", "as_json", is_flag=True, help="Print it as a JSON object.")
def command(document: str, profile: str, origin: Origin, as_json: bool) -> Exit:
    """Say what a document may do, and what it may cost at most.

    Nothing is run and nobody is asked. Exits with 3 if the document has errors.
    """
    plan = asl.plan(read_document(document, origin), profile=profile)
    if as_json:
        streams.result(streams.as_text(plan.to_json()))
        return Exit.OK
    for line in _lines(plan):
        streams.line(line)
    return Exit.OK


def _lines(plan: "Plan") -> Iterator[str]:
    more = "" if plan.complete else " at least"
    yield f"ways{more}: {len(plan.ways)}"
    for way in plan.ways[:SHOWN]:
        yield f"  {' > '.join(way)}"
    if len(plan.ways) > SHOWN:
        yield "  ..."
    tables = {title: getattr(plan, title) for title in TABLES}
    tables |= {"asks people before": plan.consent, "at most so many calls": plan.counted}
    for title, names in tables.items():
        if names:
            yield f"{title}:"
            width = max(map(len, names))
            for name, states in names.items():
                yield f"  {name:<{width}}  {', '.join(states)}"
    if plan.people:
        yield f"asks people: {', '.join(plan.people)}"
    besides = ", besides what resources report" if plan.resources else ""
    yield f"costs {_bound(plan.cost, plan.currency)}{besides}"
    yield f"uses {_bound(plan.tokens, 'tokens')}{besides}"


def _bound(bound: "Bound", unit: str) -> str:
    if bound.most is None:
        return f"any number of {unit}: nothing limits {_names(bound.states)}"
    most = f"at most {bound.most.normalize():f} {unit}"
    if bound.states:
        return f"{most}, and one call of {_names(bound.states)}"
    if bound.visits:
        return f"{most}, and one call in each visit of {_names(bound.visits)}"
    return most


def _names(states: tuple[str, ...]) -> str:
    """Return the names of states as a list of alternatives."""
    names = " or ".join(states[:NAMED])
    return names if len(states) <= NAMED else f"{names} or {len(states) - NAMED} more"
