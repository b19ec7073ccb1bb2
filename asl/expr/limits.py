"""Limits of work in the functions of dialects."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from asl.core.errors import StateError
from asl.core.work import WorkExceeded, WorkMeter

__all__ = ["count_values", "within_limits"]


@contextmanager
def within_limits() -> Iterator[None]:
    """Let work that exceeds a limit fail the execution: StateError (States.Runtime)."""
    try:
        yield
    except WorkExceeded as error:
        raise StateError("States.Runtime", str(error)) from None


def count_values(value: Any, meter: WorkMeter) -> None:
    """Count all that is in a value, shared parts as often as they are there, before it is walked.

    Raises WorkExceeded for too many parts.
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
