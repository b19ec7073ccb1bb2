"""What histories tell besides, for documents that came from a dialect.

A module is imported for a document whose `Metadata` has a member for it.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Final

from asl.core.values import Json

__all__ = ["TELLERS", "teller"]

TELLERS: Final[Mapping[str, str]] = {"Flujo": "asl.expr.flujo.hops"}
"""The module of a dialect by its member of `Metadata`; its `teller` makes one of that."""


def teller(
    metadata: Json,
) -> "Callable[[str, str, bool, Json], Iterator[tuple[str, dict[str, Json]]]] | None":
    """Return what tells of the states of a document, None where there is nothing to tell."""
    for name in metadata if isinstance(metadata, dict) else ():
        if name in TELLERS:
            found: Callable[[str, str, bool, Json], Iterator[tuple[str, dict[str, Json]]]] | None
            found = import_module(TELLERS[name]).teller(metadata[name])
            return found
    return None
