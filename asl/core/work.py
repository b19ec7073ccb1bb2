"""The work of an evaluation: its limits, and the meter that counts against them.

All code that evaluates or reads text of an untrusted author takes a `WorkMeter`: expressions,
paths, templates, patterns, schemas, readers. Work is counted, not timed, so that the same input
ends the same way everywhere. A loop is counted before it starts, a value before it is built; work
that cannot grow with its input needs no meter.

A language catches `WorkExceeded` at its entry point and raises its own error with the message.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, NamedTuple, NoReturn

from asl.core.errors import StateError

__all__ = [
    "LIMITS",
    "STEP",
    "Quantity",
    "ReadingPace",
    "Spend",
    "WorkExceeded",
    "WorkLimits",
    "WorkMeter",
    "count_values",
    "fail_beyond_limits",
]

Quantity = Literal["steps", "bytes", "levels"]
Spend = Callable[[int], None]
"""Counts steps, as `WorkMeter.spend` does."""


class WorkLimits(NamedTuple):
    """The limits of one evaluation."""

    steps: int = 1_500_000
    """Steps, each about a quarter of a microsecond: all of them take less than half a second."""
    bytes: int = 64 * 1024 * 1024
    """Bytes of all the values that are built, freed ones included."""
    levels: int = 200
    """Levels of nesting, in the text or in the calls of an evaluation."""


STEP: Final = 0.25e-6
"""Seconds of a step, roughly."""
STEP_BYTES: Final = 256
"""Bytes that are built in the time of a step, roughly."""
REFERENCE: Final = 8
"""Bytes of a member of a list: what one step may add to a value, roughly."""
READ_AT_ONCE: Final = 16 * 1024
"""Bytes of input that are read without a pause."""
PIECE: Final = 64
"""Bytes that are read in the time that any piece of input takes, roughly."""
LIMITS: Final = WorkLimits()
"""The limits of every evaluation that has no others."""


class WorkExceeded(Exception):
    """An evaluation went beyond one of its limits."""

    def __init__(self, quantity: Quantity, limit: int) -> None:
        super().__init__(quantity, limit)
        self.quantity = quantity
        self.limit = limit

    def __str__(self) -> str:
        if self.quantity == "levels":
            return f"the evaluation is nested deeper than {self.limit} levels"
        if self.quantity == "bytes":
            return f"the evaluation builds more than {self.limit} bytes"
        return f"the evaluation takes more than {self.limit} steps"


class WorkMeter:
    """Counts the work of one evaluation; `steps` and `bytes` are what is left.

    A hot loop may subtract from `steps` and call `spend(0)` once afterwards.
    """

    __slots__ = ("built", "bytes", "limits", "steps")

    def __init__(self, limits: WorkLimits = LIMITS) -> None:
        self.limits = limits
        self.steps = limits.steps
        self.bytes = limits.bytes
        self.built = 0
        """Bytes of values that may have been built since it was last set to 0."""

    @property
    def is_exceeded(self) -> bool:
        """Whether it has counted more than a limit allows."""
        return self.steps < 0 or self.bytes < 0

    def spend(self, steps: int = 1) -> None:
        """Count steps; raises WorkExceeded if there are too many."""
        self.steps -= steps
        if self.steps < 0:
            self.exceed("steps")

    def spend_bytes(self, count: int) -> None:
        """Count bytes of a value before it is built; raises WorkExceeded if there are too many."""
        self.bytes -= count
        if self.bytes < 0:
            self.exceed("bytes")

    def enter(self, level: int) -> None:
        """Raise WorkExceeded if *level*, counted from 1 at the top, is too deep."""
        if level > self.limits.levels:
            self.exceed("levels")

    def renew(self) -> int:
        """Reset the counts; return the steps spent, including those for built bytes."""
        spent = self.limits.steps - self.steps
        self.steps += spent
        self.built += REFERENCE * spent
        built = self.limits.bytes - self.bytes
        if built:
            self.bytes += built
            self.built += built
            spent += built // STEP_BYTES
        return spent

    def exceed(self, quantity: Quantity) -> NoReturn:
        """Raise WorkExceeded for a quantity."""
        limits = self.limits
        limit = {"steps": limits.steps, "bytes": limits.bytes, "levels": limits.levels}[quantity]
        raise WorkExceeded(quantity, limit)


class ReadingPace:
    """Lets the event loop go on while input that has arrived already is read piece by piece.

    Awaiting the next piece does not suspend while there is one, however many a server has sent.
    """

    __slots__ = ("_read",)

    def __init__(self) -> None:
        self._read = 0

    async def count(self, size: int) -> None:
        """Count a piece of so many bytes; suspend after every `READ_AT_ONCE` of them."""
        self._read += PIECE + size
        if self._read >= READ_AT_ONCE:
            self._read = 0
            from asyncio import sleep

            await sleep(0)


@contextmanager
def fail_beyond_limits() -> Iterator[None]:
    """Convert WorkExceeded to a failure of the state.

    Raises:
        StateError: `States.Runtime`; the block exceeded a work limit.
    """
    try:
        yield
    except WorkExceeded as error:
        raise StateError("States.Runtime", str(error)) from None


def count_values(value: Any, meter: WorkMeter) -> None:
    """Count all parts of a value before it is visited, shared parts each time.

    Raises:
        WorkExceeded: There are too many parts.
    """
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, dict):
            meter.spend(1 + 2 * len(each))
            todo.extend(each.values())
        elif isinstance(each, list | tuple):
            meter.spend(1 + len(each))
            todo.extend(each)
        elif isinstance(each, str):
            meter.spend(len(each) >> 8)
