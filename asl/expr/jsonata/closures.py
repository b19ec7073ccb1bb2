"""Compile the tree of a query to closures `(context item, scope) -> value`.

The semantics are those of JSONata's reference implementation, node by node. Costs are computed
during compilation, so that a loop can pay for its body with one subtraction.
"""

import re
from collections.abc import Callable
from typing import Any

from asl.core.regex import linear
from asl.expr.jsonata import grouping, operators, paths
from asl.expr.jsonata.analysis import nesting, nodes_of
from asl.expr.jsonata.calls import (
    HOLE,
    FunctionChain,
    Lambda,
    NativeFunction,
    PartialFunction,
    Signature,
    SignatureParameter,
    TailCall,
)
from asl.expr.jsonata.faults import QueryFault, fault
from asl.expr.jsonata.javascript import UNDEFINED, Value
from asl.expr.jsonata.operators import Transform
from asl.expr.jsonata.parser import join_surrogates
from asl.expr.jsonata.scopes import QueryScope
from asl.expr.jsonata.sorting import SortTerm
from asl.expr.jsonata.values import (
    Closure,
    ConstructedArray,
    QueryFunction,
    ResultSequence,
    boolean,
    collapse,
)

Node = Any
"""A node of the library's tree."""


def compile(
    tree: Node, natives: dict[str, NativeFunction], bound: frozenset[str], java: bool = False
) -> Closure:
    """Compile a whole query.

    Args:
        tree: The tree of the query.
        natives: The built-in functions.
        bound: The names that the query binds itself.
        java: As in `QueryLimits`.
    """
    return _Compiler(bound, natives, java).compile(tree)


_LOOSE = {"function", "apply", "variable", "wildcard", "descendant", "parent"}
"""The nodes whose sequences `compile` collapses."""


class _Compiler:
    def __init__(
        self, bound: frozenset[str], natives: dict[str, NativeFunction], java: bool
    ) -> None:
        self.bound = bound
        self.natives = natives
        self.java = java
        self.weight = 0
        """Number of nodes compiled so far."""

    def compile(self, node: Node) -> Closure:
        """Compile a node with its filters and grouping."""
        self.weight += 1
        closure: Closure = getattr(self, "_" + node.type)(node)
        loose = node.type in _LOOSE and not self.given(node)
        for each in node.predicate or ():
            closure = paths.filter_by(closure, self.filter(each))
            loose = True
        if node.type != "path" and node.group is not None:
            closure = grouping.group_by(closure, self.pairs(node.group.lhs_object))
            loose = False
        if node.keep_array and node.type != "path":
            return _kept(closure)
        return _collapsing(closure) if loose else closure

    def given(self, node: Node) -> bool:
        """Return whether a node is a workflow variable or a function: never a sequence."""
        return node.type == "variable" and node.value != "" and node.value not in self.bound

    def compile_weighed(self, node: Node) -> tuple[Closure, int]:
        """Compile a node; return its closure and its weight."""
        before = self.weight
        return self.compile(node), self.weight - before

    # Values --------------------------------------------------------------------------------------

    def _string(self, node: Node) -> Closure:
        return constant(join_surrogates(node.value))

    def _text(self, node: Node) -> Closure:
        index = node.value
        return lambda item, scope: scope.run.texts[index]

    def _number(self, node: Node) -> Closure:
        return constant(node.value)

    _value = _number
    _regex = _number

    def _variable(self, node: Node) -> Closure:
        name = node.value
        if name == "":
            return lambda item, scope: item
        default = self.natives.get(name, UNDEFINED)
        if name in self.bound:
            return lambda item, scope: scope.look_up(name, default)
        return lambda item, scope: scope.run.bindings.get(name, default)

    def _parent(self, node: Node) -> Closure:
        label = node.slot.label
        return lambda item, scope: scope.look_up(label)

    def _name(self, node: Node) -> Closure:
        return paths.name_step(node.value)

    def _wildcard(self, node: Node) -> Closure:
        return paths.wildcard

    def _descendant(self, node: Node) -> Closure:
        return paths.descendants

    # Operators -----------------------------------------------------------------------------------

    def _binary(self, node: Node) -> Closure:
        operator = node.value
        if operator in ("and", "or"):
            return self._logical(node)
        one, other = self.compile(node.lhs), self.compile(node.rhs)
        if operator in ("+", "-", "*", "/", "%"):
            apply = operators.arithmetic(operator, self.java)
            return lambda item, scope: apply(one(item, scope), other(item, scope))
        if operator in ("<", "<=", ">", ">="):
            compare = operators.comparison(operator, self.java)
            return lambda item, scope: compare(one(item, scope), other(item, scope), scope.run)
        combine = _COMBINING[operator]
        return lambda item, scope: combine(one(item, scope), other(item, scope), scope.run)

    def _logical(self, node: Node) -> Closure:
        one, other = self.compile(node.lhs), self.compile(node.rhs)
        operator, decided = node.value, node.value == "or"

        def combine(item: Value, scope: QueryScope) -> Value:
            left = one(item, scope)
            try:
                if truth(left, scope) is decided:
                    return decided
                return truth(other(item, scope), scope)
            except QueryFault as error:  # the reference implementation names this operator, too
                error.fields["token"] = operator
                raise

        return combine

    def _unary(self, node: Node) -> Closure:
        if node.value == "[":
            return self._array(node)
        if node.value == "{":
            return grouping.object_of(self.pairs(node.lhs_object))
        operand = self.compile(node.expression)
        return lambda item, scope: operators.negative(operand(item, scope))

    def _array(self, node: Node) -> Closure:
        constructs = bool(node.consarray)
        parts = [(each.value == "[", self.compile(each)) for each in node.expressions]

        def array(item: Value, scope: QueryScope) -> Value:
            result: list[Value] = []
            for nested, part in parts:
                value = part(item, scope)
                if nested or not isinstance(value, list):
                    if value is not UNDEFINED:
                        result.append(value)
                else:
                    scope.run.hold(len(value))
                    result += value
            scope.run.steps -= len(parts)
            return ConstructedArray(result) if constructs else result

        return array

    def _condition(self, node: Node) -> Closure:
        condition, then = self.compile(node.condition), self.compile(node.then)
        otherwise = NOTHING if node._else is None else self.compile(node._else)
        return lambda item, scope: (
            then(item, scope) if truth(condition(item, scope), scope) else otherwise(item, scope)
        )

    def _bind(self, node: Node) -> Closure:
        name, expression = node.lhs.value, self.compile(node.rhs)

        def bind(item: Value, scope: QueryScope) -> Value:
            value = scope.names[name] = expression(item, scope)
            return value

        return bind

    def _block(self, node: Node) -> Closure:
        parts = [self.compile(each) for each in node.expressions]
        scoped = any(each.type == "bind" for each in nodes_of(node))
        if not parts:
            return NOTHING
        if len(parts) == 1 and not scoped:
            return parts[0]
        *first, last = parts

        def block(item: Value, scope: QueryScope) -> Value:
            inner = QueryScope(scope.run, scope, {})
            for part in first:
                part(item, inner)
            return last(item, inner)

        return block

    # Paths ---------------------------------------------------------------------------------------

    def _path(self, node: Node) -> Closure:
        names = _plain_names(node)
        if names is not None:
            self.weight += len(names)
            first = node.steps[0]
            start = self.compile(first) if first.type == "variable" else None
            return paths.name_path(start, names)
        steps = [self.step(each) for each in node.steps]
        return paths.path(
            steps,
            keep=bool(node.keep_singleton_array),
            keep_result=bool(node.keep_array),
            as_tuples=bool(node.tuple),
            pairs=None if node.group is None else self.pairs(node.group.lhs_object),
            absolute=node.steps[0].type == "variable",
        )

    def step(self, node: Node) -> paths.PathStep:
        """Compile a step of a path."""
        if node.type == "sort":
            self.weight += 1
            terms = [
                SortTerm(*self.compile_weighed(term.expression), bool(term.descending))
                for term in node.terms
            ]
            closure, weight = NOTHING, 1
        else:
            terms = None
            closure, weight = self.compile_weighed(node)
        return paths.PathStep(
            closure,
            weight,
            [
                stage.value if stage.type == "index" else self.filter(stage)
                for stage in node.stages or ()
            ],
            terms,
            node.focus,
            node.index,
            None if node.ancestor is None else node.ancestor.label,
            bool(node.tuple),
            bool(node.consarray),
        )

    def filter(self, node: Node) -> paths.PathFilter:
        """Compile a filter of a step."""
        predicate = node.expr
        if predicate.type == "number" and predicate.predicate is None:
            return paths.PathFilter(NOTHING, 1, predicate.value)
        return paths.PathFilter(*self.compile_weighed(predicate), None)

    def pairs(self, pairs: list[list[Node]]) -> list[grouping.ObjectPair]:
        """Compile the keys and values of an object."""
        return [self.pair(key, value) for key, value in pairs]

    def pair(self, key: Node, value: Node) -> grouping.ObjectPair:
        """Compile a key and its value."""
        before = self.weight
        made = self.compile(key), self.compile(value), _constant_key(key)
        return grouping.ObjectPair(*made, self.weight - before)

    # Functions -----------------------------------------------------------------------------------

    def _lambda(self, node: Node) -> Closure:
        if node.thunk:
            procedure = self.compile(node.body.procedure)
            arguments = [self.compile(each) for each in node.body.arguments]
            name = _called(node.body.procedure)
            return lambda item, scope: TailCall(name, procedure, arguments, item, scope)
        parameters = tuple(each.value for each in node.arguments)
        signature = None if node.signature is None else _signature(node.signature)
        body, weight = self.compile_weighed(node.body)
        nests = nesting(node.body)
        return lambda item, scope: Lambda(parameters, body, weight, nests, signature, item, scope)

    def _function(self, node: Node, lead: Closure | None = None) -> Closure:
        procedure = self.compile(node.procedure)
        arguments = [self.compile(each) for each in node.arguments]
        if lead is not None:
            arguments.insert(0, lead)
        name = _called(node.procedure)
        meant = self._meant(node.procedure)

        def call(item: Value, scope: QueryScope) -> Value:
            function = procedure(item, scope)
            if not isinstance(function, QueryFunction):
                if function is UNDEFINED and meant(item, scope):
                    raise fault("T1005", token=name)
                for argument in arguments:
                    argument(item, scope)
                raise fault("T1006", token=name)
            values = [argument(item, scope) for argument in arguments]
            try:
                return function.apply(values, item, scope)
            except QueryFault as error:
                error.fields.setdefault("token", name)
                raise

        return call

    def _meant(self, procedure: Node) -> Closure:
        """Return the test for a function named by a path: its dollar sign may be missing."""
        if procedure.type != "path":
            return NOTHING
        name = procedure.steps[0].value
        known = name in self.natives
        return lambda item, scope: known or scope.look_up(str(name)) is not UNDEFINED

    def _partial(self, node: Node) -> Closure:
        procedure = self.compile(node.procedure)
        arguments = [
            constant(HOLE) if each.type == "operator" and each.value == "?" else self.compile(each)
            for each in node.arguments
        ]
        name = _called(node.procedure)
        meant = self._meant(node.procedure)

        def partial(item: Value, scope: QueryScope) -> Value:
            given = [argument(item, scope) for argument in arguments]
            function = procedure(item, scope)
            if isinstance(function, Lambda):
                return function.bind_parameters(given)
            if isinstance(function, QueryFunction):
                return PartialFunction(function, given)
            if function is UNDEFINED and meant(item, scope):
                raise fault("T1007", token=name)
            raise fault("T1008", token=name)

        return partial

    def _apply(self, node: Node) -> Closure:
        left = self.compile(node.lhs)
        if node.rhs.type == "function":
            self.weight += 1
            return self._function(node.rhs, left)
        right = self.compile(node.rhs)

        def apply(item: Value, scope: QueryScope) -> Value:
            value, function = left(item, scope), right(item, scope)
            if not isinstance(function, QueryFunction):
                raise fault("T2006", value=function)
            if isinstance(value, QueryFunction):
                return FunctionChain(value, function)
            try:
                return function.apply([value], None, scope)
            except QueryFault as error:
                error.fields.setdefault("token", function.name or UNDEFINED)
                raise

        return apply

    def _transform(self, node: Node) -> Closure:
        pattern, update = self.compile(node.pattern), self.compile(node.update)
        delete = None if node.delete is None else self.compile(node.delete)
        clone = self.natives["clone"]
        return lambda item, scope: Transform(
            pattern, update, delete, scope.look_up("clone", clone), scope
        )


def _signature(parsed: Any) -> Signature:
    """Return the signature of a function in the query, matched in linear time."""
    return Signature(
        [
            SignatureParameter(
                each.type,
                each.regex,
                re.compile(each.regex.rstrip("?+")) if each.context else None,
                each.subtype,
            )
            for each in parsed._params
        ],
        linear,
    )


_COMBINING: dict[str, Callable[..., Value]] = {
    "=": operators.equality,
    "!=": operators.inequality,
    "in": operators.inclusion,
    "&": operators.concatenation,
    "..": operators.interval,
}


def constant(value: Value) -> Closure:
    """Return the closure of a constant value."""
    return lambda item, scope: value


NOTHING = constant(UNDEFINED)


def truth(value: Value, scope: QueryScope) -> bool:
    """Return the truth of a value."""
    if value is True or value is False:
        return bool(value)
    if isinstance(value, list):
        scope.run.spend(len(value))
    return boolean(value)


def _kept(closure: Closure) -> Closure:
    """Return an expression followed by `[]`: a sequence of one item remains an array."""

    def keep(item: Value, scope: QueryScope) -> Value:
        value = closure(item, scope)
        if type(value) is ResultSequence and not value.tuples:
            value.keep = True
            return collapse(value)
        return value

    return keep


def _collapsing(closure: Closure) -> Closure:
    def collapse_value(item: Value, scope: QueryScope) -> Value:
        value = closure(item, scope)
        return collapse(value) if type(value) is ResultSequence else value

    return collapse_value


def _called(procedure: Node) -> Value:
    """Return the name of a called function for messages; UNDEFINED without a name."""
    name = procedure.steps[0].value if procedure.type == "path" else procedure.value
    return UNDEFINED if name is None else name


def _constant_key(node: Node) -> str | None:
    plain = node.type == "string" and node.predicate is None and node.group is None
    return join_surrogates(node.value) if plain else None


def _plain_names(node: Node) -> tuple[str, ...] | None:
    """Return the names of a path without filters, perhaps after a variable; else None."""
    first, *rest = node.steps
    if node.keep_singleton_array or node.tuple or node.group is not None or node.keep_array:
        return None
    for each in node.steps:
        if each.stages or each.predicate or each.group or each.focus or each.tuple:
            return None
        if each.index is not None or each.ancestor is not None or each.keep_array:
            return None
    if any(each.type != "name" for each in rest) or first.type not in ("name", "variable"):
        return None
    return tuple(str(each.value) for each in (rest if first.type == "variable" else node.steps))
