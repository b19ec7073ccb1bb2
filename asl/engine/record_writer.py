"""Encoding of history records for a journal, without repeating stored values."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine.frame import NO_VARIABLES
from asl.engine.journal_values import write_error, write_usage
from asl.engine.records import EXITED, STRETCH, WHOLE
from asl.engine.usage import NO_USAGE, UsageTotals
from asl.expr.frame import Variables
from asl.expr.result_path import member_of
from asl.program import Step
from asl.states.calls import CallOptions
from asl.states.effects import ABSENT, Record

__all__ = ["includes_next_stretch", "write_execution_record", "write_record"]


def write_execution_record(time: float, event: str, details: dict[str, Json]) -> Json:
    """Return a record of the whole execution as JSON."""
    return [WHOLE, time, 0, None, event, {"json": details}]


def write_record(
    record: Record,
    last: Sequence[int] = (),
    given: Json = None,
    reference: Json = None,
    whole: bool = False,
) -> tuple[Json, Sequence[int]]:
    """Return a record as JSON, and the identities of the containers in it.

    The form is `[kind, time, visit, state or null, ...]`. A container that is part of this record
    already, or of the machine's *last* one, is written as a reference: a state's input is the
    output of the state before. Of an output that is the input with the answer as a member only that
    member is written. A stretch of no states has equal ends, so its end is left out; one that
    follows from the end of a state is not written at all (`includes_next_stretch`), nor are the
    variables of a machine without any.

    Args:
        record: The record.
        last: Identities of the containers of the machine's previous record, whose objects must
            still exist.
        given: A container or text that is stored elsewhere.
        reference: Reference to its place.
        whole: Whether to write an output in full.
    """
    seen: list[int] = []
    kind = record[0]
    if kind is STRETCH:
        return _written_stretch(record, seen, last, given, reference), seen
    if kind is EXITED:
        return _written_exit(record, seen, last, given, reference, whole), seen
    _, time, _, visit, step, *rest = record
    slots = [_written(value, seen, last, given, reference) for value in rest]
    return [kind, time, visit, None if step is None else step.pointer, *slots], seen


_Seen: TypeAlias = Sequence[int]
"""Identities of the containers of a record."""


def _written_stretch(
    record: Record, seen: list[int], last: _Seen, given: Json, reference: Json
) -> Json:
    _, time, _, visit, step, first, data, variables, usage, count, output, after = record
    pointer = None if step is None else step.pointer
    begun = _written(data, seen, last, given, reference)
    own = None if variables is NO_VARIABLES else _written(variables, seen, last)
    if count == 0:
        return [STRETCH, time, visit, pointer, begun, own, _spent(usage)]
    left = _written(output, seen, last, given, reference)
    then = None if after is NO_VARIABLES else _written(after, seen, last)
    first = {"step": first.pointer}
    return [STRETCH, time, visit, pointer, first, begun, own, _spent(usage), count, left, then]


def _written_exit(
    record: Record, seen: list[int], last: _Seen, given: Json, reference: Json, whole: bool
) -> Json:
    _, time, frame, visit, step, answer, output, variables, after, goto = record
    before = () if whole else last
    result = _written(answer, seen, before, given, reference)
    member, data = None if answer is ABSENT else member_of(step.finish), id(frame.data)
    if member is not None and data in before:
        left = {"+": [before.index(data), member]}
        seen.append(id(output))
    else:
        left = _written(output, seen, before, given, reference)
    own = None if variables is NO_VARIABLES else _written(variables, seen, last)
    then = None if after is NO_VARIABLES else _written(after, seen, last)
    following = {"enter": goto.pointer} if _begins_next(record) else _step(goto)
    return [EXITED, time, visit, step.pointer, result, left, own, then, following]


def _begins_next(exited: Record) -> bool:
    """Return whether the next state starts with the same data where this one ends.

    The interpreter emits the record of that start, a stretch of no states, immediately; it contains
    nothing new.
    """
    frame, goto = exited[2], exited[9]
    if goto is None or goto.work is None:
        return False
    execution = frame.execution
    return execution.usage is NO_USAGE and (
        execution.program.after_transition is None or frame.parent is not None
    )


def includes_next_stretch(written: Json) -> bool:
    """Return whether a written record includes the stretch of no states after it."""
    return written[0] == EXITED and written[-1] is not None and "enter" in written[-1]


def _written(
    value: Any, seen: list[int], last: _Seen, given: Json = None, reference: Json = None
) -> Json:
    """Return the encoded value; a container is known from then on."""
    of = type(value)
    if of in _SIMPLE:
        return value if of is not str or value is not given else reference
    identity = id(value)
    written: Json
    if identity in seen:
        written = _HERE[seen.index(identity)]
    elif value is given:
        written = reference
    elif identity in last:
        written = _BEFORE[last.index(identity)]
    elif of is dict or of is list:
        written = {"json": value}
    elif of is Variables:
        written = {"variables": [value, value.assigned]}
    else:
        return _marked(value)
    seen.append(identity)
    return written


_SIMPLE = frozenset({type(None), bool, int, float, str})
_HERE: Sequence[Json] = [{"=": index} for index in range(8)]
_BEFORE: Sequence[Json] = [{"<": index} for index in range(8)]


def _marked(value: Any) -> Json:
    """Return a value that is not JSON under the name of its kind."""
    if value is ABSENT:
        return {"absent": True}
    if isinstance(value, Step):
        return _step(value)
    if isinstance(value, UsageTotals):
        return _spent(value)
    if isinstance(value, StateError):
        return {"error": write_error(value)}
    if isinstance(value, CallOptions):
        return {"options": [value.timeout, value.heartbeat, value.state, value.credentials]}
    raise TypeError(f"no record holds {type(value).__name__}")


def _step(step: Step | None) -> Json:
    return None if step is None else {"step": step.pointer}


def _spent(usage: UsageTotals) -> Json:
    return _NOTHING_SPENT if usage is NO_USAGE else {"usage": write_usage(usage)}


_NOTHING_SPENT = {"usage": write_usage(NO_USAGE)}
