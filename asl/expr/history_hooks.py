"""Additional history events for documents converted from a dialect.

The module of a dialect is imported for a document whose `Metadata` has its member.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, TypeAlias

from asl.core.lazy import LazyTable
from asl.core.values import Json

__all__ = ["HOOKS", "HistoryHook", "history_hook"]

HistoryHook: TypeAlias = Callable[
    [str, str, Collection[str], Json], Iterator[tuple[str, dict[str, Json]]]
]
"""Yields additional events for an entered state, see `asl.program.EntryEvents`."""

HOOKS: Final[Mapping[str, Callable[[Json], HistoryHook | None]]] = LazyTable(
    {"Flujo": "asl.expr.flujo.hops:history_hook"}
)
"""Functions that return the hook of a document, by the dialect's member of `Metadata`."""


def history_hook(metadata: Json) -> HistoryHook | None:
    """Return the hook for a document's states, None if it has none."""
    for name in metadata if isinstance(metadata, dict) else ():
        if name in HOOKS:
            return HOOKS[name](metadata[name])
    return None
