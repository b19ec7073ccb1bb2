"""Rows of a dialect's functions as functions of JSONata."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from asl.expr.jsonata.calls import Native
from asl.expr.jsonata.signatures import parsed
from asl.expr.jsonata.undefined import UNDEFINED, Value

__all__ = ["Rows", "table"]

Rows = Mapping[str, tuple[str, Callable[..., Any], int]]
"""Signature, function and number of arguments by name."""


def table(prefix: str, rows: Rows) -> dict[str, Native]:
    """Return the functions of a dialect by their names in a query."""
    return {f"{prefix}_{name}": _native(f"{prefix}_{name}", *row) for name, row in rows.items()}


def _native(name: str, signature: str, call: Callable[..., Any], arity: int) -> Native:
    required = sum(not each.pattern.endswith("?") for each in parsed(signature))

    @wraps(call)
    def called(*arguments: Value) -> Value:
        for each in arguments:
            if each is UNDEFINED or (isinstance(each, list) and type(each) is not list):
                break
        else:
            return call(*arguments)
        while arguments and arguments[-1] is UNDEFINED:
            arguments = arguments[:-1]
        if len(arguments) < required or UNDEFINED in arguments[:required]:
            return UNDEFINED
        return call(*map(_listed, arguments))

    return Native(name, signature, called, arity)


def _listed(value: Value) -> Value:
    """Return the list of a sequence: what a path has found becomes part of a result."""
    if isinstance(value, list) and type(value) is not list:
        return [None if each is UNDEFINED else each for each in value]
    return value
