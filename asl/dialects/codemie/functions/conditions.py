"""Conditions: expressions in a subset of Python's syntax.

Python's parser reads the text, within limits, and only the nodes of the grammar below are accepted.
They are evaluated here, node by node, over JSON values; Python executes nothing.
"""

import ast
import operator
import re
from collections.abc import Callable, ItemsView, KeysView, Mapping, ValuesView
from functools import lru_cache
from typing import Any, Final, TypeAlias

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.core.work import WorkExceeded, WorkLimits, WorkMeter, count_values
from asl.expr.python_grammar import COMPARED, MAX_DEPTH, parse_python

__all__ = ["COMPARISONS", "CodemieConditionError", "evaluate", "holds", "parse"]

LIMITS: Final = WorkLimits(steps=500_000, bytes=8 * 1024 * 1024)
"""Limits of the evaluation of one condition."""
MAX_ITEMS: Final = 100_000
MAX_BITS: Final = 50_000

SYNTAX: Final = "CM-EXPR-SYNTAX"
UNSUPPORTED: Final = "CM-EXPR-UNSUPPORTED"
INSTEAD: Final = "the condition is always false; compute the value in the actor's output"

Names: TypeAlias = Mapping[str, Json]


class CodemieConditionError(Exception):
    """The evaluation of an expression failed; the condition around it is false."""


# --------------------------------------------------------------------------------------------
# Reading


def parse(text: str, *, members: bool = False) -> ast.expr:
    """Parse an expression.

    Args:
        text: The expression.
        members: Whether `user.name` reads a member of an object.

    Raises:
        ExpressionFault: CM-EXPR-SYNTAX for a text that is no expression, CM-EXPR-UNSUPPORTED for an
            expression beyond the grammar, which is false when it is evaluated.
    """
    tree, lead = parse_python(text, SYNTAX)
    _Grammar(text[lead:], lead, members).check(tree, 0)
    return tree


COMPARISONS: Final[Mapping[type[ast.cmpop], str]] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}
_PLAIN = (ast.BoolOp, ast.IfExp, ast.Compare, ast.List, ast.Tuple, ast.Subscript, ast.Slice)
_UNARY = (ast.Not, ast.USub, ast.UAdd)
_BINARY = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_CONSTANTS = (str, int, float, bool, type(None))
_CONSTANT_WORDS: Final = {"true": "True", "false": "False", "null": "None"}
"""JSON's words for constants, which the platform refuses, and Python's words for them."""


class _Grammar:
    """Accepts the nodes of the grammar and names the error of any other."""

    def __init__(self, text: str, lead: int, members: bool) -> None:
        self.text = text
        self.lead = lead
        self.members = members

    def check(self, node: ast.AST, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self.beyond(node, f"the expression is nested deeper than {MAX_DEPTH} levels")
        match node:
            case ast.Constant(value=value):
                if type(value) not in _CONSTANTS:
                    raise self.beyond(node, f"{type(value).__name__} constants are not supported")
                if type(value) is str and not _is_one(self.text, node):
                    raise self.beyond(node, "a string must be one literal without a prefix")
            case ast.Name(id=name):
                if name in _CONSTANT_WORDS:
                    raise self.misspelt(node, name)
                if name.startswith("__"):
                    raise self.beyond(node, f"{name!r} is not a name of the output")
            case ast.UnaryOp(op=op) if not isinstance(op, _UNARY):
                raise self.beyond(node, "the operator ~ is not supported")
            case ast.BinOp(op=op) if not isinstance(op, _BINARY):
                raise self.beyond(node, f"{_OPERATORS.get(type(op), 'it')} is not supported")
            case ast.Dict(keys=keys) if None in keys:
                raise self.beyond(node, "** is not supported")
            case ast.Call():
                self.call(node)
            case ast.Attribute() if self.members and not node.attr.startswith("_"):
                pass
            case ast.Attribute():
                hint = "write user['name'] for a member of an object"
                raise self.beyond(node, f".{node.attr} is only supported as a method call", hint)
            case ast.UnaryOp() | ast.BinOp() | ast.Dict():
                pass
            case _ if not isinstance(node, _PLAIN):
                raise self.beyond(node, f"{_NAMED.get(type(node), 'this')} is not supported")
        for child in self.children(node):
            self.check(child, depth + 1)

    def children(self, node: ast.AST) -> list[ast.AST]:
        if isinstance(node, ast.Call):
            callee = node.func
            first = [callee.value] if isinstance(callee, ast.Attribute) else []
            arguments = node.args
            if isinstance(callee, ast.Name) and callee.id == "isinstance":
                arguments = arguments[:1]
            return [*first, *arguments]
        return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]

    def call(self, node: ast.Call) -> None:
        if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            raise self.beyond(node, "only positional arguments are supported")
        match node.func:
            case ast.Name(id="isinstance"):
                self.types(node)
            case ast.Name(id=name) if name not in FUNCTIONS:
                hint = f"the functions are {', '.join(FUNCTIONS)}"
                raise self.beyond(node, f"there is no function {name}", hint)
            case ast.Attribute(attr=name) if name not in METHODS:
                hint = f"the methods are {', '.join(METHODS)}"
                raise self.beyond(node, f"there is no method .{name}()", hint)
            case ast.Name() | ast.Attribute():
                pass
            case _:
                raise self.beyond(node, "only functions and methods can be called")

    def types(self, node: ast.Call) -> None:
        if len(node.args) == 2:
            named = node.args[1]
            each = named.elts if isinstance(named, ast.Tuple) else [named]
            if each and all(isinstance(one, ast.Name) and one.id in TYPES for one in each):
                return
        raise self.beyond(node, f"isinstance takes a value and one of {', '.join(TYPES)}")

    def misspelt(self, node: ast.Name, name: str) -> ExpressionFault:
        message = f"{name!r} is not a constant of expressions"
        hint = f"write {_CONSTANT_WORDS[name]}"
        return ExpressionFault(message, self.lead + node.col_offset, SYNTAX, hint)

    def beyond(self, node: ast.AST, message: str, hint: str | None = None) -> ExpressionFault:
        offset = self.lead + (getattr(node, "col_offset", 0) or 0)
        return ExpressionFault(message, offset, UNSUPPORTED, hint or INSTEAD)


def _is_one(text: str, node: ast.Constant) -> bool:
    """Return whether a text is one literal without a prefix."""
    written = ast.get_source_segment(text, node) or ""
    quote = written[:3] if written[:3] in ("'''", '"""') else written[:1]
    inner = written[len(quote) : -len(quote)] if quote in ("'", '"', "'''", '"""') else quote
    return quote not in re.sub(r"\\.", "", inner, flags=re.DOTALL)


_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Pow: "**",
    ast.BitAnd: "the operator &",
    ast.BitOr: "the operator |",
    ast.BitXor: "the operator ^",
    ast.LShift: "the operator <<",
    ast.RShift: "the operator >>",
    ast.MatMult: "the operator @",
}
_NAMED: Mapping[type[ast.AST], str] = {
    ast.Set: "a set",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.Lambda: "lambda",
    ast.NamedExpr: "the operator :=",
    ast.JoinedStr: "an f-string",
    ast.Await: "await",
    ast.Starred: "*",
}


# --------------------------------------------------------------------------------------------
# Evaluating


@lru_cache(maxsize=512)
def _parse_cached(text: str, members: bool) -> ast.expr | None:
    try:
        return parse(text, members=members)
    except ExpressionFault:
        return None


def holds(
    text: str, names: Names, *, members: bool = False, meter: WorkMeter | None = None
) -> bool:
    """Return whether a condition is true for these names; a failed evaluation makes it false."""
    tree = _parse_cached(text, members)
    if tree is None:
        return False
    try:
        return bool(evaluate(tree, names, meter))
    except CodemieConditionError:
        return False


def evaluate(tree: ast.expr, names: Names, meter: WorkMeter | None = None) -> Any:
    """Return the value of a parsed expression.

    Args:
        tree: The expression.
        names: The values by name.
        meter: Counts the work of several expressions; None for a new one.

    Raises:
        CodemieConditionError: The evaluation failed or exceeded a limit.
    """
    meter = meter or WorkMeter(LIMITS)
    try:
        value = _Evaluation(names, meter).value(tree)
        count_values(value, meter)
        return value
    except WorkExceeded:
        raise CodemieConditionError("too much work") from None
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise CodemieConditionError(str(error)) from None
    except RecursionError:
        raise CodemieConditionError("too deep") from None


class _Evaluation:
    """One evaluation within its limits; it fails where Python's operators fail."""

    def __init__(self, names: Names, meter: WorkMeter) -> None:
        self.names = names
        self.meter = meter
        self.spend = meter.spend

    def value(self, node: ast.expr) -> Any:
        self.spend(4)
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self.named(name)
            case ast.BoolOp(op=op, values=parts):
                return self.joined(isinstance(op, ast.And), parts)
            case ast.UnaryOp(op=op, operand=operand):
                return self.unary(op, self.value(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(op, self.value(left), self.value(right))
            case ast.Compare():
                return self.compared(node)
            case ast.IfExp(test=test, body=body, orelse=other):
                return self.value(body) if self.value(test) else self.value(other)
            case ast.List(elts=parts):
                return [self.value(each) for each in parts]
            case ast.Tuple(elts=parts):
                return tuple(self.value(each) for each in parts)
            case ast.Dict(keys=keys, values=parts):
                return {
                    self.counted(self.value(key)): self.value(each)
                    for key, each in zip(keys, parts, strict=True)
                    if key is not None
                }
            case ast.Attribute(value=held, attr=name):
                return self.member(self.value(held), name)
            case ast.Subscript(value=held, slice=index):
                return self.item(self.value(held), index)
            case ast.Call():
                return self.called(node)
        raise CodemieConditionError("beyond the grammar")

    def counted(self, value: Any) -> Any:
        """Count the work of reading a value."""
        count_values(value, self.meter)
        return value

    def named(self, name: str) -> Any:
        if name == "keys":
            return self.names.keys()
        if name not in self.names:
            raise CodemieConditionError(f"there is no {name}")
        return self.names[name]

    def joined(self, every: bool, parts: list[ast.expr]) -> Any:
        value: Any = None
        for part in parts:
            value = self.value(part)
            if bool(value) is not every:
                return value
        return value

    def unary(self, op: ast.unaryop, value: Any) -> Any:
        if isinstance(op, ast.Not):
            return not value
        return -value if isinstance(op, ast.USub) else +value

    def binary(self, op: ast.operator, left: Any, right: Any) -> Any:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, str | list | tuple):
                if isinstance(op, ast.Mod):
                    raise CodemieConditionError("% takes numbers")
                times = other if type(other) is int else 1
                more = len(other) if isinstance(other, str | list | tuple) else 0
                length = len(one) * max(times, 1) + more
                if length > MAX_ITEMS:
                    raise CodemieConditionError("too long")
                self.spend(length >> 4)
                self.meter.spend_bytes(8 * length)
        return self.bounded(_BINARIES[type(op)](left, right))

    def bounded(self, value: Any) -> Any:
        if type(value) is int and value.bit_length() > MAX_BITS:
            raise CodemieConditionError("too large")
        if type(value) is float and not -MAX_FLOAT <= value <= MAX_FLOAT:
            raise CodemieConditionError("not a finite number")
        return value

    def compared(self, node: ast.Compare) -> bool:
        left = self.value(node.left)
        for op, each in zip(node.ops, node.comparators, strict=True):
            right = self.value(each)
            if isinstance(op, ast.Is | ast.IsNot) and not (
                isinstance(each, ast.Constant | ast.Name) and (right is None or type(right) is bool)
            ):
                raise CodemieConditionError("is only takes None, True and False")
            if not isinstance(op, ast.Is | ast.IsNot):
                self.counted(left)
                self.counted(right)
            if not _COMPARED[type(op)](left, right):
                return False
            left = right
        return True

    def item(self, held: Any, index: ast.expr) -> Any:
        if isinstance(index, ast.Slice):
            bounds = [
                None if each is None else self.value(each)
                for each in (index.lower, index.upper, index.step)
            ]
            return held[slice(*bounds)]
        return held[self.counted(self.value(index))]

    def member(self, held: Any, name: str) -> Any:
        if not isinstance(held, dict):
            raise CodemieConditionError(f"no member {name}")
        return held[name]

    def called(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            held = self.value(node.func.value)
            arguments = [self.value(each) for each in node.args]
            method = METHODS[node.func.attr].get(_kind(held))
            if method is None:
                raise CodemieConditionError(f"no method {node.func.attr}")
            self.counted(held)
            for argument in arguments:
                self.counted(argument)
            self.spend(len(held) >> 5)
            return method(held, *arguments)
        assert isinstance(node.func, ast.Name)
        if node.func.id == "isinstance":
            named = node.args[1]
            each = named.elts if isinstance(named, ast.Tuple) else [named]
            wanted = tuple(TYPES[one.id] for one in each if isinstance(one, ast.Name))
            return isinstance(self.value(node.args[0]), wanted)
        arguments = [self.value(each) for each in node.args]
        for argument in arguments:
            if not isinstance(argument, filter):  # counted when it was made
                self.counted(list(argument) if isinstance(argument, _VIEWS) else argument)
        return self.bounded(FUNCTIONS[node.func.id](*arguments))


_VIEWS = (KeysView, ValuesView, ItemsView)

MAX_FLOAT: Final = 1.7976931348623157e308

_BINARIES: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    **COMPARED,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    return "object" if isinstance(value, dict) else "list" if isinstance(value, list) else ""


def _replace(text: str, old: str, new: str, *count: int) -> str:
    if len(text) + (text.count(old) + 1) * len(new) > max(MAX_ITEMS, len(text)):
        raise CodemieConditionError("too long")
    return text.replace(old, new, *count)


TYPES: Final[Mapping[str, type]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list": list,
    "dict": dict,
}

FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "len": len,
    "max": max,
    "min": min,
    "sum": lambda values, *start: sum(values, *start),
    "abs": abs,
    "round": round,
    "str": lambda value: str(value),
    "int": lambda value: int(value),
    "float": lambda value: float(value),
    "bool": lambda value: bool(value),
    "any": any,
    "all": all,
    "sorted": lambda values: sorted(values),
    "list": lambda values: list(values),
    "filter": filter,
    "isinstance": isinstance,
}
"""The functions of the grammar; they take positional arguments only."""

METHODS: Final[Mapping[str, Mapping[str, Callable[..., Any]]]] = {
    "lower": {"text": str.lower},
    "upper": {"text": str.upper},
    "strip": {"text": str.strip},
    "lstrip": {"text": str.lstrip},
    "rstrip": {"text": str.rstrip},
    "startswith": {"text": str.startswith},
    "endswith": {"text": str.endswith},
    "split": {"text": str.split},
    "replace": {"text": _replace},
    "find": {"text": str.find},
    "count": {"text": str.count, "list": list.count},
    "isdigit": {"text": str.isdigit},
    "isalpha": {"text": str.isalpha},
    "title": {"text": str.title},
    "capitalize": {"text": str.capitalize},
    "contains": {
        "text": lambda text, part: part in text,
        "list": lambda values, each: each in values,
        "object": lambda held, key: key in held,
    },
    "get": {"object": dict.get},
    "keys": {"object": dict.keys},
    "values": {"object": dict.values},
    "items": {"object": dict.items},
    "index": {"list": list.index},
}
"""The methods of the grammar by the type of value that has them."""
