"""The undefined value: the result of an expression that finds nothing."""

from typing import Any, TypeAlias

__all__ = ["UNDEFINED", "Undefined", "Value"]

Value: TypeAlias = Any
"""A JSON value, UNDEFINED, or a value of `asl.expr.jsonata.values`."""


class Undefined:
    """The type of `UNDEFINED`, the result of an expression that finds nothing."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "undefined"

    def __bool__(self) -> bool:
        return False


UNDEFINED = Undefined()
