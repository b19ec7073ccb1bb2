"""Every expression of the JSONata states: that it can be read and suits its place.

V-JSONATA-*. Specification 3.6. The query language itself is imported with the first expression.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from asl.checks.workflow import Workflow, Written
from asl.checks.written import of_document, queries_of, read
from asl.core.diagnostics import Finding
from asl.core.errors import ExpressionFault
from asl.states.base import Node

__all__ = ["check"]


def check(workflow: Workflow) -> Iterator[Finding]:
    """Yield what is wrong with the expressions of every JSONata state, and of the document."""
    nodes = [node for node in workflow.nodes() if node.query_language == "JSONata"]
    whole = of_document(workflow)
    if not nodes and not whole:
        return
    from asl.checks.judging import judged

    right: set[tuple[object, frozenset[str], str | None]] = set()
    for written in chain(whole, *(_of_state(workflow, node) for node in nodes)):
        key = _form(workflow, written), written.members, written.wanted
        if key in right:
            continue
        found = [*judged(workflow, written)]
        yield from found
        if not found:
            right.add(key)


def _of_state(workflow: Workflow, node: Node) -> Sequence[Written]:
    found = queries_of(workflow, node)
    return [each for each in found if not node.open(each.text)] if node.unfilled else found


def _form(workflow: Workflow, written: Written) -> object:
    """Return what strings have in common of which one is as right as the other."""
    if written.source is None:
        return written.text
    query = read(workflow, written.source)
    return query if isinstance(query, ExpressionFault) else query.shape
