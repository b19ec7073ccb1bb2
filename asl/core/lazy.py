"""Objects that are imported, and patterns that are compiled, when they are first used."""

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar, cast

__all__ = ["LazyTable", "lazy_pattern", "load_object"]

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


def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a regular expression that is compiled at its first use.

    Compiling is slow, and a command uses few of the patterns of the modules that it loads.
    """
    return cast("re.Pattern[str]", _LazyPattern(text, flags))


class _LazyPattern:
    def __init__(self, text: str, flags: int) -> None:
        self._arguments = text, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._arguments)
        found = self.__dict__[name] = getattr(compiled, name)  # the next look-up finds it here
        return found
