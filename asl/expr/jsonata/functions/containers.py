"""Functions on arrays and objects, and on values of any type."""

from collections.abc import Iterable

from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.javascript import UNDEFINED, Value
from asl.expr.jsonata.paths import member
from asl.expr.jsonata.scopes import REFERENCE, QueryScope
from asl.expr.jsonata.sorting import merge_sorted
from asl.expr.jsonata.values import (
    QueryFunction,
    ResultSequence,
    append_values,
    are_numbers,
    are_strings,
    boolean,
    identity,
    type_word,
    utf16_units,
)


def count(values: Value = UNDEFINED) -> Value:
    """`$count(array)`; 0 for undefined."""
    return 0 if values is UNDEFINED else len(values)


def append(scope: QueryScope, one: Value, other: Value) -> Value:
    """`$append(array, array)`."""
    result = append_values(one, other)
    if isinstance(result, list):
        scope.run.hold(len(result))
    return result


def reverse(scope: QueryScope, values: list[Value]) -> Value:
    """`$reverse(array)`."""
    if len(values) <= 1:
        return values
    scope.run.copy(len(values))
    return values[::-1]


LIST = 88
"""Bytes of a list, besides its references."""


def zip_arrays(scope: QueryScope, *arrays: Value) -> Value:
    """`$zip(array, ...)`: the first items, the second ones, ..., up to the shortest array."""
    if not all(isinstance(array, list) for array in arrays):
        return []
    length = min(map(len, arrays), default=0)
    scope.run.spend(length * (1 + (len(arrays) >> 2)))
    scope.run.spend_bytes(length * (LIST + REFERENCE * len(arrays)))
    return [list(items) for items in zip(*arrays, strict=False)]


def distinct(scope: QueryScope, values: Value) -> Value:
    """`$distinct(array)`: the first of equal items."""
    if not isinstance(values, list) or len(values) <= 1:
        return values
    known: set[Value] = set()
    found: list[Value] = ResultSequence() if type(values) is ResultSequence else []
    scope.run.spend(len(values))
    for value in values:
        key = identity(value, scope.run)
        if key not in known:
            known.add(key)
            found.append(value)
    return found


def shuffle(scope: QueryScope, values: list[Value]) -> Value:
    """`$shuffle(array)`."""
    if len(values) <= 1:
        return values
    from random import Random

    scope.run.spend(len(values))
    result = list(values)
    Random(scope.run.frame.entropy()).shuffle(result)
    return result


def sort(scope: QueryScope, values: list[Value], function: Value = UNDEFINED) -> Value:
    """`$sort(array, function)`: the function returns whether its first argument comes second.

    Raises:
        QueryFault: D3070 for values without an order.
    """
    if len(values) <= 1:
        return values
    if function is UNDEFINED:
        texts = are_strings(values)
        if not texts and not are_numbers(values):
            raise fault("D3070", index=1)
        scope.run.spend(len(values) * 2)
        if not texts:
            return sorted(values)
        scope.run.encode(values)
        return sorted(values, key=utf16_units)
    return merge_sorted(
        values,
        lambda one, other: _is_truthy(function.apply([one, other], None, scope)),
        scope.run,
    )


def _is_truthy(value: Value) -> bool:
    """Return the truth of a value in JavaScript: every array and object is true."""
    return isinstance(value, list | dict | QueryFunction) or (bool(value) and value == value)


# Calling a function for each item ----------------------------------------------------------------


def call(
    scope: QueryScope, function: QueryFunction, value: Value, place: Value, whole: Value
) -> Value:
    """Call a function with as many of these arguments as it takes."""
    arity = function.arity
    if arity >= 3:
        return function.apply([value, place, whole], None, scope)
    return function.apply([value] if arity < 2 else [value, place], None, scope)


def map_items(scope: QueryScope, values: list[Value], function: QueryFunction) -> Value:
    """`$map(array, function)`."""
    found = ResultSequence()
    for index, value in enumerate(values):
        result = call(scope, function, value, index, values)
        if result is not UNDEFINED:
            found.append(result)
    return found


def filter_items(scope: QueryScope, values: list[Value], function: QueryFunction) -> Value:
    """`$filter(array, function)`."""
    return ResultSequence(
        value
        for index, value in enumerate(values)
        if boolean(call(scope, function, value, index, values))
    )


def single(scope: QueryScope, values: list[Value], function: Value = UNDEFINED) -> Value:
    """`$single(array, function)`: the only item.

    Raises:
        QueryFault: D3138 for several items, D3139 for none.
    """
    found: Iterable[Value] = (
        values if function is UNDEFINED else filter_items(scope, values, function)
    )
    first, *more = [*found] or [_NONE]
    if first is _NONE:
        raise fault("D3139")
    if more:
        raise fault("D3138")
    return first


_NONE = object()


def reduce_items(
    scope: QueryScope, values: list[Value], function: QueryFunction, start: Value = UNDEFINED
) -> Value:
    """`$reduce(array, function, start)`.

    Raises:
        QueryFault: D3050 for a function of less than two arguments.
    """
    if function.arity < 2:
        raise fault("D3050", index=1)
    items = enumerate(values)
    result = start
    if start is UNDEFINED and values:
        _, result = next(items)
    for index, value in items:
        arguments = [result, value, index, values][: max(2, min(function.arity, 4))]
        result = function.apply(arguments, None, scope)
    return result


def keys(scope: QueryScope, value: Value) -> Value:
    """`$keys(object)`: for an array, those of all its objects."""
    return ResultSequence(_names(value, scope))


def _names(value: Value, scope: QueryScope) -> dict[str, None]:
    if type(value) is dict:
        scope.run.spend(len(value) >> 2)
        return dict.fromkeys(value)
    names: dict[str, None] = {}
    if isinstance(value, list):
        for item in value:
            inner = _names(item, scope)
            scope.run.spend(len(inner) + 1)
            names |= inner
    return names


def lookup(scope: QueryScope, value: Value, name: Value) -> Value:
    """`$lookup(object, name)`."""
    return UNDEFINED if name is UNDEFINED else member(value, name, scope.run)


def spread(scope: QueryScope, value: Value) -> Value:
    """`$spread(object)`: an object for every member."""
    if isinstance(value, list):
        parts: list[Value] = []
        for item in value:
            inner = spread(scope, item)
            parts += inner if isinstance(inner, list) else [inner]
            scope.run.spend(12)
        return parts if value else ResultSequence()
    if type(value) is dict:
        scope.run.spend(2 * len(value))
        return ResultSequence({name: each} for name, each in value.items())
    return value


def merge(scope: QueryScope, objects: list[Value]) -> Value:
    """`$merge(objects)`: the last of equal names wins."""
    merged: dict[str, Value] = {}
    for each in objects:
        scope.run.spend(1 + (len(each) >> 2))
        merged |= each
    scope.run.spend_bytes(MEMBER * len(merged))
    return merged


MEMBER = 100
"""Bytes of a member of an object, besides its value."""


def each(scope: QueryScope, value: Value, function: QueryFunction) -> Value:
    """`$each(object, function)`."""
    if type(value) is not dict:
        return ResultSequence()
    results = (call(scope, function, item, name, value) for name, item in value.items())
    return ResultSequence(result for result in results if result is not UNDEFINED)


def sift(scope: QueryScope, value: Value, function: Value = UNDEFINED) -> Value:
    """`$sift(object, function)`: the members for which the function is true."""
    if type(value) is not dict or not isinstance(function, QueryFunction):
        return UNDEFINED
    found = {
        name: item
        for name, item in value.items()
        if boolean(call(scope, function, item, name, value))
    }
    return found or UNDEFINED


def exists(value: Value) -> Value:
    """`$exists(value)`."""
    return value is not UNDEFINED


def truth(value: Value) -> Value:
    """`$boolean(value)`."""
    return boolean(value)


def negation(value: Value) -> Value:
    """`$not(value)`."""
    return not boolean(value)


def type_of(value: Value) -> Value:
    """`$type(value)`."""
    return type_word(value)


def error(message: Value = UNDEFINED) -> Value:
    """`$error(message)`.

    Raises:
        QueryFault: D3137, always.
    """
    raise fault("D3137", message=message or "$error() function evaluated")


def assert_true(condition: Value, message: Value = UNDEFINED) -> Value:
    """`$assert(condition, message)`.

    Raises:
        QueryFault: D3141 unless the condition is true.
    """
    if not condition:
        raise fault("D3141", message=message or "$assert() statement failed")
    return UNDEFINED
