"""What the functions of chains compute, as terms.

The data of a run is flat there: every task leaves its output under its name, `input` is the input
of the chain, `output` what moves along, and `eval` the text that selects a branch.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from asl.core.errors import ExpressionFault, StateError
from asl.core.values import compact
from asl.dialects.contenox.functions import handlers
from asl.dialects.contenox.functions.chain_data import JSON_PATH, STRATEGIES
from asl.dialects.contenox.functions.templates import (
    Expression,
    Macro,
    Node,
    ShowAction,
    TemplateBlock,
    TemplateCall,
    TemplateConstant,
    TemplateField,
    find_macros,
    parse,
)
from asl.dialects.terms import (
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
    Step,
    Term,
    Text,
    Unknown,
    concatenate,
    member,
    merge,
    put,
)
from asl.dialects.terms.jsonata import guarded_comparison
from asl.expr.paths.syntax import parse_path

__all__ = ["MEANINGS"]

_INPUT: Final = "input"
_MOVING: Final = "output"
_PREVIOUS: Final = "previous_output"
_EVAL: Final = "eval"
_VARS: Final = "vars"
_EDGES: Final = "edges"
_LAST_ERROR: Final = "last_error"
_OWN: Final = frozenset((_MOVING, _EVAL, _VARS, _EDGES))
"""Keys of the data that are no variables of a chain."""
_EMPTY: Final = Literal("")


def _key(name: str) -> str:
    """Return the key of a variable of a chain."""
    if name == _PREVIOUS:
        return _MOVING
    return f"{name}_output" if name in _OWN else name


def _text_of(term: Term) -> str:
    return str(term.value) if isinstance(term, Literal) else ""


def _result(output: Term, selecting: Term) -> Term:
    return Record(None, (("output", output), (_EVAL, selecting)))


# The data ---------------------------------------------------------------------------------------


def _moved(arguments: Sequence[Term]) -> Term:
    """What moves along: the input of the chain, until a task has an output."""
    (data, *_) = arguments
    moving = member(data, (_MOVING,))
    return Choose(Exists(moving), moving, member(data, (_INPUT,)))


def _variable(arguments: Sequence[Term]) -> Term:
    data, name = arguments
    return member(data, (_key(_text_of(name)),))


def _done(arguments: Sequence[Term]) -> Term:
    data, task, handled = arguments
    output = member(handled, ("output",))
    found = put(data, (_key(_text_of(task)),), output)
    return put(put(found, (_MOVING,), output), (_EVAL,), member(handled, (_EVAL,)))


def _failed(arguments: Sequence[Term]) -> Term:
    data, name, error, *given = arguments
    task = _text_of(name)
    output = given[0] if given else _moved((data,))
    message = concatenate(Literal(f"task {task}: "), member(error, ("Cause",)))
    found = put(put(data, (_key(task),), output), (_MOVING,), output)
    return put(put(found, (_LAST_ERROR,), message), (f"{task}_error",), message)


def _counted(arguments: Sequence[Term]) -> Term:
    data, edge = arguments
    steps = (_EDGES, _text_of(edge))
    count = member(data, steps)
    new = Choose(Exists(count), FunctionCall("+", (count, Literal(1))), Literal(1))
    return put(data, steps, new)


def _edge_count(data: Term, edge: str) -> Term:
    count = member(data, (_EDGES, edge))
    return Choose(Exists(count), count, Literal(0))


def _composed(arguments: Sequence[Term]) -> Term:
    data, name, compose, *branch = arguments
    if not isinstance(compose, Literal) or not isinstance(compose.value, dict):
        return Unknown("compose")
    task = _key(_text_of(name))
    other = _key(str(compose.value.get("with_var")))
    strategy = str(compose.value.get("strategy") or "")
    output = member(data, (task,))
    if strategy.startswith(JSON_PATH):
        steps = _definite(strategy.removeprefix(JSON_PATH).strip())
        return Unknown(strategy) if steps is None else put(data, (other,), member(output, steps))
    if STRATEGIES.get(strategy) != "override":
        return Unknown(strategy or "compose")
    named = member(data, (other,))
    whole = merge(named, output)
    if branch:  # a value that is no object is left out
        whole = Choose(_is_object(named), Choose(_is_object(output), whole, named), output)
    return put(put(data, (task,), whole), (_MOVING,), whole)


def _is_object(term: Term) -> Term:
    return Comparison("=", FunctionCall("type", (term,)), Literal("object"))


def _definite(path: str) -> tuple[Step, ...] | None:
    """Return the steps of a path to one value, None for any other path."""
    try:
        segments = parse_path(path).segments
    except ExpressionFault:
        return None
    steps = tuple(each for each in segments if isinstance(each, str | int))
    return steps if len(steps) == len(segments) else None


# Handlers -----------------------------------------------------------------------------------------


def _answered(arguments: Sequence[Term]) -> Term:
    """A handler whose output is the answer, and selects the branch."""
    return _result(arguments[0], arguments[0])


def _condition_key(arguments: Sequence[Term]) -> Term:
    answer, conditions = arguments
    found = conditions.value if isinstance(conditions, Literal) else None
    if not isinstance(found, dict):
        return Unknown("condition_key")
    right = [key for key, value in found.items() if value is True]
    return _result(Comparison("in", answer, Literal([*right])), answer)


def _tool(arguments: Sequence[Term]) -> Term:
    answer, token, *template = arguments
    if not template:
        return _result(answer, token)
    shown = _template(_text_of(template[0]), answer, Literal({}))
    return _result(shown, shown)


def _chat(arguments: Sequence[Term]) -> Term:
    """A chat of what a task is given, without the messages that are there before."""
    given, *system = arguments
    said = [Record(None, (("role", Literal("user")), ("content", given)))]
    if system:
        said.insert(0, Record(None, (("role", Literal("system")), ("content", system[0]))))
    return Record(None, (("messages", Items(tuple(said))),))


def _chat_completion(arguments: Sequence[Term]) -> Term:
    """The answer of a model, which moves along without the conversation."""
    _, answer, *profile = arguments
    words = handlers.TOKENS[_text_of(profile[0]) if profile else "union"]
    stopped: Term = Literal(words["stop"])
    if words["length"] != words["stop"]:
        reason = Comparison("=", member(answer, ("finish_reason",)), Literal("length"))
        stopped = Choose(reason, Literal(words["length"]), stopped)
    calls = Exists(member(answer, ("tool_calls",)))
    return _result(answer, Choose(calls, Literal(words["call"]), stopped))


def _executed(arguments: Sequence[Term]) -> Term:
    _, results, *more = arguments
    profile = _text_of(more[1]) if len(more) > 1 else "union"
    return _result(results, Literal(handlers.TOKENS[profile]["ran"]))


def _transition(arguments: Sequence[Term]) -> Term:
    (given,) = arguments
    return _result(_selected(given, Literal), _selected(given, _command))


def _selected(given: Term, change: Callable[[str], Term]) -> Term:
    """Return a text as the choice among the texts that it may be, with each of them changed."""
    match given:
        case Literal(str(text)):
            return change(text)
        case Choose(condition, then, otherwise) if otherwise is not None:
            return Choose(condition, _selected(then, change), _selected(otherwise, change))
        case Text((Literal(str(before)), Choose(condition, then, otherwise))) if otherwise:
            then, otherwise = (concatenate(Literal(before), each) for each in (then, otherwise))
            return _selected(Choose(condition, then, otherwise), change)
    return Unknown("parse_transition")


def _command(text: str) -> Term:
    """Return the word behind the slash of a text."""
    try:
        return Literal(handlers.parse_transition(text)[_EVAL])
    except StateError:
        return Unknown(text)


_LOCAL: Final[Mapping[str, Meaning]] = {"parse_transition": _transition}


def _tried(arguments: Sequence[Term]) -> Term:
    data, task, handler, given = arguments
    found = _LOCAL.get(_text_of(handler))
    return Unknown(_text_of(handler)) if found is None else _done((data, task, found((given,))))


def _numeric(operator: str) -> Meaning:
    def compared(arguments: tuple[Term, ...]) -> Term:
        value, limit = arguments
        return Comparison(operator, value, limit, "number")

    return compared


def _in_range(arguments: Sequence[Term]) -> Term:
    value, least, most = arguments
    ends = Comparison(">=", value, least, "number"), Comparison("<=", value, most, "number")
    return Logic("and", ends)


# Texts --------------------------------------------------------------------------------------------


def _text(arguments: Sequence[Term]) -> Term:
    data, template, *_ = arguments
    return _template(_text_of(template), data, data)


def _expanded(arguments: Sequence[Term]) -> Term:
    data, template, *_ = arguments
    text = _text_of(template)
    parts: list[Term] = []
    at = 0
    for start, end, macro in find_macros(text):
        parts += [Literal(text[at:start]), _macro(macro, data)]
        at = end
    return concatenate(*parts, Literal(text[at:]))


def _template(text: str, dot: Term, data: Term) -> Term:
    """Return the text of a template.

    Args:
        text: The template.
        dot: What its fields are members of.
        data: The data of the run, for macros.
    """
    try:
        return _shown(parse(text), dot, data)
    except ExpressionFault:
        return Unknown(text)


def _shown(nodes: Sequence[Node], dot: Term, data: Term) -> Term:
    parts = [_node(each, dot, data) for each in nodes]
    if len(parts) == 1 and (isinstance(parts[0], Choose) or _is_text(parts[0])):
        return parts[0]
    return concatenate(*parts)


def _is_text(term: Term) -> bool:
    if isinstance(term, FunctionCall):
        return term.function in ("string", "substring", "uppercase", "lowercase", "trim", "join")
    return isinstance(term, Literal | Text)


def _node(node: Node, dot: Term, data: Term) -> Term:
    match node:
        case str(text):
            return Literal(text)
        case ShowAction(value):
            return _value(value, dot)
        case Macro():
            return _macro(node, data)
        case TemplateBlock("if", value, body, otherwise):
            then, last = (_shown(each, dot, data) for each in (body, otherwise))
            condition = _value(value, dot)
            guarded = last == Literal("") and _only_guards(condition, then)
            return then if guarded else Choose(condition, then, last)
    return Unknown(node.kind if isinstance(node, TemplateBlock) else "template")


def _only_guards(condition: Term, shown: Term) -> bool:
    """Whether a condition only tests that the path of a text leads through objects."""
    if not isinstance(shown, Text) or not isinstance(path := shown.parts[0], DataPath):
        return False
    tests = condition.parts if isinstance(condition, Logic) else (condition,)
    holders = (DataPath(path.root, path.steps[:end]) for end in range(len(path.steps)))
    guards = [Comparison("=", FunctionCall("type", (each,)), Literal("object")) for each in holders]
    return len(shown.parts) == 1 and all(each in guards for each in tests)


def _macro(macro: Macro, data: Term) -> Term:
    if macro.name == "edge_count":
        return _edge_count(data, "->".join(each.strip() for each in macro.payload.split("->", 1)))
    entered = DataPath("context", ("State", "EnteredTime"))
    if macro.name == "date" and not macro.payload:
        return FunctionCall("substring", (entered, Literal(0), Literal(10)))
    if macro.name == "now" and not macro.payload:
        return entered
    if macro.name != "var":
        return Literal(macro.written)
    first, *others = (each.strip() for each in macro.payload.split("|"))
    return _given(first, others, data)


def _given(name: str, others: Sequence[str], data: Term) -> Term:
    """Return a value of the caller, or its replacement."""
    value = member(data, (_VARS, name))
    if not others:
        return value
    first, *rest = others
    if first.startswith("var:"):
        return Choose(Exists(value), value, _given(first[4:].strip(), rest, data))
    return Choose(Exists(value), value, Literal(first))


_COMPARED: Final = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_RENAMED: Final = {"upper": "uppercase", "lower": "lowercase", "trim": "trim"}


def _value(value: Expression, dot: Term) -> Term:
    match value:
        case TemplateConstant(constant):
            return Literal(constant)
        case TemplateField(()):
            return dot
        case TemplateField((first, *rest)):
            return member(dot, (_key(first), *rest))
        case TemplateCall(name, arguments):
            return _call(name, tuple(_value(each, dot) for each in arguments))
    return Unknown("template")


def _conjunction(parts: Sequence[Term]) -> Term:
    """Return conditions that all hold, without guards of values that a later one compares."""
    flat = [
        each
        for part in parts
        for each in (part.parts if isinstance(part, Logic) and part.operator == "and" else (part,))
    ]
    for at in reversed(range(len(flat) - 1)):
        both = guarded_comparison(flat[at], flat[at + 1])
        if both is not None:
            flat[at : at + 2] = [both]
    found = [each for at, each in enumerate(flat) if not _is_guard(each, flat[at + 1 :])]
    return found[0] if len(found) == 1 else Logic("and", tuple(found))


def _is_guard(part: Term, later: Sequence[Term]) -> bool:
    """Whether a condition only asks for a value that a later one compares with a literal."""
    match part:
        case Exists(DataPath() as value) | Comparison(
            "=", FunctionCall("type", (DataPath() as value,)), _, None
        ):
            pass
        case _:
            return False
    return any(
        isinstance(each, Comparison)
        and (each.operator == "=" or each.kind is not None)
        and isinstance(each.right, Literal)
        and isinstance(each.left, DataPath)
        and each.left.root == value.root
        and each.left.steps[: len(value.steps)] == value.steps
        and (isinstance(part, Exists) or each.left != value)
        for each in later
    )


def _json(value: Term) -> Term:
    """Return the JSON text of a value: what follows the key in the text of an object with it."""
    if isinstance(value, Literal):
        return Literal(compact(value.value))
    shown = FunctionCall("string", (Record(None, (("v", value),)),))
    length = FunctionCall("-", (FunctionCall("length", (shown,)), Literal(len('{"v":}'))))
    return FunctionCall("substring", (shown, Literal(len('{"v":')), length))


def _call(name: str, arguments: tuple[Term, ...]) -> Term:
    match name, arguments:
        case "and", parts:
            return _conjunction(parts)
        case "or", parts:
            return parts[0] if len(parts) == 1 else Logic(name, parts)
        case "not", (condition,):
            return Negation(condition)
        case (("eq" | "ne"), (value, Literal(None))):
            present = Exists(value)
            return present if name == "ne" else Negation(present)
        case "eq", (value, *others) if len(others) > 1:
            return Logic("or", tuple(Comparison("=", value, each) for each in others))
        case _, (left, right) if name in _COMPARED:
            return Comparison(_COMPARED[name], left, right)
        case "kindIs", (Literal(kind), value):
            types = {"string": "string", "float64": "number", "bool": "boolean"}
            types |= {"slice": "array", "map": "object"}
            return Comparison(
                "=", FunctionCall("type", (value,)), Literal(types.get(str(kind), "null"))
            )
        case "hasKey", (value, Literal(str(key))):
            return Exists(member(value, (key,)))
        case "contains", (part, text):
            return FunctionCall("contains", (text, part))
        case "hasPrefix", (Literal(str(part)), text):
            start = FunctionCall("substring", (text, Literal(0), Literal(len(part))))
            return Comparison("=", start, Literal(part))
        case "hasSuffix", (Literal(str(part)), text):
            end = FunctionCall("substring", (text, Literal(-len(part))))
            return Comparison("=", end, Literal(part))
        case "toJson", (value,):
            return _json(value)
        case "print", parts:
            return concatenate(*parts)
        case "index", (value, Literal(int() | str() as step)):
            return member(value, (step,))
        case "join", (mark, values):
            return FunctionCall("join", (values, mark))
        case "default", (fallback, value):
            return Choose(value, value, fallback)
        case "dict", pairs if all(isinstance(each, Literal) for each in pairs[::2]):
            keys = (_text_of(each) for each in pairs[::2])
            return Record(None, tuple(zip(keys, pairs[1::2], strict=False)))
        case "set", (value, Literal(str(key)), new):
            return put(value, (key,), new)
        case "deepCopy", (value,):
            return value
        case "list", items:
            return Items(items)
        case "len", (value,):
            is_text = Comparison("=", FunctionCall("type", (value,)), Literal("string"))
            return Choose(
                is_text, FunctionCall("length", (value,)), FunctionCall("count", (value,))
            )
        case "has", (value, items):
            return Comparison("in", value, items)
        case _, (value,) if name in _RENAMED:
            return FunctionCall(_RENAMED[name], (value,))
    return Unknown(name)


def _unknown(name: str) -> Meaning:
    return lambda arguments: Unknown(name)


def _last(arguments: Sequence[Term]) -> Term:
    return arguments[-1]


def _first(arguments: Sequence[Term]) -> Term:
    return arguments[0]


_ROWS: Final[Mapping[str, Callable[[tuple[Term, ...]], Term]]] = {
    "input": _moved,
    "begun": _last,
    "variable": _variable,
    "text": _text,
    "expanded": _expanded,
    "prompt": _first,
    "done": _done,
    "failed": _failed,
    "tried": _tried,
    "own": _tried,
    "after": _last,
    "counted": _counted,
    "edge_count": lambda given: _edge_count(given[0], _text_of(given[1])),
    "compose": _composed,
    "gt": _numeric(">"),
    "lt": _numeric("<"),
    "in_range": _in_range,
    "noop": lambda given: _result(given[0], Literal("noop")),
    "echo": _answered,
    "answer": lambda given: _result(given[0], given[1]),
    "prompt_to_string": _answered,
    "prompt_to_js": lambda given: _result(given[0], Literal("ok")),
    "condition_key": _condition_key,
    "parse_number": _answered,
    "parse_score": _answered,
    "parse_range": _answered,
    "route": lambda given: _result(given[0], given[1]),
    "tool": _tool,
    "chat": _chat,
    "chat_completion": _chat_completion,
    "calls": lambda given: member(given[0], ("tool_calls",)),
    "execute_tool_calls": _executed,
    "parse_transition": _transition,
    "parse_key_value": _unknown("parse_key_value"),
    "convert_to_openai_chat_response": _unknown("convert_to_openai_chat_response"),
    "asked": _unknown("asked"),
}
MEANINGS: Final[Meanings] = {f"contenox_{name}": meaning for name, meaning in _ROWS.items()}
"""What each function computes, by its name without `$`."""
