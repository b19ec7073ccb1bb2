"""What a value is known to be while a chain is written: which task has made it, or what it holds.

A chain has no document that all tasks share: what moves along is the output of the task before, and
every task leaves its own under its name. So each part of a document's data is followed to whoever
made it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from asl.core.values import Json, compact

__all__ = [
    "Constant",
    "Members",
    "Moving",
    "Part",
    "Text",
    "Unknown",
    "Value",
    "Why",
    "as_text",
    "at",
    "flat",
    "made",
    "merged",
    "moving",
    "parts",
    "placed",
    "reaches",
    "roots",
]

Why: TypeAlias = tuple[str, str] | None
"""The code of a loss, and where in the document its cause stands."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing that a chain could say.

    Its cause lies on one way only, where it is `partly` so: on another one there is something else.
    """

    why: Why = None
    partly: bool = False


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is written out."""

    value: Any


@dataclass(frozen=True, slots=True)
class Moving:
    """What moves along into a state, whichever task has made it."""

    state: str


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a variable, or of what moves along."""

    root: str | Moving
    path: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """A text put together."""

    parts: tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class Members:
    """An object: what it is based on, and the members that are known; `partly` as in Unknown."""

    base: "Value | None"
    members: tuple[tuple[str, "Value"], ...]
    why: Why = None
    partly: bool = False

    def get(self, name: str) -> "Value | None":
        """Return a member, None where it is not known."""
        return dict(self.members).get(name)


Value: TypeAlias = Unknown | Constant | Part | Text | Members


def at(value: Value, path: tuple[str | int, ...]) -> Value:
    """Return what stands at a path within a value."""
    for index, step in enumerate(path):
        if isinstance(value, Part):
            return Part(value.root, (*value.path, *path[index:]))
        if isinstance(value, Members):
            found = value.get(step) if isinstance(step, str) else None
            value = found or (at(value.base, (step,)) if value.base else Unknown(value.why))
        elif isinstance(value, Constant):
            try:
                value = Constant(value.value[step])
            except (LookupError, TypeError):
                return Unknown()
        else:
            return value if isinstance(value, Unknown) else Unknown()
    return value


def placed(value: Value, path: tuple[str | int, ...], new: Value, why: Why) -> Value:
    """Return a value in which something else stands at a path."""
    if not path:
        return new
    step = path[0]
    if not isinstance(step, str) or isinstance(value, Text):
        return Unknown(why)
    inner = at(value, (step,)) if path[1:] else value
    if isinstance(inner, Unknown):
        inner = Members(None, (), why)
    return merged(value, {step: placed(inner, path[1:], new, why)}, why)


def merged(value: Value, new: Mapping[str, Value], why: Why) -> Value:
    """Return a value with more members."""
    if isinstance(value, Members):
        return Members(value.base, tuple({**dict(value.members), **new}.items()), why)
    if isinstance(value, Constant) and isinstance(value.value, dict):
        members = {key: Constant(each) for key, each in value.value.items()}
        return made({**members, **new}, why)
    return Members(value, tuple(new.items()), why)


def made(members: Mapping[str, Value], why: Why) -> Value:
    """Return an object of just these members."""
    if all(isinstance(each, Constant) for each in members.values()):
        return Constant({key: each.value for key, each in members.items()})  # type: ignore[union-attr]
    return Members(None, tuple(members.items()), why)


def flat(parts: Iterator[Value] | tuple[Value, ...]) -> Value:
    """Return a text of these parts."""
    found: list[Value] = []
    for part in parts:
        for each in part.parts if isinstance(part, Text) else (part,):
            last = found[-1] if found else None
            if isinstance(each, Constant) and isinstance(last, Constant):
                found[-1] = Constant(as_text(last.value) + as_text(each.value))
            else:
                found.append(each)
    if not found:
        return Constant("")
    if len(found) == 1 and isinstance(found[0], Constant):
        return Constant(as_text(found[0].value))
    return Text(tuple(found))


def as_text(value: Json) -> str:
    """Return a value as it stands in a text."""
    return value if isinstance(value, str) else compact(value)


def roots(value: Value) -> Iterator[str | Moving]:
    """Yield the variables that a value is made of."""
    if isinstance(value, Part):
        yield value.root
    elif isinstance(value, Text):
        for each in value.parts:
            yield from roots(each)
    elif isinstance(value, Members):
        if value.base is not None:
            yield from roots(value.base)
        for _, each in value.members:
            yield from roots(each)


def parts(value: Value) -> Iterator[Value]:
    """Yield what a value is made of, down to what is not made of anything."""
    if isinstance(value, Members):
        if value.base is not None:
            yield from parts(value.base)
        for _, each in value.members:
            yield from parts(each)
    else:
        yield value


def reaches(value: Value) -> bool:
    """Whether a value lies within a variable, or is made of one that does."""
    found = value.parts if isinstance(value, Text) else tuple(parts(value))
    return any(isinstance(each, Part) and each.path for each in found)


def moving(value: Value) -> bool:
    """Whether a value is what moves along, or a part of it, whichever task has made it."""
    return isinstance(value, Part) and isinstance(value.root, Moving)
