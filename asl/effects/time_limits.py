"""Time limits of agents, tools and child executions, kept whatever foreign code does."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

from asl.core.errors import StateError
from asl.core.values import Json
from asl.effects.runtime import RuntimeContext
from asl.engine.exception_mapping import is_control_flow
from asl.engine.frame import Frame
from asl.engine.interpreter import interpret
from asl.engine.records import BROKEN

if TYPE_CHECKING:
    import asyncio

__all__ = ["await_in_time", "has_expired", "interpret_in_time"]


async def interpret_in_time(runtime: RuntimeContext, frame: Frame) -> Json:
    """Run a child as `interpret` does; an execution of its own fails when its time is over.

    Raises:
        StateError: `States.Timeout` for that, or the error of the machine.
    """
    assert frame.parent is not None
    own = frame.parent.execution is not frame.execution
    end = frame.execution.deadline if own else None
    if end is None:
        return await interpret(frame)
    await runtime.event_loop()
    from asyncio import timeout

    try:
        async with timeout(max(0.0, end - runtime.now())) as limit:
            return await interpret(frame)
    except TimeoutError as late:
        if not limit.expired():
            raise
        error = StateError("States.Timeout", None)
        frame.now = runtime.now()
        frame.execution.emit((BROKEN, frame.now, frame, frame.visit, frame.step, error))
        raise error from late


T = TypeVar("T")


def has_expired(limit: asyncio.Timeout) -> bool:
    """Whether the time of a limit is over; it cannot ring while somebody holds up the loop."""
    from asyncio import get_running_loop

    when = limit.when()
    late = when is not None and get_running_loop().time() > when
    return limit.expired() or late


async def await_in_time(
    answer: Awaitable[T], limit: asyncio.Timeout, pulse: asyncio.Timeout | None = None
) -> T:
    """Return what comes in time; raises TimeoutError for all else that comes of *answer*.

    Foreign code may catch the cancellation by which a limit ends it, and return or raise what it
    likes. *pulse* counts only once it has rung: the signs of life that move it wait for the loop.
    """
    try:
        found = await answer
    except BaseException as error:  # foreign code may raise anything once its time is over
        if is_control_flow(error) or not _is_late(limit, pulse):
            raise
        raise TimeoutError from error
    if _is_late(limit, pulse):
        raise TimeoutError
    return found


def _is_late(limit: asyncio.Timeout, pulse: asyncio.Timeout | None) -> bool:
    return has_expired(limit) or (pulse is not None and pulse.expired())
