"""What is known of data while a chain is written: which task has made it, or what it holds.

A chain has no document that all tasks share: what moves along is the output of the task before, and
every task leaves its own under its name. So each part of a document's data is followed to whoever
made it, and where it is used it is said what the chain calls it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from asl.core.values import Json, compact

__all__ = [
    "Constant",
    "Env",
    "Members",
    "Moving",
    "Part",
    "Text",
    "Unknown",
    "Value",
    "Why",
    "as_json",
    "at",
    "flat",
    "joined",
    "made",
    "merged",
    "operand",
    "placed",
    "renamed",
    "renewed",
    "roots",
    "shown",
]

Why: TypeAlias = tuple[str, str] | None
"""The code of a loss, and where in the document its cause stands."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing that a chain could say."""

    why: Why = None


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
    """An object: what it is based on, and the members that are known."""

    base: "Value | None"
    members: tuple[tuple[str, "Value"], ...]
    why: Why = None

    def get(self, name: str) -> "Value | None":
        """Return a member, None where it is not known."""
        return dict(self.members).get(name)


Value: TypeAlias = Unknown | Constant | Part | Text | Members


@dataclass(frozen=True, slots=True)
class Env:
    """The data of a state, what moves along in the chain at that point, and the variables."""

    data: Value
    flow: Value
    variables: tuple[tuple[str, Value], ...] = ()

    def variable(self, name: str) -> Value:
        """Return a variable of the document."""
        return dict(self.variables).get(name, Unknown())

    def assigned(self, new: Mapping[str, Value]) -> tuple[tuple[str, Value], ...]:
        """Return the variables after an assignment."""
        return tuple(sorted({**dict(self.variables), **new}.items()))


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
                found[-1] = Constant(_as_text(last.value) + _as_text(each.value))
            else:
                found.append(each)
    if not found:
        return Constant("")
    if len(found) == 1 and isinstance(found[0], Constant):
        return Constant(_as_text(found[0].value))
    return Text(tuple(found))


def _as_text(value: Json) -> str:
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


STALE: Final = Unknown()


def without(value: Value, root: str | Moving) -> Value:
    """Return a value in which nothing refers to a variable that is about to be something else."""
    if root not in roots(value):
        return value
    if isinstance(value, Members):
        base = None if value.base is None else without(value.base, root)
        members = ((key, without(each, root)) for key, each in value.members)
        return Members(base, tuple(members), value.why)
    return STALE


def renamed(env: Env, id: str) -> Env:
    """Return what is known once what moves along has got the name of a task."""
    flow = env.flow

    def new(value: Value) -> Value:
        if value == flow:
            return Part(id)
        if isinstance(value, Part) and isinstance(flow, Part) and value.root == flow.root:
            length = len(flow.path)
            if value.path[:length] == flow.path:
                return Part(id, value.path[length:])
        if isinstance(value, Members):
            base = None if value.base is None else new(value.base)
            return Members(base, tuple((key, new(each)) for key, each in value.members), value.why)
        if isinstance(value, Text):
            parts = tuple(map(new, value.parts))
            return STALE if STALE in parts else Text(parts)
        return without(value, id)

    variables = tuple((name, new(each)) for name, each in env.variables)
    return Env(new(env.data), Part(id), variables)


def renewed(env: Env, root: str) -> Env:
    """Return what is known before a task makes its variable anew."""
    before = Moving(f"{root} before")
    if env.flow == Part(root):
        env = _moved(_gone(env, before), root, before)
    return _gone(env, root)


def _gone(env: Env, root: str | Moving) -> Env:
    variables = tuple((name, without(each, root)) for name, each in env.variables)
    return Env(without(env.data, root), without(env.flow, root), variables)


def _moved(env: Env, root: str, before: Moving) -> Env:
    """Return what is known when a variable is not called by its name any more."""

    def new(value: Value) -> Value:
        if isinstance(value, Part) and value.root == root:
            return Part(before, value.path)
        if isinstance(value, Members):
            base = None if value.base is None else new(value.base)
            return Members(base, tuple((key, new(each)) for key, each in value.members), value.why)
        return value

    variables = tuple((name, new(each)) for name, each in env.variables)
    return Env(new(env.data), new(env.flow), variables)


def joined(state: str, old: Env, new: Env) -> Env:
    """Return what is known in a state that two ways lead to."""
    moving = Moving(state)
    same = old.flow == new.flow and moving not in roots(new.flow)
    flow: Value = old.flow if same else Part(moving)

    def both(one: Value, other: Value) -> Value:
        if one == old.flow and other == new.flow:
            return flow
        if one == other and moving not in roots(one):
            return one
        if isinstance(one, Members) != isinstance(other, Members):
            # What has grown is still based on what it was.
            one = Members(one, ()) if isinstance(one, Part) else one
            other = Members(other, ()) if isinstance(other, Part) else other
        if isinstance(one, Members) and isinstance(other, Members):
            base = None
            if one.base is not None or other.base is not None:
                base = both(one.base or STALE, other.base or STALE)
            names = dict.fromkeys(key for key, _ in (*one.members, *other.members))
            pairs = ((name, both(at(one, (name,)), at(other, (name,)))) for name in names)
            return Members(base, tuple(pairs), one.why or other.why)
        return Unknown(getattr(one, "why", None) or getattr(other, "why", None))

    names = dict(old.variables).keys() & dict(new.variables).keys()
    variables = ((name, both(old.variable(name), new.variable(name))) for name in sorted(names))
    return Env(both(old.data, new.data), flow, tuple(variables))


# --------------------------------------------------------------------------------------------
# Templates

_NAME: Final = re.compile(r"[^\W\d]\w*")


def operand(value: Value, env: Env) -> str | None:
    """Return a value as it stands in an action of a template, None for what cannot."""
    if isinstance(value, Constant):
        return _literal(value.value)
    if isinstance(value, Text):
        parts = [operand(each, env) for each in value.parts]
        return None if None in parts else f"print {' '.join(map(_grouped, map(str, parts)))}"
    if not isinstance(value, Part):
        return None
    if isinstance(value.root, Moving):
        if env.flow != Part(value.root):
            return None
        steps: tuple[str | int, ...] = ("previous_output", *value.path)
    else:
        steps = (value.root, *value.path)
    if all(isinstance(step, str) and _NAME.fullmatch(step) for step in steps):
        return "".join(f".{step}" for step in steps)
    return f"index . {' '.join(str(_literal(step)) for step in steps)}"


def _grouped(action: str) -> str:
    return f"({action})" if " " in action and action[0] not in '".' else action


def _literal(value: Json) -> str | None:
    if value is None:
        return "nil"
    if isinstance(value, str):
        return compact(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    shown = compact(value)
    if isinstance(value, int | float) and re.fullmatch(r"-?\d{1,18}(\.\d{1,18})?", shown):
        return shown
    return None


def shown(value: Value, env: Env) -> str | None:
    """Return a value as part of a template that shows it as a text, None for what cannot."""
    if isinstance(value, Constant):
        return _escaped(_as_text(value.value))
    if isinstance(value, Text):
        parts = [shown(each, env) for each in value.parts]
        return None if None in parts else "".join(map(str, parts))
    said = operand(value, env)
    return None if said is None else f"{{{{{said}}}}}"


def as_json(value: Value, env: Env) -> str | None:
    """Return a value as part of a template that shows it as JSON, None for what cannot."""
    if isinstance(value, Constant):
        return _escaped(compact(value.value))
    if isinstance(value, Members):
        if value.base is not None:
            return None
        parts = [(key, as_json(each, env)) for key, each in value.members]
        if any(part is None for _, part in parts):
            return None
        return f"{{{', '.join(f'{_escaped(compact(key))}: {part}' for key, part in parts)}}}"
    said = operand(value, env)
    return None if said is None else f"{{{{toJson {_grouped(said)}}}}}"


def _escaped(text: str) -> str:
    """Return a text as it stands in a template; braces that would begin an action are shown."""
    return re.sub(r"\{(?=\{)|\{$", '{{"{"}}', text)
