"""The kinds of history records.

The interpreter writes one record per stretch of pure states and a few per effect;
`asl.engine.history` expands them into events. Every record begins with `kind, time, frame, visit,
step`; `step` is the current state of the machine, or None at its end.

Records are stored end to end in one flat list: without an object for each record, the garbage
collector has less to traverse (a quarter of the cost of a Map was its walks over tuples).
"""

from collections.abc import Iterator, Sequence
from typing import Any

from asl.states.effects import Record

STRETCH = "stretch"
"""`first step, data, variables, usage, length, data now, variables now`: pure states that ran in
one go, possibly none, up to the end or to the start of a state with an effect."""
ADVANCED = "advanced"
"""`what, details`: a request was accepted; `Submitted` to a service, or `Started` by a worker."""
FAILED = "failed"
"""`error, raw result or ABSENT`: one attempt failed, before its result or after."""
RETRIED = "retried"
"""`error, delay, retry`: the state will run again after *delay* seconds."""
AGAIN = "again"
"""`data, variables, usage, retry`: the delay is over, the next attempt begins."""
CAUGHT = "caught"
"""`error, next step`: a catcher applies."""
EXITED = "exited"
"""`raw result or ABSENT, output, variables before and after, next step`: the state has ended."""
BROKEN = "broken"
"""`error`: the machine failed."""
ABORTED = "aborted"
"""The machine was cancelled because a sibling failed; without a step, with the execution."""
NOTED = "noted"
"""`event, details`: an event that a state emits, with its AWS name where one exists."""
TOLD = "told"
"""`path, event, details`: an event that a state of a child execution emits; other records of such a
child are not stored."""
WHOLE = "whole"
"""`event, details`: an event of the whole execution, between its runs."""

WHOLE_PATH = "*"
"""Path of the records of the whole execution, in place of a machine's path."""

_LENGTHS = {
    STRETCH: 12,
    ADVANCED: 7,
    FAILED: 7,
    RETRIED: 8,
    AGAIN: 9,
    CAUGHT: 7,
    EXITED: 10,
    BROKEN: 6,
    ABORTED: 5,
    NOTED: 7,
    TOLD: 8,
    WHOLE: 7,
}


def each_record(flat: Sequence[Any], at: int = 0) -> Iterator[Record]:
    """Yield the records of a flat list, from the index *at* on."""
    while at < len(flat):
        end = at + _LENGTHS[flat[at]]
        yield tuple(flat[at:end])
        at = end
