"""Rows of a dialect's functions as functions of JSONata."""

from collections.abc import Callable, Mapping
from typing import Any

from asl.expr.jsonata.calls import Native
from asl.expr.jsonata.signatures import parsed
from asl.expr.jsonata.values import UNDEFINED, Value

__all__ = ["Rows", "table"]

Rows = Mapping[str, tuple[str, Callable[..., Any], int]]
"""Signature, function and number of arguments by name."""


def table(prefix: str, rows: Rows) -> dict[str, Native]:
    """Return the functions of a dialect by their names in a query."""
    return {f"{prefix}_{name}": _native(f"{prefix}_{name}", *row) for name, row in rows.items()}


def _native(name: str, signature: str, call: Callable[..., Any], arity: int) -> Native:
    required = sum(not each.pattern.endswith("?") for each in parsed(signature))

    def called(*arguments: Value) -> Value:
        while arguments and arguments[-1] is UNDEFINED:
            arguments = arguments[:-1]
        if len(arguments) < required or UNDEFINED in arguments[:required]:
            return UNDEFINED
        return call(*arguments)

    return Native(name, signature, called, arity)
