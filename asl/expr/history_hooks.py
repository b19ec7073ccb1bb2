"""Additional history events for documents converted from a dialect.

The module of a dialect is imported for a document whose `Metadata` has its member.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from importlib import import_module
from typing import Final, TypeAlias

from asl.core.values import Json

__all__ = ["HOOK_MODULES", "HistoryHook", "history_hook"]

HistoryHook: TypeAlias = Callable[
    [str, str, Collection[str], Json], Iterator[tuple[str, dict[str, Json]]]
]
"""Yields additional events for an entered state, see `asl.program.EntryEvents`."""

HOOK_MODULES: Final[Mapping[str, str]] = {"Flujo": "asl.expr.flujo.hops"}
"""The module with a `history_hook` by the dialect's member of `Metadata`."""


def history_hook(metadata: Json) -> HistoryHook | None:
    """Return the hook for a document's states, None if it has none."""
    for name in metadata if isinstance(metadata, dict) else ():
        if name in HOOK_MODULES:
            module = import_module(HOOK_MODULES[name])
            found: HistoryHook | None = module.history_hook(metadata[name])
            return found
    return None
