"""Functions of dialects: `$codemie_items`. Each table is imported on first use.

Documents converted from a dialect use them; AWS does not have them.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

from asl.core.lazy import LazyTable
from asl.expr.jsonata.calls import Native
from asl.expr.jsonata.functions.table import NATIVES
from asl.expr.jsonata.signatures import parse_parameters
from asl.expr.jsonata.undefined import UNDEFINED, Value

__all__ = [
    "PLAIN",
    "TABLES",
    "Rows",
    "dialect_functions",
    "function_names",
    "function_table",
    "is_function",
    "named_functions",
]

TABLES: Mapping[str, Mapping[str, Native]] = LazyTable(
    {
        "codemie": "asl.expr.codemie.functions:TABLE",
        "contenox": "asl.expr.contenox.functions:TABLE",
        "flujo": "asl.expr.flujo.functions:TABLE",
    }
)
"""The functions of each dialect, by the prefix of their names."""

PLAIN: frozenset[str] = frozenset(("contenox", "flujo"))
"""The dialects whose functions turn JSON into JSON: their results need no check."""

_NONE: Mapping[str, Native] = {}


def dialect_functions(name: str) -> Mapping[str, Native]:
    """Return the functions of the dialect that a name belongs to, else none."""
    prefix, mark, _ = name.partition("_")
    return TABLES[prefix] if mark and prefix in TABLES else _NONE


def named_functions(names: Iterable[str]) -> dict[str, Native]:
    """Return the named functions that belong to a dialect."""
    tables = [(name, dialect_functions(name)) for name in names]
    return {name: table[name] for name, table in tables if name in table}


def function_names(like: str) -> tuple[str, ...]:
    """Return the built-in functions, and those of the dialect with the prefix of a name."""
    return (*NATIVES, *dialect_functions(like))


def is_function(name: str, *, of_dialects: bool) -> bool:
    """Return whether a query may call a function.

    Args:
        name: The name without its `$`.
        of_dialects: Whether functions that belong to a dialect are allowed.
    """
    return name in NATIVES or (of_dialects and name in dialect_functions(name))


Rows = Mapping[str, tuple[str, Callable[..., Any], int]]
"""Signature, function and number of arguments by name."""


def function_table(prefix: str, rows: Rows) -> dict[str, Native]:
    """Return the functions of a dialect by their names in a query."""
    return {f"{prefix}_{name}": _native(f"{prefix}_{name}", *row) for name, row in rows.items()}


def _native(name: str, signature: str, call: Callable[..., Any], arity: int) -> Native:
    required = sum(not each.pattern.endswith("?") for each in parse_parameters(signature))

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
    """Return a sequence as a list, since it becomes part of a result."""
    if isinstance(value, list) and type(value) is not list:
        return [None if each is UNDEFINED else each for each in value]
    return value
