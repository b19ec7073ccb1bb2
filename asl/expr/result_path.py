"""`ResultPath`: insert a result into the raw input, sharing everything else with it.

Only the spine from the root to the changed member is rebuilt, so the cost does not depend on the
size of the document (Specification 3.5).
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json, excerpt
from asl.expr.frame import Evaluate
from asl.expr.paths import Path, Segment

__all__ = [
    "InsertResult",
    "compile_constant_at",
    "compile_result_path",
    "insert_at",
    "member_of",
    "report_conflict",
]

InsertResult: TypeAlias = Callable[[Json, Json, Any], Json]
"""`(raw input, result, frame) -> value`; raises StateError("States.ResultPathMatchFailure").

The frame is ignored; with it, a state that only has a `ResultPath` needs no wrapper."""


def compile_result_path(path: Path | None) -> InsertResult | None:
    """Compile a `ResultPath`.

    Args:
        path: The path; None (the JSON null) for the raw input without the result.

    Returns:
        The closure; None if the result replaces the raw input (`$`).
    """
    if path is None:
        return lambda raw, result, frame: raw
    steps = path.segments
    if not steps:
        return None
    if len(steps) == 1 and type(steps[0]) is str:
        key = steps[0]

        def place_member(raw: Json, result: Json, frame: Any) -> Json:
            if type(raw) is not dict:
                raise _mismatch(key, raw)
            made = raw.copy()
            made[key] = result
            return made

        place_member.member = key  # type: ignore[attr-defined]  # for `member_of`
        return place_member
    if len(steps) == 2 and all(type(step) is str for step in steps):
        outer, inner = steps

        def place_nested(raw: Json, result: Json, frame: Any) -> Json:
            if type(raw) is dict:
                node = raw.get(outer)
                if type(node) is dict:
                    return {**raw, outer: {**node, inner: result}}
            return insert_at(raw, steps, result)

        return place_nested
    return lambda raw, result, frame: insert_at(raw, steps, result)


def report_conflict(follow: Callable[..., Json], path: Path) -> Callable[..., Json]:
    """Wrap *follow* to raise AWS's conflict error if *path* does not fit its first argument."""

    def followed(data: Json, *more: Any) -> Json:
        try:
            return follow(data, *more)
        except StateError:
            raise _conflict(path, data) from None

    followed.member = member_of(follow)  # type: ignore[attr-defined]
    return followed


def _conflict(path: Path, data: Json) -> StateError:
    """Return AWS's error for a reference *path* that does not fit *data*.

    AWS's documentation calls it `States.ResultPathMatchFailure`; users report this name from
    running executions, with one wording for a scalar and one for a container.
    """
    if type(data) is not dict and type(data) is not list:
        subject = f"ReferencePath {path.text}"
    else:
        subject = f'step "{_stuck(path.segments, data)}"'
    return StateError(
        "States.ReferencePathConflict", f"Unable to apply {subject} to input {excerpt(data)}"
    )


def _stuck(steps: tuple[Segment, ...], data: Json) -> Segment:
    """Return the first of *steps* that cannot be followed."""
    node = data
    for step in steps:
        try:
            node = node[step]
        except (LookupError, TypeError):
            return step
    return steps[-1]


def member_of(finish: Callable[..., Json] | None) -> str | None:
    """Return the member that receives the result, None if *finish* does anything else."""
    return getattr(finish, "member", None)


def compile_constant_at(path: Path, value: Json) -> Evaluate | None:
    """Compile "the data with *value* at a member" as one closure, None for any other path.

    A Pass that writes a literal is the most common pure state.
    """
    if len(path.segments) != 1 or type(path.segments[0]) is not str:
        return None
    key = path.segments[0]

    def placed(data: Json, frame: Any) -> Json:
        if type(data) is not dict:
            raise _mismatch(key, data)
        made = data.copy()  # a quarter less than `{**data, key: value}`
        made[key] = value
        return made

    return placed


def insert_at(data: Json, steps: tuple[Segment, ...], value: Json) -> Json:
    """Return *data* with *value* at *steps*, creating missing objects.

    Raises:
        StateError: States.ResultPathMatchFailure for steps that do not fit the data.
    """
    spine: list[Json] = []
    node: Json = data
    for step in steps:
        if type(step) is str and type(node) is dict:
            spine.append(node)
            node = node.get(step, _NOTHING)
        elif type(step) is str and node is _NOTHING:
            spine.append({})
        elif type(step) is int and type(node) is list and step < len(node):
            spine.append(node)
            node = node[step]
        else:
            raise _mismatch(step, None if node is _NOTHING else node)
    for node, step in zip(reversed(spine), reversed(steps), strict=True):
        if isinstance(step, int):
            value = [*node[:step], value, *node[step + 1 :]]
        else:
            value = {**node, step: value}
    return value


_NOTHING = object()


def _mismatch(step: Segment, node: Json) -> StateError:
    return StateError(
        "States.ResultPathMatchFailure", f'Unable to apply step "{step}" to input {excerpt(node)}'
    )
