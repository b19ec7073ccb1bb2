"""Workflows that start themselves without end: V-WF-04 (Specification 6.13)."""

from collections.abc import Iterator

from asl.checks.transitions import following
from asl.checks.workflow import Scope, Workflow, text
from asl.core.diagnostics import Finding

__all__ = ["check"]


def check(workflow: Workflow) -> Iterator[Finding]:
    """Yield the states that start the very document, where nothing decides whether they do."""
    own = [
        (scope, node)
        for scope in workflow.scopes
        for node in scope.nodes
        if node.value.get("Type") == "Workflow"
        and workflow.name
        and text(node.value, "WorkflowId") == workflow.name
    ]
    for scope, node in own:
        if _always_reached(scope, node.name):
            yield Finding(
                "V-WF-04",
                f"{workflow.name!r} starts itself, and no Choice on the way decides whether",
                node.at("WorkflowId"),
                "put a Choice before it that ends the recursion",
            )


def _always_reached(scope: Scope, name: str) -> bool:
    """Whether a way without a decision leads to a state; a Map may have no items."""
    while True:
        if name not in _undecided(scope):
            return False
        if scope.outer is None or scope.holder is None:
            return True
        if scope.holder.value.get("Type") == "Map":
            return False
        name, scope = scope.holder.name, scope.outer


def _undecided(scope: Scope) -> set[str]:
    """Return the states to which transitions lead from the start without a decision."""
    nodes = {node.name: node for node in scope.nodes}
    found: set[str] = set()
    start = text(scope.value, "StartAt")
    todo = [start] if start is not None else []
    while todo:
        name = todo.pop()
        if name in found or name not in nodes:
            continue
        found.add(name)
        if "Choices" not in nodes[name].value:
            todo += following(nodes[name])
    return found
