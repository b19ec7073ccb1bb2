"""What a query reads of its context item, found in its syntax tree.

In a workflow there is no such item: the data comes as `$states`, variables as `$name`. AWS refuses
expressions that read it anyway (recorded). Inside a path, a predicate or a grouping the context is
what the step before has found, so names are right there; a function keeps that of its definition.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from asl.expr.jsonata.query import Query

__all__ = ["constant", "context_reads"]

_CONSTANTS = {"string": "string", "number": "number"}
_CONSTRUCTORS = {"[": "array", "{": "object"}


def context_reads(query: Query) -> Iterator[tuple[str, int]]:
    """Yield `(what is read, offset)`: a field name, `$` for the item itself, `$$` for the root."""
    yield from _reads(query.tree, True)


def constant(query: Query) -> str | None:
    """Return the JSON type of a query that is a literal value, None for any other."""
    tree = query.tree
    if tree.type == "value":
        return "null" if tree.value is None else "boolean"
    if tree.type == "unary":
        return _CONSTRUCTORS.get(tree.value)
    return _CONSTANTS.get(tree.type)


def _reads(node: Any, top: bool) -> Iterator[tuple[str, int]]:
    if node.type == "name" and top:
        yield node.value, max(node.position - len(node.value), 0)
    elif node.type == "variable" and (node.value == "$" or (node.value == "" and top)):
        yield f"${node.value}", max(node.position - 1 - len(node.value), 0)
    elif node.type == "path":
        first, *following = node.steps
        yield from _reads(first, top)
        yield from _all(following, False)
    elif node.type == "sort":
        yield from _all((term.expression for term in node.terms), False)
    elif node.type == "transform":
        yield from _all(filter(None, (node.pattern, node.update, node.delete)), False)
    else:
        yield from _all(_parts(node), top)
    filters = (*(node.predicate or ()), *(node.stages or ()))
    yield from _all((each.expr for each in filters if each.type == "filter"), False)
    if node.group is not None:
        yield from _all(_pairs(node.group.lhs_object), False)


def _all(nodes: Iterable[Any], top: bool) -> Iterator[tuple[str, int]]:
    for node in nodes:
        yield from _reads(node, top)


def _parts(node: Any) -> Iterator[Any]:
    """Yield the parts that are evaluated in the context of the whole."""
    match node.type:
        case "binary" | "apply":
            yield from (node.lhs, node.rhs)
        case "bind":
            yield node.rhs
        case "unary" if node.value == "{":
            yield from _pairs(node.lhs_object)
        case "unary" if node.value == "[":
            yield from node.expressions
        case "unary":
            yield node.expression
        case "condition":
            yield from filter(None, (node.condition, node.then, node._else))
        case "block":
            yield from node.expressions
        case "lambda":
            yield node.body
        case "function" | "partial":
            yield from (node.procedure, *node.arguments)


def _pairs(pairs: Iterable[Any]) -> Iterator[Any]:
    for key, value in pairs:
        yield from (key, value)
