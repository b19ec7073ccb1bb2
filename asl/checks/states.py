"""States: names, labels and comments (V-TOP-06, V-MAP-15, V-TOP-14), and rules of their types."""

from collections.abc import Iterator, Mapping

from asl.checks.workflow import CheckedWorkflow, objects, text
from asl.core import aws_messages
from asl.core.diagnostics import Finding, Wording
from asl.core.values import Json, type_name
from asl.states import type_of
from asl.states.base import Node

__all__ = ["check"]


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield faults of names, labels, comments and the version, and those that state types find."""
    yield from _repeated(workflow)
    yield from _labels(workflow)
    version = workflow.value.get("Version", "1.0")
    if version != "1.0":
        wording = Wording(
            aws_messages.one_of(["1.0"])
            if type(version) is str
            else aws_messages.wrong_type("string")
        )
        yield Finding("V-TOP-08", "AWS has only the version '1.0'", "/Version", aws=wording)
    for scope in workflow.scopes:
        yield from _comment(scope.value, scope.pointer)
    for node in workflow.nodes():
        yield from type_of(node.value).check(node)
        yield from _comment(node.value, node.pointer)
        for field in ("Choices", "Retry", "Catch"):
            for index, entry in objects(node.value, field) if field in node.value else ():
                yield from _comment(entry, node.pointer, field, index)


def _repeated(workflow: CheckedWorkflow) -> Iterator[Finding]:
    first: dict[tuple[str, str], str] = {}
    for home, node in _homes(workflow):
        if (home, node.name) in first:
            yield Finding(
                "V-TOP-06",
                f"there is another state named {node.name!r}",
                node.pointer,
                "names are unique in the whole document",
                related=((first[home, node.name], "the other one is here"),),
                at_key=True,
                aws=Wording(f"Duplicate State name: {node.name}"),
            )
        else:
            first[home, node.name] = node.pointer


def _labels(workflow: CheckedWorkflow) -> Iterator[Finding]:
    first: dict[tuple[str, str], str] = {}
    for home, node in _homes(workflow):
        label = text(node.value, "Label")
        if label is None:
            continue
        if (home, label) in first:
            yield Finding(
                "V-MAP-15",
                f"there is another Map labelled {label!r}",
                node.at("Label"),
                "give each its own label: labels name the map runs",
                related=((first[home, label], "the other one is here"),),
                aws=Wording(f"Duplicate Label name: {label}"),
            )
        else:
            first[home, label] = node.at("Label")


def _homes(workflow: CheckedWorkflow) -> Iterator[tuple[str, Node]]:
    """Yield each state with the pointer of its document; names are unique per document."""
    for scope in workflow.scopes:
        for node in scope.nodes:
            yield scope.home, node


def _comment(holder: Mapping[str, Json], pointer: str, *steps: str | int) -> Iterator[Finding]:
    """Yield V-TOP-14 for a comment, below a pointer and steps, that is not a string."""
    comment = holder.get("Comment")
    if comment is not None and type(comment) is not str:
        place = "".join(f"/{step}" for step in (*steps, "Comment"))
        message = f"a comment must be a string, not of type {type_name(comment)}"
        wording = Wording(aws_messages.wrong_type("string"))
        yield Finding("V-TOP-14", message, pointer + place, aws=wording)
