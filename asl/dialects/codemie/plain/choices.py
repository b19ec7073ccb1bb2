"""Conditions as Choice rules on an answer.

A condition that fails is false as a whole, whatever it is a part of. So two rules are made of each
part, one for where it is true and one for where it is false, and neither holds where it fails.
"""

import ast
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from asl.dialects.codemie.conditions import NoJsonataEquivalent, comparisons, equals
from asl.dialects.codemie.functions.conditions import parse
from asl.dialects.codemie.functions.outputs import read_literal
from asl.dialects.jsonpath_form import path_to

__all__ = ["NEVER", "rule"]

Rule = dict[str, Any]

NEVER: Final[Rule] = {"Or": []}
"""Holds for no answer; no part of any other rule."""
_LEVELS: Final = 5
"""How deep `and` and `or` may nest: each level says what is below it almost twice."""
_NEGATED: Final = {"!=": "==", "not in": "in"}
_ORDERED: Final = {
    "<": ("LessThan", "GreaterThanEquals"),
    "<=": ("LessThanEquals", "GreaterThan"),
    ">": ("GreaterThan", "LessThanEquals"),
    ">=": ("GreaterThanEquals", "LessThan"),
}
"""The operator of a rule, and of the one that holds otherwise."""
_KINDS: Final[dict[type, str]] = {int: "Numeric", float: "Numeric", str: "String", bool: "Boolean"}


class _Sides(NamedTuple):
    """Where a part of a condition is true, and where it is false."""

    true: Rule
    false: Rule

    @property
    def turned(self) -> "_Sides":
        return _Sides(self.false, self.true)


def rule(text: str, answer: str) -> Rule:
    """Return the rule that holds for an answer, under this key, for which a condition is true.

    Raises Beyond, or ExpressionFault, where no rule says that.
    """
    return _decided(parse(text), answer, 0).true


def _decided(node: ast.expr, answer: str, level: int) -> _Sides:
    match node:
        case ast.BoolOp(op=op, values=parts) if level < _LEVELS:
            each = [_decided(part, answer, level + 1) for part in parts]
            if isinstance(op, ast.And):
                return _every(each)
            return _every([part.turned for part in each]).turned
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _decided(operand, answer, level).turned
        case ast.Compare():
            tests = comparisons(node)
            return _every(
                [_compared(path_to(answer, name), op, value) for name, op, value in tests]
            )
    raise NoJsonataEquivalent


def _every(parts: Sequence[_Sides]) -> _Sides:
    """Return parts joined by `and`: one is looked at where all before it are true."""
    *before, (true, false) = parts
    for part in reversed(before):
        true, false = _all(part.true, true), _any(part.false, _all(part.true, false))
    return _Sides(true, false)


def _all(*rules: Rule) -> Rule:
    return NEVER if NEVER in rules else {"And": [*rules]}


def _any(*rules: Rule) -> Rule:
    kept = [each for each in rules if each != NEVER]
    return kept[0] if len(kept) == 1 else {"Or": kept}


def _compared(path: str, op: str, value: Any) -> _Sides:
    present: Rule = {"Variable": path, "IsPresent": True}
    if op == "exists":
        return _Sides(present, {"Variable": path, "IsPresent": False})
    if op in _NEGATED:
        return _compared(path, _NEGATED[op], value).turned
    if op in _ORDERED and type(value) in (int, float, str):
        true, false = (
            {"Variable": path, f"{_KINDS[type(value)]}{each}": value} for each in _ORDERED[op]
        )
        return _Sides(_all(present, true), _all(present, false))
    if op == "==" or (op == "in" and isinstance(value, list)):
        same = _any(*_same(path, value if op == "in" else [value]))
        other = present if same == NEVER else _all(present, {"Not": same})
        return _Sides(_all(present, same), other)
    raise NoJsonataEquivalent


def _same(path: str, constants: Sequence[object]) -> list[Rule]:
    """Return the tests that hold for what is equal to one of some constants."""
    found: list[Rule] = []
    for each in [one for constant in constants for one in equals(constant)]:
        if each is None:
            found.append({"Variable": path, "IsNull": True})
        elif (
            not isinstance(each, str) or read_literal(each) == each
        ):  # no text is read as any other
            found.append({"Variable": path, f"{_KINDS[type(each)]}Equals": each})
    return found
