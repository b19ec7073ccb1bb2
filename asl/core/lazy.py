"""Objects that are imported or made when they are first used."""

import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

__all__ = ["LazyPattern", "LazyTable"]

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


class LazyPattern:
    """A regular expression that is compiled when it is first used.

    It has the methods of `re.Pattern` that search.
    """

    fullmatch: Callable[..., re.Match[str] | None]
    match: Callable[..., re.Match[str] | None]
    search: Callable[..., re.Match[str] | None]
    finditer: Callable[..., Iterator[re.Match[str]]]
    findall: Callable[..., list[Any]]
    split: Callable[..., list[Any]]
    sub: Callable[..., str]

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._flags)
        for each in _METHODS:
            setattr(self, each, getattr(compiled, each))
        return getattr(compiled, name)


_METHODS = frozenset(LazyPattern.__annotations__)
