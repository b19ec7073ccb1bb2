"""What an evaluation carries along: its limits, what it has spent of them, and its variables."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import floor
from typing import Final, NoReturn

from asl.core.values import Json
from asl.core.work import LIMITS as LIMITS_OF_WORK
from asl.core.work import Quantity, WorkLimits, WorkMeter
from asl.expr.frame import Frame
from asl.expr.jsonata.faults import QueryFault, fault
from asl.expr.jsonata.nesting import Nesting
from asl.expr.jsonata.undefined import UNDEFINED, Value


@dataclass(frozen=True, slots=True, eq=False)
class QueryLimits:
    """Where an evaluation ends with a fault; the same query and data always end alike."""

    work: WorkLimits = LIMITS_OF_WORK
    """Steps and bytes of one evaluation."""
    depth: int = 500
    """Calls of the query's own functions within each other; tail calls do not count."""
    items: int = 1_000_000
    """Items of one sequence or array."""
    ranged: int = 1_000_000
    """Items that `$range` may make."""
    characters: int = 10_000_000
    """Length of one string."""
    nesting: int | None = None
    """Levels of nodes evaluated within each other (`nesting`), None for as many as may be."""
    finite: bool = True
    """Whether a number that JSON does not have is a fault, and no text such as `Infinity`."""
    java: bool = False
    """Whether texts, numbers and patterns are read, written and compared as AWS was measured to."""


LIMITS = QueryLimits()
AWS_LIMITS = QueryLimits(
    items=873_782,
    ranged=360_145,
    characters=6_990_256,
    nesting=100,
    finite=False,
    java=True,
)
"""Those that AWS was observed to have."""


def limits(aws: bool) -> QueryLimits:
    """The limits of the `aws` profile, or of any other."""
    return AWS_LIMITS if aws else LIMITS


class QueryRun(WorkMeter):
    """One evaluation of a query: the meter of its work, and what it reads."""

    __slots__ = ("bindings", "bounds", "depth", "frame", "level", "texts")

    def __init__(
        self,
        bindings: Mapping[str, Json],
        frame: Frame,
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
        """How deep the calls of the function under way are nested, as AWS counts it."""

    def nest(self, nesting: Nesting) -> None:
        """Enter what nests so; raises D1011 where that is too deep."""
        most = self.bounds.nesting
        if most is not None:
            if self.level + nesting.height > most:
                raise fault("D1011")
            self.level += nesting.reach

    def exceed(self, quantity: Quantity) -> NoReturn:
        """Raise D1012 for too many steps, D1013 for too many bytes, D1011 for too many levels."""
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
        """Count the making of an array; raises D1013 for too large a one."""
        most = most or self.bounds.items
        if items > most:
            raise fault("D1013", what="sequence", limit=f"{most} items")
        self.copy(items)

    def count(self, numbers: int, most: int | None = None) -> None:
        """Count the making of an array of numbers; raises D1013 for too large a one."""
        self.hold(numbers, most)
        self.steps -= numbers >> 4
        self.spend_bytes(NUMBER * numbers)

    def write(self, characters: int) -> None:
        """Count the making of a string; raises D1013 for too long a one."""
        if characters > self.bounds.characters:
            raise self.too_long()
        self.scan(characters)
        self.spend_bytes(CHARACTER * characters)

    def scan(self, characters: int) -> None:
        """Count the reading of a string."""
        self.spend(characters >> READ)

    def encode(self, texts: Iterable[str]) -> None:
        """Count the writing of texts as bytes, to compare them."""
        self.spend_bytes(CHARACTER * sum(map(len, texts)))

    def too_long(self) -> QueryFault:
        """The fault of a string that is too long."""
        return fault("D1013", what="string", limit=f"{self.bounds.characters} characters")

    @property
    def millis(self) -> int:
        """The time of this evaluation, in milliseconds since 1970."""
        return floor(self.frame.now * 1000)


COPIED: Final = 5
"""A step copies two to the power of so many references."""
READ: Final = 5
"""A step reads or writes two to the power of so many characters."""
NUMBER: Final = 32
"""Bytes of a number."""
REFERENCE: Final = 8
"""Bytes of a reference."""
CHARACTER: Final = 2
"""Bytes of a character; some have one, and some four."""


class Scope:
    """The variables that a block, a function or a tuple binds; `outer` is what encloses it."""

    __slots__ = ("names", "outer", "run")

    def __init__(self, run: QueryRun, outer: "Scope | None", names: dict[str, Value]) -> None:
        self.run = run
        self.outer = outer
        self.names = names

    def look_up(self, name: str, default: Value = UNDEFINED) -> Value:
        """What the query itself has bound to a name, else the workflow, else *default*."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return self.run.bindings.get(name, default)
