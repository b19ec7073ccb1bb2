"""Variables: V-VAR-01 to V-VAR-03 (Specification 3.7)."""

import re
from collections.abc import Iterator, Mapping

from asl.checks.expressions import expressions_of, read
from asl.checks.workflow import Scope, Workflow, objects
from asl.core.diagnostics import Finding, escape
from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.expr.expressions import paths_in
from asl.expr.templates import SUFFIX
from asl.states.base import Node

__all__ = ["check"]

RESERVED = "states"
_NAME = re.compile(r"[^\W\d]\w{0,79}")

Assigned = Mapping[str, list[str]]
"""Variable name -> pointers of the places that assign it."""


def check(workflow: Workflow) -> Iterator[Finding]:
    """Yield what is wrong with the variables of every machine."""
    assigned: dict[str, Assigned] = {}
    for scope in workflow.scopes:  # outer machines come first
        own: dict[str, list[str]] = {}
        above = _above(scope, assigned)
        for name, pointer in _assignments(scope):
            own.setdefault(name, []).append(pointer)
            yield from _name(name, pointer)
            yield from _hiding(name, pointer, above.get(name, []))
        assigned[scope.pointer] = own
        for node in scope.nodes:
            if node.query_language == "JSONPath":
                yield from _reads(workflow, node, own, above)


def _above(scope: Scope, assigned: Mapping[str, Assigned]) -> Assigned:
    """Return what the machines around this one assign and this one can see."""
    above: dict[str, list[str]] = {}
    inner = scope
    while inner.outer is not None and not inner.isolated:
        inner = inner.outer
        for name, pointers in assigned[inner.pointer].items():
            above.setdefault(name, []).extend(pointers)
    return above


def _hiding(name: str, pointer: str, others: list[str]) -> Iterator[Finding]:
    # A catcher of the state around this machine assigns when the machine is gone; AWS accepts it.
    before = [other for other in others if not pointer.startswith(other.partition("/Catch/")[0])]
    if before:
        yield Finding(
            "V-VAR-02",
            f"{name!r} is a variable of the machine around this one",
            pointer,
            "use another name inside, or hand the value out as output",
            related=((before[0], "it is assigned here"),),
            at_key=True,
        )


def _assignments(scope: Scope) -> Iterator[tuple[str, str]]:
    for node in scope.nodes:
        yield from _keys(node, node.value, node.at("Assign"))
        for field in ("Choices", "Catch"):
            for index, entry in objects(node.value, field):
                yield from _keys(node, entry, node.at(field, index, "Assign"))


def _keys(node: Node, holder: Mapping[str, Json], pointer: str) -> Iterator[tuple[str, str]]:
    assign = holder.get("Assign")
    for key in assign if type(assign) is dict else ():
        name = key.removesuffix(SUFFIX) if node.query_language == "JSONPath" else key
        if name or not key:
            yield name, f"{pointer}/{escape(key)}"


def _name(name: str, pointer: str) -> Iterator[Finding]:
    if name == RESERVED:
        yield Finding("V-VAR-01", f"the name {name!r} is reserved", pointer, at_key=True)
    elif not _NAME.fullmatch(name):
        if len(name) > 80:
            message, hint = "the name of a variable has at most 80 characters", None
        else:
            message = f"{name!r} is no name of a variable"
            hint = "a letter or _ comes first, then letters, digits and _"
            if name.startswith("$"):
                hint = f"the name is written without the dollar: {name.lstrip('$.')!r}"
        yield Finding("V-VAR-01", message, pointer, hint, at_key=True)


def _reads(workflow: Workflow, node: Node, own: Assigned, above: Assigned) -> Iterator[Finding]:
    for expression in expressions_of(node):
        if workflow.open(expression.text):
            continue
        try:
            paths = list(paths_in(read(expression)))
        except ExpressionFault:
            continue  # reported with the expressions
        for name in dict.fromkeys(path.variable for path in paths):
            if name is not None and name not in own and name not in above:
                near = workflow.suggestions.near(name, [*own, *above])
                yield Finding(
                    "V-VAR-03",
                    f"no state assigns the variable {name!r}",
                    expression.pointer,
                    near or f"write $.{name} for a field of the data",
                )
