"""A cached property that is safe to share between threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["shared_cached_property"]

T = TypeVar("T")


class shared_cached_property(Generic[T]):  # noqa: N801  # it decorates, as `cached_property` does
    """A `cached_property` with one value for all threads.

    Two threads may both compute a value (as with `functools.cached_property` since Python 3.12),
    but all get the first one that is stored.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> shared_cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> shared_cached_property[T] | T:
        if instance is None:
            return self
        value: T = vars(instance).setdefault(self.name, self.make(instance))
        return value
