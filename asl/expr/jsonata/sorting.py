"""Sort items: `^(...)` after a step, and the merge sort shared with `$sort`."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.javascript import UNDEFINED, Value
from asl.expr.jsonata.scopes import REFERENCE, QueryRun, QueryScope
from asl.expr.jsonata.values import (
    COMPARED,
    ITEM,
    Closure,
    ResultSequence,
    symbol,
    utf16_keys,
    utf16_units,
)


@dataclass(frozen=True, slots=True)
class SortTerm:
    """One expression of `^(...)`."""

    key: Closure
    weight: int
    descending: bool


def sort_items(terms: list[SortTerm], items: Value, scope: QueryScope) -> Value:
    """Return the items in the order of the terms: stable, with undefined keys last."""
    if len(items) <= 1:
        return items
    run = scope.run
    run.spend(len(items) * sum(term.weight for term in terms))
    if type(items) is ResultSequence and items.tuples:
        rows = [_Row(item, item[ITEM], QueryScope(run, scope, dict(item)), []) for item in items]
    else:
        rows = [_Row(item, item, scope, []) for item in items]
    if len(terms) == 1:
        keys = [terms[0].key(row.context, row.scope) for row in rows]
        if len({symbol(key) for key in keys} | {"n", "s"}) == 2 and len(set(map(type, keys))) == 1:
            run.spend(len(items) * 2)
            if type(keys[0]) is str:
                run.encode(keys)
                keys = [utf16_units(key) for key in keys]
            order = sorted(range(len(keys)), key=keys.__getitem__, reverse=terms[0].descending)
            return [items[place] for place in order]
        for row, key in zip(rows, keys, strict=True):
            row.keys.append(key)

    def after(one: _Row, other: _Row) -> bool:
        for place, term in enumerate(terms):
            left, right = one.key(terms, place), other.key(terms, place)
            if left is UNDEFINED and right is UNDEFINED:
                continue
            if left is UNDEFINED or right is UNDEFINED:
                return left is UNDEFINED
            if type(left) is str and type(right) is str:
                run.spend((len(left) + len(right)) >> COMPARED)
            order = _order(left, right)
            if order:
                return (order < 0) if term.descending else (order > 0)
        return False

    return [row.item for row in merge_sorted(rows, after, run)]


class _Row(NamedTuple):
    """An item to sort, with its scope and the keys evaluated so far."""

    item: Value
    context: Value
    scope: QueryScope
    keys: list[Value]

    def key(self, terms: list[SortTerm], place: int) -> Value:
        """Return the key of a term, evaluated on first use."""
        if place == len(self.keys):
            self.keys.append(terms[place].key(self.context, self.scope))
        return self.keys[place]


def _order(one: Value, other: Value) -> int:
    left, right = symbol(one), symbol(other)
    if left not in "sn" or right not in "sn":
        raise fault("T2008", value=one if left not in "sn" else other)
    if left != right:
        raise fault("T2007", value=one, value2=other)
    if left == "s":
        one, other = utf16_keys(one, other)
    return int(one > other) - int(one < other)


def merge_sorted(items: list[Any], after: Any, run: QueryRun) -> list[Any]:
    """Return the items sorted by merge sort.

    The comparisons are those of the reference implementation, in its order, so that a comparison
    function of the query is called with the same arguments.

    Args:
        items: The items.
        after: Whether its first argument comes second.
        run: The evaluation, which counts the work.
    """
    if len(items) <= 1:
        return items
    middle = len(items) // 2
    left = merge_sorted(items[:middle], after, run)
    right = merge_sorted(items[middle:], after, run)
    run.spend(len(items) * 8)
    run.spend_bytes(len(items) * REFERENCE)
    merged, one, other = [], 0, 0
    while one < len(left) and other < len(right):
        if after(left[one], right[other]):
            merged.append(right[other])
            other += 1
        else:
            merged.append(left[one])
            one += 1
    return merged + left[one:] + right[other:]
