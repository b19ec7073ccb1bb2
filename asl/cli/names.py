"""Names that agents files and `--workflow` bind, for a document that is checked or run."""

from collections.abc import Iterable

import click

from asl.cli.arguments import AS_IT_IS, Origin, faults_are_usage, pair, read_document
from asl.core.document import Document

__all__ = ["AGENTS", "named", "workflows"]

AGENTS = click.option(
    "--agents",
    "agent_files",
    metavar="FILE",
    multiple=True,
    help="Agents file: who answers for the names in the document.",
)


def workflows(pairs: Iterable[str], origin: Origin) -> "dict[str, Document]":
    """Read the documents that `NAME=FILE` pairs name; `FILE#RESOURCE` is one of a template."""
    found = {}
    for each in pairs:
        name, file = pair(each, "NAME=FILE", "--workflow")
        path, _, resource = file.partition("#")
        own: Origin = {
            **AS_IT_IS,
            "resource": resource or None,
            # not every file needs all of the variables
            "defaults": {**origin["defaults"], **origin["variables"]},
            "root": origin["root"],
        }
        found[name] = read_document(path, own)
    for document in [*found.values()]:  # an ARN has the name that a template gives
        if document.deployed is not None:
            found.setdefault(document.deployed, document)
    return found


def named(files: Iterable[str]) -> tuple[frozenset[str] | None, frozenset[str] | None]:
    """Return the agents and the resources that agents files bind; None without a file."""
    from asl.agents.file import load_bindings

    with faults_are_usage():
        each = [load_bindings(file, build=False) for file in files]
    if not each:
        return None, None
    return (
        frozenset(name for bound in each for name in bound.agents),
        frozenset(name for bound in each for name in bound.resources),
    )
