"""What an evaluation carries along: its limits, what it has spent of them, and its variables."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor

from asl.core.values import Json
from asl.expr.frame import Frame
from asl.expr.jsonata.faults import QueryFault, fault
from asl.expr.jsonata.nesting import Nesting
from asl.expr.jsonata.values import UNDEFINED, Value


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Where an evaluation ends with a fault; the same query and data always end alike.

    A step is about a tenth of a microsecond's work: all of them take some seconds.
    """

    steps: int = 20_000_000
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


LIMITS = Limits()
AWS_LIMITS = Limits(
    items=873_782,
    ranged=360_145,
    characters=6_990_256,
    nesting=100,
    finite=False,
    java=True,
)
"""Those that AWS was observed to have."""


def limits(aws: bool) -> Limits:
    """The limits of the `aws` profile, or of any other."""
    return AWS_LIMITS if aws else LIMITS


class Run:
    """One evaluation of a query."""

    __slots__ = ("bindings", "depth", "frame", "level", "limits", "steps", "texts")

    def __init__(
        self,
        bindings: Mapping[str, Json],
        frame: Frame,
        limits: Limits,
        texts: tuple[str, ...] = (),
    ) -> None:
        self.bindings = bindings
        self.frame = frame
        self.limits = limits
        self.texts = texts
        self.steps = limits.steps
        self.depth = 0
        self.level = 0
        """How deep the calls of the function under way are nested, as AWS counts it."""

    def enter(self, nesting: Nesting) -> None:
        """Go a level down into what nests so; raises D1011 where that is too deep."""
        most = self.limits.nesting
        if most is not None:
            if self.level + nesting.height > most:
                raise fault("D1011")
            self.level += nesting.reach

    def spend(self, steps: int) -> None:
        """Count work; raises D1012 when there was too much of it."""
        self.steps -= steps
        if self.steps < 0:
            raise self.exhausted()

    def exhausted(self) -> QueryFault:
        """The fault of an evaluation that takes too many steps."""
        return fault("D1012", limit=self.limits.steps)

    def hold(self, items: int, most: int | None = None) -> None:
        """Count the making of an array; raises D1013 for too large a one."""
        most = most or self.limits.items
        if items > most:
            raise fault("D1013", what="sequence", limit=f"{most} items")
        self.spend(items)

    def write(self, characters: int) -> None:
        """Count the making of a string; raises D1013 for too long a one."""
        if characters > self.limits.characters:
            raise self.too_long()
        self.spend(characters >> 5)

    def too_long(self) -> QueryFault:
        """The fault of a string that is too long."""
        return fault("D1013", what="string", limit=f"{self.limits.characters} characters")

    @property
    def millis(self) -> int:
        """The time of this evaluation, in milliseconds since 1970."""
        return floor(self.frame.now * 1000)


class Scope:
    """The variables that a block, a function or a tuple binds; `outer` is what encloses it."""

    __slots__ = ("names", "outer", "run")

    def __init__(self, run: Run, outer: "Scope | None", names: dict[str, Value]) -> None:
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
