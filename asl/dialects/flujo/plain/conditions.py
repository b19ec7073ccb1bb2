"""Conditions as rules of a Choice: what is missing is null, and a truth may be known beforehand."""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.flujo.functions.conditions import compile_expression
from asl.dialects.flujo.plain.terms import Call, Literal, Operation, Term, Way
from asl.expr.text_matching import escape_glob

__all__ = ["Beyond", "Conditions", "Known", "Rule", "named"]

Rule: TypeAlias = dict[str, Json] | bool
"""A rule without where it leads, or whether it holds in any case."""


class Beyond(Exception):
    """No rule says this."""


@dataclass(frozen=True, slots=True)
class Known:
    """A value that is the same in every run."""

    value: Any


Operand: TypeAlias = Known | str
"""A value that is known, or the path where it stands."""
_SIGNS: Final = {
    ast.Lt: "LessThan",
    ast.LtE: "LessThanEquals",
    ast.Gt: "GreaterThan",
    ast.GtE: "GreaterThanEquals",
}
_TURNED: Final = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_SHAPING: Final = ("lower", "upper", "strip")


class Conditions:
    """Says conditions as rules; *find* returns where a name leads, *approximated* reports."""

    def __init__(
        self, find: Callable[[tuple[str, ...]], Operand], approximated: Callable[[str], None]
    ) -> None:
        self.find = find
        self.approximated = approximated

    def said(self, text: str) -> Rule:
        """Return the rule of a condition; raises Beyond."""
        try:
            return self._node(compile_expression(text).tree)
        except ExpressionFault:
            raise Beyond from None

    def branch(self, text: str | None, name: str) -> Rule:
        """Return the rule that a condition names a branch; without one, what moves along does."""
        if text is None:
            return named(self.find(("previous_step",)), name)
        try:
            tree = compile_expression(text).tree
        except ExpressionFault:
            raise Beyond from None
        if isinstance(tree, ast.BoolOp | ast.Compare) or (
            isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not)
        ):
            if name not in ("true", "false"):
                return False
            rule = self._node(tree)
            return rule if name == "true" else negated(rule)
        return named(self._operand(tree), name)

    def term(self, term: Term) -> Rule:
        """Return the rule of a condition that the reader says in JSONata itself; raises Beyond."""
        match term:
            case Operation("and" | "or" as word, left, right):
                return _joined(word == "and", [self.term(left), self.term(right)])
            case Call("not", (operand,)):
                return negated(self.term(operand))
            case Operation("=", Way(steps), Literal(value)):
                return _equal(self.find(steps[1:]), value)
            case Operation("!=", Way(steps), Literal(value)):
                return negated(_equal(self.find(steps[1:]), value))
            case Operation("in", Way(steps), Literal(list() as values)):
                found = self.find(steps[1:])
                return _joined(False, [_equal(found, each) for each in values])
        raise Beyond

    def _node(self, node: ast.expr) -> Rule:
        match node:
            case ast.BoolOp(op=op, values=parts):
                return _joined(isinstance(op, ast.And), [self._node(each) for each in parts])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return negated(self._node(operand))
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [left, *others]
                pairs = zip(sides, ops, others, strict=False)
                return _joined(True, [self._compared(*each) for each in pairs])
            case ast.Call(
                func=ast.Attribute(value=held, attr="startswith" | "endswith" as word),
                args=[ast.Constant(value=str() as text)],
            ):
                return self._matched(self._operand(held), text, word)
        return self._truth(self._operand(node))

    def _truth(self, operand: Operand) -> Rule:
        if isinstance(operand, Known):
            return bool(operand.value)
        self.approximated("an object or a list that is empty counts as one that is not")
        empty = [_equal(operand, each) for each in (None, False, "", 0)]
        return negated(_joined(False, empty))

    def _operand(self, node: ast.expr) -> Operand:
        match node:
            case ast.Constant(value=value):
                return Known(value)
            case ast.Name(id="true" | "false" as word):
                return Known(word == "true")
            case ast.Call(func=ast.Attribute(value=held, attr=word), args=[]) if word in _SHAPING:
                found = self._operand(held)
                if isinstance(found, str):
                    told = f"a text is compared as it stands, without .{word}()"
                    self.approximated(told)
                return found
        return self.find(_steps(node))

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Rule:
        """Return the rule of a comparison; a default stands in for what is not there."""
        if not isinstance(left, ast.Call) or len(left.args) < 2:
            return self._related(left, op, right)
        bare = ast.Call(func=left.func, args=left.args[:1], keywords=[])
        found = self._operand(bare)
        if isinstance(found, Known):
            raise Beyond
        there = [_present(found), self._related(bare, op, right)]
        absent = [negated(_present(found)), self._related(left.args[1], op, right)]
        return _joined(False, [_joined(True, there), _joined(True, absent)])

    def _related(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Rule:
        if isinstance(op, ast.In | ast.NotIn):
            rule = self._contained(left, right)
            return rule if isinstance(op, ast.In) else negated(rule)
        one, other = self._operand(left), self._operand(right)
        if isinstance(one, Known) and not isinstance(other, Known):
            one, other = other, one
            op = _TURNED.get(type(op), type(op))()
        if not isinstance(other, Known):
            raise Beyond
        if isinstance(op, ast.Eq | ast.NotEq):
            rule = self._same(one, other.value)
            return rule if isinstance(op, ast.Eq) else negated(rule)
        if isinstance(one, Known) or type(op) not in _SIGNS:
            raise Beyond
        kind = "String" if isinstance(other.value, str) else "Numeric"
        if type(other.value) not in (str, int, float):
            raise Beyond
        if kind == "Numeric":
            self.approximated("only a number is compared, not a text that says one")
        test: dict[str, Json] = {"Variable": one, f"{kind}{_SIGNS[type(op)]}": other.value}
        return {"And": [_present(one), test]}

    def _same(self, one: Operand, value: Json) -> Rule:
        if not isinstance(one, Known) and type(value) in (int, float):
            self.approximated("only a number is compared, not a text that says one")
        return _equal(one, value)

    def _contained(self, left: ast.expr, right: ast.expr) -> Rule:
        if isinstance(right, ast.List | ast.Tuple):
            one = self._operand(left)
            rules = []
            for each in right.elts:
                value = self._operand(each)
                if not isinstance(value, Known):
                    raise Beyond
                rules.append(_equal(one, value.value))
            return _joined(False, rules)
        if isinstance(left, ast.Constant) and isinstance(left.value, str):
            found = self._operand(right)
            self.approximated("a text is looked for in texts only, not in lists and objects")
            return self._matched(found, left.value, "in")
        raise Beyond

    def _matched(self, operand: Operand, text: str, word: str) -> Rule:
        if isinstance(operand, Known):
            if operand.value is None:
                return False
            raise Beyond
        part = escape_glob(text)
        pattern = {"startswith": f"{part}*", "endswith": f"*{part}"}.get(word, f"*{part}*")
        return {"And": [_present(operand), {"Variable": operand, "StringMatches": pattern}]}


def negated(rule: Rule) -> Rule:
    """Return what holds where a rule does not."""
    return not rule if isinstance(rule, bool) else {"Not": rule}


def _joined(every: bool, rules: list[Rule]) -> Rule:
    if (not every) in [each for each in rules if isinstance(each, bool)]:
        return not every
    left: list[Json] = [each for each in rules if not isinstance(each, bool)]
    if not left:
        return every
    found = left[0]
    return {"And" if every else "Or": left} if len(left) > 1 else found


def _present(path: str) -> dict[str, Json]:
    return {"Variable": path, "IsPresent": True}


def _equal(operand: Operand, value: Json) -> Rule:
    if isinstance(operand, Known):
        return bool(operand.value == value)
    if value is None:
        return {"Or": [{"Not": _present(operand)}, {"Variable": operand, "IsNull": True}]}
    words = {bool: "Boolean", str: "String", int: "Numeric", float: "Numeric"}
    if type(value) not in words:
        raise Beyond
    test: dict[str, Json] = {"Variable": operand, f"{words[type(value)]}Equals": value}
    return {"And": [_present(operand), test]}


def named(operand: Operand, name: str) -> Rule:
    """Return the rule that a value names a branch."""
    tests = [_equal(operand, name)]
    if name in ("true", "false"):
        tests.append(_equal(operand, name == "true"))
    if name.lstrip("-").isdecimal():
        tests.append(_equal(operand, int(name)))
    return _joined(False, tests)


def _steps(node: ast.expr) -> tuple[str, ...]:
    """Return the names of a path; raises Beyond for anything else."""
    match node:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=held, attr=key):
            return (*_steps(held), key)
        case ast.Subscript(value=held, slice=ast.Constant(value=str() as key)):
            return (*_steps(held), key)
        case ast.Call(
            func=ast.Attribute(value=held, attr="get"),
            args=[ast.Constant(value=str() as key)],
        ):
            return (*_steps(held), key)
    raise Beyond
