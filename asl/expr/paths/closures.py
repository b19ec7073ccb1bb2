"""Compile paths into closures, with the handling of missing values."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from asl.core.errors import StateError
from asl.core.profile import Missing
from asl.core.values import Json, excerpt
from asl.core.work import WorkExceeded
from asl.expr.frame import Evaluate, ExpressionFrame, StateView, identity
from asl.expr.paths import jayway
from asl.expr.paths.amazon import is_past_end
from asl.expr.paths.segments import Path
from asl.expr.paths.selection import select, too_much_work

__all__ = ["PathUse", "compile_path", "whole_context"]


class PathUse(NamedTuple):
    """The use of a path: its field, its state, and the behaviour for a missing value."""

    field: str
    state: str
    missing: Missing = Missing.RUNTIME
    effect: bool = False
    """Whether the state performs an effect, so it can be retried."""
    token: bool = False
    """Whether the state has a task token."""
    call: str | None = None
    """The intrinsic call that has the path as an argument."""
    aws: bool = False
    """Whether the path is evaluated as on AWS."""


def compile_path(path: Path, use: PathUse) -> Evaluate:
    """Compile *path*; a missing value is handled as `use.missing` says."""
    if (path.definite and not use.aws) or path.plain:
        return _look_up(path, use)
    return _searched(path, use, _amazon(path, use) if use.aws else _standard(path))


def _look_up(path: Path, use: PathUse) -> Evaluate:
    if path.root == "$$":
        return _from_context(path, use)
    if path.variable is not None:
        return _from_variable(path, use)
    return _definite(path, use)


Search: TypeAlias = Callable[[Json, Json, ExpressionFrame], Json]
"""`(document, data, frame) -> value`; the data is that of the state, for messages."""


def _searched(path: Path, use: PathUse, search: Search) -> Evaluate:
    """Search the document that the root of a path names."""
    name = path.variable
    if path.root == "$$":
        return lambda data, frame: search(whole_context(frame, use), data, frame)
    if name is None:
        return lambda data, frame: search(data, data, frame)

    def in_variable(data: Json, frame: ExpressionFrame) -> Json:
        if name not in frame.variables:
            return not_found(path, data, frame, use)
        return search(frame.variables[name], data, frame)

    return in_variable


def _standard(path: Path) -> Search:
    segments, in_context = path.segments, path.root == "$$"

    def search(document: Json, data: Json, frame: ExpressionFrame) -> Json:
        return select(segments, document, data if in_context else document, frame.work)

    return search


def _amazon(path: Path, use: PathUse) -> Search:
    find, definite = jayway.compile_segments(path.segments), path.definite

    def search(document: Json, data: Json, frame: ExpressionFrame) -> Json:
        try:
            found = find(document, frame.work)
        except jayway.PathFailure as failure:
            return not_found(path, data, frame, use, failure)
        except WorkExceeded as exceeded:
            raise too_much_work(exceeded) from None
        return found[0] if definite else found

    return search


def _definite(path: Path, use: PathUse) -> Evaluate:
    """Compile direct look-ups for plain paths, the most common ones.

    A string key works on objects only, so the look-up itself is the type check; an index would also
    work on a string and needs the general walk.
    """
    keys = path.keys
    if not keys:
        return identity
    if any(type(key) is int for key in keys) or len(keys) > 3:
        return lambda data, frame: _walk(path, keys, data, data, frame, use)
    if len(keys) == 1:
        (only,) = keys

        def one(data: Json, frame: ExpressionFrame) -> Json:
            try:
                return data[only]
            except (KeyError, TypeError):
                return not_found(path, data, frame, use)

        return one
    if len(keys) == 2:
        first, second = keys

        def two(data: Json, frame: ExpressionFrame) -> Json:
            try:
                return data[first][second]
            except (KeyError, TypeError):
                return not_found(path, data, frame, use)

        return two
    first, second, third = keys

    def three(data: Json, frame: ExpressionFrame) -> Json:
        try:
            return data[first][second][third]
        except (KeyError, TypeError):
            return not_found(path, data, frame, use)

    return three


def _walk(
    path: Path,
    keys: tuple[str | int, ...],
    start: Json,
    data: Json,
    frame: ExpressionFrame,
    use: PathUse,
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


def _from_context(path: Path, use: PathUse) -> Evaluate:
    if path.definite and path.segments and type(path.segments[0]) is str:
        root, rest = path.segments[0], path.keys[1:]

        def member(data: Json, frame: ExpressionFrame) -> Json:
            try:
                node = frame.context(root, use)
            except KeyError:
                return not_found(path, data, frame, use)
            return _walk(path, rest, node, data, frame, use) if rest else node

        return member
    return lambda data, frame: _walk(path, path.keys, whole_context(frame, use), data, frame, use)


CONTEXT_ROOTS = ("Execution", "State", "StateMachine", "Map", "Checkpoint")


def whole_context(frame: ExpressionFrame, at: StateView) -> dict[str, Json]:
    """Return the whole context object with every member that exists now."""
    whole: dict[str, Json] = {}
    for root in (*CONTEXT_ROOTS, "Task") if at.token else CONTEXT_ROOTS:
        try:
            whole[root] = frame.context(root, at)
        except KeyError:
            continue
    return whole


def _from_variable(path: Path, use: PathUse) -> Evaluate:
    name, keys = path.root, path.keys

    def value(data: Json, frame: ExpressionFrame) -> Json:
        try:
            node = frame.variables[name]
        except KeyError:
            return not_found(path, data, frame, use)
        return _walk(path, keys, node, data, frame, use) if keys else node

    return value


def not_found(
    path: Path,
    data: Json,
    frame: ExpressionFrame,
    use: PathUse,
    failure: jayway.PathFailure | None = None,
) -> Json:
    """Handle a missing value: return null, or raise StateError (Specification 3.3)."""
    if use.missing is Missing.NULL or (_past_end_is_null(use) and is_past_end(path, data)):
        return None
    if use.call is not None and use.missing is Missing.RUNTIME:
        gap = failure or (_gap(path, data) if path.root == "$" else None)
        if not isinstance(gap, jayway.PathInvalid):
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
        gap = failure or _gap(path, _document(path, data, frame, use))
        cause = f"Invalid path '{path.text}' : {gap}"
    else:
        cause = f"The path '{path.text}' in '{use.field}' finds nothing"
    raise StateError(use.missing.value, cause)


def _past_end_is_null(use: PathUse) -> bool:
    return use.aws and use.call is None and use.field.endswith(".$")


def _document(path: Path, data: Json, frame: ExpressionFrame, use: PathUse) -> Json:
    """Return the document that a path applies to."""
    if path.root == "$":
        return data
    return whole_context(frame, use) if path.root == "$$" else frame.variables.get(path.root)


def _gap(path: Path, document: Json) -> str | jayway.PathFailure:
    """Return the first missing step, in the words of AWS's path engine."""
    failure = jayway.explain(path.segments, document) if path.plain else None
    return failure or f"No results for path: {path.text}"
