"""Parsed queries: what they read, and their evaluation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from asl.core.values import Json
from asl.core.work import WorkMeter
from asl.expr.frame import Frame
from asl.expr.jsonata import calls, parser
from asl.expr.jsonata.analysis import ParsedTree, certain_failures, constant
from asl.expr.jsonata.closures import compile
from asl.expr.jsonata.faults import QueryFault, fault
from asl.expr.jsonata.functions.dialects import (
    DirectCall,
    DirectCallFactory,
    direct_call,
    named_functions,
)
from asl.expr.jsonata.functions.table import NATIVES
from asl.expr.jsonata.javascript import UNDEFINED, Undefined
from asl.expr.jsonata.nesting import FLAT, Nesting, nesting
from asl.expr.jsonata.parser import lift_texts, parse_common, source_offset
from asl.expr.jsonata.results import open_levels, result_json
from asl.expr.jsonata.scopes import LIMITS, QueryLimits, QueryRun, QueryScope
from asl.expr.jsonata.values import Closure
from asl.expr.query_protocol import CertainFailure, Reference

__all__ = ["UNDEFINED", "CompiledShape", "Query", "QueryFault", "Undefined", "parse"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class CompiledShape:
    """The compiled form that queries with different constant texts share."""

    variables: frozenset[str]
    shadowed: frozenset[str]
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
    def shadowed(self) -> frozenset[str]:
        """The built-in function names it reads, which workflow variables would replace."""
        return self.shape.shadowed

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
        return certain_failures(tree, bool(self.shape.shadowed))

    def __call__(
        self, bindings: Mapping[str, Json], frame: Frame, meter: WorkMeter | None = None
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
