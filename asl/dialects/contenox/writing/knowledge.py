"""What is known of all data in front of a state, and how that changes from task to task."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from asl.dialects.contenox.writing.values import (
    Members,
    Moving,
    Part,
    Text,
    Unknown,
    Value,
    Why,
    at,
    roots,
)

__all__ = ["Env", "Variables", "joined", "renamed", "renewed"]

Variables: TypeAlias = tuple[tuple[str, Value], ...]
"""The variables of the document by their names, in order."""
STALE: Final = Unknown()


@dataclass(frozen=True, slots=True)
class Env:
    """The data of a state, what moves along in the chain at that point, and the variables."""

    data: Value
    flow: Value
    variables: Variables = ()

    def variable(self, name: str) -> Value:
        """Return a variable of the document."""
        return dict(self.variables).get(name, Unknown())

    def assigned(self, new: Mapping[str, Value]) -> Variables:
        """Return the variables after an assignment."""
        return tuple(sorted({**dict(self.variables), **new}.items()))


def _without(value: Value, root: str | Moving) -> Value:
    """Return a value in which nothing refers to a variable that is about to be something else."""
    if root not in roots(value):
        return value
    if isinstance(value, Members):
        base = None if value.base is None else _without(value.base, root)
        members = ((key, _without(each, root)) for key, each in value.members)
        return replace(value, base=base, members=tuple(members))
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
            members = tuple((key, new(each)) for key, each in value.members)
            return replace(value, base=base, members=members)
        if isinstance(value, Text):
            parts = tuple(map(new, value.parts))
            return STALE if STALE in parts else Text(parts)
        return _without(value, id)

    variables = tuple((name, new(each)) for name, each in env.variables)
    return Env(new(env.data), Part(id), variables)


def renewed(env: Env, root: str) -> Env:
    """Return what is known before a task makes its variable anew."""
    before = Moving(f"{root} before")
    if env.flow == Part(root):
        env = _moved(_gone(env, before), root, before)
    return _gone(env, root)


def _gone(env: Env, root: str | Moving) -> Env:
    variables = tuple((name, _without(each, root)) for name, each in env.variables)
    return Env(_without(env.data, root), _without(env.flow, root), variables)


def _moved(env: Env, root: str, before: Moving) -> Env:
    """Return what is known when a variable is not called by its name any more."""

    def new(value: Value) -> Value:
        if isinstance(value, Part) and value.root == root:
            return Part(before, value.path)
        if isinstance(value, Members):
            base = None if value.base is None else new(value.base)
            members = tuple((key, new(each)) for key, each in value.members)
            return replace(value, base=base, members=members)
        return value

    variables = tuple((name, new(each)) for name, each in env.variables)
    return Env(new(env.data), new(env.flow), variables)


def _cause(one: Value, other: Value) -> tuple[Why, bool]:
    """Return why nothing says what two ways lead to, and whether only one of them is why."""
    reasons = [getattr(each, "why", None) for each in (one, other)]
    partly = any(getattr(each, "partly", False) for each in (one, other))
    return reasons[0] or reasons[1], partly or reasons[0] != reasons[1]


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
            return Members(base, tuple(pairs), *_cause(one, other))
        return Unknown(*_cause(one, other))

    names = dict(old.variables).keys() & dict(new.variables).keys()
    variables = ((name, both(old.variable(name), new.variable(name))) for name in sorted(names))
    return Env(both(old.data, new.data), flow, tuple(variables))
