"""What histories tell besides, for documents that came from a dialect.

A module is imported for a document whose `Metadata` has a member for it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from importlib import import_module
from typing import Final, TypeAlias

from asl.core.values import Json

__all__ = ["TELLERS", "Teller", "teller"]

Teller: TypeAlias = Callable[
    [str, str, Collection[str], Json], Iterator[tuple[str, dict[str, Json]]]
]
"""What tells of a state that is entered, see `asl.program.Told`."""

TELLERS: Final[Mapping[str, str]] = {"Flujo": "asl.expr.flujo.hops"}
"""The module of a dialect by its member of `Metadata`; its `teller` makes one of that."""


def teller(metadata: Json) -> Teller | None:
    """Return what tells of the states of a document, None where there is nothing to tell."""
    for name in metadata if isinstance(metadata, dict) else ():
        if name in TELLERS:
            found: Teller | None = import_module(TELLERS[name]).teller(metadata[name])
            return found
    return None
