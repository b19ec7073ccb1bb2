"""What leaves a query: plain JSON, or UNDEFINED."""

from math import isfinite
from typing import Any

from asl.core.values import MAX_DEPTH, SURROGATE, Json
from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.scopes import Run
from asl.expr.jsonata.values import UNDEFINED, Undefined, Value

_SCALARS = frozenset({str, int, bool, type(None)})

EVERYWHERE = MAX_DEPTH + 1
"""As many levels as a result can have."""


def plain(value: Value, run: Run, levels: int = EVERYWHERE) -> Json | Undefined:
    """A result as JSON; raises D1014 for a function, and for what nests too deeply.

    Only so many *levels* below the top can hold anything but JSON, as is known from the query.
    Containers that need no change, such as all of the input, stay the objects that they are.
    """
    return value if value is UNDEFINED else _Plain(run).of(value, 0, levels)


class _Plain:
    __slots__ = ("known", "run")

    def __init__(self, run: Run) -> None:
        self.run = run
        self.known: dict[int, tuple[Value, Json]] = {}
        """The containers seen so far: what is shared stays shared."""

    def of(self, value: Value, depth: int, levels: int) -> Json:
        kind = type(value)
        if kind in _SCALARS:
            if kind is str and not value.isascii() and SURROGATE.search(value):
                raise fault("D1014", what="half of a surrogate pair is no character")
            return value
        if kind is float:
            if not isfinite(value):
                raise fault("D1001", value=value)
            return value
        if value is UNDEFINED:  # a predicate that holds without an item leaves one in an array
            return None
        if kind is not dict and not isinstance(value, list):
            raise fault("D1014", what="a function")
        if not levels:
            if kind is dict or kind is list:
                return value
            return [None if item is UNDEFINED else item for item in value]
        if id(value) in self.known:
            return self.known[id(value)][1]
        if depth >= MAX_DEPTH:
            raise fault("D1014", what=f"nested deeper than {MAX_DEPTH} levels")
        self.run.spend(3 * len(value))
        result: Any
        if kind is dict:
            made = {name: self.of(item, depth + 1, levels - 1) for name, item in value.items()}
            same = all(made[name] is item for name, item in value.items())
            result = value if same else made
        else:
            items = [self.of(item, depth + 1, levels - 1) for item in value]
            same = kind is list and all(map(_is, items, value))
            result = value if same else items
        self.known[id(value)] = value, result
        return result


def _is(one: Value, other: Value) -> bool:
    return one is other
