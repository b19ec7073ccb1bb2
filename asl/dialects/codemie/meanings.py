"""What the functions of workflows compute, as terms.

In other languages every answer is stored under a key of its own, the author's `output_key` or the
name of its state, and the item of an iteration under `task`. The reader notes in the calls of the
functions where the names that a state reads are found then.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final, TypeAlias

from asl.core.values import Json
from asl.dialects.codemie.answer_places import ITEM
from asl.dialects.codemie.condition_terms import condition_term, value_term
from asl.dialects.codemie.functions.placeholders import find_placeholders
from asl.dialects.codemie.template_terms import template_term
from asl.dialects.terms import (
    NOTHING,
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
    known_truth,
    member,
    merge,
    put,
    walk,
)

__all__ = ["MEANINGS"]

_MANY: Final = 16
"""Digits of an index, from which on it is the key of a member."""
_RESERVED: Final = "cm"

Arguments: TypeAlias = tuple[Term, ...]
LookUp: TypeAlias = Callable[[Sequence[str]], Term]
"""Returns the value of a name, or of a path that begins with one."""


def _json(term: Term) -> Any:
    """Return a value that is written out in a call, None for any other term."""
    return term.value if isinstance(term, Literal) else None


def _options(terms: Sequence[Term]) -> Mapping[str, Any]:
    found = _json(terms[0]) if terms else None
    return found if isinstance(found, dict) else {}


def _steps(keys: Sequence[str]) -> tuple[Step, ...]:
    return tuple(int(each) if each.isdecimal() and len(each) < _MANY else each for each in keys)


def _first_of(terms: Sequence[Term]) -> Term:
    """Return the first of some values that is there."""
    return reduce(lambda last, each: Choose(Exists(each), each, last), reversed(terms))


# Names --------------------------------------------------------------------------------------------


def _scope(data: Term, options: Mapping[str, Any]) -> LookUp:
    """Return a function for the values of names in the context."""
    places: Mapping[str, Json] = options.get("from", {})

    def look_up(steps: Sequence[str]) -> Term:
        name, *rest = steps
        found = places.get(name, [name])
        if name == ITEM and name not in places:
            return Unknown("{{task}}")
        listed = found if isinstance(found, list) else [found]
        ways = ((*str(each).split("."), *_steps(rest)) for each in listed)
        return _first_of([member(data, each) for each in ways])

    return look_up


def _filled(text: str, look_up: LookUp) -> Iterator[Term]:
    """Yield the parts of a text with placeholders."""
    at = 0
    for each in find_placeholders(text):
        yield Literal(text[at : each.start])
        written = text[each.start : each.end]
        yield Literal(written) if each.steps is None else look_up(each.steps)
        at = each.end
    yield Literal(text[at:])


def _shown(text: str, look_up: LookUp) -> Term:
    found = concatenate(*_filled(text, look_up))
    return found if isinstance(found, Literal | Text) else Text((found,))


def _text(arguments: Arguments) -> Term:
    data, template, *options = arguments
    text = _json(template)
    if not isinstance(text, str):
        return template  # the result of a tool, whose placeholders are in the answer
    return _shown(text, _scope(data, _options(options)))


def _tool_arguments(arguments: Arguments) -> Term:
    data, written, *more = arguments
    options = _options(more)
    look_up = _scope(data, options)
    key = options.get("input_key")
    if key is not None:
        holder = next(_filled(f"{{{{{key}}}}}", look_up), NOTHING)
        look_up = _within(list(_filled(f"{{{{{key}}}}}", look_up))[1] if holder else NOTHING)
    found = _json(written)
    if not isinstance(found, dict):
        return Unknown("arguments")
    members = (
        (name, look_up((name,)) if each in (None, "") else _argument(each, look_up))
        for name, each in found.items()
    )
    return Record(None, tuple(members))


def _within(holder: Term) -> LookUp:
    return lambda steps: member(holder, _steps(steps))


def _argument(value: Json, look_up: LookUp) -> Term:
    """Return an argument; one that is a placeholder alone is a value of any type."""
    if isinstance(value, dict):
        return Record(None, tuple((key, _argument(each, look_up)) for key, each in value.items()))
    if isinstance(value, list):
        return Items(tuple(_argument(each, look_up) for each in value))
    if not isinstance(value, str):
        return Literal(value)
    found = list(find_placeholders(value))
    if len(found) == 1 and found[0].steps and value.strip() == value[found[0].start : found[0].end]:
        return look_up(found[0].steps)
    return _shown(value, look_up)


def _message(arguments: Arguments) -> Term:
    """The last message, or the item, where it is known and the task does not read it itself."""
    data, *key = arguments
    return _output((data, *key)) if key else NOTHING


# Data ---------------------------------------------------------------------------------------------


def _stored(arguments: Arguments) -> Term:
    data, result, state, *more = arguments
    flags = _options(more)
    key = str(flags.get("key", flags.get("output_key", _json(state))))
    base = data
    if flags.get("clear_context_store"):
        item = ((ITEM, member(data, (ITEM,))),) if flags.get("item") else ()
        base = Record(None, item)
    if not key:
        return merge(base, result)
    appends = flags.get("append_to_context") and key == flags.get("output_key")
    if appends and not flags.get("item"):
        result = FunctionCall("append", (member(data, (key,)), Items((result,))))
    return put(base, (key,), result)


def _items(arguments: Arguments) -> Term:
    """The items in an answer, which may be a JSON text; what is no list is the only item."""
    data, key, *source = arguments
    if not source:
        return Unknown("items")
    answer, way = _output((data, *source)), str(_json(key))
    begins = (FunctionCall("matches", (answer, Literal(f"{each}*"))) for each in "[{")
    is_json = Logic("and", (_is(answer, "string"), Logic("or", tuple(begins))))
    ways = (_listed(each, way) for each in (FunctionCall("parse", (answer,)), answer))
    return Items((Choose(is_json, *ways),))


def _listed(value: Term, way: str) -> Term:
    """Return the items in a value: at a pointer, or at a key if it is an object."""
    if way.startswith("/"):
        return member(value, _steps(way.strip("/").split("/")))
    return value if way == "." else Choose(_is(value, "object"), member(value, (way,)), value)


def _is(value: Term, kind: str) -> Term:
    return Comparison("=", FunctionCall("type", (value,)), Literal(kind))


def _branch(arguments: Arguments) -> Term:
    data, *item = arguments
    return put(data, (ITEM,), item[0]) if item else data


def _joined(arguments: Arguments) -> Term:
    data, results, *more = arguments
    keys = _json(more[0]) if more else []
    if not keys:
        return merge(data, results)
    if not isinstance(results, DataPath):
        return Unknown("branches")
    found = data
    for index, key in enumerate(keys):
        if isinstance(key, str):
            collected = Items((DataPath(results.root, (*results.steps, key)),))
            found = put(found, (key,), collected)
        else:
            for each in key:
                found = put(found, (each,), member(results, (index, each)))
    return found


def _part(arguments: Arguments) -> Term:
    result, pointer = arguments
    way = str(_json(pointer)).strip("/")
    return member(result, _steps(way.split("/"))) if way else result


# Transform nodes ----------------------------------------------------------------------------------


def _transformed(arguments: Arguments) -> Term:
    data, written, *more = arguments
    config = _options([written])
    if config.get("input_source", "context_store") != "context_store":
        return Unknown("input_source")
    look_up = _scope(data, _options(more))
    if "input_key" in config:
        look_up = _within(look_up(config["input_key"].split(".")))
    made: dict[str, Term] = {}

    def name(steps: Sequence[str]) -> Term:
        if steps[0] in made:
            return member(made[steps[0]], _steps(steps[1:]))
        return look_up(steps)

    for mapping in config.get("mappings", ()):
        made[mapping["output_field"]] = _mapped(mapping, name)
    return Record(None, tuple(made.items()))


def _mapped(mapping: Mapping[str, Any], look_up: LookUp) -> Term:
    match mapping["type"]:
        case "constant":
            return Literal(mapping["value"])
        case "extract":
            found = look_up(mapping["source_path"].split("."))
            default = mapping.get("default")
            return found if default is None else _first_of([found, Literal(default)])
        case "template":
            return template_term(mapping["template"], look_up)
        case "condition":
            ways = Literal(mapping["then_value"]), Literal(mapping["else_value"])
            return Choose(condition_term(mapping["condition"], look_up, members=True), *ways)
        case "script":
            return value_term(mapping["script"], look_up)
    return Unknown(str(mapping["type"]))


# Conditions ---------------------------------------------------------------------------------------


def _output(arguments: Arguments) -> Term:
    data, *key = arguments
    if not key:
        return Unknown("output")
    return member(data, (str(_json(key[0])),)) if _json(key[0]) else data


def _holds(arguments: Arguments) -> Term:
    data, condition, *key = arguments
    if not key:
        return Unknown("condition")
    answer = _output((data, *key))
    found = condition_term(str(_json(condition)), _within(answer))
    if known_truth(found) or any(_holds_for_nothing(each) for each in walk(found)):
        return Logic("and", (_is(answer, "object"), found))
    return found


def _holds_for_nothing(term: Term) -> bool:
    """Whether a condition may hold for a missing value, and so for an answer that is no object."""
    match term:
        case Negation(Exists()) | Choose(Exists()):
            return True
    return False


def _first(arguments: Arguments) -> Term:
    return arguments[0]


_ROWS: Final[Mapping[str, Callable[[Arguments], Term]]] = {
    "text": _text,
    "arguments": _tool_arguments,
    "context": _first,
    "history": _message,
    "item": _message,
    "store": _stored,
    "step": lambda arguments: NOTHING,
    "output": _output,
    "holds": _holds,
    "items": _items,
    "branch": _branch,
    "join": _joined,
    "resume": lambda arguments: merge(arguments[0], arguments[1]),
    "valid": _first,
    "refuse": lambda arguments: NOTHING,
    "errors": lambda arguments: NOTHING,
    "at": _part,
    "transform": _transformed,
}
MEANINGS: Final[Meanings] = {f"codemie_{name}": meaning for name, meaning in _ROWS.items()}
"""What each function computes, by its name without `$`."""
