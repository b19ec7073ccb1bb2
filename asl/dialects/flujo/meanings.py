"""What the functions of blueprints compute, as terms.

The data of a run has its `input`, the `context` and the outputs of `steps`.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.flujo.functions.conditions import compile_expression
from asl.dialects.flujo.functions.pipeline_data import ARTIFACTS, INITIAL_INPUT, YES, branch_name
from asl.dialects.flujo.functions.templates import (
    BlockPart,
    Part,
    Steps,
    TextPart,
    ValuePart,
    parse,
)
from asl.dialects.terms import (
    INPUT,
    RESULT,
    Choose,
    Comparison,
    DataPath,
    Exists,
    FunctionCall,
    Items,
    Literal,
    Logic,
    Meaning,
    Meanings,
    Negation,
    Record,
    RewrittenMeanings,
    Step,
    Term,
    Text,
    Unknown,
    concatenate,
    member,
    merge,
    put,
    replace,
)
from asl.expr.text_matching import escape_glob

__all__ = ["MEANINGS"]

_INPUT: Final = "input"
_CONTEXT: Final = "context"
_STEPS: Final = "steps"
_PREVIOUS: Final = "previous_step"
_RESUMED: Final = "resume_input"
_NOTHING: Final = Literal(None)
_OF_TEXTS: Final = frozenset(("lowercase", "uppercase", "trim", "substring"))
_SIGNS: Final[Mapping[type[ast.cmpop], str]] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _value(term: Term) -> Json:
    return term.value if isinstance(term, Literal) else None


def _word(term: Term) -> str:
    value = _value(term)
    return value if isinstance(value, str) else ""


def _names(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix("context.").split("."))


def _at(index: int) -> Meaning:
    """Return the meaning of a function whose result is one of its arguments."""
    return lambda given: given[index]


def _given(arguments: Sequence[Term], index: int) -> Term:
    return arguments[index] if len(arguments) > index else _NOTHING


# Texts ------------------------------------------------------------------------------------------


def _text(arguments: Sequence[Term]) -> Term:
    data, template, *_ = arguments
    return _template(_word(template), data, _given(arguments, 2))


def _template(text: str, data: Term, value: Term) -> Term:
    """Return the text of a template; *value* is the current one."""
    try:
        parts = parse(text)
    except ExpressionFault:
        return value
    found = concatenate(*(_part(each, data, value) for each in parts))
    return found if isinstance(found, Literal | Text | Choose) else Text((found,))


def _part(part: Part, data: Term, value: Term) -> Term:
    match part:
        case TextPart(text):
            return Literal(text)
        case BlockPart("if", condition, parts):
            then = concatenate(*(_part(each, data, value) for each in parts))
            return Choose(_truth(_shown(condition, data, value)), then, Literal(""))
        case ValuePart():
            return _shown(part, data, value)
    return Unknown("{{#each}}")


def _shown(part: ValuePart, data: Term, value: Term) -> Term:
    *first, last = (_choice(each, data, value) for each in part.choices)
    found = last
    for each in reversed(first):
        found = Choose(_is_filled(each), each, found)
    for name, argument in part.filters:
        found = _filtered(name, argument, found)
    return found


def _choice(choice: Steps | TextPart, data: Term, value: Term) -> Term:
    if isinstance(choice, TextPart):
        return Literal(choice.text)
    root, *rest = choice
    steps: list[Step] = [int(each) if each.isdecimal() else each for each in rest]
    match root:
        case "context" | "resume_input":
            return member(member(data, (root,)), tuple(steps))
        case "steps":
            found = [each for index, each in enumerate(steps) if index != 1 or each != "output"]
            return member(member(data, (root,)), tuple(found))
        case "previous_step":
            return member(value, tuple(steps))
    return Unknown(root)


def _is_filled(value: Term) -> Term:
    """Return the condition that a value is neither missing nor empty."""
    if isinstance(value, Literal):
        return Literal(value.value not in (None, ""))
    return Logic("and", (Exists(value), Negation(Comparison("in", value, Literal([None, ""])))))


def _filtered(name: str, argument: str | None, value: Term) -> Term:
    match name:
        case "upper" | "lower":
            return FunctionCall(
                f"{name}case", (value if isinstance(value, Text) else Text((value,)),)
            )
        case "join":
            return FunctionCall("join", (value, Literal(argument or "")))
        case "default":
            return Choose(_is_filled(value), value, Literal(argument or ""))
    return Unknown(name)


def _stringified(arguments: Sequence[Term]) -> Term:
    (value,) = arguments
    return value if isinstance(value, Text) else concatenate(value)


# Conditions ---------------------------------------------------------------------------------------


def _condition(arguments: Sequence[Term]) -> Term:
    data, condition, *_ = arguments
    text = _word(condition)
    try:
        tree = compile_expression(text).tree
    except ExpressionFault:
        return Unknown(text)
    return _Conditions(data, _given(arguments, 2), text).term(tree)


def _key(arguments: Sequence[Term]) -> Term:
    """Return the name of the branch that a condition selects."""
    found = _condition(arguments)
    if isinstance(found, Literal):
        return Literal(branch_name(found.value))
    if isinstance(found, _LOGICAL):
        return Choose(found, Literal("true"), Literal("false"))
    return found


_LOGICAL: Final = (Comparison, Logic, Negation, Exists)
"""Terms that are true or false."""


def _truth(value: Term) -> Term:
    """Return whether a value counts as true."""
    if isinstance(value, Literal):
        return Literal(bool(value.value))
    return value if isinstance(value, (*_LOGICAL, Unknown)) else FunctionCall("boolean", (value,))


class _Conditions:
    """The terms of the nodes of a condition."""

    def __init__(self, data: Term, value: Term, text: str) -> None:
        self.names: Mapping[str, Term] = {
            "context": member(data, (_CONTEXT,)),
            "steps": member(data, (_STEPS,)),
            "resume_input": member(data, (_RESUMED,)),
            "output": value,
            "previous_step": value,
            "true": Literal(True),
            "false": Literal(False),
        }
        self.unknown = Unknown(text)

    def term(self, node: ast.expr) -> Term:
        """Return the value of a node."""
        match node:
            case ast.Constant(value=None | str() | int() | float() as value):
                return Literal(value)
            case ast.Name(id=name):
                return self.names.get(name, self.unknown)
            case ast.Attribute(value=held, attr=key):
                return self.member(held, key)
            case ast.Subscript(value=held, slice=ast.Constant(value=str() as key)):
                return self.member(held, key)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                items = tuple(self.term(each) for each in parts)
                if all(isinstance(each, Literal) for each in items):
                    return Literal([each.value for each in items if isinstance(each, Literal)])
                return Items(items)
            case ast.BoolOp(op=op, values=parts):
                word = "and" if isinstance(op, ast.And) else "or"
                return _joined(word, [_truth(self.term(each)) for each in parts])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _negated(_truth(self.term(operand)))
            case ast.Compare():
                return self.compared(node)
            case ast.Call(func=ast.Attribute(value=held, attr=name), args=arguments):
                return self.called(self.term(held), name, [self.term(each) for each in arguments])
        return self.unknown

    def member(self, held: ast.expr, key: str) -> Term:
        value = self.term(held)
        if isinstance(value, Literal):
            return value if value.value is None else self.unknown
        return value if value is self.unknown else member(value, (key,))

    def called(self, value: Term, name: str, arguments: list[Term]) -> Term:
        match name, arguments:
            case "get", (Literal(str(key)),):
                return member(value, (key,))
            case "get", (Literal(str(key)), default):
                found = member(value, (key,))
                return Choose(Exists(found), found, default)
            case (("lower" | "upper"), ()):
                return FunctionCall(f"{name}case", (value,))
            case "strip", ():
                return FunctionCall("trim", (value,))
            case "startswith", (Literal(str(part)),):
                return _of_text(_matches(value, f"{escape_glob(part)}*"), value)
            case "endswith", (Literal(str(part)),):
                return _of_text(_matches(value, f"*{escape_glob(part)}"), value)
        return self.unknown

    def compared(self, node: ast.Compare) -> Term:
        values = [self.term(each) for each in (node.left, *node.comparators)]
        pairs = zip(node.ops, values[:-1], values[1:], strict=True)
        return _joined("and", [self.comparison(*each) for each in pairs])

    def comparison(self, op: ast.cmpop, left: Term, right: Term) -> Term:
        match op, left, right:
            case ast.In(), Literal(str(part)), Literal(str(text)):
                return Literal(part in text)
        match op:
            case ast.NotEq():
                return _negated(self.comparison(ast.Eq(), left, right))
            case ast.NotIn():
                return _excluded(self.comparison(ast.In(), left, right))
            case ast.In() if (
                isinstance(left, Literal)
                and isinstance(left.value, str)
                and isinstance(right, DataPath | FunctionCall)
            ):
                shaped = isinstance(right, FunctionCall) and right.function in _OF_TEXTS
                if shaped:
                    return _of_text(FunctionCall("contains", (right, left)), right)
                return FunctionCall("includes", (right, left))
            case ast.In():
                return Comparison("in", left, right)
            case ast.Eq():
                return _equal(left, right)
        sign = _SIGNS.get(type(op))
        return self.unknown if sign is None else self.ordered(sign, left, right)

    def ordered(self, sign: str, left: Term, right: Term) -> Term:
        """Return the comparison of values of one type; no other values are in an order."""
        if isinstance(left, Literal) and not isinstance(right, Literal):
            sign, left, right = _TURNED[sign], right, left
        kind = _kind(left, right)
        if kind in ("number", "string"):
            return _of_text(Comparison(sign, left, right, kind), left)
        if isinstance(right, Literal | Items):
            return Literal(False) if right == Literal(None) else self.unknown
        types = [FunctionCall("type", (each,)) for each in (left, right)]
        both = Comparison("=", types[0], types[1])
        return Logic("and", (both, _of_text(Comparison(sign, left, right), left)))


def _equal(left: Term, right: Term) -> Term:
    if isinstance(left, Literal):
        left, right = right, left
    if isinstance(left, Literal) and isinstance(right, Literal):
        return Literal(bool(left.value == right.value))
    if right == _NOTHING:
        return Logic("or", (Negation(Exists(left)), Comparison("=", left, right)))
    if isinstance(left, DataPath) and isinstance(right, DataPath):
        left, right = (Choose(Exists(each), each, _NOTHING) for each in (left, right))
        return Comparison("=", left, right)
    return _of_text(Comparison("=", left, right, _kind(left, right)), left)


def _matches(value: Term, pattern: str) -> Term:
    return FunctionCall("matches", (value, Literal(pattern)))


def _excluded(found: Term) -> Term:
    """Return whether a value is not in another one: a number or a boolean fails the condition."""
    absent = _negated(found)
    if isinstance(found, FunctionCall) and found.function == "includes":
        kind = FunctionCall("type", (found.arguments[0],))
        single = Comparison("in", kind, Literal(["number", "boolean"]))
        return Logic("and", (Negation(single), absent))
    return absent


def _of_text(test: Term, value: Term) -> Term:
    """Return a test that does not hold if a function of it applies to no text."""
    while isinstance(value, FunctionCall) and value.function in _OF_TEXTS:
        value = value.arguments[0]
        if not isinstance(value, FunctionCall):
            return Logic(
                "and", (Comparison("=", FunctionCall("type", (value,)), Literal("string")), test)
            )
    if isinstance(test, FunctionCall):
        return Logic(
            "and", (Comparison("=", FunctionCall("type", (value,)), Literal("string")), test)
        )
    return test


def _kind(left: Term, right: Term) -> str | None:
    """Return the kind of values that a comparison with a known one holds for."""
    kinds = {str: "string", int: "number", float: "number", bool: "boolean"}
    known = next((each.value for each in (left, right) if isinstance(each, Literal)), None)
    return kinds.get(type(known))


def _joined(word: str, parts: list[Term]) -> Term:
    known = Literal(word == "or")
    if known in parts:
        return known
    left = tuple(each for each in parts if not isinstance(each, Literal))
    if len(left) < 2:
        return left[0] if left else Literal(word == "and")
    return Logic(word, left)


def _negated(condition: Term) -> Term:
    if isinstance(condition, Literal):
        return Literal(not condition.value)
    return Negation(condition)


def _agrees(arguments: Sequence[Term]) -> Term:
    said = FunctionCall("lowercase", (FunctionCall("trim", (arguments[0],)),))
    return Comparison("in", said, Literal(sorted(YES)))


def _confirmed(arguments: Sequence[Term]) -> Term:
    return Choose(_agrees(arguments), Literal("approved"), Literal("denied"))


# The context --------------------------------------------------------------------------------------


def _put(arguments: Sequence[Term]) -> Term:
    context, path, value, *_ = arguments
    return put(context, _names(_word(path)), value)


def _merge(arguments: Sequence[Term]) -> Term:
    context, path, value = arguments
    names = _names(_word(path))
    return put(context, names, merge(member(context, names), value))


def _get(arguments: Sequence[Term]) -> Term:
    context, path, *default = arguments
    found = member(context, _names(_word(path)))
    return Choose(Exists(found), found, default[0]) if default else found


def _prepared(arguments: Sequence[Term]) -> Term:
    data, operations, *_ = arguments
    found = data
    listed = _value(operations)
    for each in listed if isinstance(listed, list) else ():
        assert isinstance(each, dict)
        place = (_CONTEXT, *_names(str(each["path"])))
        value = each["value"]
        made: Term = Literal(value)
        if isinstance(value, str):
            made = _template(value, found, _given(arguments, 2))
        if each["op"] == "append":
            made = FunctionCall("append", (member(found, place), Items((made,))))
        elif each["op"] == "merge":
            made = merge(member(found, place), made)
        found = put(found, place, made)
    return found


def _output(arguments: Sequence[Term]) -> Term:
    data, wanted, value = arguments
    held = _value(wanted)
    if not isinstance(held, dict):
        return _template(_word(wanted), data, value)
    members = ((key, _template(str(each), data, value)) for key, each in held.items())
    return Record(None, tuple(members))


# Branches and imports -----------------------------------------------------------------------------


def _outputs(arguments: Sequence[Term]) -> Term:
    results, *names = arguments
    if not names:
        return member(results, (_PREVIOUS,))
    listed = _value(names[0])
    found = enumerate(listed if isinstance(listed, list) else ())
    return Record(None, tuple((str(key), member(results, (at, _PREVIOUS))) for at, key in found))


def _reduced(arguments: Sequence[Term]) -> Term:
    outputs, reduce = arguments
    values = tuple(each for _, each in outputs.members) if isinstance(outputs, Record) else ()
    match _word(reduce):
        case "keys" if isinstance(outputs, Record):
            return Literal([key for key, _ in outputs.members])
        case "values" if values:
            return Items(values)
        case "first" | "last" as end if values:
            return values[0 if end == "first" else -1]
        case "union" if values:
            return merge(*values)
    return Unknown(_word(reduce))


def _imported(arguments: Sequence[Term]) -> Term:
    data, value, settings = arguments
    held = _value(settings)
    wanted: Mapping[str, Json] = held if isinstance(held, dict) else {}
    outside = member(data, (_CONTEXT,))
    context: Term = outside if wanted.get("inherit") else Literal({})
    to, key = wanted.get("to", "initial_prompt"), str(wanted.get("key", INITIAL_INPUT))
    if to != "initial_prompt":
        context = put(context, (ARTIFACTS if to == "both" else str(to), key), value)
    if to in ("initial_prompt", "both"):
        value = _stringified((value,))
        context = put(context, ("initial_prompt",), value)
    return Record(None, ((_INPUT, value), (_CONTEXT, context), (_STEPS, Literal({}))))


def _returned(arguments: Sequence[Term]) -> Term:
    context, behind, settings = arguments
    held = _value(settings)
    outputs = held.get("outputs") if isinstance(held, dict) else None
    if not isinstance(outputs, list):
        return merge(context, member(behind, (_CONTEXT,)))
    for each in outputs:
        assert isinstance(each, dict)
        child = _names(str(each["child"]))
        found = member(behind, (_CONTEXT, *child))
        context = put(context, _names(str(each["parent"])), found)
    return context


def _started(arguments: Sequence[Term]) -> Term:
    data, *value = arguments
    return put(data, ("machine", "input"), value[0]) if value else data


_ROWS: Final[Mapping[str, Callable[[tuple[Term, ...]], Term]]] = {
    "data": _at(0),
    "input": lambda given: member(given[0], (_INPUT,)),
    "context": lambda given: FunctionCall("shared", (member(given[0], (_CONTEXT,)),)),
    "answer": _at(0),
    "text": _text,
    "stringify": _stringified,
    "key": _key,
    "branch": _at(0),
    "agrees": _agrees,
    "confirmed": _confirmed,
    "when": lambda given: _truth(_condition(given)),
    "fails": lambda given: Literal(False),
    "put": _put,
    "merge": _merge,
    "get": _get,
    "prepared": _prepared,
    "next": _text,
    "output": _output,
    "outputs": _outputs,
    "reduced": _reduced,
    "merged": _at(0),
    "items": lambda given: member(given[0], _names(_word(given[1]))),
    "routes": _at(0),
    "import": _imported,
    "returned": _returned,
    "requested": lambda given: _NOTHING,
    "start": _started,
    "resumes": lambda given: Literal(False),
    "enter": _at(0),
    "exhausted": lambda given: Literal(False),
    "stopped": _at(0),
    "ended": _at(0),
    "inner": _at(0),
    "outer": _at(0),
    "snapshot": _at(0),
    "restored": _at(0),
}


def _flattened(term: Term) -> Term | None:
    """Return a term over data whose members are the fields of the context and the steps' outputs.

    A blueprint also reads `context.NAME` as the output of the step where there is no such field.
    """
    match term:
        case DataPath("input", ("context" | "steps", *rest)):
            return DataPath(INPUT, tuple(rest))
        case DataPath("result", (int(index), "context" | "steps", *rest)):
            return DataPath(RESULT, (index, *rest))
        case FunctionCall("shared", (value,)):
            return replace(value, _flattened)
        case Record(DataPath("input", ()) as base, members):
            made = {key: replace(each, _flattened) for key, each in members}
            found = made.pop(_CONTEXT, base)
            outputs = made.pop(_STEPS, base)
            added = dict(outputs.members) if isinstance(outputs, Record) else {}
            for key, value in {**added, **made}.items():
                found = put(found, (key,), value)
            return found
    return None


MEANINGS: Final[Meanings] = RewrittenMeanings(
    {f"flujo_{name}": meaning for name, meaning in _ROWS.items()}, _flattened
)
"""What each function computes, by its name without `$`."""
