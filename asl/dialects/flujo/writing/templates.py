"""Terms as the input of a step: a template, or a value that is handed over as it is."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.expressions import TextReference
from asl.dialects.flujo.functions.templates import TextPart, ValuePart, parse
from asl.dialects.flujo.writing.places import print_path
from asl.dialects.terms import (
    Choose,
    DataPath,
    Exists,
    FunctionCall,
    Items,
    Literal,
    Negation,
    Record,
    Term,
    Text,
    as_text,
)

__all__ = ["StepInput", "print_input", "print_text"]

_CLOSED: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)
"""Braces in a text that would be taken for a value."""
_FILTERS: Final[Mapping[str, str]] = {
    "uppercase": "upper",
    "lowercase": "lower",
    "count": "length",
    "length": "length",
    "string": "",
}
"""The filters of functions of one argument; text is what a template makes of every value."""


class StepInput(NamedTuple):
    """The input of a step.

    Attributes:
        value: A template, or a value without one; None if nothing of it can be written.
        complete: Whether all of it is there.
        text: Whether a value has become a text.
    """

    value: Json
    complete: bool = True
    text: bool = False


class _Unprintable(Exception):
    """A template has no form for a term."""


def print_input(term: Term) -> StepInput:
    """Return a term as the input of a step.

    An object is handed over as it is if all of it is known; one with a single member becomes the
    text of that, and any other one its JSON, in a template.
    """
    members = _members(term)
    if members is not None and members.keys() == {"input", "context"}:
        return print_input(members["input"])  # what a blueprint gives its own agents
    if isinstance(term, Literal) and (members is None or len(members) != 1):
        if isinstance(term.value, str):
            text = _written([term.value])
            return StepInput(text, text is not None)
        return StepInput(term.value)
    if members is None:
        text = _text_of(term)
        shown = not isinstance(term, Text)
        return StepInput(text, text is not None, shown)
    printed = {
        key: parts for key, each in members.items() if (parts := _parts_of(each)) is not None
    }
    complete = len(printed) == len(members)
    if not printed:
        return StepInput(None, complete=not members)
    if len(members) == 1:
        (only,) = members.values()
        found = _written(list(_shown(only)))
        return StepInput(found, found is not None, text=True)
    text = _written(list(_object({key: members[key] for key in printed})))
    return StepInput(text, complete and text is not None, text=True)


def print_text(term: Term) -> str | None:
    """Return a term as a template, None if there is none for it."""
    return _text_of(term)


def _members(term: Term) -> Mapping[str, Term] | None:
    """Return the members of an object that is written out, None for any other term."""
    if isinstance(term, Record) and term.base is None:
        return dict(term.members)
    if isinstance(term, Literal) and isinstance(term.value, dict):
        return {key: Literal(each) for key, each in term.value.items()}
    return None


def _text_of(term: Term) -> str | None:
    try:
        return _written(list(_shown(term)))
    except _Unprintable:
        return None


def _parts_of(term: Term) -> list[str] | None:
    try:
        return list(_json(term))
    except _Unprintable:
        return None


def _shown(term: Term) -> Iterator[str]:
    """Yield the parts of a term as a text shows it."""
    match term:
        case Literal(value):
            yield as_text(value)
        case Text(parts):
            for each in parts:
                yield from _shown(each)
        case Record() | Items():
            yield from _json(term)
        case _:
            yield TextReference(_reference(term))


def _json(term: Term) -> Iterator[str]:
    """Yield the parts of a term as JSON."""
    match term:
        case Literal(value):
            yield json.dumps(value, ensure_ascii=False)
        case Text(parts):
            yield '"'
            for part in parts:
                for each in _shown(part):
                    yield each if isinstance(each, TextReference) else _quoted(each)[1:-1]
            yield '"'
        case Record(None, members):
            yield from _object(dict(members))
        case Items(items):
            yield "["
            for index, item in enumerate(items):
                yield ", " if index else ""
                yield from _json(item)
            yield "]"
        case _:
            yield TextReference(f"{_reference(term)} | tojson")


def _object(members: Mapping[str, Term]) -> Iterator[str]:
    yield "{"
    for index, (key, each) in enumerate(members.items()):
        yield f"{', ' if index else ''}{_quoted(key)}: "
        yield from _json(each)
    yield "}"


def _reference(term: Term) -> str:
    """Return what is between the braces for a term; raises _Unprintable."""
    match term:
        case DataPath():
            found = print_path(term)
            if found is not None:
                return found
        case Text((only,)):
            return _reference(only)
        case FunctionCall(function, (argument,)) if function in _FILTERS:
            name = _FILTERS[function]
            return f"{_reference(argument)} | {name}" if name else _reference(argument)
        case FunctionCall("join", (argument, Literal(str(between)))) if not set(between) & set(
            "'\\{}"
        ):
            return f"{_reference(argument)} | join('{between}')"
        case Choose(Exists(value), then, other) if value == then and other is not None:
            return f"{_reference(value)} or {_alternative(other)}"
        case Choose(Negation(Exists(value)), other, then) if value == then:
            return f"{_reference(value)} or {_alternative(other)}"
    raise _Unprintable


def _alternative(term: Term) -> str:
    if isinstance(term, Literal) and isinstance(term.value, str):
        if not set(term.value) & set("'\\{}|"):
            return f"'{term.value}'"
        raise _Unprintable
    return _reference(term)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _written(parts: Iterable[str]) -> str | None:
    """Return the text of a template of these parts, None where its braces would say another."""
    wanted: list[str] = [""]
    for each in parts:
        if isinstance(each, TextReference):
            wanted += [each, ""]
        else:
            wanted[-1] += each
    text = "".join(
        f"{{{{ {each} }}}}" if index % 2 else _CLOSED.sub(r"\\\g<0>", each)
        for index, each in enumerate(wanted)
    )
    return text if _read(text) == wanted else None


def _read(text: str) -> list[str]:
    """Return the parts of a template, texts and values by turns; nothing of one that has faults."""
    found = [""]
    try:
        parts = parse(text)
    except ExpressionFault:
        return []
    for part in parts:
        if isinstance(part, TextPart):
            found[-1] += part.text
        elif isinstance(part, ValuePart):
            found += [text[part.start + 2 : text.index("}}", part.start)].strip(), ""]
    return found
