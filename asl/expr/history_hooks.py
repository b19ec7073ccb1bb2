"""What histories tell besides, for documents that came from a dialect.

A module is imported for a document whose `Metadata` has a member for it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from importlib import import_module
from typing import Final, TypeAlias

from asl.core.values import Json

__all__ = ["HOOK_MODULES", "HistoryHook", "history_hook"]

HistoryHook: TypeAlias = Callable[
    [str, str, Collection[str], Json], Iterator[tuple[str, dict[str, Json]]]
]
"""What tells of a state that is entered, see `asl.program.EntryEvents`."""

HOOK_MODULES: Final[Mapping[str, str]] = {"Flujo": "asl.expr.flujo.hops"}
"""The module of a dialect by its member of `Metadata`; its `history_hook` makes one of that."""


def history_hook(metadata: Json) -> HistoryHook | None:
    """Return what tells of the states of a document, None where there is nothing to tell."""
    for name in metadata if isinstance(metadata, dict) else ():
        if name in HOOK_MODULES:
            module = import_module(HOOK_MODULES[name])
            found: HistoryHook | None = module.history_hook(metadata[name])
            return found
    return None
