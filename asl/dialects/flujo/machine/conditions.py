"""Conditions in JSONata, where JSONata means the same for every value.

A missing value is null in a condition, a text compared with a number may be one, and a path does
not reach into lists. So JSONata states tests of a value against texts, null, true and false, and
tests of truth; every other condition is an argument of a function that evaluates it in its own
grammar.
"""

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.flujo.functions.conditions import compile_expression, parse_number
from asl.dialects.flujo.machine.data import LATER, DataScope, path, record
from asl.expr.jsonata.javascript import literal

__all__ = [
    "ConditionNames",
    "Known",
    "Payload",
    "fails",
    "payload_source",
    "print_condition",
    "print_path",
    "reads_output",
    "yields_boolean",
]


@dataclass(frozen=True, slots=True)
class Known:
    """A value that is known when the blueprint is read."""

    value: Json


Payload: TypeAlias = Mapping[str, "Known | str | Payload"]
"""An object whose members are known, or are expressions."""


class ConditionNames(NamedTuple):
    """What the names of a condition are.

    Attributes:
        scope: The data.
        output: Expression or payload of `output` and `previous_step`.
        steps: The names of all steps: a field of the context that is null is the step of its name.
        mode: How values compare.
    """

    scope: DataScope = LATER
    output: str | Payload = "null"
    steps: Collection[str] = ()
    mode: str = ""


def print_condition(text: str, names: ConditionNames) -> str | None:
    """Return the truth of a condition in JSONata, None if JSONata cannot state it."""
    try:
        return _Printer(names).truth(compile_expression(text, names.mode).tree)
    except (ExpressionFault, _Beyond):
        return None


def print_path(text: str, names: ConditionNames) -> str | None:
    """Return the value that a condition names in JSONata, None for any other condition."""
    try:
        found = _Printer(names).operand(compile_expression(text, names.mode).tree)
    except (ExpressionFault, _Beyond):
        return None
    return found.source if isinstance(found, _Place) and found.exact else None


def payload_source(payload: str | Payload) -> str:
    """Return a payload as an expression."""
    if isinstance(payload, str):
        return payload
    members = {
        key: literal(each.value) if isinstance(each, Known) else payload_source(each)
        for key, each in payload.items()
    }
    return record(members)


def reads_output(text: str) -> bool:
    """Whether a condition reads `output` or `previous_step`."""
    return any(
        isinstance(node, ast.Name) and node.id in ("output", "previous_step")
        for node in ast.walk(compile_expression(text).tree)
    )


class _Beyond(Exception):
    """JSONata does not mean the same."""


@dataclass(frozen=True, slots=True)
class _Place:
    """An operand that is a place in the data.

    Attributes:
        source: Its expression.
        exact: Whether it is the value itself, not a step that is read if there is no such value.
    """

    source: str
    exact: bool = True


_Operand: TypeAlias = Known | _Place


class _Printer:
    def __init__(self, names: ConditionNames) -> None:
        self.names = names

    # Values

    def operand(self, node: ast.expr) -> _Operand:
        scope = self.names.scope
        match node:
            case ast.Constant(value=None | str() | int() | float() as value):
                return Known(value)
            case ast.Name(id="true" | "false" as word) if self.names.mode != "strict":
                return Known(word == "true")
            case ast.Name(id="output" | "previous_step"):
                return _found(self.names.output)
            case ast.Name(id="resume_input") if self.names.mode != "strict":
                return _Place(f"{scope.data}.resume_input")
        held, key = _member(node)
        match held:
            case ast.Name(id="context"):
                return _Place(path(scope.context, key), key not in self.names.steps)
            case ast.Name(id="steps"):
                return _Place(path(scope.steps, key))
        return _found(_within(held, self.names.output).get(key, Known(None)))

    # Conditions

    def truth(self, node: ast.expr) -> str:
        """Return whether a condition holds, as an expression that is true or false."""
        match node:
            case ast.BoolOp(op=op, values=parts):
                shown = (_wrapped(each, self.truth(each)) for each in parts)
                return _joined("and" if isinstance(op, ast.And) else "or", shown)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _negated(self.truth(operand))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.compared(left, op, right)
        found = self.operand(node)
        if isinstance(found, Known):
            return _constant(bool(found.value))
        if not found.exact:
            raise _Beyond
        source = found.source
        return f"({source} ? true : $type({source}) = 'array' and $count({source}) > 0)"

    def compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> str:
        match op:
            case ast.Eq():
                return self.equal(left, right)
            case ast.NotEq():
                return _negated(self.equal(left, right))
            case ast.In():
                return self.contained(left, right)
            case ast.NotIn():
                return _negated(self.contained(left, right))
        raise _Beyond

    def equal(self, left: ast.expr, right: ast.expr) -> str:
        one, other = self.operand(left), self.operand(right)
        if isinstance(one, Known):
            one, other = other, one
        if not isinstance(other, Known):
            raise _Beyond
        if isinstance(one, Known):
            return _constant(self.same(one.value, other.value))
        if isinstance(other.value, str):
            return self.is_text(one.source, other.value)
        if not one.exact:
            raise _Beyond
        if other.value is None:
            return f"($not($exists({one.source})) or {one.source} = null)"
        if isinstance(other.value, bool) and self.names.mode != "engine":
            return f"{one.source} in [{literal(other.value)}, {int(other.value)}]"
        raise _Beyond

    def is_text(self, source: str, text: str) -> str:
        number = parse_number(text)
        if number is None:
            return f"{source} = {literal(text)}"
        if self.names.mode or not isinstance(number, int) or str(number) != text:
            raise _Beyond
        return f"{source} in [{literal(text)}, {number}]"

    def same(self, one: Json, other: Json) -> bool:
        """Return whether two known values are equal."""
        texts = isinstance(one, str), isinstance(other, str)
        if any(texts) and (self.names.mode or not all(texts)) and None not in (one, other):
            raise _Beyond
        return bool(one == other)

    def contained(self, left: ast.expr, right: ast.expr) -> str:
        if self.names.mode or not isinstance(right, ast.List) or not right.elts:
            raise _Beyond
        one = self.operand(left)
        texts = [self.operand(each) for each in right.elts]
        if isinstance(one, Known):
            raise _Beyond
        return f"{one.source} in [{', '.join(map(_text, texts))}]"


def _found(value: Any) -> _Operand:
    """Return a member of a payload as an operand."""
    if isinstance(value, Known):
        return value
    if not isinstance(value, str):
        raise _Beyond
    return Known(None) if value == "null" else _Place(value)


def _member(node: ast.expr) -> tuple[ast.expr, str]:
    match node:
        case ast.Attribute(value=held, attr=key):
            return held, key
        case ast.Subscript(value=held, slice=ast.Constant(value=str() as key)):
            return held, key
    raise _Beyond


def _within(node: ast.expr, output: str | Payload) -> Payload:
    """Return the payload that a node names."""
    if isinstance(output, str):
        raise _Beyond
    if isinstance(node, ast.Name) and node.id in ("output", "previous_step"):
        return output
    held, key = _member(node)
    found = _within(held, output).get(key)
    if isinstance(found, str | Known) or found is None:
        raise _Beyond
    return found


def _text(operand: _Operand) -> str:
    value = operand.value if isinstance(operand, Known) else None
    if isinstance(value, str) and parse_number(value) is None:
        return literal(value)
    raise _Beyond


def _joined(word: str, parts: Any) -> str:
    """Return conditions joined by `and` or `or`, without those that are known."""
    known = _constant(word == "or")
    shown: list[str] = []
    for part in parts:
        if part == known:
            return known
        if part != _constant(word == "and"):
            shown.append(part)
    if len(shown) < 2:
        return "".join(shown) or _constant(word == "and")
    return f" {word} ".join(shown)


def _wrapped(node: ast.expr, source: str) -> str:
    """Return a condition within another one."""
    joined = isinstance(node, ast.BoolOp) and (" and " in source or " or " in source)
    return f"({source})" if joined else source


def _negated(source: str) -> str:
    known = {"true": "false", "false": "true"}
    return known.get(source) or f"$not({source})"


def _constant(value: bool) -> str:
    return "true" if value else "false"


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


_MEMBER: Final = (ast.In, ast.NotIn)
