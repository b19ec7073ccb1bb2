"""Reading the one node of a definite path within a filter."""

from collections.abc import Callable
from typing import TypeAlias

from asl.core.values import Json
from asl.expr.paths.jayway.failures import PathInvalid
from asl.expr.paths.jayway.fragments import MULTIPLE, no_array, written
from asl.expr.paths.segments import Computed, Evaluation, Pick, Segment

__all__ = ["ABSENT", "Read", "compile_read"]

Read: TypeAlias = Callable[[Json, Evaluation], Json]
"""`(candidate, evaluation) -> value or ABSENT`; raises PathInvalid."""
ABSENT: Json = object()
"""No value is at the end of a path."""


def compile_read(
    segments: tuple[Segment, ...], from_root: bool = False, *, require: bool = False
) -> Read:
    """Compile a definite path.

    Args:
        segments: Names, indices, computed indices, and several names at the end.
        from_root: Whether it begins at the root document instead of the candidate.
        require: Whether all of several names must be there.
    """
    if not segments and not from_root:
        return lambda candidate, evaluation: candidate
    if len(segments) == 1 and type(segments[0]) is str and not from_root:
        name = segments[0]

        def member(candidate: Json, evaluation: Evaluation) -> Json:
            return candidate.get(name, ABSENT) if type(candidate) is dict else ABSENT

        return member

    def node(candidate: Json, evaluation: Evaluation) -> Json:
        evaluation.meter.spend(len(segments))
        value = evaluation.root if from_root else candidate
        for position in range(len(segments)):
            value = _step(segments, position, value, require)
            if value is ABSENT:
                break
        return value

    return node


def _step(segments: tuple[Segment, ...], at: int, value: Json, require: bool) -> Json:
    match segments[at]:
        case str(name):
            if type(value) is dict and name in value:
                return value[name]
        case Pick(members):
            if type(value) is dict:
                if at < len(segments) - 1:
                    raise PathInvalid(MULTIPLE + "$" + written(segments[: at + 1]))
                if not (require and any(name not in value for name in members)):
                    return {name: value[name] for name in members if name in value}
        case int() | Computed() as segment:
            if value is not None and type(value) is not list:
                raise PathInvalid(no_array(segments[at:], value))
            if value is not None:
                index = segment if isinstance(segment, int) else len(value) + segment.offset
                return value[index] if 0 <= index < len(value) else ABSENT
    return ABSENT
