"""A parsed query: what it reads, and its evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from asl.core.values import Json
from asl.expr.frame import Frame
from asl.expr.jsonata import stacks, syntax
from asl.expr.jsonata.analysis import Reference
from asl.expr.jsonata.closures import compile, levels
from asl.expr.jsonata.direct import Direct, direct
from asl.expr.jsonata.faults import QueryFault, fault
from asl.expr.jsonata.functions.dialects import found_in
from asl.expr.jsonata.functions.table import NATIVES
from asl.expr.jsonata.nesting import FLAT, Nesting, nesting
from asl.expr.jsonata.results import plain
from asl.expr.jsonata.scopes import LIMITS, Limits, Run, Scope
from asl.expr.jsonata.values import UNDEFINED, Closure, Undefined

__all__ = ["UNDEFINED", "Query", "QueryFault", "Undefined", "parse"]


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed JSONata expression; threads may evaluate one at the same time.

    `variables` are the workflow variables that it reads, `shadowed` the built-in functions whose
    names it reads and that a variable of the same name would replace, `members` the members of
    `$states` it reads, None for the whole object. `references` has each reading with its offset.
    """

    source: str
    variables: frozenset[str]
    shadowed: frozenset[str]
    members: frozenset[str] | None
    references: tuple[Reference, ...]
    context: tuple[tuple[str, int], ...]
    """What it reads of its context item, and where (`Parsed`)."""
    tree: Any
    """The library's syntax tree."""
    _closure: Closure
    _levels: int
    _limits: Limits
    _nesting: Nesting
    direct: Direct | None = None
    """How to call the function that it is, if it is nothing else."""

    def __call__(self, bindings: Mapping[str, Json], frame: Frame) -> Json | Undefined:
        """Evaluate with `$name` for each name of *bindings*; raises QueryFault."""
        scope = Scope(Run(bindings, frame, self._limits), None, {})
        scope.run.enter(self._nesting)
        try:
            return plain(self._closure(UNDEFINED, scope), scope.run, self._levels)
        except RecursionError:
            raise fault("D1011") from None


def parse(source: str, limits: Limits = LIMITS) -> Query:
    """Parse a query; raises ExpressionFault(V-JSONATA-01) with the offset of what is wrong."""
    try:
        return _parsed(source, limits)
    except RecursionError:  # perhaps only because the caller's own stack is deep
        try:
            return stacks.elsewhere(lambda: _parsed(source, limits))
        except RecursionError:
            raise syntax.too_deep(0) from None


@lru_cache(maxsize=512)  # checking and compiling read each query, and many are the same
def _parsed(source: str, limits: Limits) -> Query:
    tree, bound, found, context = syntax.parse(source)
    foreign = found_in({each.name for each in found if each.called and "_" in each.name})
    free = {each.name for each in found if each.name != "states" and not each.called}
    states = [each.member for each in found if each.name == "states"]
    return Query(
        source,
        frozenset(name for name in free if name not in NATIVES),
        frozenset(name for name in free if name in NATIVES),
        None if None in states else frozenset(each for each in states if each is not None),
        found,
        context,
        tree,
        compile(tree, NATIVES | foreign if foreign else NATIVES, bound),
        levels(tree, bound),
        limits,
        FLAT if limits.nesting is None else nesting(tree),
        direct(tree, foreign) if foreign else None,
    )
