"""Time limits of agents, tools and child executions, enforced against user code."""

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
    """Run the machine of a child; a child execution fails when its time is over.

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
    """Return whether a time limit is over, even if the event loop was blocked and could not end
    it.
    """
    from asyncio import get_running_loop

    when = limit.when()
    late = when is not None and get_running_loop().time() > when
    return limit.expired() or late


async def await_in_time(
    answer: Awaitable[T], limit: asyncio.Timeout, pulse: asyncio.Timeout | None = None
) -> T:
    """Return the answer if it arrives in time.

    User code may catch the cancellation by a limit, and return or raise anything.

    Args:
        answer: The answer.
        limit: The time limit.
        pulse: The heartbeat limit; it counts only after it has expired, because heartbeats that
            move it wait for the loop. None for no limit.

    Raises:
        TimeoutError: A limit is over.
    """
    try:
        found = await answer
    except BaseException as error:  # user code may raise anything after its limit
        if is_control_flow(error) or not _is_late(limit, pulse):
            raise
        raise TimeoutError from error
    if _is_late(limit, pulse):
        raise TimeoutError
    return found


def _is_late(limit: asyncio.Timeout, pulse: asyncio.Timeout | None) -> bool:
    return has_expired(limit) or (pulse is not None and pulse.expired())
