"""Lookup of storage backends, by the name before the colon in `NAME:PLACE`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from asl.core.errors import AslError
from asl.core.lazy import load_plugin, plugin_error, wrap_errors
from asl.stores.backend import StoreBackend
from asl.stores.memory import MemoryBackend

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["GROUP", "open_backend"]

GROUP: Final = "asl.stores"
"""Group of entry points that add backends; each is a function from PLACE to a backend."""
REQUIRED: Final = ("place", "checkpoints", "connect", "faults")
"""The members of a backend."""
NAMED = re.compile(r"([a-z][a-z0-9+-]+):(.*)", re.DOTALL)


def open_backend(place: str | os.PathLike[str] | StoreBackend, synchronous: str) -> StoreBackend:
    """Return the backend of a store.

    Args:
        place: Path of an SQLite file, `memory:`, `NAME:PLACE` of an installed backend, or a
            backend.
        synchronous: SQLite's pragma of this name, for a file.

    Raises:
        AslError: There is no such backend.
    """
    if not isinstance(place, (str, os.PathLike)):
        return place
    named = NAMED.fullmatch(place) if isinstance(place, str) else None
    if named is not None and named[1] == "memory":
        return MemoryBackend()
    if named is not None and (make := _installed(named[1])) is not None:
        return make(named[2])
    if isinstance(place, str) and "://" in place:
        raise AslError(
            f"{place!r} is no file: a store is a file, or an address as "
            "temporal://HOST:PORT/NAMESPACE that asl.open_store opens"
        )
    from asl.stores.sqlite import SqliteBackend

    return SqliteBackend(place, synchronous)


def _installed(name: str) -> Callable[[str], StoreBackend] | None:
    """Return the factory of an installed backend, None without one of this name."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=name):
        return partial(_made, entry, load_plugin(entry))
    return None


def _made(entry: EntryPoint, make: object, place: str) -> StoreBackend:
    """Return the backend that the function of an entry point creates.

    Raises:
        AslError: The function does not return a backend; the message names the entry point.
    """
    if not callable(make):
        raise plugin_error(entry, f"is no function: {make!r:.100}")
    with wrap_errors(str(plugin_error(entry, "has made no backend"))):
        backend = make(place)
    lacks = [each for each in REQUIRED if not hasattr(backend, each)]
    if lacks:
        raise plugin_error(entry, f"has made no backend: {backend!r:.100} has no {lacks[0]!r}")
    checked: StoreBackend = backend
    return checked
