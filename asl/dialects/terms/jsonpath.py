"""Paths, intrinsic calls, payload templates and choice rules as terms."""

import re
from collections.abc import Mapping
from typing import Any, Final

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.terms import (
    INPUT,
    Comparison,
    DataPath,
    Exists,
    FunctionCall,
    Items,
    Literal,
    Logic,
    Meanings,
    Negation,
    Record,
    Step,
    Term,
    Text,
    Unknown,
    concatenate,
    member,
    merge,
)
from asl.dialects.terms.jsonata import read_field
from asl.expr.intrinsics import grammar
from asl.expr.intrinsics.strings import FormatPlaceholder, template
from asl.expr.paths.syntax import parse_path
from asl.expr.templates import SUFFIX

__all__ = ["read_expression", "read_path", "read_rule", "read_template"]

DATA: Final = DataPath(INPUT)
"""What `$` is where nothing else is stated: the input of the state."""
_NO_MEANINGS: Final[Meanings] = {}
_ITEM: Final = ("Map", "Item", "Value")
_INDEX: Final = ("Map", "Item", "Index")
_BESIDE: Final = frozenset(("Variable", "Next", "Comment", "Assign", "Output"))
"""Fields of a rule that compare nothing."""
_SIGNS: Final[Mapping[str, str]] = {
    "Equals": "=",
    "LessThan": "<",
    "LessThanEquals": "<=",
    "GreaterThan": ">",
    "GreaterThanEquals": ">=",
}
_OPERATOR: Final = re.compile(
    r"(String|Numeric|Boolean|Timestamp)"
    r"(Equals|LessThanEquals|GreaterThanEquals|LessThan|GreaterThan)(Path)?"
)
_KINDS: Final[Mapping[str, str]] = {
    "String": "string",
    "Numeric": "number",
    "Boolean": "boolean",
    "Timestamp": "timestamp",
}


def read_template(value: Json, data: Term = DATA) -> Term:
    """Return the term of a payload template.

    Args:
        value: The template: a key that ends in `.$` has a path or an intrinsic call.
        data: What `$` is.
    """
    if isinstance(value, dict):
        members = tuple(
            (key.removesuffix(SUFFIX), read_expression(each, data))
            if key.endswith(SUFFIX)
            else (key, read_template(each, data))
            for key, each in value.items()
        )
        if all(isinstance(each, Literal) for _, each in members):
            return Literal({key: each.value for key, each in members if isinstance(each, Literal)})
        return Record(None, members)
    if isinstance(value, list):
        items = tuple(read_template(each, data) for each in value)
        return Literal(value) if all(isinstance(each, Literal) for each in items) else Items(items)
    return Literal(value)


def read_expression(text: Json, data: Term = DATA) -> Term:
    """Return the term of a path or an intrinsic call; *data* is what `$` is."""
    if not isinstance(text, str):
        return Unknown(str(text))
    if text.startswith("$"):
        return read_path(text, data)
    try:
        return _argument(grammar.parse(text), data)
    except ExpressionFault:
        return Unknown(text)


def read_path(text: Json, data: Term = DATA) -> Term:
    """Return the term of a path, Unknown for one that selects several values.

    Args:
        text: The path; null is an empty object, as in `InputPath`.
        data: What `$` is.
    """
    if text is None:
        return Literal({})
    if not isinstance(text, str):
        return Unknown(str(text))
    try:
        path = parse_path(text)
    except ExpressionFault:
        return Unknown(text)
    steps = tuple(each for each in path.segments if isinstance(each, str | int))
    if len(steps) < len(path.segments):
        return Unknown(text)
    if path.root == "$":
        return member(data, steps)
    return _of_context(steps) if path.root == "$$" else DataPath(f"${path.root}", steps)


def _of_context(steps: tuple[Step, ...]) -> Term:
    if steps[:3] == _ITEM:
        return DataPath("item", steps[3:])
    if steps[:3] == _INDEX:
        return DataPath("index", steps[3:])
    return DataPath("context", steps)


def _argument(argument: grammar.Argument, data: Term) -> Term:
    if isinstance(argument, grammar.LiteralArgument | grammar.TextArgument):
        return Literal(argument.value)
    if isinstance(argument, grammar.PathArgument):
        return read_path(argument.text, data)
    if argument.name == "States.Format":
        return _format(argument, data)
    given = tuple(_argument(each, data) for each in argument.arguments)
    return _call(argument.name, given) or Unknown(argument.text)


def _format(call: grammar.IntrinsicCall, data: Term) -> Term:
    first, *others = call.arguments
    if not isinstance(first, grammar.TextArgument):
        return Unknown(call.text)
    parts = template(first.raw)
    places = [each for each in parts if isinstance(each, FormatPlaceholder)]
    if len(places) != len(others) or any(each.decimals is not None for each in places):
        return Unknown(call.text)
    values = iter([_argument(each, data) for each in others])
    made = [Literal(part) if isinstance(part, str) else next(values) for part in parts]
    found = concatenate(*made)
    return Text(tuple(made)) if len(made) == 1 and not isinstance(found, Literal) else found


def _call(name: str, arguments: tuple[Term, ...]) -> Term | None:
    """Return what a call of an intrinsic function computes, None where no term says it."""
    match name, arguments:
        case "States.Array", items:
            if all(isinstance(each, Literal) for each in items):
                return Literal([each.value for each in items if isinstance(each, Literal)])
            return Items(items)
        case "States.ArrayContains", (items, value):
            return Comparison("in", value, items)
        case "States.ArrayGetItem", (items, Literal(int(index))):
            return member(items, (index,))
        case "States.ArrayGetItem", (items, index):
            return FunctionCall("lookup", (items, index))
        case "States.ArrayLength", (items,):
            return FunctionCall("count", (items,))
        case "States.JsonMerge", (one, other) | (one, other, Literal(False)):
            return merge(one, other)
        case "States.JsonToString", (value,):
            return FunctionCall("string", (value,))
        case "States.MathAdd", (one, other):
            return FunctionCall("+", (one, other))
        case "States.StringSplit", (text, separator):
            return FunctionCall("split", (text, separator))
        case "States.StringToJson", (text,):
            return FunctionCall("eval", (text,))
        case "States.UUID", ():
            return FunctionCall("uuid", ())
    return None


def read_rule(
    rule: Mapping[str, Any],
    data: Term = DATA,
    meanings: Meanings = _NO_MEANINGS,
) -> Term:
    """Return the term of a choice rule's condition, or of a `Condition` in JSONata.

    Args:
        rule: The rule, without what it does when it holds.
        data: What `$` is.
        meanings: The meanings of functions that JSONata does not have.
    """
    if "Condition" in rule:
        return read_field(rule["Condition"], meanings)
    for field, operator in (("And", "and"), ("Or", "or")):
        if field in rule:
            return Logic(operator, tuple(read_rule(each, data, meanings) for each in rule[field]))
    if "Not" in rule:
        return Negation(read_rule(rule["Not"], data, meanings))
    value = read_path(rule.get("Variable"), data)
    tests = [_test(value, key, rule[key], data) for key in rule if key not in _BESIDE]
    return tests[0] if len(tests) == 1 else Logic("and", tuple(tests))


def _test(value: Term, operator: str, operand: Json, data: Term) -> Term:
    if operator == "IsPresent":
        return Exists(value) if operand is True else Negation(Exists(value))
    if operator == "StringMatches":
        return FunctionCall("matches", (value, Literal(operand)))
    if operator.startswith("Is"):
        kind = operator.removeprefix("Is").lower().replace("numeric", "number")
        test = Comparison("=", FunctionCall("type", (value,)), Literal(kind))
        return test if operand is True else Negation(test)
    match = _OPERATOR.fullmatch(operator)
    if match is None:
        return Unknown(operator)
    other = read_path(operand, data) if match[3] else Literal(operand)
    return Comparison(_SIGNS[match[2]], value, other, _KINDS[match[1]])
