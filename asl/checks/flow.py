"""What is assigned where, and which variables a state may find assigned (Specification 3.7)."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from asl.checks.workflow import CheckedWorkflow, MachineScope, objects, text
from asl.core.values import Json
from asl.expr.templates import SUFFIX
from asl.states.base import Node

__all__ = ["AssignedVariables", "assignments", "trace_assignments"]

PATIENCE = 32
"""How often a way is followed on average before a machine is left alone."""


def assignments(scope: MachineScope) -> Iterator[tuple[str, str]]:
    """Yield `(variable, pointer)` of everything that the states of a machine assign."""
    for node in scope.nodes:
        yield from _keys(node, node.value)
        for field in ("Choices", "Catch"):
            for index, entry in objects(node.value, field) if field in node.value else ():
                yield from _keys(node, entry, field, index)


def _keys(node: Node, holder: Mapping[str, Json], *steps: str | int) -> Iterator[tuple[str, str]]:
    assign = holder.get("Assign")
    for key in assign if type(assign) is dict else ():
        name = key.removesuffix(SUFFIX) if node.query_language == "JSONPath" else key
        if name or not key:
            yield name, node.at(*steps, "Assign", key)


class AssignedVariables(NamedTuple):
    """The variables that may have been assigned when a state begins, on some way to it.

    Sets of variables are integers with a bit for each, as a document may hold thousands of both.
    """

    bits: Mapping[str, int]
    before: Mapping[str, Mapping[str, int]]
    """Pointer of a machine -> name of a state -> its variables; without what is never reached."""

    def is_reachable(self, scope: MachineScope, node: Node) -> bool:
        """Whether a way to the state is known."""
        return node.name in self.before[scope.pointer]

    def knows(self, scope: MachineScope, node: Node, variable: str) -> bool:
        """Whether the variable may have a value when the state begins."""
        return bool(self.bits.get(variable, 0) & self.before[scope.pointer].get(node.name, 0))


def trace_assignments(workflow: CheckedWorkflow) -> AssignedVariables:
    """Follow the transitions of every machine from its start."""
    names = dict.fromkeys(name for scope in workflow.scopes for name, _ in assignments(scope))
    bits = {name: 1 << index for index, name in enumerate(names)}
    before: dict[str, Mapping[str, int]] = {}
    for scope in workflow.scopes:  # outer machines come first
        outside = 0
        if scope.outer is not None and scope.holder is not None and not scope.isolated:
            outside = before[scope.outer.pointer].get(scope.holder.name, 0)
        before[scope.pointer] = _before(scope, outside, bits)
    return AssignedVariables(bits, before)


def _before(scope: MachineScope, outside: int, bits: Mapping[str, int]) -> Mapping[str, int]:
    ways = {node.name: list(_ways(node, bits)) for node in scope.nodes}
    patience = PATIENCE * sum(1 + len(each) for each in ways.values())
    start = text(scope.value, "StartAt")
    found = {start: outside} if start in ways else {}
    queue, waiting = deque(found), set(found)  # each state waits once at a time
    while queue:
        name = queue.popleft()
        waiting.discard(name)
        for target, assigned in ways[name]:
            known = found.get(target)
            now = found[name] | assigned | (known or 0)
            if target in ways and now != known:
                found[target] = now
                if target not in waiting:
                    waiting.add(target)
                    queue.append(target)
        patience -= len(ways[name])
        if patience < 0:
            return {}
    return found


def _ways(node: Node, bits: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield every state that may follow, with the variables that are assigned on that way.

    What a Choice assigns itself belongs to its Default; an Approval assigns after it has chosen.
    """
    own = _assigned(node, node.value, bits)
    always = 0 if node.value.get("Type") == "Choice" else own
    for _, rule in objects(node.value, "Choices"):
        yield from _way(rule, "Next", always | _assigned(node, rule, bits))
    for _, catcher in objects(node.value, "Catch"):
        yield from _way(catcher, "Next", _assigned(node, catcher, bits))
    for field in ("Next", "Default"):
        yield from _way(node.value, field, own)


def _way(holder: Mapping[str, Json], field: str, assigned: int) -> Iterator[tuple[str, int]]:
    target = text(holder, field)
    if target is not None:
        yield target, assigned


def _assigned(node: Node, holder: Mapping[str, Json], bits: Mapping[str, int]) -> int:
    return sum({bits[name] for name, _ in _keys(node, holder)})
