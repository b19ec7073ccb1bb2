"""Functions on objects, and on values of any type."""

from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.functions.arrays import call
from asl.expr.jsonata.paths import member
from asl.expr.jsonata.scopes import Scope
from asl.expr.jsonata.undefined import UNDEFINED, Value
from asl.expr.jsonata.values import Function, Sequence, boolean, type_word


def keys(scope: Scope, value: Value) -> Value:
    """`$keys(object)`: for an array, those of all its objects."""
    return Sequence(_names(value, scope))


def _names(value: Value, scope: Scope) -> dict[str, None]:
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


def lookup(scope: Scope, value: Value, name: Value) -> Value:
    """`$lookup(object, name)`."""
    return UNDEFINED if name is UNDEFINED else member(value, name, scope.run)


def spread(scope: Scope, value: Value) -> Value:
    """`$spread(object)`: an object for every member."""
    if isinstance(value, list):
        parts: list[Value] = []
        for item in value:
            inner = spread(scope, item)
            parts += inner if isinstance(inner, list) else [inner]
            scope.run.spend(12)
        return parts if value else Sequence()
    if type(value) is dict:
        scope.run.spend(2 * len(value))
        return Sequence({name: each} for name, each in value.items())
    return value


def merge(scope: Scope, objects: list[Value]) -> Value:
    """`$merge(objects)`: the last of equal names wins."""
    merged: dict[str, Value] = {}
    for each in objects:
        scope.run.spend(1 + (len(each) >> 2))
        merged |= each
    scope.run.spend_bytes(MEMBER * len(merged))
    return merged


MEMBER = 100
"""Bytes of a member of an object, besides its value."""


def each(scope: Scope, value: Value, function: Function) -> Value:
    """`$each(object, function)`."""
    if type(value) is not dict:
        return Sequence()
    results = (call(scope, function, item, name, value) for name, item in value.items())
    return Sequence(result for result in results if result is not UNDEFINED)


def sift(scope: Scope, value: Value, function: Value = UNDEFINED) -> Value:
    """`$sift(object, function)`: the members for which the function is true."""
    if type(value) is not dict or not isinstance(function, Function):
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


def kind(value: Value) -> Value:
    """`$type(value)`."""
    return type_word(value)


def error(message: Value = UNDEFINED) -> Value:
    """`$error(message)`; raises D3137."""
    raise fault("D3137", message=message or "$error() function evaluated")


def insist(condition: Value, message: Value = UNDEFINED) -> Value:
    """`$assert(condition, message)`; raises D3141 unless the condition is true."""
    if not condition:
        raise fault("D3141", message=message or "$assert() statement failed")
    return UNDEFINED
