"""Compiling a path into a closure, and what happens when it finds nothing."""

from typing import Any, NamedTuple

from asl.core.errors import StateError
from asl.core.profile import Missing
from asl.core.values import Json, excerpt
from asl.expr.frame import Evaluate, Frame, StateView, identity
from asl.expr.paths.segments import Path, Segment
from asl.expr.paths.select import select

__all__ = ["Use", "compile_path", "whole_context"]


class Use(NamedTuple):
    """Where a path stands: the field that holds it, its state, and what missing means there."""

    field: str
    state: str
    missing: Missing = Missing.RUNTIME
    effect: bool = False
    """The state reaches the world, so it can be retried."""
    token: bool = False
    """The state hands out a task token."""
    call: str | None = None
    """The intrinsic call of which the path is an argument."""
    beyond: bool = False
    """An index behind the end of an array finds null."""
    merge: bool = False
    """Several names at the end of a path are one object."""


def compile_path(path: Path, use: Use) -> Evaluate:
    """Compile *path*; the closure raises StateError as `use.missing` says when nothing is found."""
    if use.merge and path.merged is not path:
        return _picked(path.merged, use)
    if path.root == "$$":
        return _from_context(path, use)
    if path.variable is not None:
        return _from_variable(path, use)
    if not path.definite:
        segments = path.segments
        return lambda data, frame: select(segments, data, data)
    return _definite(path, use)


def _picked(path: Path, use: Use) -> Evaluate:
    """Read several members of one object, or of each of many."""
    *before, names = path.segments
    way, definite = path._replace(segments=tuple(before)), path.definite
    holder = compile_path(way, use._replace(merge=False))

    def members(data: Json, frame: Frame) -> Json:
        found = holder(data, frame)
        if not definite:
            return [each for node in found for each in select((names,), node, data)]
        if type(found) is not dict:
            return not_found(way, data, frame, use)
        return select((names,), found, data)[0]

    return members


def _definite(path: Path, use: Use) -> Evaluate:
    """Direct look-ups for the paths that nearly all documents consist of.

    A string key works on objects only, so the look-up itself is the type check; an index would
    also work on a string and needs the general walk.
    """
    keys = path.keys
    if not keys:
        return identity
    if any(type(key) is int for key in keys) or len(keys) > 3:
        return lambda data, frame: _walk(path, keys, data, data, frame, use)
    if len(keys) == 1:
        (only,) = keys

        def one(data: Json, frame: Frame) -> Json:
            try:
                return data[only]
            except (KeyError, TypeError):
                return not_found(path, data, frame, use)

        return one
    if len(keys) == 2:
        first, second = keys

        def two(data: Json, frame: Frame) -> Json:
            try:
                return data[first][second]
            except (KeyError, TypeError):
                return not_found(path, data, frame, use)

        return two
    first, second, third = keys

    def three(data: Json, frame: Frame) -> Json:
        try:
            return data[first][second][third]
        except (KeyError, TypeError):
            return not_found(path, data, frame, use)

    return three


def _walk(
    path: Path, keys: tuple[str | int, ...], start: Json, data: Json, frame: Frame, use: Use
) -> Json:
    node: Any = start
    for key in keys:
        fits = type(node) is (dict if type(key) is str else list)
        if not fits:
            return not_found(path, data, frame, use)
        try:
            node = node[key]
        except (KeyError, IndexError):
            return not_found(path, data, frame, use)
    return node


def _from_context(path: Path, use: Use) -> Evaluate:
    if path.definite and path.segments and type(path.segments[0]) is str:
        root, rest = path.segments[0], path.keys[1:]

        def member(data: Json, frame: Frame) -> Json:
            try:
                node = frame.context(root, use)
            except KeyError:
                return not_found(path, data, frame, use)
            return _walk(path, rest, node, data, frame, use) if rest else node

        return member
    return lambda data, frame: (
        select(path.segments, whole_context(frame, use), data)
        if not path.definite
        else _walk(path, path.keys, whole_context(frame, use), data, frame, use)
    )


CONTEXT_ROOTS = ("Execution", "State", "StateMachine", "Map", "Checkpoint")


def whole_context(frame: Frame, at: StateView) -> dict[str, Json]:
    """Return the whole context object: every member that exists at this moment."""
    whole: dict[str, Json] = {}
    for root in (*CONTEXT_ROOTS, "Task") if at.token else CONTEXT_ROOTS:
        try:
            whole[root] = frame.context(root, at)
        except KeyError:
            continue
    return whole


def _from_variable(path: Path, use: Use) -> Evaluate:
    name, keys, segments = path.root, path.keys, path.segments
    if not path.definite:

        def nodes(data: Json, frame: Frame) -> Json:
            if name not in frame.variables:
                return not_found(path, data, frame, use)
            return select(segments, frame.variables[name], frame.variables[name])

        return nodes

    def value(data: Json, frame: Frame) -> Json:
        try:
            node = frame.variables[name]
        except KeyError:
            return not_found(path, data, frame, use)
        return _walk(path, keys, node, data, frame, use) if keys else node

    return value


def not_found(path: Path, data: Json, frame: Frame, use: Use) -> Json:
    """Do what a missing value means at this place: null, or a StateError (Specification 3.3)."""
    if use.missing is Missing.NULL or (use.beyond and _is_beyond(path, data)):
        return None
    if use.call is not None and use.missing is Missing.RUNTIME:
        gap = _gap(path, data) if path.root == "$" else ""
        if not gap.startswith(MISAPPLIED):
            text = path.text.removeprefix("$") if path.root == "$$" else path.text
            gap = (
                f"The JsonPath argument for the field '{text}' could not be found in the input "
                f"'{excerpt(data)}'"
            )
        cause = f"The function '{use.call}' had the following error: {gap}"
    elif use.field.endswith(".$") or use.field in ("ErrorPath", "CausePath"):
        searched = whole_context(frame, use) if path.root == "$$" else data
        cause = (
            f"The JSONPath '{path.text}' specified for the field '{use.field}' could not be found "
            f"in the input '{excerpt(searched)}'"
        )
    elif use.field == "Variable":
        cause = (
            f"Invalid path '{path.text}': The choice state's condition path references an "
            "invalid value."
        )
    elif use.field.endswith("Path"):
        if path.root == "$":
            gap = _gap(path, data)
        elif path.root == "$$":
            gap = _gap(path, whole_context(frame, use))
        elif path.root in frame.variables:
            gap = _gap(path, frame.variables[path.root])
        else:
            gap = f"No results for path: {path.text}"
        cause = f"Invalid path '{path.text}' : {gap}"
    else:
        cause = f"The path '{path.text}' in '{use.field}' finds nothing"
    raise StateError(use.missing.value, cause)


MISAPPLIED = "Filter:"
"""How AWS's path engine begins to say that an index stands where there is no array."""


def _is_beyond(path: Path, data: Json) -> bool:
    """Whether nothing is missing but the last step, an index behind the end of an array."""
    *before, last = path.segments or (None,)
    if not path.definite or path.root != "$" or type(last) is not int or last < 0:
        return False
    found = select(tuple(before), data, data)
    return bool(found) and type(found[0]) is list


def _gap(path: Path, data: Json) -> str:
    """Name the first step that is missing, the way AWS's path engine words it."""
    node, way = data, "$"
    for position, key in enumerate(path.segments):
        if type(key) is int and node is None:
            return f"The path {way} is null"
        if type(key) is int and type(node) is not list:
            rest = "".join(map(_step, path.segments[position:]))
            return (
                f"{MISAPPLIED} {rest} can only be applied to arrays. Current context is: "
                f"{excerpt(node)}"
            )
        if not isinstance(key, str | int):
            break  # several steps in one: none of them is the first that is missing
        way += _step(key)
        present = (type(node) is dict and key in node) or (
            type(node) is list and type(key) is int and -len(node) <= key < len(node)
        )
        if not present:
            last = type(key) is int or position == len(path.segments) - 1
            return f"No results for path: {way}" if last else f"Missing property in path {way}"
        node = node[key]
    return f"No results for path: {path.text}"


def _step(key: Segment) -> str:
    return f"[{key}]" if type(key) is int else f"['{key}']"
