"""Find the uses of the context item in a query.

A workflow has no context item: data comes as `$states`, variables as `$name`. AWS refuses
expressions that use it (recorded). Inside a path, a predicate or a grouping the context is the
result of the step before, so names are allowed there; a function keeps the context of its
definition.
"""

from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["constant", "context_reads"]

_CONSTANTS = {"string": "string", "text": "string", "number": "number"}
_CONSTRUCTORS = {"[": "array", "{": "object"}


def context_reads(tree: Any) -> tuple[tuple[str, int], ...]:
    """Return `(name, offset)` pairs: a field name, `$` for the item, `$$` for the root."""
    found: list[tuple[str, int]] = []
    _read(tree, True, found)
    return tuple(found)


def constant(tree: Any) -> str | None:
    """Return the JSON type of a query that is a literal value, None for any other."""
    if tree.type == "value":
        return "null" if tree.value is None else "boolean"
    if tree.type == "unary":
        return _CONSTRUCTORS.get(tree.value)
    return _CONSTANTS.get(tree.type)


def _read(node: Any, top: bool, found: list[tuple[str, int]]) -> None:
    """Add the uses in a node; *top* says whether the context is still that of the query."""
    kind = node.type
    if kind == "name":
        if top:
            found.append((node.value, max(node.position - len(node.value), 0)))
    elif kind == "variable":
        if node.value == "$" or (node.value == "" and top):
            found.append((f"${node.value}", max(node.position - 1 - len(node.value), 0)))
    elif kind == "path":
        for index, step in enumerate(node.steps):
            _read(step, top and index == 0, found)
    elif kind == "sort":
        for term in node.terms:
            _read(term.expression, False, found)
    elif kind == "transform":
        for part in filter(None, (node.pattern, node.update, node.delete)):
            _read(part, False, found)
    else:
        for part in _parts(node):
            _read(part, top, found)
    for filters in (node.predicate, node.stages):
        for each in filters or ():
            if each.type == "filter":
                _read(each.expr, False, found)
    if node.group is not None:
        for part in _pairs(node.group.lhs_object):
            _read(part, False, found)


def _parts(node: Any) -> Iterator[Any]:
    """Yield the children that are evaluated in the context of their parent."""
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
