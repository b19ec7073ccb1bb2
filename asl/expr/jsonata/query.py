"""A parsed query: what it reads, and its evaluation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from asl.core.values import Json
from asl.core.work import WorkMeter
from asl.expr.frame import Frame
from asl.expr.jsonata import calls, parser
from asl.expr.jsonata.analysis import ParsedTree, certain_failures
from asl.expr.jsonata.closures import compile
from asl.expr.jsonata.context import constant
from asl.expr.jsonata.direct_calls import Direct, Maker, direct_call
from asl.expr.jsonata.fast_parser import lift_texts, parse_common, source_offset
from asl.expr.jsonata.faults import QueryFault, fault
from asl.expr.jsonata.functions.dialects import named_functions
from asl.expr.jsonata.functions.table import NATIVES
from asl.expr.jsonata.nesting import FLAT, Nesting, nesting
from asl.expr.jsonata.results import open_levels, result_json
from asl.expr.jsonata.scopes import LIMITS, QueryLimits, QueryRun, Scope
from asl.expr.jsonata.undefined import UNDEFINED, Undefined
from asl.expr.jsonata.values import Closure
from asl.expr.query_protocol import CertainFailure, Reference

__all__ = ["UNDEFINED", "Query", "QueryFault", "Shape", "Undefined", "parse"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What queries have in common that differ in constant texts alone; it is compiled once."""

    variables: frozenset[str]
    shadowed: frozenset[str]
    members: frozenset[str] | None
    references: tuple[Reference, ...]
    context: tuple[tuple[str, int], ...]
    constant: str | None
    names: tuple[str, ...]
    """What it takes of the workflow's variables, where they are there."""
    in_context: bool
    """Whether it reads the context object."""
    closure: Closure
    levels: int
    nesting: Nesting
    direct: Maker | None


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed JSONata expression; threads may evaluate one at the same time."""

    source: str
    shape: Shape
    """What is known without its texts; of those of the same shape, what is right for one is so
    for all."""
    texts: tuple[str, ...]
    """The constant texts that its shape leaves out."""
    _limits: QueryLimits
    direct: Direct | None = None
    """How to call the function that it is, if it is nothing else."""

    @property
    def variables(self) -> frozenset[str]:
        """The workflow variables that it reads."""
        return self.shape.variables

    @property
    def shadowed(self) -> frozenset[str]:
        """The built-in functions whose names it reads, which variables of these would replace."""
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
        """Each reading of a variable, with its offset."""
        found = self.shape.references
        if not self.texts:
            return found
        return tuple(
            each._replace(offset=source_offset(self.source, each.offset)) for each in found
        )

    @property
    def context(self) -> tuple[tuple[str, int], ...]:
        """What it reads of its context item, and where (`ParsedTree`)."""
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
        """Evaluate with `$name` for each name of *bindings*; raises QueryFault.

        A *meter* that several evaluations share limits all of them together.
        """
        shape = self.shape
        run = QueryRun(bindings, frame, self._limits, self.texts)
        run.nest(shape.nesting)
        if meter is not None:
            run.steps, run.bytes = min(run.steps, meter.steps), min(run.bytes, meter.bytes)
        steps, size = run.steps, run.bytes
        try:
            return result_json(shape.closure(UNDEFINED, Scope(run, None, {})), run, shape.levels)
        except RecursionError:
            raise fault("D1011") from None
        finally:
            if meter is not None:
                meter.steps -= steps - run.steps
                meter.bytes -= size - run.bytes


def parse(source: str, limits: QueryLimits = LIMITS) -> Query:
    """Parse a query; raises ExpressionFault(V-JSONATA-01) with the offset of what is wrong."""
    return _with_room(lambda: _parsed(source, limits))


def _with_room(parse_common: Callable[[], T]) -> T:
    """Read a source where the stack has room; raises ExpressionFault where none is enough."""
    try:
        return parse_common()
    except RecursionError:  # perhaps only because the caller's own stack is deep
        try:
            return calls.run_on_new_stack(parse_common)
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
def _usual(form: str, limits: QueryLimits) -> Shape | None:
    """Return the shape of the usual queries of a form, None where the library has to read them."""
    parsed = parse_common(form, form=True)
    return None if parsed is None else _shape(parsed, limits)


def _shape(parsed: ParsedTree, limits: QueryLimits) -> Shape:
    """Return what is known of a query without its texts."""
    tree, bound, found, context = parsed
    foreign = named_functions({each.name for each in found if each.called and "_" in each.name})
    natives = NATIVES | foreign if foreign else NATIVES
    free = {each.name for each in found if each.name != "states" and not each.called}
    states = [each.member for each in found if each.name == "states"]
    return Shape(
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
