"""Late loading: tables of objects, compiled patterns, cached properties and entry points."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from asl.core.errors import AslError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "LazyTable",
    "lazy_pattern",
    "load_object",
    "load_plugin",
    "plugin_error",
    "shared_cached_property",
    "wrap_errors",
]

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


V = TypeVar("V")


class shared_cached_property(Generic[V]):  # noqa: N801  # it decorates, as `cached_property` does
    """A `cached_property` with one value for all threads.

    Two threads may both compute a value (as with `functools.cached_property` since Python 3.12),
    but all get the first one that is stored.
    """

    def __init__(self, make: Callable[[Any], V]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> shared_cached_property[V]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> V: ...
    def __get__(self, instance: object | None, owner: type) -> shared_cached_property[V] | V:
        if instance is None:
            return self
        value: V = vars(instance).setdefault(self.name, self.make(instance))
        return value


def load_plugin(entry: EntryPoint) -> object:
    """Load the object of an entry point.

    Raises:
        AslError: Its import fails.
    """
    try:
        return entry.load()
    except (Exception, SystemExit) as fault:  # foreign code, which is run by its import
        reason = f"{type(fault).__name__}: {fault}"
        raise plugin_error(entry, f"cannot be loaded: {reason}") from fault


def plugin_error(entry: EntryPoint, problem: str) -> AslError:
    """Return the error of an entry point: `problem` is the rest of the sentence."""
    package = "" if entry.dist is None else f" (package {entry.dist.name!r})"
    return AslError(f"the entry point {entry.name!r} of {entry.group}{package} {problem}")


@contextmanager
def wrap_errors(what: str) -> Iterator[None]:
    """Convert exceptions of plug-in code to AslError.

    Args:
        what: The beginning of the message.

    Raises:
        AslError: The block raised an exception.
    """
    try:
        yield
    except AslError:
        raise
    except Exception as fault:  # a plug-in may raise any class; the message names it
        raise AslError(f"{what}: {type(fault).__name__}: {fault}") from fault
