"""Conditions in JSONata, where JSONata says the same for every value; otherwise as they are.

A missing value is null in a condition, a text compared with a number may be one, and a path does
not reach into lists: of all that JSONata only agrees on comparing a name with a text. Every other
condition is handed to a function that evaluates it in its own grammar.
"""

import ast
from typing import Final

from asl.core.errors import ExpressionFault
from asl.dialects.flujo.functions.conditions import compile_expression, parse_number
from asl.expr.jsonata.javascript import literal

__all__ = ["fails", "plain", "yields_boolean"]

INPUT: Final = "$states.input"


def plain(text: str, output: str) -> str | None:
    """Return a condition in JSONata, None where that cannot say it.

    *output* is where `output` and `previous_step` are in the data.
    """
    try:
        return _said(compile_expression(text).tree, output)
    except (ExpressionFault, _Beyond):
        return None


class _Beyond(Exception):
    """JSONata has no plain way to say this."""


def _said(node: ast.expr, output: str) -> str:
    match node:
        case ast.BoolOp(op=op, values=parts):
            word = " and " if isinstance(op, ast.And) else " or "
            return word.join(_grouped(each, output) for each in parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"$not({_said(operand, output)})"
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[right]):
            if isinstance(left, ast.Constant):
                left, right = right, left
            sign = "=" if isinstance(op, ast.Eq) else "!="
            return f"{_path(left, output)} {sign} {_text(right)}"
        case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.List(elts=parts)]) if parts:
            return f"{_path(left, output)} in [{', '.join(map(_text, parts))}]"
    raise _Beyond


def _grouped(node: ast.expr, output: str) -> str:
    said = _said(node, output)
    return f"({said})" if isinstance(node, ast.BoolOp) else said


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str() as text) if parse_number(text) is None:
            return literal(text)
    raise _Beyond


_LAST: Final = ("name", "feedback")


def _path(node: ast.expr, output: str) -> str:
    """Return a path whose steps all are members of objects, whatever the data."""
    match node:
        case ast.Name(id="output" | "previous_step"):
            return f"{INPUT}.{output}"
        case ast.Attribute(value=ast.Name(id="context" | "steps" as root), attr=key) if _is_name(
            key
        ):
            return f"{INPUT}.{root}.{key}"
    if output == "output":
        match node:
            case ast.Attribute(
                value=ast.Name(id="output" | "previous_step"), attr="event" | "last_output" as key
            ):
                return f"{INPUT}.output.{key}"
            case ast.Attribute(
                value=ast.Attribute(
                    value=ast.Name(id="output" | "previous_step"), attr="last_step"
                ),
                attr=key,
            ) if key in _LAST:
                return f"{INPUT}.output.last_step.{key}"
    raise _Beyond


def _is_name(key: str) -> bool:
    """Whether JSONata reads a name as one."""
    return key.isascii() and key.isidentifier() and key not in _WORDS


_WORDS: Final = frozenset(("and", "or", "in", "function", "true", "false", "null"))


def yields_boolean(text: str) -> bool:
    """Whether a condition has the value true or false, or fails."""
    tree = compile_expression(text).tree
    return isinstance(tree, ast.BoolOp | ast.Compare) or (
        isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not)
    )


def fails(text: str, mode: str = "") -> bool:
    """Whether a condition may fail."""
    found = compile_expression(text, mode)
    if found.doomed or mode == "strict":
        return True
    return any(
        isinstance(node, ast.Call)
        or (isinstance(node, ast.Compare) and any(isinstance(op, _MEMBER) for op in node.ops))
        for node in ast.walk(found.tree)
    )


_MEMBER = (ast.In, ast.NotIn)
