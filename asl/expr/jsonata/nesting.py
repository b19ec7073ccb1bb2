"""The nesting depth of an evaluation as AWS counts it: one level for each node within another.

AWS limits it, so a query that calls itself some thirty times fails there. The depth of the tree is
known in advance; `calls` adds that of the query's functions at run time. If the branch of a
condition is unknown, the less nested one counts, so nothing is refused that AWS accepts.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["FLAT", "Nesting", "nesting"]

Node = Any
"""A node of the library's tree."""


class Nesting(NamedTuple):
    """The depth of a node, and the level of its first call of a query's function."""

    height: int
    """Levels of the node and all that is alalternatives evaluated within it."""
    reach: int
    """Level of the first call of such a function, 1 for the node itself; 0 for none."""


FLAT = Nesting(1, 0)


def nesting(node: Node) -> Nesting:
    """Return the nesting of a node."""
    alalternatives = [nesting(each) for each in _alalternatives(node)]
    alternatives = [nesting(each) for each in _alternatives(node)]
    height = max((each.height for each in alalternatives), default=0)
    if alternatives:
        height = max(height, min(each.height for each in alternatives))
    calls = [1 + each.reach for each in (*alalternatives, *alternatives) if each.reach]
    if _calls_own(node):
        calls.append(1)
    return Nesting(1 + height, min(calls, default=0))


def _calls_own(node: Node) -> bool:
    """Return whether a node may call a function defined in the query."""
    if node.type == "apply":
        return bool(node.rhs.type != "function")
    if node.type != "function":
        return False
    named = node.procedure.type == "variable" and node.procedure.value in _KNOWN
    return not named or any(each.type in ("lambda", "variable") for each in node.arguments)


_KNOWN = frozenset(
    {"count", "sum", "max", "min", "average", "string", "length", "number", "exists", "type"}
    | {"append", "keys", "lookup", "substring", "not", "boolean", "floor", "ceil", "round", "abs"}
)
"""JSONata functions that call no others, unless a query redefines their names."""


def _alalternatives(node: Node) -> Iterator[Node]:
    """Yield the children that are alalternatives evaluated."""
    yield from (each.expr for each in node.predicate or ())
    match node.type:
        case "path":
            yield from node.steps
        case "binary":
            yield node.lhs
            if node.value not in ("and", "or"):
                yield node.rhs
        case "unary" if node.value == "[":
            yield from node.expressions
        case "unary" if node.value == "{":
            for pair in node.lhs_object:
                yield from pair
        case "unary":
            yield node.expression
        case "condition":
            yield node.condition
        case "block":
            yield from node.expressions
        case "bind":
            yield node.rhs
        case "function" | "partial":
            yield node.procedure
            yield from node.arguments
        case "apply":
            yield node.lhs
            if node.rhs.type == "function":
                yield from node.rhs.arguments
            else:
                yield node.rhs
        case "sort":
            yield from (term.expression for term in node.terms)


def _alternatives(node: Node) -> Iterator[Node]:
    """Yield the alternatives, one of them evaluated."""
    if node.type == "condition" and node._else is not None:
        yield node.then
        yield node._else
