"""Compare two documents: states, transitions, data flow, behaviour and remarks.

States of the same name in the same machine are the same state; a state with another name and the
same content is renamed. The order of states and object members is ignored, that of rules is not.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from asl.core.document import Document
from asl.core.pointers import escape
from asl.core.values import Json, compact, is_number
from asl.graphs.labels import Words, catcher_label, no_words, rule_words, shorten, title
from asl.states import UNKNOWN, type_of
from asl.states.fields import FieldIndex
from asl.states.machines import machine_fields, nested_machines

__all__ = ["Change", "Difference", "difference", "without_originals"]

_DATA = FieldIndex(lambda field: field.role == "data")
_REMARKS = frozenset(("Comment", "Metadata", "title", "Version", "$schema"))
_WAYS = frozenset(("Next", "End", "Default"))
MAX_SHOWN = 40
BEFORE = 20
"""Characters of a common beginning that are shown before the first difference."""
MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `about` is `state`, `transition`, `data flow`, `behaviour` or `remark`.

    `kind` is `added`, `removed`, `renamed` or `changed`; `place` names the state (`Each / Work`),
    empty for the workflow itself; `before` and `after` are JSON Pointers, None where the part does
    not exist; `text` describes the change.
    """

    kind: str
    about: str
    place: str
    text: str
    before: str | None
    after: str | None

    def to_json(self) -> dict[str, Json]:
        """Return the change as a JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Difference:
    """All changes from one document to another, in the order of the documents."""

    changes: tuple[Change, ...]

    @property
    def same(self) -> bool:
        """Whether only remarks differ."""
        return all(change.about == "remark" for change in self.changes)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)


def difference(
    before: Json,
    after: Json,
    words: tuple[Words, Words] = (no_words, no_words),
    *,
    read: bool = False,
) -> Difference:
    """Compare two documents.

    Args:
        before: The first document.
        after: The second document.
        words: Descriptions of states and rules of each document in its original language.
        read: Whether the documents were read from another language, with state names in
            expressions.
    """
    sides = _Side(before, words=words[0]), _Side(after, words=words[1])
    return Difference(tuple(_machines(*sides, "", _Names(read, {}))))


def without_originals(found: Difference, before: Document, after: Document) -> Difference:
    """Drop changes of the originals of two foreign documents that are reported for states already.

    An original is in the `Metadata` of a state or document read from it.
    """
    places = {
        (document, place)
        for document in (before, after)
        for _, place in (document.composition.origins.values() if document.composition else ())
    }
    told = {
        (document, _place(document, pointer))
        for change in found
        if change.about != "remark"
        for document, pointer in ((before, change.before), (after, change.after))
        if pointer is not None
    }

    def echo(change: Change) -> bool:
        document = before if change.before is not None else after
        original = _ORIGINAL.fullmatch(change.before or change.after or "")
        if change.about != "remark" or original is None:
            return False
        around = [each for home, each in places if home is document and _within(original[1], each)]
        part = max(around, key=len, default="")
        return part != "" and any(home is document and _within(each, part) for home, each in told)

    return Difference(tuple(change for change in found if not echo(change)))


_ORIGINAL: Final = re.compile(r"/Metadata/[^/]+/[^/]+(/.*)")


def _place(document: Document, pointer: str) -> str:
    """Return where the part of a document at a pointer is written."""
    origins = document.composition.origins if document.composition else {}
    while pointer and pointer not in origins:
        pointer = pointer.rpartition("/")[0]
    return origins[pointer][1] if pointer in origins else ""


def _within(pointer: str, part: str) -> bool:
    return f"{pointer}/".startswith(f"{part}/")


@dataclass(frozen=True, slots=True)
class _Side:
    """A machine or a state of one of the documents."""

    value: Json
    pointer: str = ""
    words: Words = no_words

    def object(self) -> Mapping[str, Json]:
        return self.value if type(self.value) is dict else {}

    def at(self, *steps: str | int) -> "_Side":
        value, pointer = self.value, self.pointer
        for step in steps:
            value, pointer = value[step], f"{pointer}/{escape(str(step))}"
        return _Side(value, pointer, self.words)

    def states(self) -> dict[str, "_Side"]:
        states = self.object().get("States")
        if type(states) is not dict:
            return {}
        return {
            name: self.at("States", name) for name, state in states.items() if type(state) is dict
        }


@dataclass(frozen=True, slots=True)
class _Names:
    """The new names of states, which may occur in expressions of documents that were `read`."""

    read: bool
    new: Mapping[str, str]

    def rename_in(self, value: Json) -> str:
        """Return a value as text, with the new names."""
        return compact(self._value(value) if self.read and self.new else value)

    def _value(self, value: Json) -> Json:
        if type(value) is dict:
            return {key: self._value(each) for key, each in value.items()}
        if type(value) is list:
            return [self._value(each) for each in value]
        if type(value) is not str:
            return value
        if value.startswith("{%"):
            return _TEXT.sub(lambda match: f"{match[1]}{self._name(match[2])}{match[1]}", value)
        return self._name(value)

    def _name(self, text: str) -> str:
        """Return the new name of a state or of a transition."""
        return "->".join(self.new.get(each, each) for each in text.split("->"))


_TEXT: Final = re.compile(r"(['\"])([^'\"\\]+)\1")
"""A text in an expression."""
_GONE: Final = "\0"
"""Replaces every state that is not in both machines."""


def _machines(before: _Side, after: _Side, place: str, names: _Names) -> Iterator[Change]:
    left, right = before.states(), after.states()
    renamed = _renamed(left, right, names)
    names = replace(names, new={**names.new, **renamed})
    yield from _fields(before, after, place, {"States", "StartAt"}, names)
    for start in _started(before, after, renamed):
        yield replace(start, place=place)
    for name, state in left.items():
        other = right.get(renamed.get(name, name))
        if other is None:
            yield _whole("removed", name, state, place)
        else:
            if name in renamed:
                text = f"{name} is called {renamed[name]} now"
                where = _named(place, name)
                yield Change("renamed", "state", where, text, state.pointer, other.pointer)
            yield from _states(state, other, _named(place, renamed.get(name, name)), renamed, names)
    new_names = {*renamed.values()}
    for name, state in right.items():
        if name not in left and name not in new_names:
            yield _whole("added", name, state, place)


def _whole(kind: str, name: str, state: _Side, place: str) -> Change:
    pointers = (state.pointer, None) if kind == "removed" else (None, state.pointer)
    text = f"{name} ({state.object().get('Type')})"
    return Change(kind, "state", _named(place, name), text, *pointers)


def _named(place: str, name: str) -> str:
    return f"{place} / {name}" if place else name


def _renamed(
    left: Mapping[str, _Side], right: Mapping[str, _Side], names: _Names
) -> dict[str, str]:
    """Find states that differ in their names and transitions only."""
    old, late = (
        {name for name in one if name not in other}
        for one, other in (
            (left, right),
            (right, left),
        )
    )
    was, now = (
        replace(names, new={**names.new, **dict.fromkeys(each, _GONE)})
        for each in (
            old,
            late,
        )
    )
    new: dict[str, list[str]] = {}
    for name in right:
        if name in late:
            new.setdefault(_core(right[name].object(), now), []).append(name)
    found = {}
    for name in left:
        if name in old and new.get(_core(left[name].object(), was)):
            found[name] = new[_core(left[name].object(), was)].pop(0)
    return found


def _core(state: Mapping[str, Json], names: _Names) -> str:
    """Return all of a state except its transitions, as text."""
    kept = {key: value for key, value in state.items() if key not in _WAYS}
    for field in ("Choices", "Catch"):
        if type(kept.get(field)) is list:
            kept[field] = [_without(rule, "Next") for rule in kept[field]]
    return names.rename_in(dict(sorted(kept.items())))


def _without(rule: Json, *fields: str) -> Json:
    if type(rule) is not dict:
        return rule
    return {key: value for key, value in sorted(rule.items()) if key not in fields}


# Transitions


@dataclass(frozen=True, slots=True)
class _Way:
    """A transition of a state: its rule and its target."""

    rule: str
    target: str
    words: str
    side: "_Side"


def _started(before: _Side, after: _Side, renamed: Mapping[str, str]) -> Iterator[Change]:
    old, new = before.object().get("StartAt"), after.object().get("StartAt")
    if renamed.get(str(old), old) != new:
        pointers = f"{before.pointer}/StartAt", f"{after.pointer}/StartAt"
        yield Change("changed", "transition", "", f"starts at {new}, not at {old}", *pointers)


def _ways(state: _Side, renamed: Mapping[str, str], names: _Names) -> list[_Way]:
    found: list[_Way] = []
    value = state.object()

    def add(rule: str, target: Json, words: str, *steps: str | int) -> None:
        name = str(target)
        found.append(_Way(rule, renamed.get(name, name), words, state.at(*steps)))

    for index, rule in _rules(value, "Choices"):
        core = names.rename_in(_without(rule, "Next", "Comment", "Assign", "Output"))
        said = state.words(rule, state.at("Choices", index).pointer) or rule_words(rule)
        add(f"Choices {core}", rule.get("Next"), f"when {said}", "Choices", index)
    for field, words in (("Default", "otherwise"), ("Next", "")):
        if field in value:
            add(field, value[field], words, field)
    if value.get("End") is True:
        add("End", "the end", "", "End")
    for index, rule in _rules(value, "Catch"):
        core = compact(_without(rule, "Next", "Comment", "Assign", "Output", "ResultPath"))
        add(f"Catch {core}", rule.get("Next"), catcher_label(rule), "Catch", index)
    return found


def _rules(state: Mapping[str, Json], field: str) -> Iterator[tuple[int, Mapping[str, Json]]]:
    rules = state.get(field)
    for index, rule in enumerate(rules if type(rules) is list else ()):
        if type(rule) is dict:
            yield index, rule


def _transitions(
    before: _Side, after: _Side, place: str, renamed: Mapping[str, str], names: _Names
) -> Iterator[Change]:
    old, new = _ways(before, renamed, names), _ways(after, {}, replace(names, new={}))
    was, now = {way.rule: way for way in old}, {way.rule: way for way in new}
    for way in old:
        other = now.get(way.rule)
        if other is None:
            yield Change("removed", "transition", place, _said(way), way.side.pointer, None)
            continue
        if other.target != way.target:
            text = f"{_said(other)}, not to {way.target}"
            pointers = way.side.pointer, other.side.pointer
            yield Change("changed", "transition", place, text, *pointers)
        yield from _fields(way.side, other.side, place, {"Next"}, names)
    for way in new:
        if way.rule not in was:
            yield Change("added", "transition", place, _said(way), None, way.side.pointer)
    for field in ("Choices", "Catch"):
        kept = [way.rule for way in old if way.rule in now and way.rule.startswith(field)]
        order = [way.rule for way in new if way.rule in was and way.rule.startswith(field)]
        if kept != order and sorted(kept) == sorted(order):
            pointers = before.at(field).pointer, after.at(field).pointer
            yield Change("changed", "transition", place, f"the order of {field}", *pointers)


def _said(way: _Way) -> str:
    words = f"{shorten(way.words, MAX_SHOWN * 2)} " if way.words else ""
    return f"{words}→ {way.target}"


# Fields


def _states(
    before: _Side, after: _Side, place: str, renamed: Mapping[str, str], names: _Names
) -> Iterator[Change]:
    machines = {
        field for side in (before, after) for field in machine_fields(type_of(side.object()))
    }
    yield from _fields(before, after, place, machines | _WAYS | {"Choices", "Catch"}, names)
    yield from _transitions(before, after, place, renamed, names)
    left, right = (_inner(side.object()) for side in (before, after))
    for held, steps in left.items():
        if held in right:
            inner = f"{place} ({title(before.object(), steps)})"
            yield from _machines(before.at(*steps), after.at(*right[held]), inner, names)
        else:
            text = title(before.object(), steps)
            yield Change("removed", "state", place, text, before.at(*steps).pointer, None)
    for held, steps in right.items():
        if held not in left:
            text = title(after.object(), steps)
            yield Change("added", "state", place, text, None, after.at(*steps).pointer)


def _inner(state: Mapping[str, Json]) -> dict[str, tuple[str | int, ...]]:
    """Return the steps to the machines in a state; `Iterator` and `ItemProcessor` are the same."""
    return {
        compact(["ItemProcessor" if each == "Iterator" else each for each in steps]): steps
        for steps, _ in nested_machines(state)
    }


def _fields(
    before: _Side, after: _Side, place: str, apart: Collection[str], names: _Names
) -> Iterator[Change]:
    left, right = before.object(), after.object()
    for field in [*left, *(field for field in right if field not in left)]:
        if field in apart:
            continue
        about = (
            "data flow" if field.removesuffix(".$") in _DATA.fields(UNKNOWN)
            else "remark" if field in _REMARKS else "behaviour"
        )  # fmt: skip
        for change in _values(before, after, (field,), names):
            yield replace(change, about=about, place=place)


def _values(
    before: _Side, after: _Side, way: tuple[str | int, ...], names: _Names
) -> Iterator[Change]:
    """Yield the changes between two values at the same place, as deep inside as possible."""
    key = way[-1]
    there = [
        (type(side.value) is dict and key in side.value)
        or (type(side.value) is list and type(key) is int and key < len(side.value))
        for side in (before, after)
    ]  # fmt: skip
    name = "".join(f"[{step}]" if type(step) is int else f".{step}" for step in way)[1:]
    if not all(there):
        side = (before if there[0] else after).at(key)
        text = f"{name}: {_shown(side.value)}"
        kind, pointers = (
            ("removed", (side.pointer, None)) if there[0] else ("added", (None, side.pointer))
        )
        yield Change(kind, "", "", text, *pointers)
        return
    old, new = before.at(key), after.at(key)
    if names.rename_in(old.value) == compact(new.value) or (
        old.value == new.value and is_number(old.value) and is_number(new.value)
    ):
        return
    if type(old.value) is type(new.value) is dict and len(way) < MAX_DEPTH:
        for inner in [*old.value, *(each for each in new.value if each not in old.value)]:
            yield from _values(old, new, (*way, inner), names)
    elif type(old.value) is type(new.value) is list and len(old.value) == len(new.value):
        for index in range(len(old.value)):
            yield from _values(old, new, (*way, index), names)
    else:
        text = f"{name}: {' → '.join(_apart(compact(old.value), compact(new.value)))}"
        yield Change("changed", "", "", text, old.pointer, new.pointer)


def _shown(value: Json) -> str:
    return shorten(compact(value), MAX_SHOWN)


def _apart(old: str, new: str) -> Iterator[str]:
    """Yield the surroundings of the first difference of two long texts."""
    pairs = enumerate(zip(old, new, strict=False))
    common = next((index for index, (one, other) in pairs if one != other), min(len(old), len(new)))
    long = max(len(old), len(new)) > MAX_SHOWN
    begin = max(0, common - BEFORE) if long and common >= MAX_SHOWN - BEFORE else 0
    for text in (old, new):
        yield f"…{shorten(text[begin:], MAX_SHOWN)}" if begin else shorten(text, MAX_SHOWN)
