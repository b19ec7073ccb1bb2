"""Bounds on what an execution holds in memory: its history, and the results of items.

Values are counted when they are built or received; only when that exceeds `MAX_BUILT` is looked
what is still there.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

from asl.core.errors import StateError
from asl.effects.runtime import RuntimeContext
from asl.engine.execution import Execution
from asl.engine.truncation import MAX_HELD, ValueSizes, bound_records, bound_values

__all__ = ["MAX_BUILT", "bound_memory"]

MAX_BUILT: Final = MAX_HELD
"""Bytes of values that come before the memory is looked at."""
_HINT: Final = "let a distributed Map write them with ResultWriter, or return less from each item"


def bound_memory(runtime: RuntimeContext, execution: Execution, now: float, limit: int) -> None:
    """Drop history that takes too much memory.

    Raises:
        StateError: States.DataLimitExceeded, where the results of items take too much.
    """
    bound_records(execution, now)
    work = execution.work
    if work is None or work.built <= MAX_BUILT:
        return
    work.built = 0
    bound_values(execution, now)
    most = max(limit, MAX_HELD)
    if not ValueSizes(most).add(chain.from_iterable(fork.held for fork in runtime.forks)):
        cause = f"the results of items take more than {most} bytes: {_HINT}"
        raise StateError("States.DataLimitExceeded", cause)
