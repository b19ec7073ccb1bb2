"""The usage of calls that are cancelled when their agent has answered already."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Final

from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine.agent import Call
from asl.engine.blame import portable
from asl.engine.usage import usage_in

if TYPE_CHECKING:
    import asyncio

__all__ = ["await_answer"]

TURNS: Final = 16
"""Turns of the event loop in which an answer that has come may still get through."""
PATIENCE: Final = 0.05
"""Seconds in which it may do so from a thread, a process or a connection."""


async def await_answer(answer: Awaitable[Json], call: Call) -> Json:
    """Await an answer; a call that is cancelled notes the usage of one that has come already.

    The answer is awaited in a task of its own, so that a cancellation reaches the agent only when
    it had the chance to return what it has.
    """
    from asyncio import CancelledError, ensure_future, shield

    task = ensure_future(_carried(answer))
    try:
        return await shield(task)
    except CancelledError:
        if not task.done():
            agent = call.agent
            outside = agent is not None and (agent.blocking or agent.real)
            await _finish(task, outside)
        usage = None if task.cancelled() else _usage(task)
        if usage is not None:
            call.usage, call.answered = usage, True
        raise


async def _carried(answer: Awaitable[Json]) -> Json:
    """Await an answer; what foreign code raises is made fit for a task."""
    try:
        return await answer
    except BaseException as error:  # foreign code; a task would turn some into other errors
        raise portable(error) from error.__cause__


def _usage(task: asyncio.Future[Json]) -> Mapping[str, Json] | None:
    """Return the usage that an agent has reported beside its answer or its error."""
    error = task.exception()
    if error is None:
        return usage_in(task.result())
    return error.usage if isinstance(error, StateError) else None


async def _finish(task: asyncio.Future[Json], outside: bool) -> None:
    """Wait for the end of a task, which is cancelled after its last chance.

    Args:
        task: The task.
        outside: Whether its answer comes from outside of the event loop.
    """
    from asyncio import CancelledError, sleep, wait

    try:
        if outside:
            await wait((task,), timeout=PATIENCE)
        for _ in range(TURNS):
            if not task.done():
                await sleep(0)
    except CancelledError:  # there is no more time
        pass
    task.cancel()
    while not task.done():
        try:
            await wait((task,))
        except CancelledError:
            task.cancel()
