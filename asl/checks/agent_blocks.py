"""Rules of agent blocks beyond their schemas: V-BUD-*, V-GRD-* and others (Specification 8)."""

from collections.abc import Iterator, Mapping

from asl.checks.structure import declares
from asl.checks.workflow import CheckedWorkflow, MachineScope, below
from asl.core.diagnostics import Finding, Severity
from asl.core.errors import ExpressionFault
from asl.core.pointers import escape
from asl.core.values import Json
from asl.expr.templates import SUFFIX, dynamic_fields, is_dynamic, parse_expression, template_faults
from asl.states import UNKNOWN, type_of
from asl.states.base import Node
from asl.states.blocks import BLOCKS, DOCUMENT_BLOCKS

__all__ = ["check"]


_FIELDS = frozenset(field for name in BLOCKS for field in (name, f"{name}.$"))
"""The blocks, and what computes each."""


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield what is wrong with the blocks of the document and of its states."""
    documents = {scope.pointer: scope for scope in workflow.scopes if scope.pointer == scope.home}
    for scope in documents.values():
        yield from _weights(workflow, scope)
        for name in DOCUMENT_BLOCKS:
            if name in scope.value:
                block = below(scope.value, name)
                yield from _expressions(block, f"{scope.pointer}/{name}")
                for finding in BLOCKS[name].check_workflow(block):
                    yield finding._replace(pointer=scope.pointer + finding.pointer)
    for scope in workflow.scopes:
        home = documents[scope.home].value
        for node in scope.nodes:
            for field in _blocks_of(node):
                name = field.removesuffix(".$")
                if field == name and type(node.value[field]) is dict:
                    around = below(home, name) or below(workflow.value, name)
                    yield from BLOCKS[name].check(node, around)
                else:
                    yield from BLOCKS[name].check_field(node, field)


def _blocks_of(node: Node) -> Iterator[str]:
    """Yield the blocks of a state that its type supports; the schema reports the others."""
    kind = type_of(node.value)
    for field in filter(_FIELDS.__contains__, node.value) if kind is not UNKNOWN else ():
        if declares(f"states:{kind.name}", field):
            yield field


def _weights(workflow: CheckedWorkflow, document: MachineScope) -> Iterator[Finding]:
    """Yield the weights of states that are not there (V-PRG-01)."""
    weights = below(document.value, "Progress", "WeightedProgress")
    around = f"{document.pointer}/Progress/WeightedProgress"
    apart = _isolated(workflow) if weights else set()
    names = workflow.names
    if weights and document.is_included:
        here = f"{document.pointer}/"
        names = frozenset(
            name
            for scope in workflow.scopes
            if scope is document or scope.pointer.startswith(here)
            for name in scope.names
        )
    for field in weights:
        name = field.removesuffix(SUFFIX)
        if name in apart:
            yield Finding(
                "V-PRG-01",
                f"{name!r} is inside a distributed Map, so it is not a state of this execution",
                f"{around}/{escape(field)}",
                "weigh the Map, whose own Progress counts its items",
                severity=Severity.WARNING,
                at_key=True,
            )
        elif name not in names:
            yield Finding(
                "V-PRG-01",
                f"there is no state {name!r}",
                f"{around}/{escape(field)}",
                workflow.suggestions.near(name, names),
                severity=Severity.WARNING,
                at_key=True,
            )


def _isolated(workflow: CheckedWorkflow) -> set[str]:
    """Return the names of the states that run in executions of their own, and nowhere else."""
    within: dict[bool, set[str]] = {True: set(), False: set()}
    for scope in workflow.scopes:
        outer: MachineScope | None = scope
        while outer is not None and not outer.isolated:
            outer = outer.outer
        within[outer is not None].update(node.name for node in scope.nodes)
    return within[True] - within[False]


def _expressions(block: Mapping[str, Json], pointer: str) -> Iterator[Finding]:
    """Yield what is wrong with the computed fields of a block of the document."""
    if not is_dynamic(block):
        return
    for place, fault in template_faults(block, pointer):
        yield Finding(fault.code, fault.message, place, fault.hint)
    for place, _, text in dynamic_fields(block, pointer):
        try:
            parse_expression(text if type(text) is str else "$")
        except ExpressionFault as fault:
            yield Finding(fault.code, fault.message, place, fault.hint)
