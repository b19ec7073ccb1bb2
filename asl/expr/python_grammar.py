"""Parse expressions in Python's syntax with Python's own parser, within limits.

Nothing is executed: a dialect accepts the nodes of its grammar and evaluates them itself.
"""

import ast
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

from asl.core.errors import ExpressionFault

__all__ = ["COMPARED", "MAX_DEPTH", "MAX_LENGTH", "parse_python"]

MAX_LENGTH: Final = 4096
"""Characters that an expression may have."""
MAX_DEPTH: Final = 50
"""Levels that an expression may nest."""
COMPARED: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
}
"""The comparison operators of all dialects with such expressions."""


def parse_python(text: str, code: str) -> tuple[ast.expr, int]:
    """Return the syntax tree of an expression, and its offset in the text.

    Args:
        text: The expression.
        code: Code of the error.

    Raises:
        ExpressionFault: The text is no expression, or too long.
    """
    if len(text) > MAX_LENGTH:
        message = f"the expression is longer than {MAX_LENGTH} characters"
        raise ExpressionFault(message, 0, code, "compute a part in an earlier step")
    if "\0" in text or not text.strip():
        raise ExpressionFault("the expression is empty", 0, code, "write a condition")
    lead = len(text) - len(text.lstrip())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text[lead:], mode="eval").body, lead
    except SyntaxError as error:
        offset = lead + max(0, (error.offset or 1) - 1) if error.lineno == 1 else lead
        raise ExpressionFault(
            f"invalid expression: {error.msg}", min(offset, len(text)), code, _advice(text)
        ) from None
    except (ValueError, MemoryError, RecursionError):
        raise ExpressionFault("the expression cannot be parsed", 0, code) from None


def _advice(text: str) -> str:
    if shouted := re.search(r"\b(AND|OR|NOT|IN)\b", text):
        return f"write {shouted[1].lower()}"
    for written, meant in (
        ("&&", "and"),
        ("||", "or"),
        ("===", "=="),
        ("!==", "!="),
        ("{{", "the name without braces"),
    ):
        if written in text:
            return f"write {meant}"
    if "=" in text.replace("==", "").replace("!=", "").replace("<=", "").replace(">=", ""):
        return "write == to compare"
    if "!" in text.replace("!=", ""):
        return "write not"
    return "compare names with == != < > in, and combine comparisons with and, or, not"
