"""What an expression gives that finds nothing, beside the values that it computes with."""

from typing import Any, TypeAlias

__all__ = ["UNDEFINED", "Undefined", "Value"]

Value: TypeAlias = Any
"""A JSON value, UNDEFINED, or what `asl.expr.jsonata.values` has beside these."""


class Undefined:
    """The type of `UNDEFINED`, what an expression gives that finds nothing."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "undefined"

    def __bool__(self) -> bool:
        return False


UNDEFINED = Undefined()
