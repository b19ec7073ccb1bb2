"""Static analysis of a query's tree: free variables, bound names, context item, nesting depth.

A workflow has no context item: data comes as `$states`, variables as `$name`. AWS refuses
expressions that use it (AWS, recorded). Within a path, a predicate or a grouping the context is the
result of the step before, so names are allowed there; a function has the context of its definition.

AWS limits the nesting depth of an evaluation, one level for each node within another, so a query
that calls itself some thirty times fails there. The depth of the tree is known in advance; `calls`
adds that of the query's functions at run time. If the branch of a condition is unknown, the less
nested one counts, so nothing is refused that AWS accepts.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from asl.expr.query_protocol import CalledMember, CertainFailure, Reference, TextOperand

__all__ = [
    "FLAT",
    "Nesting",
    "ParsedTree",
    "bound_names",
    "certain_failures",
    "constant",
    "context_reads",
    "nesting",
    "nodes_of",
    "references",
]

Node = Any
"""A node of the library's tree."""


class ParsedTree(NamedTuple):
    """The tree of a source, with the results of its analysis."""

    tree: Node
    bound: frozenset[str]
    """The names that it binds itself."""
    references: tuple[Reference, ...]
    """The uses of free variables, in text order."""
    context: tuple[tuple[str, int], ...]
    """Uses of the context item with their offsets: a name, `$` for the item, `$$` for the root."""


def references(tree: Any) -> tuple[Reference, ...]:
    """Return the uses of free variables, in text order.

    A name counts as bound where the query has bound it on every path to that place; a function may
    use a name that is defined after it in the same block.
    """
    found: list[Reference] = []
    _Walk(found).walk(tree, _Scope())
    return tuple(sorted(found, key=lambda reference: reference.offset))


class _Scope:
    """The names bound here and outside, and the functions defined later in the block."""

    __slots__ = ("names", "outer")

    def __init__(self, outer: "_Scope | None" = None, names: Iterable[str] = ()) -> None:
        self.outer = outer
        self.names = set(names)

    def __contains__(self, name: str) -> bool:
        return name in self.names or (self.outer is not None and name in self.outer)


class _Walk:
    """A walk over the library's tree; `scope` grows within a block."""

    def __init__(self, found: list[Reference]) -> None:
        self.found = found

    def walk(self, node: Any, scope: _Scope) -> None:
        visit = getattr(self, f"_{node.type}", None)
        if visit is not None:
            visit(node, scope)
        for filter in node.predicate or ():
            self.walk(filter.expr, scope)
        if node.type != "path" and node.group is not None:
            self._pairs(node.group.lhs_object, scope)

    def _all(self, nodes: Iterable[Any], scope: _Scope) -> None:
        for node in nodes:
            self.walk(node, scope)

    def _pairs(self, pairs: Iterable[Any], scope: _Scope) -> None:
        for key, value in pairs:
            self.walk(key, scope)
            self.walk(value, scope)

    def _variable(
        self, node: Any, scope: _Scope, called: bool = False, member: str | None = None
    ) -> None:
        if node.value not in ("", "$") and node.value not in scope:
            offset = node.position - len(node.value) - 1
            self.found.append(Reference(node.value, offset, called, member))

    def _path(self, node: Any, scope: _Scope) -> None:
        inner = _Scope(scope)
        for index, step in enumerate(node.steps):
            if step.type == "variable" and index == 0:
                following = node.steps[1] if len(node.steps) > 1 else None
                plain = not step.stages and not step.predicate
                member = (
                    following.value
                    if plain and following is not None and following.type == "name"
                    else None
                )
                self._variable(step, scope, False, member)
                self._all((filter.expr for filter in step.predicate or ()), inner)
            else:
                self.walk(step, inner)
            inner.names |= {name for name in (step.focus, step.index) if name is not None}
            for stage in step.stages or ():
                if stage.type == "index":
                    inner.names.add(stage.value)
                else:
                    self.walk(stage.expr, inner)
        if node.group is not None:
            self._pairs(node.group.lhs_object, inner)

    def _binary(self, node: Any, scope: _Scope) -> None:
        self.walk(node.lhs, scope)
        self.walk(node.rhs, _Scope(scope) if node.value in ("and", "or") else scope)

    def _apply(self, node: Any, scope: _Scope) -> None:
        self.walk(node.lhs, scope)
        if node.rhs.type == "variable":
            self._variable(node.rhs, scope, called=True)
        else:
            self.walk(node.rhs, scope)

    def _unary(self, node: Any, scope: _Scope) -> None:
        if node.value == "[":
            self._all(node.expressions, scope)
        elif node.value == "{":
            self._pairs(node.lhs_object, scope)
        else:
            self.walk(node.expression, scope)

    def _sort(self, node: Any, scope: _Scope) -> None:
        self._all((term.expression for term in node.terms), scope)

    def _condition(self, node: Any, scope: _Scope) -> None:
        self.walk(node.condition, scope)
        branches = [_Scope(scope) for _ in range(2)]
        self.walk(node.then, branches[0])
        if node._else is not None:
            self.walk(node._else, branches[1])
        scope.names |= branches[0].names & branches[1].names

    def _block(self, node: Any, scope: _Scope) -> None:
        inner = _Scope(scope)
        functions = {
            each.lhs.value
            for each in node.expressions
            if each.type == "bind" and each.rhs.type == "lambda"
        }
        for each in node.expressions:
            if each.type == "bind" and each.rhs.type == "lambda":
                self.walk(each.rhs, _Scope(inner, functions))
                inner.names.add(each.lhs.value)
            else:
                self.walk(each, inner)

    def _bind(self, node: Any, scope: _Scope) -> None:
        if node.rhs.type == "lambda":
            self.walk(node.rhs, _Scope(scope, [node.lhs.value]))
        else:
            self.walk(node.rhs, scope)
        scope.names.add(node.lhs.value)

    def _lambda(self, node: Any, scope: _Scope) -> None:
        self.walk(node.body, _Scope(scope, [each.value for each in node.arguments]))

    def _function(self, node: Any, scope: _Scope) -> None:
        if node.procedure.type == "variable":
            self._variable(node.procedure, scope, called=True)
        else:
            self.walk(node.procedure, scope)
        self._all(node.arguments, scope)

    _partial = _function

    def _transform(self, node: Any, scope: _Scope) -> None:
        parts = (node.pattern, node.update, node.delete)
        self._all((part for part in parts if part is not None), scope)


# Names that are bound -------------------------------------------------------------------------


def bound_names(tree: Node) -> frozenset[str]:
    """Return the names that a query binds itself, anywhere."""
    return frozenset(_bound(tree))


_LEAVES = {"string", "number", "value", "name", "variable", "wildcard", "descendant", "parent"}
"""Nodes without children except filters and a grouping."""


def _children(node: Node) -> Iterator[Node]:
    """Yield the nodes directly below a node of the library's tree."""
    if node.type in _LEAVES:
        yield node.group
        yield from node.predicate or ()
        yield from node.stages or ()
        return
    for name in ("lhs", "rhs", "expression", "procedure", "body", "condition", "then", "_else"):
        yield getattr(node, name)
    for name in ("pattern", "update", "delete", "group", "expr"):
        yield getattr(node, name)
    for name in ("steps", "expressions", "arguments", "predicate", "stages", "terms"):
        yield from getattr(node, name) or ()
    for pair in node.lhs_object or ():
        yield from pair


def nodes_of(tree: Node) -> Iterator[Node]:
    """Yield a node and all of its descendants, in no particular order."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(child for child in _children(node) if child is not None)


def _bound(tree: Node) -> Iterator[str]:
    """Yield the names that a query binds itself, anywhere."""
    for node in nodes_of(tree):
        if node.type == "bind":
            yield node.lhs.value
        elif node.type == "lambda":
            yield from (parameter.value for parameter in node.arguments)
        elif node.type == "index":
            yield node.value
        yield from (name for name in (node.focus, node.index) if type(name) is str)


# Certain failures -----------------------------------------------------------------------------

_ARITHMETIC: Final = frozenset("+-*/%")
_FUNCTION_VALUES: Final = frozenset({"lambda", "partial", "regex"})
"""Nodes whose values are functions."""


def certain_failures(tree: Node, shadowed: bool) -> list[CertainFailure]:
    """Return the parts of a query that fail for any data.

    Args:
        tree: The syntax tree.
        shadowed: Whether the query uses built-in functions as values: a member of an object that
            it makes may be one.
    """
    nodes = [*nodes_of(tree)]
    has_functions = shadowed or not _FUNCTION_VALUES.isdisjoint(node.type for node in nodes)
    found: list[CertainFailure] = []
    for node in nodes:
        if node.type == "binary" and node.value in _ARITHMETIC:
            if "string" in (node.lhs.type, node.rhs.type):
                found.append(TextOperand(node.position - 1, node.value))
        elif node.type == "function" and node.procedure.type == "path" and not has_functions:
            step = node.procedure.steps[-1]
            name = str(step.value)
            found.append(CalledMember(step.position - len(name), name))
    return found


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
    """Add the uses in a node; *top* says whether the context item is that of the query."""
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
