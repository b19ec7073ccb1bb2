"""Conditions in JSONata: what reads like the original where JSONata can say just that.

Everything in the deciding output may be missing or of any type, and then the whole condition is
false. Where JSONata agrees with that, with a guard or without, the condition is written in it;
otherwise it is handed to `$codemie_holds`, which evaluates it in its own grammar.
"""

import ast
import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from asl.core.errors import ExpressionFault
from asl.dialects.codemie.functions.conditions import COMPARISONS, parse
from asl.dialects.expressions import query
from asl.expr.jsonata.javascript import literal

__all__ = ["NoJsonataEquivalent", "comparisons", "equals", "translated"]

_WORDS: Final = frozenset(("and", "or", "in", "true", "false", "null", "function"))
_TURNED: Final = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INVERSE: Final = {"==": "!=", "!=": "==", "in": "not in", "not in": "in"}


class NoJsonataEquivalent(Exception):
    """JSONata has no plain way to say this."""


def translated(text: str, key: str) -> str:
    """Return the condition of a Choice.

    Args:
        text: The condition of the workflow.
        key: The key of the answer that it reads.

    Returns:
        An expression between its delimiters.
    """
    try:
        plain = _said(parse(text))
    except (ExpressionFault, NoJsonataEquivalent):
        return query(f"$codemie_holds($states.input, {literal(text)}, {literal(key)})")
    return query(f"$codemie_output($states.input, {literal(key)}).({plain})")


def _said(node: ast.expr) -> str:
    match node:
        case ast.BoolOp(op=ast.And(), values=parts):
            return " and ".join(_grouped(each) for each in parts)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return _either(parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _not(operand)
        case ast.Call() | ast.Compare() if (found := _text_test(node)) is not None:
            return f"{found.guard} and {found.test}"
        case ast.Compare():
            return " and ".join(_atom(*each) for each in comparisons(node))
    raise NoJsonataEquivalent


def _grouped(node: ast.expr) -> str:
    said = _said(node)
    return f"({said})" if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) else said


def _either(parts: list[ast.expr]) -> str:
    """Say that one of several holds; a failure on the way to it makes all of them false."""
    first, rest = parts[0], parts[1:]
    if not rest:
        return _grouped(first)
    said, others = _grouped(first), _either(rest)
    if (found := _text_test(first)) is not None:
        return f"{found.guard} and ({found.test} or {others})"
    if not isinstance(first, ast.Compare) or len(first.ops) != 1:
        raise NoJsonataEquivalent
    ((name, op, _),) = comparisons(first)
    guard = _guard(name, op)
    if not guard or all(_needs(each, name) for each in rest):
        return f"{said} or {others}"
    return f"{guard} and ({said.removeprefix(f'{guard} and ')} or {others})"


def _needs(node: ast.expr, name: str) -> bool:
    """Whether a comparison can only hold where this name is there, compared in the same way."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or _text_test(node) is not None:
        return False
    ((other, op, _),) = comparisons(node)
    return other == name and op in ("==", "!=", "in", "not in")


class _TextTest(NamedTuple):
    """A test of a text, and the condition under which it can be made."""

    guard: str
    test: str


_CASES: Final = {"lower": "lowercase", "upper": "uppercase"}


def _text_test(node: ast.expr) -> _TextTest | None:
    """Return a test that only holds for a text, None for any other condition."""
    match node:
        case ast.Call(ast.Attribute(value, attr="contains"), [ast.Constant(str(part))]):
            made = _cased(value)
            return made and _TextTest(made.guard, f"$contains({made.test}, {literal(part)})")
        case ast.Call(ast.Attribute(value, attr=name), [ast.Constant(str(part))]) if (
            name in ("startswith", "endswith") and part
        ):
            made = _cased(value) or _named_text(value)
            if made is None:
                return None
            size = len(part)
            ends = f"0, {size}" if name == "startswith" else f"-{size}"
            return _TextTest(made.guard, f"$substring({made.test}, {ends}) = {literal(part)}")
        case ast.Compare(ast.Constant(str(part)), [ast.In()], [value]):
            made = _cased(value)
            return made and _TextTest(made.guard, f"$contains({made.test}, {literal(part)})")
        case ast.Compare(value, [ast.Eq()], [ast.Constant(str(part))]):
            made = _cased(value)
            return made and _TextTest(made.guard, f"{made.test} = {literal(part)}")
    return None


def _cased(node: ast.expr) -> _TextTest | None:
    """Return a name whose text is in lower or upper case, with its guard."""
    match node:
        case ast.Call(ast.Attribute(value, attr=name), []) if name in _CASES:
            made = _named_text(value)
            return made and _TextTest(made.guard, f"${_CASES[name]}({made.test})")
    return None


def _named_text(node: ast.expr) -> _TextTest | None:
    if not isinstance(node, ast.Name) or node.id == "keys":
        return None
    name = _name(node.id)
    return _TextTest(f"$type({name}) = 'string'", name)


def _not(operand: ast.expr) -> str:
    found = _text_test(operand)
    if found is not None:
        return f"{found.guard} and $not({found.test})"
    if isinstance(operand, ast.Compare) and len(operand.ops) == 1:
        ((name, op, value),) = comparisons(operand)
        if op in _INVERSE:
            return _atom(name, _INVERSE[op], value)
    raise NoJsonataEquivalent


def comparisons(node: ast.Compare) -> Iterator[tuple[str, str, object]]:
    """Yield name, operator and constant of each comparison; raises NoJsonataEquivalent."""
    operands = [node.left, *node.comparators]
    for index, op in enumerate(node.ops):
        sign = COMPARISONS[type(op)]
        left, right = operands[index], operands[index + 1]
        if isinstance(left, ast.Name):
            if isinstance(right, ast.Name) and right.id == "keys":
                raise NoJsonataEquivalent
            if sign == "is" or sign == "is not":
                value = _constant(right)
                if value is not None:
                    raise NoJsonataEquivalent
                sign = "==" if sign == "is" else "!="
            yield _named(left), sign, _constant(right)
        elif sign == "in" and isinstance(right, ast.Name) and right.id == "keys":
            key = _constant(left)
            if type(key) is not str:
                raise NoJsonataEquivalent
            yield key, "exists", None
        elif isinstance(right, ast.Name) and sign in _TURNED:
            yield _named(right), _TURNED[sign], _constant(left)
        else:
            raise NoJsonataEquivalent


def _named(node: ast.Name) -> str:
    if node.id == "keys":
        raise NoJsonataEquivalent
    return node.id


def _constant(node: ast.expr) -> object:
    match node:
        case ast.Constant(value=value):
            if type(value) is float and not math.isfinite(value):
                raise NoJsonataEquivalent
            if type(value) is int and abs(value) >= 2**53:
                raise NoJsonataEquivalent
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _constant(operand)
            if isinstance(number, int | float):
                return -number
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_constant(each) for each in parts]
    raise NoJsonataEquivalent


def _atom(name: str, op: str, value: object) -> str:
    """Say one comparison so that it is false where the name is missing or of another type."""
    shown = _name(name)
    match op:
        case "exists":
            return f"$exists({shown})"
        case "==" | "in":
            same = equals(value) if op == "==" else _any(value)
            if len(same) == 1:
                return f"{shown} = {literal(same[0])}"
            return f"{shown} in {literal(same)}"
        case "!=":
            tests = (f"{shown} != {literal(each)}" for each in equals(value))
            return " and ".join((f"$exists({shown})", *tests))
        case "not in":
            return f"$exists({shown}) and $not({shown} in {literal(_any(value))})"
        case "<" | "<=" | ">" | ">=" if type(value) in (int, float):
            return f"$type({shown}) = 'number' and {shown} {op} {literal(value)}"
    raise NoJsonataEquivalent


def _any(value: object) -> list[object]:
    """Return the values of JSON that are equal to any constant of a list."""
    if not isinstance(value, list):
        raise NoJsonataEquivalent
    return [one for each in value for one in equals(each)]


def equals(value: object) -> list[object]:
    """Return the values of JSON that are equal to a constant: 1 is equal to true.

    Raises:
        NoJsonataEquivalent: The constant is a list.
    """
    if isinstance(value, list):
        raise NoJsonataEquivalent
    if type(value) is bool or value in (0, 1):
        return [value, int(value) if type(value) is bool else bool(value)]
    return [value]


def _guard(name: str, op: str) -> str:
    """Say that a comparison can be made at all; nothing where it always can."""
    if op == "exists":
        return ""
    if op in ("<", "<=", ">", ">="):
        return f"$type({_name(name)}) = 'number'"
    return f"$exists({_name(name)})"


def _name(name: str) -> str:
    return f"`{name}`" if name in _WORDS or not name.isidentifier() or not name.isascii() else name
