"""JSONata expressions as terms, and terms as JSONata."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.terms import (
    ERROR,
    INDEX,
    INPUT,
    ITEM,
    NOTHING,
    RESULT,
    Choose,
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
from asl.expr.jsonata.javascript import literal
from asl.expr.jsonata.parser import parse
from asl.expr.query_protocol import query_source
from asl.expr.text_matching import literal_pieces

__all__ = ["guarded_comparison", "print_jsonata", "read_field", "read_jsonata"]

_NO_MEANINGS: Final[Meanings] = {}
_CONTEXT_ITEM: Final = ("context", "Map", "Item", "Value")
_CONTEXT_INDEX: Final = ("context", "Map", "Item", "Index")
_ROOTS: Final[Mapping[str, str]] = {"input": INPUT, "result": RESULT, "errorOutput": ERROR}
"""The members of `$states` that are roots."""
_COMPARED: Final = frozenset(("=", "!=", "<", "<=", ">", ">=", "in"))
_ORDERED: Final = frozenset(("<", "<=", ">", ">="))
_ARITHMETIC: Final = frozenset("+-*/%")


def read_field(
    value: Json, meanings: Meanings = _NO_MEANINGS, roots: Mapping[str, Term] | None = None
) -> Term:
    """Return the term of a JSONata field: expressions within `{% %}`, everything else as written.

    Args:
        value: Value of the field, with expressions at any depth.
        meanings: The meanings of functions that JSONata does not have.
        roots: Terms in the place of paths of roots and variables, by root.
    """
    if isinstance(value, dict):
        read = {key: read_field(each, meanings, roots) for key, each in value.items()}
        members = {key: each for key, each in read.items() if each != NOTHING}
        known = {key: each.value for key, each in members.items() if isinstance(each, Literal)}
        if len(known) == len(value):
            return Literal(known)
        return Record(None, (*members.items(),))
    if isinstance(value, list):
        items = tuple(read_field(each, meanings, roots) for each in value)
        listed = [each.value for each in items if isinstance(each, Literal)]
        return Literal(listed) if len(listed) == len(items) else Items(items)
    source = query_source(value) if isinstance(value, str) else None
    return Literal(value) if source is None else read_jsonata(source, meanings, roots)


def read_jsonata(
    source: str, meanings: Meanings = _NO_MEANINGS, roots: Mapping[str, Term] | None = None
) -> Term:
    """Return the term of a JSONata expression, Unknown for a part that has none.

    Args:
        source: The expression without its delimiters.
        meanings: The meanings of functions that JSONata does not have.
        roots: Terms in the place of paths of roots and variables, by root.
    """
    try:
        return _Reader(source, meanings, roots or {}).node(parse(source).tree)
    except (ExpressionFault, RecursionError):
        return Unknown(source)


class _Reader:
    def __init__(self, source: str, meanings: Meanings, roots: Mapping[str, Term]) -> None:
        self.unknown = Unknown(source)
        self.meanings = meanings
        self.roots = roots
        self.scope: Term | None = None
        """What names without a variable are members of; None where there is no such value."""

    def node(self, node: Any) -> Term:
        """Return the term of a node of the tree."""
        handle, position = _NODES.get(node.type), _position(node)
        if handle is None or position is None or node.group is not None or node.keep_array:
            return self.unknown
        found = handle(self, node)
        return member(found, position) if position and found is not self.unknown else found

    def value(self, node: Any) -> Term:
        return Literal(node.value)

    def variable(self, node: Any) -> Term:
        if node.value == "":
            return self.scope or self.unknown
        if node.value in ("$", "states"):
            return self.unknown
        return self.root(f"${node.value}", ())

    def root(self, name: str, steps: tuple[Step, ...]) -> Term:
        """Return the term of a path from a root, which may have been given another meaning."""
        return member(self.roots.get(name, DataPath(name)), steps)

    def path(self, node: Any) -> Term:
        first, *rest = node.steps
        steps: list[Any] = []
        inner = None
        for index, each in enumerate(rest):
            if each.type == "block" and index == len(rest) - 1 and not _changed(each):
                inner = each
            elif each.type == "name" and not each.focus and not each.index:
                steps.append(each.value)
                position = _position(each)
                if position is None:
                    return self.unknown
                steps += position
            else:
                return self.unknown
        found = self.start(first, steps)
        return found if inner is None else self.within(found, inner)

    def start(self, first: Any, steps: list[Any]) -> Term:
        """Return the term of a path from its first node."""
        position = _position(first)
        if position is None or first.group is not None:
            return self.unknown
        if first.type == "name":
            if self.scope is None:
                return self.unknown
            return member(self.scope, (first.value, *position, *steps))
        if first.type != "variable":
            return member(self.node(first), tuple(steps))
        if first.value != "states":
            if first.value in ("", "$"):
                found = self.variable(first)
                return found if found is self.unknown else member(found, (*position, *steps))
            return self.root(f"${first.value}", (*position, *steps))
        if tuple(steps[:4]) == _CONTEXT_ITEM:
            return self.root(ITEM, tuple(steps[4:]))
        if tuple(steps[:4]) == _CONTEXT_INDEX:
            return self.root(INDEX, tuple(steps[4:]))
        if steps and steps[0] == "context":
            return self.root("context", tuple(steps[1:]))
        if steps and steps[0] in _ROOTS:
            return self.root(_ROOTS[steps[0]], tuple(steps[1:]))
        return self.unknown

    def within(self, scope: Term, block: Any) -> Term:
        """Return the term of a block whose names are members of a value."""
        outer, self.scope = self.scope, scope
        found = self.block(block)
        self.scope = outer
        return found

    def binary(self, node: Any) -> Term:
        operator = node.value
        left, right = self.node(node.lhs), self.node(node.rhs)
        if operator in ("and", "or"):
            return _joined(operator, left, right)
        if operator == "in" and isinstance(right, Literal) and not isinstance(right.value, list):
            right = Literal([right.value])  # a single value is an array of one
        if operator in _COMPARED:
            return _part_test(operator, left, right) or Comparison(operator, left, right)
        if operator == "&":
            return concatenate(left, right)
        if operator in _ARITHMETIC:
            return FunctionCall(operator, (left, right))
        return self.unknown

    def unary(self, node: Any) -> Term:
        if node.value == "[":
            items = tuple(self.node(each) for each in node.expressions)
            if all(isinstance(each, Literal) for each in items):
                return Literal([each.value for each in items if isinstance(each, Literal)])
            return Items(items)
        if node.value == "{":
            return self.record(node.lhs_object)
        found = self.node(node.expression)
        if isinstance(found, Literal) and type(found.value) in (int, float):
            return Literal(-found.value)
        return FunctionCall("-", (Literal(0), found)) if node.value == "-" else self.unknown

    def record(self, pairs: Any) -> Term:
        members = []
        for key, value in pairs:
            name = self.node(key)
            if not isinstance(name, Literal) or not isinstance(name.value, str):
                return self.unknown
            members.append((name.value, self.node(value)))
        if all(isinstance(each, Literal) for _, each in members):
            return Literal({key: each.value for key, each in members if isinstance(each, Literal)})
        return Record(None, tuple(members))

    def block(self, node: Any) -> Term:
        return self.node(node.expressions[0]) if len(node.expressions) == 1 else self.unknown

    def condition(self, node: Any) -> Term:
        last = None if node._else is None else self.node(node._else)
        tested = self.node(node.condition)
        filled = _filled_array(tested)
        if node.then.value is True and last == filled:
            return FunctionCall("boolean", (tested,))
        return _inclusion(tested, self.node(node.then), last)

    def function(self, node: Any) -> Term:
        if node.procedure.type != "variable":
            return self.unknown
        name = node.procedure.value
        arguments = tuple(self.node(each) for each in node.arguments)
        meaning = self.meanings.get(name)
        if meaning is not None:
            return meaning(arguments)
        match name, arguments:
            case "not", (condition,):
                return Negation(condition)
            case "exists", (value,):
                return Exists(value)
            case "string", (value,):
                return concatenate(value) if isinstance(value, Literal) else Text((value,))
            case "merge", (Items(items),):
                return merge(*items)
            case "merge", (Literal(value),) if isinstance(value, list):
                return merge(*map(Literal, value))
        return FunctionCall(name, arguments)


_NODES: Final[Mapping[str, Callable[[_Reader, Any], Term]]] = {
    "string": _Reader.value,
    "number": _Reader.value,
    "value": _Reader.value,
    "variable": _Reader.variable,
    "path": _Reader.path,
    "binary": _Reader.binary,
    "unary": _Reader.unary,
    "block": _Reader.block,
    "condition": _Reader.condition,
    "function": _Reader.function,
}


def _inclusion(condition: Term, then: Term, otherwise: Term | None) -> Term:
    """Return a choice, or what it says if it is how `includes` is printed."""
    if isinstance(then, FunctionCall) and then.function == "contains":
        value, part = then.arguments
        kind = FunctionCall("type", (value,))
        keys = FunctionCall("keys", (value,))
        listed = Choose(Comparison("=", kind, Literal("object")), keys, value)
        is_text = Comparison("=", kind, Literal("string"))
        if condition == is_text and otherwise == Comparison("in", part, listed):
            return FunctionCall("includes", (value, part))
    return Choose(condition, then, otherwise)


def _changed(node: Any) -> bool:
    """Whether the value of a step is filtered, bound or grouped."""
    return bool(node.predicate or node.stages or node.focus or node.index or node.group)


def _position(node: Any) -> tuple[int, ...] | None:
    """Return the indices that follow a step, None where it is filtered otherwise."""
    found: list[int] = []
    for each in (*(node.stages or ()), *(node.predicate or ())):
        value = getattr(each, "expr", None)
        sign = 1
        if value is not None and value.type == "unary" and value.value == "-":
            value, sign = value.expression, -1
        if value is None or value.type != "number" or value.value != int(value.value):
            return None
        found.append(sign * int(value.value))
    return tuple(found)


def _part_test(operator: str, left: Term, right: Term) -> Term | None:
    """Return the test that a text begins or ends with another one."""
    match left, right:
        case FunctionCall("substring", (value, Literal(0), Literal(size))), Literal(str(part)):
            pattern = f"{_plain(part)}*"
        case FunctionCall("substring", (value, Literal(int(size)))), Literal(str(part)):
            size, pattern = -size, f"*{_plain(part)}"
        case _:
            return None
    same = operator == "=" and part and size == len(part)
    return FunctionCall("matches", (value, Literal(pattern))) if same else None


def _plain(text: str) -> str:
    """Return a pattern that matches a text alone."""
    return text.replace("\\", "\\\\").replace("*", "\\*")


def _filled_array(value: Term) -> Term:
    """Return the condition that a value is an array with items, which JSONata may count as false.

    `(x ? true : $type(x) = 'array' and $count(x) > 0)` is whether a value counts as true elsewhere.
    """
    kind = Comparison("=", FunctionCall("type", (value,)), Literal("array"))
    return Logic("and", (kind, Comparison(">", FunctionCall("count", (value,)), Literal(0))))


def _joined(operator: str, left: Term, right: Term) -> Term:
    parts: list[Term] = []
    for each in (left, right):
        if isinstance(each, Logic) and each.operator == operator:
            parts += each.parts
        else:
            parts.append(each)
    for index in range(len(parts) - 1):  # `$type(x) = 'number' and x < 5` is one comparison
        guarded = guarded_comparison(parts[index], parts[index + 1]) if operator == "and" else None
        if guarded is not None:
            parts[index : index + 2] = [guarded]
            break
    return parts[0] if len(parts) == 1 else Logic(operator, tuple(parts))


def guarded_comparison(guard: Term, test: Term) -> Comparison | None:
    """Return a comparison with the kind that a condition before it asks for, None for others."""
    match guard, test:
        case (
            Comparison("=", FunctionCall("type", (value,)), Literal(kind)),
            Comparison(operator, left, right, None),
        ) if left == value and isinstance(kind, str):
            return Comparison(operator, left, right, kind)
    return None


# Printing -------------------------------------------------------------------------------------

_OR, _AND, _COMPARE, _ADD, _MULTIPLY, _SINGLE = range(1, 7)
"""The levels of operators; the operand of a tighter one is set in parentheses."""
_LEVELS: Final[Mapping[str, int]] = {
    "+": _ADD,
    "-": _ADD,
    "*": _MULTIPLY,
    "/": _MULTIPLY,
    "%": _MULTIPLY,
}
_WORDS: Final = frozenset(("and", "or", "in", "true", "false", "null", "function"))
_SOURCES: Final[Mapping[str, str]] = {
    INPUT: "$states.input",
    RESULT: "$states.result",
    ERROR: "$states.errorOutput",
    ITEM: "$states.context.Map.Item.Value",
    INDEX: "$states.context.Map.Item.Index",
    "context": "$states.context",
}


def print_jsonata(term: Term) -> str | None:
    """Return a term as a JSONata expression, without its delimiters.

    Returns:
        The expression; None if the term has an unknown part.
    """
    try:
        return _print(term, 0)
    except _Unprintable:
        return None


class _Unprintable(Exception):
    """A term has no form in JSONata."""


def _print(term: Term, level: int) -> str:
    match term:
        case Literal(value):
            return literal(value)
        case DataPath(root, steps):
            return _SOURCES.get(root, root) + _steps(steps)
        case Text(parts):
            return _text(parts, level)
        case Record(base, members):
            shown = "{" + ", ".join(f"{literal(k)}: {_print(v, 0)}" for k, v in members) + "}"
            return shown if base is None else f"$merge([{_print(base, 0)}, {shown}])"
        case Items(items):
            return f"[{', '.join(_print(each, 0) for each in items)}]"
        case Comparison():
            return _comparison(term, level)
        case Exists(value):
            return f"$exists({_print(value, 0)})"
        case Logic(operator, parts):
            own = _OR if operator == "or" else _AND
            return _wrap(f" {operator} ".join(_print(each, own + 1) for each in parts), own, level)
        case Negation(condition):
            return f"$not({_print(condition, 0)})"
        case Choose(condition, then, otherwise):
            last = "" if otherwise is None else f" : {_print(otherwise, _OR)}"
            return f"({_print(condition, _OR)} ? {_print(then, _OR)}{last})"
        case FunctionCall(function, arguments):
            return _call(function, arguments, level)
    raise _Unprintable


def _wrap(text: str, own: int, level: int) -> str:
    return f"({text})" if own < level else text


def _text(parts: tuple[Term, ...], level: int) -> str:
    if len(parts) == 1 and _may_be_missing(parts[0]):  # a missing value is an empty text
        return _wrap(f"'' & {_print(parts[0], _ADD + 1)}", _ADD, level)
    if len(parts) == 1:
        return f"$string({_print(parts[0], 0)})"
    return _wrap(" & ".join(_print(each, _ADD + 1) for each in parts), _ADD, level)


def _may_be_missing(term: Term | None) -> bool:
    if isinstance(term, Choose):
        return _may_be_missing(term.then) or _may_be_missing(term.otherwise)
    return term is None or isinstance(term, DataPath)


def _comparison(term: Comparison, level: int) -> str:
    left = _print(term.left, _COMPARE + 1)
    shown = f"{left} {term.operator} {_print(term.right, _COMPARE + 1)}"
    operands = [term.left, term.right] if term.operator in _ORDERED else [term.left]
    if term.kind not in ("number", "string", "boolean") or (
        term.operator == "=" and isinstance(term.right, Literal)
    ):
        return _wrap(shown, _COMPARE, level)
    read = [_print(each, 0) for each in operands if not isinstance(each, Literal)]
    guards = [f"$type({each}) = {literal(term.kind)}" for each in read]
    return _wrap(" and ".join([*guards, shown]), _AND, level)


def _call(function: str, arguments: tuple[Term, ...], level: int) -> str:
    own = _LEVELS.get(function)
    if own is not None and len(arguments) == 2:
        left, right = arguments
        shown = f"{_print(left, own)} {function} {_print(right, own + 1)}"
        return _wrap(shown, own, level)
    if function == "matches" and isinstance(arguments[1], Literal):
        return _matched(_print(arguments[0], 0), str(arguments[1].value), level)
    if function == "boolean":
        shown = _print(arguments[0], _COMPARE + 1)
        return f"({shown} ? true : $type({shown}) = 'array' and $count({shown}) > 0)"
    if function == "includes":
        value, part = (_print(each, _COMPARE + 1) for each in arguments)
        listed = f"($type({value}) = 'object' ? $keys({value}) : {value})"
        contained = f"$contains({value}, {part})"
        return f"($type({value}) = 'string' ? {contained} : {part} in {listed})"
    if function == "shared":
        return _print(arguments[0], level)
    if function in ("lookup", "put"):
        if function == "lookup" and all(isinstance(each, Literal) for each in arguments[1:]):
            steps = tuple(each.value for each in arguments[1:] if isinstance(each, Literal))
            return f"({_print(arguments[0], 0)}){_steps(steps)}"
        raise _Unprintable
    return f"${function}({', '.join(_print(each, 0) for each in arguments)})"


def _matched(value: str, pattern: str, level: int) -> str:
    """Return the test of a text with a pattern of a choice rule."""
    pieces = literal_pieces(pattern)
    match pieces:
        case [part, ""] if part:
            shown = f"$substring({value}, 0, {len(part)}) = {literal(part)}"
            return _wrap(shown, _COMPARE, level)
        case ["", part] if part:
            shown = f"$substring({value}, -{len(part)}) = {literal(part)}"
            return _wrap(shown, _COMPARE, level)
        case ["", part, ""] if part:
            return f"$contains({value}, {literal(part)})"
    escaped = ("".join(map(_escaped, piece)) for piece in pieces)
    expression = r"[\s\S]*".join(escaped)
    return f"$contains({value}, /^{expression}$/)"


def _escaped(character: str) -> str:
    return f"\\{character}" if character in "\\^$.|?*+()[]{}/" else character


def _steps(steps: tuple[Step, ...]) -> str:
    return "".join(f"[{each}]" if isinstance(each, int) else f".{_name(each)}" for each in steps)


def _name(name: str) -> str:
    if name.isidentifier() and name.isascii() and name not in _WORDS:
        return name
    if "`" in name:
        raise _Unprintable
    return f"`{name}`"
