"""Conditions: expressions in a subset of Python's syntax.

An expression is compiled to closures over the names that it reads; Python executes nothing. Nodes
beyond the grammar are accepted, and fail when they are evaluated: a rule with one does not match.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from asl.core.diagnostics import did_you_mean
from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.core.work import WorkExceeded, WorkMeter, count_values
from asl.expr.python_grammar import COMPARED, MAX_DEPTH, parse_python

__all__ = [
    "MODES",
    "OUTPUT",
    "SYNTAX",
    "FlujoConditionError",
    "FlujoExpression",
    "FlujoNames",
    "compile_expression",
    "parse_number",
]

SYNTAX: Final = "FL-EXPRESSION"
MODES: Final = ("", "strict", "engine")
"""Modes of comparison: a text compared with a number is read as a number; texts never are; all
texts are if possible.
"""
MAX_NUMERAL: Final = 400
"""Characters of a text that may be a number."""


class FlujoConditionError(Exception):
    """An evaluation failed; the rule does not match."""


class FlujoNames(NamedTuple):
    """The values that an expression may read."""

    output: Json
    """Also `previous_step`."""
    context: Mapping[str, Json]
    steps: Mapping[str, Json]
    resume_input: Json = None


class StepOutput(NamedTuple):
    """The output of a step read through the context; its members are named in `OUTPUT`."""

    value: Json


OUTPUT: Final = frozenset(("output", "result", "value"))
"""The names of the output of a step."""

Closure: TypeAlias = Callable[[FlujoNames], Any]


@dataclass(frozen=True, slots=True)
class FlujoExpression:
    """A compiled expression: its value for some names, and its parts that always fail."""

    tree: ast.expr
    value: Closure
    """Raises FlujoConditionError."""
    doomed: tuple[tuple[int, str, str | None], ...]
    """Offset, reason and hint of each part that fails when it is evaluated."""


@lru_cache(maxsize=1024)
def compile_expression(text: str, mode: str = "") -> FlujoExpression:
    """Compile an expression.

    Args:
        text: The expression.
        mode: One of `MODES`.

    Raises:
        ExpressionFault: FL-EXPRESSION for a text that is no expression.
    """
    tree, lead = parse_python(text, SYNTAX)
    compiler = _Compiler(mode, lead)
    try:
        closure = compiler.closure(tree, 0)
    except RecursionError:
        raise ExpressionFault("the expression is nested too deeply", lead, SYNTAX) from None

    def value(names: FlujoNames) -> Any:
        try:
            return closure(names)
        except WorkExceeded:
            raise FlujoConditionError("too much work") from None
        except RecursionError:
            raise FlujoConditionError("values are nested too deeply") from None

    return FlujoExpression(tree, value, tuple(compiler.doomed))


def parse_number(text: str) -> int | float | None:
    """Return the number in a text, None for any other text."""
    if len(text) > MAX_NUMERAL:
        return None
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return None


# --------------------------------------------------------------------------------------------
# Compiling


class _Compiler:
    def __init__(self, mode: str, lead: int) -> None:
        self.mode = mode
        self.lead = lead
        self.doomed: list[tuple[int, str, str | None]] = []

    def fails(self, node: ast.AST, reason: str, hint: str | None = None) -> Closure:
        """Return a closure that fails, and record its reason."""
        offset = self.lead + int(getattr(node, "col_offset", 0) or 0)
        self.doomed.append((offset, reason, hint))

        def failing(names: FlujoNames) -> NoReturn:
            raise FlujoConditionError(reason)

        return failing

    def closure(self, node: ast.AST, depth: int) -> Closure:
        if depth > MAX_DEPTH:
            message = f"the expression is nested deeper than {MAX_DEPTH} levels"
            raise ExpressionFault(message, self.lead, SYNTAX)
        match node:
            case ast.Constant(value=value):
                if type(value) not in (str, int, float, bool, type(None)):
                    return self.fails(node, f"{type(value).__name__} constants are not supported")
                return lambda names: value
            case ast.Name(id=name):
                return self.named(node, name)
            case ast.BoolOp(op=op, values=parts):
                return self.joined(isinstance(op, ast.And), parts, depth)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.closure(operand, depth + 1)
                return lambda names: not inner(names)
            case ast.UnaryOp(op=ast.USub()):
                hint = "compare with a field of the context that has the number"
                return self.fails(node, "a minus sign is not supported", hint)
            case ast.Compare():
                return self.compared(node, depth)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return self.listed(node, parts, depth)
            case ast.Attribute(value=held, attr=key):
                return self.member(held, key, depth)
            case ast.Subscript(value=held, slice=ast.Constant(value=str() as key)):
                return self.member(held, key, depth)
            case ast.Subscript():
                return self.fails(node, "only a quoted name is supported in brackets")
            case ast.Call():
                return self.called(node, depth)
        return self.fails(node, f"{_NAMED.get(type(node), 'this')} is not supported")

    def named(self, node: ast.AST, name: str) -> Closure:
        known = _NAMES if self.mode != "strict" else _STRICT_NAMES
        found = known.get(name)
        if found is not None:
            return found
        meant = _MEANT.get(name.lower())
        hint = f"write {meant}" if meant else did_you_mean(name, known)
        return self.fails(node, f"{name!r} is not a name", hint)

    def joined(self, every: bool, parts: list[ast.expr], depth: int) -> Closure:
        each = [self.closure(part, depth + 1) for part in parts]
        if every:
            return lambda names: all(part(names) for part in each)
        return lambda names: any(part(names) for part in each)

    def listed(self, node: ast.AST, parts: list[ast.expr], depth: int) -> Closure:
        if self.mode == "strict":
            return self.fails(node, "a list is not supported")
        each = [self.closure(part, depth + 1) for part in parts]
        if isinstance(node, ast.Tuple):
            return lambda names: tuple(part(names) for part in each)
        return lambda names: [part(names) for part in each]

    def member(self, held: ast.expr, key: str, depth: int) -> Closure:
        match held:
            case ast.Name(id="context"):
                return lambda names: _of_context(names, key)
            case ast.Name(id="steps"):
                return lambda names: names.steps.get(key)
        inner = self.closure(held, depth + 1)
        return lambda names: _member(inner(names), key)

    def called(self, node: ast.Call, depth: int) -> Closure:
        if not isinstance(node.func, ast.Attribute):
            return self.fails(node, "only methods of values can be called")
        if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            return self.fails(node, "only plain arguments are known here")
        held, name, strict = node.func.value, node.func.attr, self.mode == "strict"
        if name not in _METHODS:
            hint = did_you_mean(name, _METHODS) or f"the methods are {', '.join(_METHODS)}"
            unknown = self.fails(node, f"there is no method .{name}()", hint)
            of = self.closure(held, depth + 1)
            return lambda names: None if not strict and of(names) is None else unknown(names)
        if isinstance(held, ast.Name) and held.id == "context":
            hint = "write the field: context.name"
            return self.fails(node, "context has no methods", hint)
        inner = self.closure(held, depth + 1)
        arguments = [self.closure(each, depth + 1) for each in node.args]

        def call(names: FlujoNames) -> Any:
            value = inner(names)
            given = [each(names) for each in arguments]
            if isinstance(value, StepOutput):
                value = value.value
            if value is None and not strict:
                return None
            return _method(value, name, given)

        return call

    def compared(self, node: ast.Compare, depth: int) -> Closure:
        first = self.closure(node.left, depth + 1)
        rest: list[tuple[Callable[[Any, Any], bool], Closure]] = []
        for op, each in zip(node.ops, node.comparators, strict=True):
            if type(op) not in COMPARED:
                return self.fails(node, "'is' is not supported; write ==")
            rest.append((_comparison(type(op), self.mode), self.closure(each, depth + 1)))
        if len(rest) == 1:
            ((holds, second),) = rest
            return lambda names: holds(first(names), second(names))

        def chained(names: FlujoNames) -> bool:
            left = first(names)
            for holds, operand in rest:
                right = operand(names)
                if not holds(left, right):
                    return False
                left = right
            return True

        return chained


_STRICT_NAMES: Final[Mapping[str, Closure]] = {
    "output": lambda names: names.output,
    "previous_step": lambda names: names.output,
    "context": lambda names: names.context,
    "steps": lambda names: names.steps,
}
_NAMES: Final[Mapping[str, Closure]] = {
    **_STRICT_NAMES,
    "resume_input": lambda names: names.resume_input,
    "true": lambda names: True,
    "false": lambda names: False,
}
_MEANT: Final = {"null": "None", "nil": "None", "none": "None", "true": "True", "false": "False"}
"""The constants of other languages."""
_NAMED: Final[Mapping[type[ast.AST], str]] = {
    ast.BinOp: "arithmetic",
    ast.UnaryOp: "this operator",
    ast.IfExp: "a conditional expression",
    ast.Lambda: "lambda",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.JoinedStr: "an f-string",
    ast.Dict: "an object",
    ast.Set: "a set",
    ast.NamedExpr: "the operator :=",
    ast.Await: "await",
    ast.Starred: "*",
}


# --------------------------------------------------------------------------------------------
# Evaluating


def _of_context(names: FlujoNames, key: str) -> Any:
    found = names.context.get(key)
    if found is None and names.steps.get(key) is not None:
        return StepOutput(names.steps[key])
    return found


def _member(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return value.get(key)
    return value.value if isinstance(value, StepOutput) and key in OUTPUT else None


_METHODS: Final = ("get", "lower", "upper", "strip", "startswith", "endswith")


def _method(value: Any, name: str, given: list[Any]) -> Any:
    if name == "get":
        if isinstance(value, dict) and 1 <= len(given) <= 2 and isinstance(given[0], str):
            return value.get(*given)
    elif isinstance(value, str):
        if name in ("startswith", "endswith"):
            if len(given) == 1 and isinstance(given[0], str):
                return getattr(value, name)(given[0])
        elif not given:
            return getattr(value, name)()
    raise FlujoConditionError(f".{name}() does not apply to this value")


_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _comparison(op: type[ast.cmpop], mode: str) -> Callable[[Any, Any], bool]:
    """Return the comparison of an operator in a mode."""
    plain = _counted(COMPARED[op])
    if op in (ast.In, ast.NotIn):
        return lambda one, other: _contained(plain, one, other, op is ast.NotIn, mode)
    if mode == "strict":
        return lambda one, other: _tried(plain, one, other)
    numbers = _every_number if mode == "engine" else _one_number
    ordered = op in _ORDERED

    def compare(one: Any, other: Any) -> bool:
        if isinstance(one, str) or isinstance(other, str):
            one, other = numbers(one, other)
        if ordered:
            if mode == "engine" and isinstance(one, list | tuple):
                return False
            try:
                return bool(plain(one, other))
            except TypeError:
                return False
        return bool(plain(one, other))

    return compare


def _counted(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Return the comparison with its work counted; raises WorkExceeded for large values."""

    def counted(one: Any, other: Any) -> bool:
        if isinstance(one, _CONTAINERS) or isinstance(other, _CONTAINERS):
            meter = WorkMeter()
            count_values(one, meter)
            count_values(other, meter)
        return compare(one, other)

    return counted


_CONTAINERS = (list, tuple, dict)


def _one_number(one: Any, other: Any) -> tuple[Any, Any]:
    """Convert a text compared with a number."""
    if type(other) in (int, float) and isinstance(one, str):
        number = parse_number(one)
        return (one if number is None else number), other
    if type(one) in (int, float) and isinstance(other, str):
        number = parse_number(other)
        return one, (other if number is None else number)
    return one, other


def _every_number(one: Any, other: Any) -> tuple[Any, Any]:
    return _number(one), _number(other)


def _number(value: Any) -> Any:
    found = parse_number(value) if isinstance(value, str) else None
    return value if found is None else found


def _contained(
    plain: Callable[[Any, Any], bool], one: Any, other: Any, absent: bool, mode: str
) -> bool:
    if other is None and mode != "strict":
        return absent
    if mode == "engine":
        one, other = _every_number(one, other)
        try:
            return bool(plain(one, other))
        except TypeError:
            return absent and not isinstance(other, str | list | tuple | dict)
    return _tried(plain, one, other)


def _tried(plain: Callable[[Any, Any], bool], one: Any, other: Any) -> bool:
    try:
        return bool(plain(one, other))
    except TypeError as error:
        raise FlujoConditionError(str(error)) from None
