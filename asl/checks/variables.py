"""Variables: V-VAR-01 to V-VAR-03, and which states read which (Specification 3.7)."""

from collections.abc import Iterator, Mapping

from asl.checks import path_expressions
from asl.checks.flow import AssignedVariables, assignments, trace_assignments
from asl.checks.jsonata_expressions import parse_query, state_strings
from asl.checks.workflow import CheckedWorkflow, MachineScope
from asl.core.diagnostics import Finding, Wording
from asl.core.errors import ExpressionFault
from asl.core.lazy import lazy_pattern
from asl.expr.templates import paths_in
from asl.states.base import Node

__all__ = ["check", "references"]

RESERVED = "states"
RESERVED_NAME = "RESERVED_VARIABLE_NAME"
_NAME = lazy_pattern(r"[^\W\d]\w{0,79}")

Assigned = Mapping[str, list[str]]
"""Variable name -> pointers of the places that assign it."""


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield what is wrong with the variables of every machine."""
    assigned: dict[str, Assigned] = {}
    aws = trace_assignments(workflow) if workflow.profile.aws else None
    for scope in workflow.scopes:  # outer machines come first
        own: dict[str, list[str]] = {}
        above = _above(scope, assigned) if aws is None else _before(scope, assigned, aws)
        for name, pointer in assignments(scope):
            own.setdefault(name, []).append(pointer)
            yield from _name(name, pointer)
            yield from _hiding(name, pointer, above.get(name, []))
        assigned[scope.pointer] = own
    parse_query = [
        (scope, node, found)
        for scope in workflow.scopes
        for node in scope.nodes
        for found in _read(workflow, node)
    ]
    flow = aws or (trace_assignments(workflow) if parse_query else None)
    for scope, node, (name, pointer, offset) in parse_query:
        if flow is not None and not _known(scope, node, name, flow, assigned):
            yield _unassigned(workflow, scope, node, name, pointer, offset, assigned)


def references(workflow: CheckedWorkflow) -> dict[str, list[str]]:
    """Return the names of the variables that each state reads, by its name, in order of names."""
    parse_query = {
        node.name: sorted({name for name, _, _ in _read(workflow, node)})
        for node in workflow.nodes()
    }
    return {state: names for state, names in parse_query.items() if names}


# --------------------------------------------------------------------------------------------
# Assigning


def _above(scope: MachineScope, assigned: Mapping[str, Assigned]) -> Assigned:
    """Return what the machines around this one assign and this one can see."""
    above: dict[str, list[str]] = {}
    inner = scope
    while inner.outer is not None and not inner.isolated:
        inner = inner.outer
        for name, pointers in assigned[inner.pointer].items():
            above.setdefault(name, []).extend(pointers)
    return above


def _before(
    scope: MachineScope, assigned: Mapping[str, Assigned], flow: AssignedVariables
) -> Assigned:
    """Return what the machines around this one assign on some way to it, as AWS sees it.

    It looks into a distributed Map, too.
    """
    above: dict[str, list[str]] = {}
    inner = scope
    while inner.outer is not None and inner.holder is not None:
        holder, inner = inner.holder, inner.outer
        for name, pointers in assigned[inner.pointer].items():
            if flow.knows(inner, holder, name) or not flow.is_reachable(inner, holder):
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
            aws=Wording(f"The variable name '{name}' was already defined in a parent scope."),
        )


def _name(name: str, pointer: str) -> Iterator[Finding]:
    if name == RESERVED:
        wording = Wording("Cannot assign to reserved variable '$states'.", code=RESERVED_NAME)
        message = f"the name {name!r} is reserved"
        yield Finding("V-VAR-01", message, pointer, at_key=True, aws=wording)
    elif len(name) > 80:
        message = "the name of a variable has at most 80 characters"
        yield Finding("V-VAR-01", message, pointer, at_key=True)
    elif not _NAME.fullmatch(name):
        hint = "a letter or _ comes first, then letters, digits and _"
        if name.startswith("$"):
            hint = f"the name is written without the dollar: {name.lstrip('$.')!r}"
        words = f"Invalid variable name '{name}': the variable name contains invalid characters."
        message = f"{name!r} is no name of a variable"
        yield Finding("V-VAR-01", message, pointer, hint, at_key=True, aws=Wording(words))


# --------------------------------------------------------------------------------------------
# Reading


def _read(workflow: CheckedWorkflow, node: Node) -> Iterator[tuple[str, str, int | None]]:
    """Yield `(name, pointer, offset)` of every variable that a state reads."""
    if node.query_language == "JSONata":
        yield from _in_queries(workflow, node)
    else:
        yield from _in_paths(workflow, node)


def _in_paths(workflow: CheckedWorkflow, node: Node) -> Iterator[tuple[str, str, int | None]]:
    for each in path_expressions.expressions_of(node):
        if node.open(each.text):
            continue
        try:
            aws = node.profile.aws
            paths = list(paths_in(path_expressions.read(each, aws=aws), aws))
        except ExpressionFault:
            continue  # reported with the expressions
        for name in dict.fromkeys(path.variable for path in paths):
            if name is not None:
                yield name, each.pointer, None


def _in_queries(workflow: CheckedWorkflow, node: Node) -> Iterator[tuple[str, str, int | None]]:
    for each in state_strings(workflow, node):
        source = each.source
        query = None if source is None or node.open(source) else parse_query(workflow, source)
        if query is None or isinstance(query, ExpressionFault) or not query.variables:
            continue
        first = {reference.name: reference.offset for reference in reversed(query.references)}
        for name in sorted(query.variables, key=first.__getitem__):
            yield name, each.pointer, each.lead + first[name]


def _known(
    scope: MachineScope,
    node: Node,
    name: str,
    flow: AssignedVariables,
    assigned: Mapping[str, Assigned],
) -> bool:
    """Whether a variable may have a value where it is read."""
    if flow.is_reachable(scope, node):
        return flow.knows(scope, node, name)
    # That the state is never reached is a fault of its own.
    return name in assigned[scope.pointer] or name in _above(scope, assigned)


def _unassigned(
    workflow: CheckedWorkflow,
    scope: MachineScope,
    node: Node,
    name: str,
    pointer: str,
    offset: int | None,
    assigned: Mapping[str, Assigned],
) -> Finding:
    own, above = assigned[scope.pointer], _above(scope, assigned)
    elsewhere = own.get(name) or above.get(name)
    related: tuple[tuple[str, str], ...] = ()
    message = f"no state assigns the variable {name!r}"
    if elsewhere is not None:
        message = f"no state that comes before {node.name!r} assigns the variable {name!r}"
        related = ((elsewhere[0], "it is assigned here"),)
        hint = None
        if elsewhere[0].startswith(f"{node.pointer}/"):
            hint = "what a state assigns is there from the next state on"
    else:
        others = [pointer for each in assigned.values() for pointer in each.get(name, ())]
        hint = _hint(workflow, node, name, [*own, *above])
        if others:
            related = ((others[0], "another machine has one of this name"),)
            hint = "a machine sees the variables of those around it, but for a distributed Map"
    return Finding(
        "V-VAR-03",
        message,
        pointer,
        hint,
        related=related,
        inside=offset,
    )


def _hint(workflow: CheckedWorkflow, node: Node, name: str, known: list[str]) -> str | None:
    jsonata = node.query_language == "JSONata"
    names = [RESERVED, *known] if jsonata else known
    near = workflow.suggestions.near(f"${name}", [f"${each}" for each in names])
    data = "$states.input" if jsonata else "$"
    return near or f"write {data}.{name} for a field of the data"
