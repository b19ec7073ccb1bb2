"""Unbounded loops: of agent calls (V-BUD-09), and of workflows that start themselves (V-WF-04)."""

from collections.abc import Iterator, Mapping
from typing import Final

from asl.checks.transitions import next_states
from asl.checks.workflow import CheckedWorkflow, MachineScope, handlers, text
from asl.core.diagnostics import Finding, Severity
from asl.core.lazy import lazy_pattern
from asl.core.values import Json, compact
from asl.graphs.paths import strongly_connected
from asl.states import type_of
from asl.states.base import Node
from asl.states.machines import nested_machines

__all__ = ["check_agent_loops", "check_recursion"]

BOUNDS: Final = frozenset(("Budget", "TimeoutSeconds", "TimeoutSeconds.$"))
"""The fields of a document, or of the state around a machine, that bound what happens in it."""
COUNTS: Final = lazy_pattern(
    r"States\.MathAdd|States\.RemainingBudget|States\.ArrayLength|\$(?:count|now|millis)\("
    r"|\+\s*1\b|-\s*1\b|\[\s*\[?\s*1\s*(?:\]|:|\.\.)|_(?<=\w_)(?:edge_)?count(?:ed)?\("
    r"|\"Timestamp(?:Less|Greater)|\$\$?\.State\.|\[0\]"
)
"""What counts rounds, takes items from a list, or measures time.

Every alternative begins with one plain character, as then most of a text is skipped.
"""
REFUSES: Final = lazy_pattern(r"_(?<=\w_)refuse\(")
"""A function that takes a refused answer and fails after a number of them."""


def check_agent_loops(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield the loops of agents in the default profile that may go on without end."""
    if workflow.profile.aws or _is_bounded(workflow.value):
        return
    for scope in workflow.scopes:
        if not _is_bounded_around(scope):
            yield from _loops(scope)


def _is_bounded(holder: Json) -> bool:
    return type(holder) is dict and not BOUNDS.isdisjoint(holder)


def _is_bounded_around(scope: MachineScope | None) -> bool:
    while scope is not None:
        if _is_bounded(scope.value) or (
            scope.holder is not None and "Budget" in scope.holder.value
        ):
            return True
        scope = scope.outer
    return False


def _loops(scope: MachineScope) -> Iterator[Finding]:
    nodes = {node.name: node for node in scope.nodes}
    places = {name: place for place, name in enumerate(nodes)}
    further = {
        name: [each for each in next_states(_without_limited_catchers(node)) if each in nodes]
        for name, node in nodes.items()
    }
    for group, is_loop in strongly_connected(nodes, further):
        members = [nodes[name] for name in group]
        if not is_loop or any(type_of(node.value).waits for node in members):
            continue
        callers = [node for node in members if _calls_agent(node.value)]
        if callers and not _counts_rounds(members, further):
            first = min(callers, key=lambda node: places[node.name])
            yield Finding(
                "V-BUD-09",
                f"{first.name!r} may call an agent without limit: its loop has no bound",
                first.pointer,
                'add "Budget": {"MaxCalls": 100} or "TimeoutSeconds" to the document, or let a '
                "Choice count the rounds",
                severity=Severity.WARNING,
                at_key=True,
            )


def _without_limited_catchers(node: Node) -> Node:
    """Return a state without the catchers that lead back to it a limited number of times."""
    if "Catch" not in node.value:
        return node
    unlimited = [
        catcher
        for _, catcher in handlers(node.value, "Catch")
        if catcher.get("Next") != node.name or not REFUSES.search(_text(catcher))
    ]
    return node._replace(value={**node.value, "Catch": unlimited})


def _calls_agent(state: Mapping[str, Json]) -> bool:
    """Whether a state, or one within it, calls an agent."""
    if type_of(state).calls(state):
        return True
    for _, machine in nested_machines(state):
        inner = machine.get("States")
        if type(inner) is dict and any(
            type(each) is dict and _calls_agent(each) for each in inner.values()
        ):
            return True
    return False


def _counts_rounds(members: list[Node], further: Mapping[str, list[str]]) -> bool:
    """Whether a decision in a loop leads out of it, and something in the loop counts."""
    names = {node.name for node in members}
    decides = any(
        "Choices" in node.value and not names.issuperset(further[node.name]) for node in members
    )
    return decides and any(COUNTS.search(_text(node.value)) for node in members)


def _text(state: Mapping[str, Json]) -> str:
    return compact({key: value for key, value in state.items() if key != "Comment"})


def check_recursion(workflow: CheckedWorkflow) -> Iterator[Finding]:
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
                f"{workflow.name!r} starts itself, and no Choice before it can end the recursion",
                node.at("WorkflowId"),
                "put a Choice state before it that ends the recursion",
            )


def _always_reached(scope: MachineScope, name: str) -> bool:
    """Whether a way without a decision leads to a state; a Map may have no items."""
    while True:
        if name not in _undecided(scope):
            return False
        if scope.outer is None or scope.holder is None:
            return True
        if scope.holder.value.get("Type") == "Map":
            return False
        name, scope = scope.holder.name, scope.outer


def _undecided(scope: MachineScope) -> set[str]:
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
            todo += next_states(nodes[name])
    return found
