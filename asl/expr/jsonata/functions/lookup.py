"""The names of the functions that queries may call."""

from asl.expr.jsonata.functions.dialects import belonging
from asl.expr.jsonata.functions.table import NATIVES

__all__ = ["function_names", "is_function"]


def function_names(like: str) -> tuple[str, ...]:
    """Return the built-in functions, and those of the dialect whose prefix a name has."""
    return (*NATIVES, *belonging(like))


def is_function(name: str, *, of_dialects: bool) -> bool:
    """Return whether a query may call a function.

    Args:
        name: The name without its `$`.
        of_dialects: Whether functions that belong to a dialect are allowed.
    """
    return name in NATIVES or (of_dialects and name in belonging(name))
