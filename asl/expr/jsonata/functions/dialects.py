"""Functions that belong to a dialect: `$codemie_items`. A table is imported when it is asked for.

They are there for documents that a dialect was converted to; AWS knows none of them.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module

from asl.expr.jsonata.calls import Native

__all__ = ["PLAIN", "TABLES", "belonging", "found_in"]

TABLES: Mapping[str, str] = {
    "codemie": "asl.expr.codemie.functions",
    "contenox": "asl.expr.contenox.functions",
    "flujo": "asl.expr.flujo.functions",
}
"""The module of each dialect's functions, by the prefix of their names."""

PLAIN: frozenset[str] = frozenset(("contenox", "flujo"))
"""The dialects whose functions make JSON of JSON: nobody has to look through what they give."""

_NONE: Mapping[str, Native] = {}


def belonging(name: str) -> Mapping[str, Native]:
    """Return the functions of the dialect that a name belongs to; none for other names."""
    prefix, mark, _ = name.partition("_")
    return _table(prefix) if mark and prefix in TABLES else _NONE


@cache
def _table(prefix: str) -> Mapping[str, Native]:
    table: Mapping[str, Native] = import_module(TABLES[prefix]).TABLE
    return table


def found_in(names: Iterable[str]) -> dict[str, Native]:
    """Return those of the named functions that belong to a dialect."""
    tables = [(name, belonging(name)) for name in names]
    return {name: table[name] for name, table in tables if name in table}
