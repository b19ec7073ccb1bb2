"""An attribute that is made when it is first asked for, and then is one for all threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["shared_cached_property"]

T = TypeVar("T")


class shared_cached_property(Generic[T]):  # noqa: N801  # it decorates, as `cached_property` does
    """A `cached_property` of which threads that ask at once get the same value.

    The library's makes two then (Python 3.12). Here, too, both may be made, but the first counts.
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
