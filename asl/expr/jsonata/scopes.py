"""The state of an evaluation: its limits, its work so far, and its variables."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import floor
from typing import Final, NoReturn

from asl.core.values import Json
from asl.core.work import LIMITS as LIMITS_OF_WORK
from asl.core.work import Quantity, WorkLimits, WorkMeter
from asl.expr.frame import ExpressionFrame
from asl.expr.jsonata.analysis import Nesting
from asl.expr.jsonata.faults import QueryFault, fault
from asl.expr.jsonata.javascript import UNDEFINED, Value


@dataclass(frozen=True, slots=True, eq=False)
class QueryLimits:
    """The limits of an evaluation; the same query and data always end the same way."""

    work: WorkLimits = LIMITS_OF_WORK
    """Steps and bytes of one evaluation."""
    depth: int = 500
    """Nested calls of the query's own functions; tail calls do not count."""
    items: int = 1_000_000
    """Items of one sequence or array."""
    ranged: int = 1_000_000
    """Items of a `$range`."""
    characters: int = 10_000_000
    """Length of one string."""
    nesting: int | None = None
    """Levels of nested nodes (`nesting`), None for no limit."""
    finite: bool = True
    """Whether NaN and infinities are errors instead of texts such as `Infinity`."""
    java: bool = False
    """Whether texts, numbers and patterns follow the behaviour measured on AWS."""


LIMITS = QueryLimits()
AWS_LIMITS = QueryLimits(
    items=873_782,
    ranged=360_145,
    characters=6_990_256,
    nesting=100,
    finite=False,
    java=True,
)
"""The limits observed on AWS."""


def limits(aws: bool) -> QueryLimits:
    """Return the limits of the `aws` profile, or of any other."""
    return AWS_LIMITS if aws else LIMITS


class QueryRun(WorkMeter):
    """One evaluation of a query: its work meter and its input."""

    __slots__ = ("bindings", "bounds", "depth", "frame", "level", "texts")

    def __init__(
        self,
        bindings: Mapping[str, Json],
        frame: ExpressionFrame,
        bounds: QueryLimits,
        texts: tuple[str, ...] = (),
    ) -> None:
        self.limits = work = bounds.work
        self.steps = work.steps
        self.bytes = work.bytes
        self.bindings = bindings
        self.frame = frame
        self.bounds = bounds
        self.texts = texts
        self.depth = 0
        self.level = 0
        """Nesting level of the current function call, as AWS counts it."""

    def nest(self, nesting: Nesting) -> None:
        """Enter a nested node.

        Raises:
            QueryFault: D1011 if it is nested too deeply.
        """
        most = self.bounds.nesting
        if most is not None:
            if self.level + nesting.height > most:
                raise fault("D1011")
            self.level += nesting.reach

    def exceed(self, quantity: Quantity) -> NoReturn:
        """Raise the error of an exceeded limit.

        Raises:
            QueryFault: D1012 for too many steps, D1013 for too many bytes, D1011 for too many
                levels.
        """
        if quantity == "steps":
            raise fault("D1012", limit=self.limits.steps)
        if quantity == "bytes":
            raise fault("D1013", what="value", limit=f"{self.limits.bytes} bytes")
        raise fault("D1011")

    def copy(self, items: int) -> None:
        """Count the copying of references into an array."""
        self.steps -= items >> COPIED
        self.bytes -= REFERENCE * items
        if self.steps < 0 or self.bytes < 0:
            self.exceed("steps" if self.steps < 0 else "bytes")

    def hold(self, items: int, most: int | None = None) -> None:
        """Count the creation of an array.

        Raises:
            QueryFault: D1013 if it is too large.
        """
        most = most or self.bounds.items
        if items > most:
            raise fault("D1013", what="sequence", limit=f"{most} items")
        self.copy(items)

    def count(self, numbers: int, most: int | None = None) -> None:
        """Count the creation of an array of numbers.

        Raises:
            QueryFault: D1013 if it is too large.
        """
        self.hold(numbers, most)
        self.steps -= numbers >> 4
        self.spend_bytes(NUMBER * numbers)

    def write(self, characters: int) -> None:
        """Count the creation of a string.

        Raises:
            QueryFault: D1013 if it is too long.
        """
        if characters > self.bounds.characters:
            raise self.too_long()
        self.scan(characters)
        self.spend_bytes(CHARACTER * characters)

    def scan(self, characters: int) -> None:
        """Count the reading of a string."""
        self.spend(characters >> READ)

    def encode(self, texts: Iterable[str]) -> None:
        """Count the encoding of texts, to compare them."""
        self.spend_bytes(CHARACTER * sum(map(len, texts)))

    def too_long(self) -> QueryFault:
        """Return the error of a string that is too long."""
        return fault("D1013", what="string", limit=f"{self.bounds.characters} characters")

    @property
    def millis(self) -> int:
        """Return the time of this evaluation, in milliseconds since 1970."""
        return floor(self.frame.now * 1000)


COPIED: Final = 5
"""A step copies two to the power of this many references."""
READ: Final = 5
"""A step reads or writes two to the power of this many characters."""
NUMBER: Final = 32
"""Bytes of a number."""
REFERENCE: Final = 8
"""Bytes of a reference."""
CHARACTER: Final = 2
"""Bytes of a character; some have one, and some four."""


class QueryScope:
    """The variables of a block, a function or a tuple; `outer` is the enclosing scope."""

    __slots__ = ("names", "outer", "run")

    def __init__(self, run: QueryRun, outer: "QueryScope | None", names: dict[str, Value]) -> None:
        self.run = run
        self.outer = outer
        self.names = names

    def look_up(self, name: str, default: Value = UNDEFINED) -> Value:
        """Return the value bound by the query, else by the workflow, else *default*."""
        scope: QueryScope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return self.run.bindings.get(name, default)
