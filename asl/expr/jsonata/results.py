"""What leaves a query: plain JSON, or UNDEFINED."""

from math import isfinite
from typing import Any

from asl.core.values import MAX_DEPTH, SURROGATE, Json
from asl.expr.jsonata.faults import UNSUPPORTED, fault
from asl.expr.jsonata.numerals import LONG, normal
from asl.expr.jsonata.scopes import Limits, Run
from asl.expr.jsonata.undefined import UNDEFINED, Undefined, Value
from asl.expr.jsonata.writing import double

EVERYWHERE = MAX_DEPTH + 1
"""As many levels as a result can have."""


def plain(value: Value, run: Run, levels: int = EVERYWHERE) -> Json | Undefined:
    """A result as JSON; raises D1016 for a function, D1014 for what nests too deeply.

    A number that JSON does not have raises D1001. On AWS it is the text "Infinity" or "NaN", and
    a whole number beyond 2^63 is that of a double (measured; what is within a container that is
    handed through stays, which spares a walk over it).

    Only so many *levels* below the top can hold anything but JSON, as is known from the query.
    Containers that need no change, such as all of the input, stay the objects that they are.
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


def _scalar(value: Value, limits: Limits) -> Json:
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

    def __init__(self, run: Run) -> None:
        self.run = run
        self.unchanged = _UNCHANGED if run.bounds.java else _UNCHANGED_WITH_INTEGERS
        self.known: dict[int, tuple[Value, Json]] = {}
        """The containers seen so far: what is shared stays shared."""

    def of(self, value: Value, depth: int, levels: int) -> Json:
        """A container as JSON, *depth* levels below the top."""
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
