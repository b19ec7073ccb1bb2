"""Objects that are imported when they are first used."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

__all__ = ["LazyTable", "load_object"]

T = TypeVar("T")


class LazyTable(Mapping[str, T], Generic[T]):
    """Objects by name, each imported when it is first looked up.

    Args:
        rows: Where each object is, as entry points have it: `package.module:attribute`.
    """

    def __init__(self, rows: Mapping[str, str]) -> None:
        self._rows = rows
        self._found: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = load_object(self._rows[name])
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def load_object(place: str) -> Any:
    """Import the object at `package.module:attribute`."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)
