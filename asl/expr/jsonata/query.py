"""Parsed queries: what they read, their evaluation, and their results as JSON."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any, TypeVar

from asl.core.values import MAX_DEPTH, SURROGATE, Json
from asl.core.work import WorkMeter
from asl.expr.frame import ExpressionFrame
from asl.expr.jsonata import calls, parser
from asl.expr.jsonata.analysis import FLAT, Nesting, ParsedTree, certain_failures, constant, nesting
from asl.expr.jsonata.calls import NativeFunction
from asl.expr.jsonata.closures import compile
from asl.expr.jsonata.faults import UNSUPPORTED, QueryFault, fault
from asl.expr.jsonata.functions.dialects import (
    DirectCall,
    DirectCallFactory,
    direct_call,
    named_functions,
)
from asl.expr.jsonata.functions.table import NATIVES
from asl.expr.jsonata.javascript import UNDEFINED, Undefined, Value, double
from asl.expr.jsonata.parser import lift_texts, parse_common, source_offset
from asl.expr.jsonata.scopes import LIMITS, QueryLimits, QueryRun, QueryScope
from asl.expr.jsonata.values import LONG, Closure, normal
from asl.expr.query_protocol import CertainFailure, Reference

__all__ = ["UNDEFINED", "CompiledShape", "Query", "QueryFault", "Undefined", "parse"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class CompiledShape:
    """The compiled form that queries with different constant texts share."""

    variables: frozenset[str]
    builtin_names: frozenset[str]
    members: frozenset[str] | None
    references: tuple[Reference, ...]
    context: tuple[tuple[str, int], ...]
    constant: str | None
    names: tuple[str, ...]
    """The workflow variables it reads, where they exist."""
    in_context: bool
    """Whether it reads the context object."""
    closure: Closure
    levels: int
    nesting: Nesting
    direct: DirectCallFactory | None


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed JSONata expression; threads may evaluate it at the same time."""

    source: str
    shape: CompiledShape
    """Everything known without the texts."""
    texts: tuple[str, ...]
    """The constant texts that the shape leaves out."""
    _limits: QueryLimits
    direct: DirectCall | None = None
    """The direct call of a dialect's function, if the query is nothing else."""

    @property
    def variables(self) -> frozenset[str]:
        """The workflow variables that it reads."""
        return self.shape.variables

    @property
    def builtin_names(self) -> frozenset[str]:
        """The built-in function names it reads, which workflow variables would replace."""
        return self.shape.builtin_names

    @property
    def members(self) -> frozenset[str] | None:
        """The members of `$states` that it reads, None for the whole object."""
        return self.shape.members

    @property
    def constant(self) -> str | None:
        """The JSON type of a query that is a literal value, None for any other."""
        return self.shape.constant

    @property
    def references(self) -> tuple[Reference, ...]:
        """The uses of variables, with their offsets."""
        found = self.shape.references
        if not self.texts:
            return found
        return tuple(
            each._replace(offset=source_offset(self.source, each.offset)) for each in found
        )

    @property
    def context(self) -> tuple[tuple[str, int], ...]:
        """The uses of the context item, with their offsets (`ParsedTree`)."""
        return tuple(
            (name, source_offset(self.source, offset)) for name, offset in self.shape.context
        )

    def certain_failures(self) -> list[CertainFailure]:
        """Return the parts that fail for any data; this parses the source again."""
        tree = _with_room(lambda: parser.parse(self.source).tree)
        return certain_failures(tree, bool(self.shape.builtin_names))

    def __call__(
        self, bindings: Mapping[str, Json], frame: ExpressionFrame, meter: WorkMeter | None = None
    ) -> Json | Undefined:
        """Evaluate the query.

        Args:
            bindings: The values of variables by name.
            frame: The running machine.
            meter: A meter shared with other evaluations, to limit all of them together.

        Raises:
            QueryFault: The evaluation failed.
        """
        shape = self.shape
        run = QueryRun(bindings, frame, self._limits, self.texts)
        run.nest(shape.nesting)
        if meter is not None:
            run.steps, run.bytes = min(run.steps, meter.steps), min(run.bytes, meter.bytes)
        steps, size = run.steps, run.bytes
        try:
            return result_json(
                shape.closure(UNDEFINED, QueryScope(run, None, {})), run, shape.levels
            )
        except RecursionError:
            raise fault("D1011") from None
        finally:
            if meter is not None:
                meter.steps -= steps - run.steps
                meter.bytes -= size - run.bytes


def parse(source: str, limits: QueryLimits = LIMITS) -> Query:
    """Parse a query.

    Args:
        source: The source without its delimiters.
        limits: The limits of its evaluations.

    Raises:
        ExpressionFault: V-JSONATA-01, with the offset of the syntax error.
    """
    return _with_room(lambda: _parsed(source, limits))


def _with_room(read: Callable[[], T]) -> T:
    """Parse with enough stack; raises ExpressionFault if no stack is enough."""
    try:
        return read()
    except RecursionError:  # perhaps only because the caller's own stack is deep
        try:
            return calls.run_on_new_stack(read)
        except RecursionError:
            raise parser.too_deep(0) from None


@lru_cache(maxsize=512)  # checking and compiling read each query, and many are the same
def _parsed(source: str, limits: QueryLimits) -> Query:
    parser.check_length(source)
    form, texts = lift_texts(source) or (None, ())
    shape = None if form is None else _usual(form, limits)
    if shape is None:
        shape, texts = _shape(parser.parse(source, limits.java), limits), ()
    return Query(source, shape, texts, limits, shape.direct and shape.direct(texts))


@lru_cache(maxsize=512)
def _usual(form: str, limits: QueryLimits) -> CompiledShape | None:
    """Return the shape of a form, None if the library must parse its queries."""
    parsed = parse_common(form, form=True)
    return None if parsed is None else _shape(parsed, limits)


def _shape(parsed: ParsedTree, limits: QueryLimits) -> CompiledShape:
    """Return the shape of a parsed query."""
    tree, bound, found, context = parsed
    foreign = named_functions({each.name for each in found if each.called and "_" in each.name})
    natives = NATIVES | foreign if foreign else NATIVES
    free = {each.name for each in found if each.name != "states" and not each.called}
    states = [each.member for each in found if each.name == "states"]
    return CompiledShape(
        frozenset(name for name in free if name not in NATIVES),
        frozenset(name for name in free if name in NATIVES),
        None if None in states else frozenset(each for each in states if each is not None),
        found,
        context,
        constant(tree),
        tuple(free),
        None in states or "context" in states,
        compile(tree, natives, bound, limits.java),
        open_levels(tree, bound, natives),
        FLAT if limits.nesting is None else nesting(tree),
        direct_call(tree, foreign) if foreign else None,
    )


# Results ------------------------------------------------------------------------------------------

EVERYWHERE = MAX_DEPTH + 1
"""The largest number of levels."""


def result_json(value: Value, run: QueryRun, levels: int = EVERYWHERE) -> Json | Undefined:
    """Return a result as JSON, or UNDEFINED.

    Containers without changes, such as all of the input, are returned themselves.

    Args:
        value: The result.
        run: The evaluation, which counts the work.
        levels: Levels below the top that may hold anything but JSON, as known from the query.

    Raises:
        QueryFault: D1016 for a function, D1014 for too deep nesting, D1001 for NaN and infinities.
            On AWS these are the texts "NaN" and "Infinity", and an integer beyond 2^63 is rounded
            to a double (AWS, measured; unchanged in containers that are passed through).
    """
    if value is UNDEFINED:
        return value
    return (
        _scalar(value, run.bounds)
        if not isinstance(value, list | dict)
        else _Plain(run).of(value, 0, levels)
    )


_UNCHANGED = frozenset({bool, type(None)})
_UNCHANGED_WITH_INTEGERS = _UNCHANGED | {int}


def _scalar(value: Value, limits: QueryLimits) -> Json:
    kind = type(value)
    if kind is str:
        if not value.isascii() and SURROGATE.search(value):
            raise fault("D1014", what="half of a surrogate pair is no character")
    elif kind is float:
        if not isfinite(value):
            if not limits.finite:
                return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
            raise fault("D1001", value=value)
    elif value is UNDEFINED:  # a predicate that holds without an item leaves one in an array
        return None
    elif kind is int:
        return value if not limits.java or -LONG <= value < LONG else normal(double(value))
    elif kind not in _UNCHANGED:
        raise fault(UNSUPPORTED)
    return value


class _Plain:
    __slots__ = ("known", "run", "unchanged")

    def __init__(self, run: QueryRun) -> None:
        self.run = run
        self.unchanged = _UNCHANGED if run.bounds.java else _UNCHANGED_WITH_INTEGERS
        self.known: dict[int, tuple[Value, Json]] = {}
        """The converted containers by id: shared parts stay shared."""

    def of(self, value: Value, depth: int, levels: int) -> Json:
        """Return a container as JSON, *depth* levels below the top."""
        kind = type(value)
        if not levels:
            if kind is dict or kind is list:
                return value
            return [None if item is UNDEFINED else item for item in value]
        if id(value) in self.known:
            return self.known[id(value)][1]
        if depth >= MAX_DEPTH:
            raise fault("D1014", what=f"nested deeper than {MAX_DEPTH} levels")
        self.run.spend(8 + (len(value) >> 1))
        result: Any = value if kind is dict or kind is list else list(value)
        for place, item in value.items() if kind is dict else enumerate(value):
            item_kind = type(item)
            if item_kind in self.unchanged or (item_kind is str and item.isascii()):
                continue
            if isinstance(item, list | dict):
                new = self.of(item, depth + 1, levels - 1)
            else:
                new = _scalar(item, self.run.bounds)
            if new is not item:
                if result is value:
                    result = value.copy()
                result[place] = new
        self.known[id(value)] = value, result
        return result


Node = Any
"""A node of the library's tree."""

_SELECTING = {"name", "variable", "wildcard", "descendant", "sort"}
"""Steps that select parts of their input."""

_SCALAR = {
    *("string", "length", "substring", "substringBefore", "substringAfter", "lowercase", "trim"),
    *("uppercase", "pad", "contains", "replace", "join", "number", "sum", "max", "min", "average"),
    *("count", "abs", "floor", "ceil", "round", "power", "sqrt", "exists", "boolean", "not"),
    *("keys", "split", "type", "hash", "uuid", "random", "now", "millis", "fromMillis", "toMillis"),
}
"""Functions that return a scalar, or an array of texts."""

_PASSING = {"filter", "distinct", "single", "lookup", "sift"}
"""Functions that return parts of their first argument."""

_WRAPPING = {"append", "reverse", "sort", "shuffle"}
"""Functions that return an array around arguments that may be scalars."""

_CONSTANT = ("string", "text", "number", "value")


def open_levels(tree: Node, bound: Container[str], natives: Mapping[str, NativeFunction]) -> int:
    """Return the levels of a result, below the top, that may hold anything but parts of the input.

    *bound* are the names that the query binds itself, *natives* those of the functions.
    """
    return min(_Levels(bound, natives).of(tree), EVERYWHERE)


@dataclass(frozen=True, slots=True)
class _Levels:
    bound: Container[str]
    natives: Mapping[str, NativeFunction]

    def of(self, node: Node) -> int:
        """Return the levels of a node's value; they do not cover the value itself."""
        if node.group is not None or (node.keep_array and node.type != "path"):
            return EVERYWHERE
        match node.type:
            case "string" | "text" | "number" | "value" | "binary":
                return 0
            case "variable" if node.value not in self.bound:
                return 0
            case "path" if all(
                step.type in _SELECTING and not step.group and not (step.focus or step.index)
                for step in node.steps
            ):
                first = 0 if node.steps[0].type != "variable" else self.of(node.steps[0])
                sorts = any(step.type == "sort" for step in node.steps)
                return max(first, 1) if sorts else first  # of nothing, a filter may leave items
            case "unary" if node.value == "[":
                return 1 + max(map(self.of, node.expressions), default=0)
            case "unary" if node.value == "{":
                return 1 + max((self.of(value) for _, value in node.lhs_object), default=0)
            case "unary":
                return 0
            case "condition":
                branches = [node.then] if node._else is None else [node.then, node._else]
                return max(map(self.of, branches))
            case "function" if node.procedure.type == "variable":
                return self._of_call(node.procedure.value, node.arguments)
        return EVERYWHERE

    def _of_call(self, name: str, arguments: list[Node]) -> int:
        if name in self.bound:
            return EVERYWHERE
        if name in _SCALAR:
            return 0
        inner = [self.of(each) for each in arguments]
        native = self.natives.get(name)
        if native is not None and native.json and not any(map(_made, arguments, inner)):
            return 0
        if name in _PASSING and inner:
            return inner[0]
        if name in _WRAPPING:
            return max(map(self._wrapped, arguments, inner), default=0)
        if name == "merge" and inner:
            listed = arguments[0].type == "unary" and arguments[0].value == "["
            return max(inner[0] - 1, 0) if listed else inner[0]
        return EVERYWHERE

    def _wrapped(self, node: Node, levels: int) -> int:
        """Return the levels of an array around a value that may be a scalar."""
        found = node.type == "path" or (node.type == "variable" and node.value not in self.natives)
        return levels if found and not levels else levels + 1


def _made(node: Node, levels: int) -> bool:
    """Return whether a value may hold anything but JSON; constants do not."""
    if node.type == "unary" and node.value == "{":
        values = [value for _, value in node.lhs_object]
        return node.group is not None or any(each.type not in _CONSTANT for each in values)
    return levels > 0
