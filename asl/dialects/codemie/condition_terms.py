"""Conditions and scripts of workflows as terms, for other languages.

A condition whose evaluation fails is false. So what it reads is tested first, where another
language would not agree.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from asl.core.errors import ExpressionFault
from asl.dialects.codemie.conditions import equals
from asl.dialects.codemie.functions.conditions import COMPARISONS, parse
from asl.dialects.terms import (
    Choose,
    Comparison,
    DataPath,
    Exists,
    FunctionCall,
    Items,
    Literal,
    Logic,
    Negation,
    Record,
    Term,
    Text,
    Unknown,
    concatenate,
    member,
    paths_of,
    walk,
)

__all__ = ["condition_term", "value_term"]

LookUp = Callable[[Sequence[str]], Term]
_SHAPED: Final = {"lower": "lowercase", "upper": "uppercase", "strip": "trim"}
_HOLDERS: Final = ("string", "array", "object")
"""The types of values that have parts."""
_ARITHMETIC: Final = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%"}


class _NoTerm(Exception):
    """An expression has no form as a term."""


def condition_term(text: str, look_up: LookUp, *, members: bool = False) -> Term:
    """Return the term of a condition, Unknown if it has none.

    Args:
        text: The condition; one that is not supported is false.
        look_up: Returns the value of a name.
        members: Whether `user.name` reads a member of an object.
    """
    try:
        return _Terms(look_up).condition(parse(text, members=members))
    except ExpressionFault:
        return Literal(False)
    except _NoTerm:
        return Unknown(text)


def value_term(text: str, look_up: LookUp) -> Term:
    """Return the term of a script, Unknown if it has none.

    Args:
        text: The script.
        look_up: Returns the value of a name.
    """
    try:
        return _Terms(look_up).value(parse(text, members=True))
    except (ExpressionFault, _NoTerm):
        return Unknown(text)


class _Decision(NamedTuple):
    """A condition without `and`, `or` and `not`.

    Attributes:
        holds: Term of what holds where it is true.
        requires: Tests that hold where its evaluation does not fail.
    """

    holds: Term
    requires: list[Term]

    def decided(self, wanted: bool) -> Term:
        """Return what holds where it is true, or where it is false; neither where it fails."""
        if wanted:
            return _all([*_guards(self.holds), self.holds])
        return _all([*self.requires, Negation(self.holds)])


class _Terms:
    def __init__(self, look_up: LookUp) -> None:
        self.look_up = look_up

    def condition(self, node: ast.expr, wanted: bool = True) -> Term:
        """Return what holds where an expression is true, or where it is false."""
        return self.decided(node, wanted)[0]

    def decided(self, node: ast.expr, wanted: bool) -> tuple[Term, list[Term]]:
        """Return that, and the tests that hold where its evaluation does not fail."""
        match node:
            case ast.BoolOp(op=op, values=values):
                parts = [self.decided(each, wanted) for each in values]
                return _joined(parts, every=isinstance(op, ast.And) is wanted)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.decided(operand, not wanted)
            case ast.Compare():
                tests = [*self.comparisons(node)]
                parts = [(each.decided(wanted), each.requires) for each in tests]
                return _joined(parts, every=wanted)
            case ast.Call(ast.Name(id="bool"), [value]):
                return self.decided(value, wanted)
        test = self.test(node)
        return test.decided(wanted), test.requires

    def test(self, node: ast.expr) -> _Decision:
        match node:
            case ast.Call(ast.Attribute(value, attr=name), [part]):
                if name in ("startswith", "endswith", "contains"):
                    return self.text_test(name, self.value(value), self.value(part))
            case ast.IfExp(test=test, body=body, orelse=other):
                ways = self.condition(body), self.condition(other)
                chosen = Choose(self.condition(test), *ways)
                return _Decision(chosen, _there(chosen))
        found = self.value(node)
        return _Decision(_truth(found), [*_there(found), *_guards(found)])

    def text_test(self, name: str, value: Term, part: Term) -> _Decision:
        if name == "contains":
            return self.contained(part, value)
        if not _is_text_literal(part) or not isinstance(part, Literal) or "*" in str(part.value):
            raise _NoTerm
        pattern = f"{part.value}*" if name == "startswith" else f"*{part.value}"
        matched = FunctionCall("matches", (value, Literal(pattern.replace("\\", "\\\\"))))
        return _Decision(matched, [*_there(value), _is_text(_bare(value))])

    def contained(self, part: Term, whole: Term) -> _Decision:
        """Return whether a list or a text has a part."""
        there = [*_there(part, whole), *_guards(part), *_guards(whole)]
        if isinstance(whole, Literal | Items):
            return _Decision(Comparison("in", part, whole), there)
        if not isinstance(part, Literal) or not isinstance(part.value, str):
            return _Decision(Comparison("in", part, whole), there)
        if _bare(whole) != whole:
            return _Decision(FunctionCall("contains", (whole, part)), there)
        holder = Comparison("in", FunctionCall("type", (whole,)), Literal([*_HOLDERS]))
        return _Decision(FunctionCall("includes", (whole, part)), [*_guards(whole), holder])

    def comparisons(self, node: ast.Compare) -> Iterator[_Decision]:
        operands = [node.left, *node.comparators]
        for index, op in enumerate(node.ops):
            yield self.comparison(COMPARISONS[type(op)], operands[index], operands[index + 1])

    def comparison(self, sign: str, one: ast.expr, other: ast.expr) -> _Decision:
        if sign in ("in", "not in") and isinstance(other, ast.Name) and other.id == "keys":
            if not isinstance(one, ast.Constant) or not isinstance(one.value, str):
                raise _NoTerm
            there = Exists(self.look_up((one.value,)))
            return _Decision(there if sign == "in" else Negation(there), [])
        left, right = self.value(one), self.value(other)
        if _is_text_literal(right):
            left = _joined_text(left)
        if sign in ("in", "not in"):
            found = self.contained(left, right)
        elif sign in ("==", "is", "!=", "is not"):
            identical = sign in ("is", "is not")  # 1 is not True, although it is equal to it
            same = Comparison("=", left, right) if identical else _equal(left, right)
            found = _Decision(same, [*_there(left, right), *_guards(left, right)])
        else:
            return _ordered(sign, left, right)
        if sign in ("in", "==", "is"):
            return found
        return _Decision(found.decided(False), found.requires)

    def value(self, node: ast.expr) -> Term:
        """Return the value of an expression; raises _NoTerm."""
        match node:
            case ast.Name(id=name) if name != "keys":
                return self.look_up((name,))
            case ast.Constant(value=value) if not isinstance(value, bytes | complex):
                return Literal(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return Literal(-number)
            case ast.Attribute(value=holder, attr=name):
                return member(self.value(holder), (name,))
            case ast.Subscript(value=holder, slice=ast.Constant(value=str() | int() as step)):
                return member(self.value(holder), (step,))
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                items = [self.value(each) for each in parts]
                if all(isinstance(each, Literal) for each in items):
                    return Literal([each.value for each in items if isinstance(each, Literal)])
                return Items(tuple(items))
            case ast.Dict(keys=keys, values=parts):
                return self.record(keys, parts)
            case ast.IfExp(test=test, body=body, orelse=other):
                return Choose(self.condition(test), self.value(body), self.value(other))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return _computed(type(op), self.value(left), self.value(right))
            case ast.Call(ast.Attribute(value=holder, attr="get"), [ast.Constant(str(key)), *more]):
                found = member(self.value(holder), (key,))
                if not more:
                    return found
                return Choose(Exists(found), found, self.value(more[0]))
            case ast.Call(ast.Attribute(value=holder, attr=name), []) if name in _SHAPED:
                return FunctionCall(_SHAPED[name], (self.value(holder),))
            case ast.Call(ast.Name(id="len"), [counted]):
                whole = self.value(counted)
                return Choose(
                    _is_text(whole),
                    FunctionCall("length", (whole,)),
                    FunctionCall("count", (whole,)),
                )
            case ast.Call(ast.Name(id="str"), [shown]):
                return Text((self.value(shown),))
            case ast.BoolOp() | ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return self.condition(node)
        raise _NoTerm

    def record(self, keys: Sequence[ast.expr | None], parts: Sequence[ast.expr]) -> Term:
        members = []
        for key, part in zip(keys, parts, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                raise _NoTerm
            members.append((key.value, self.value(part)))
        if all(isinstance(each, Literal) for _, each in members):
            return Literal({key: each.value for key, each in members if isinstance(each, Literal)})
        return Record(None, tuple(members))


def _equal(left: Term, right: Term) -> Term:
    """Return whether two values are equal; the constant 1 is equal to true."""
    if isinstance(right, Literal) and not isinstance(right.value, list | dict):
        same = equals(right.value)
        if len(same) > 1:
            return Comparison("in", left, Literal([*same]))
    return Comparison("=", left, right)


def _computed(op: type[ast.operator], left: Term, right: Term) -> Term:
    texts = [isinstance(each, Text) or _is_text_literal(each) for each in (left, right)]
    if any(texts):
        if op is not ast.Add:
            raise _NoTerm
        return concatenate(left, right)
    return FunctionCall(_ARITHMETIC[op], (left, right))


def _joined_text(value: Term) -> Term:
    """Return the text that a sum is where it equals a text."""
    match value:
        case FunctionCall("+", (DataPath() as one, DataPath() as other)):
            test = _all([_is_text(one), _is_text(other)])
            return Choose(test, concatenate(one, other), None)
    return value


def _is_text_literal(term: Term) -> bool:
    return isinstance(term, Literal) and isinstance(term.value, str)


def _is_text(value: Term) -> Term:
    return _is_kind(value, "string")


def _bare(value: Term) -> Term:
    """Return the text that another one is a form of."""
    while isinstance(value, FunctionCall) and value.function in _SHAPED.values():
        value = value.arguments[0]
    return value


def _ordered(sign: str, left: Term, right: Term) -> _Decision:
    """Return the comparison of two values of the same type."""
    kinds = [_KINDS.get(type(each.value)) for each in (left, right) if isinstance(each, Literal)]
    if kinds and (kinds[0] is None or len({*kinds}) > 1):
        return _Decision(Literal(False), [Literal(False)])
    read = [each for each in (left, right) if isinstance(each, DataPath)]
    guards = _guards(left, right)
    if kinds:
        fits = [_is_kind(each, str(kinds[0])) for each in read]
        return _Decision(
            Comparison(sign, left, right, kinds[0] if read else None), [*guards, *fits]
        )
    if len(read) == 2:
        types = [FunctionCall("type", (each,)) for each in read]
        guards.append(Comparison("=", types[0], types[1]))
    compared = _all([*guards, Comparison(sign, left, right)])
    return _Decision(compared, [*_there(left, right), *guards])


_KINDS: Final[Mapping[type, str]] = {int: "number", float: "number", str: "string"}


def _joined(parts: list[tuple[Term, list[Term]]], *, every: bool) -> tuple[Term, list[Term]]:
    """Join conditions; each is evaluated if those before it do not decide.

    Args:
        parts: Conditions, each with the tests that hold where its evaluation does not fail.
        every: Whether all have to hold, rather than one.
    """
    requires = [each for _, tests in parts for each in tests]
    if every:
        return _all([term for term, _ in parts]), requires
    *before, (found, _) = parts
    for term, tests in reversed(before):
        found = _all([*tests, Logic("or", (term, found))])
    return found, requires


def _truth(value: Term) -> Term:
    match value:
        case Literal(held):
            return Literal(bool(held))
        case Choose(_, FunctionCall("length"), FunctionCall("count")):
            return Comparison(">", value, Literal(0))
        case Comparison() | Logic() | Negation() | Exists():
            return value
    return FunctionCall("boolean", (value,))


def _all(tests: list[Term]) -> Term:
    """Return a condition that holds where all tests do; one that is there twice is made once."""
    found: list[Term] = []
    for each in _known(tests):
        if each not in found:
            found.append(each)
    return found[0] if len(found) == 1 else Logic("and", tuple(found))


def _known(tests: list[Term]) -> Iterator[Term]:
    for each in tests:
        if isinstance(each, Logic) and each.operator == "and":
            yield from _known(list(each.parts))
        else:
            yield each


def _there(*terms: Term) -> list[Term]:
    return [Exists(each) for term in terms for each in _read(term)]


def _guards(*terms: Term) -> list[Term]:
    """Return the tests without which the evaluation of terms fails."""
    found: list[Term] = []
    for each in (one for term in terms for one in walk(term)):
        match each:
            case FunctionCall(name, (value, *_)) if name in (
                *_SHAPED.values(),
                "matches",
                "contains",
            ):
                found.append(_is_text(_bare(value)))
            case FunctionCall("boolean", (value,)):
                found += _there(value)
            case FunctionCall(name, operands) if name in _ARITHMETIC.values():
                found += [_is_kind(one, "number") for one in operands if isinstance(one, DataPath)]
            case Choose(_, FunctionCall("length"), FunctionCall("count", (value,))):
                found.append(Exists(value))
    return found


def _is_kind(value: Term, kind: str) -> Term:
    return Comparison("=", FunctionCall("type", (value,)), Literal(kind))


def _read(term: Term) -> list[DataPath]:
    """Return the values that a term reads, each once."""
    return [*dict.fromkeys(paths_of(term))]
