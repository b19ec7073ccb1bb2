"""The kinds of history records.

The interpreter writes one record per stretch of pure states and a few per effect, and nothing
else; `asl.engine.history` expands them into events. Every record begins with
`kind, time, frame, visit, step`; `step` is the state that the machine has come to, or None where
it has ended.

Records lie end to end in one flat list: no object of its own for each keeps the garbage collector
idle (a quarter of the cost of a Map was its walks over tuples).
"""

from collections.abc import Iterator, Sequence
from typing import Any

from asl.states.effects import Record

STRETCH = "stretch"
"""`first step, data, variables, usage, length, data now, variables now`: pure states that ran in
one go, none at all perhaps, up to the end or to a state that reaches the world and begins now."""
ADVANCED = "advanced"
"""`what, details`: a request was taken; `Submitted` to a service, or `Started` by a worker."""
FAILED = "failed"
"""`error, raw result or ABSENT`: one attempt failed, before its result or after."""
RETRIED = "retried"
"""`error, delay, retry`: the state will run again after *delay* seconds."""
AGAIN = "again"
"""`data, variables, usage, retry`: the delay is over, the next attempt begins."""
CAUGHT = "caught"
"""`error, next step`: a catcher takes over."""
EXITED = "exited"
"""`raw result or ABSENT, output, variables before and after, next step`: the state is done."""
BROKEN = "broken"
"""`error`: the machine failed."""
ABORTED = "aborted"
"""The machine was cancelled because a sibling failed; without a step, with the execution."""
NOTED = "noted"
"""`event, details`: what a state itself has to tell; an event of AWS's by its name."""
TOLD = "told"
"""`path, event, details`: what a state of a child execution has to tell; the rest of what such a
child does is recorded nowhere."""
WHOLE = "whole"
"""`event, details`: what became of the execution as a whole, before it went on."""

WHOLE_PATH = "*"
"""Where records of the execution as a whole stand, beside the paths of machines."""

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
    """Yield the records that lie end to end in *flat*, from the position *at* on."""
    while at < len(flat):
        end = at + _LENGTHS[flat[at]]
        yield tuple(flat[at:end])
        at = end
