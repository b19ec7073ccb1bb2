"""Running a coroutine to its end, on an event loop only where it needs one.

An execution starts on no event loop at all. The first effect that has to wait asks for one, and
the very same coroutine goes on there; so a run that never waits needs none and imports none.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

from asl.hosts.clock import Clock

__all__ = ["EventLoopWanted", "drive"]

T = TypeVar("T")


class EventLoopWanted:
    """What a coroutine yields to whoever drives it when it cannot go on without an event loop."""

    def __await__(self) -> Generator[Any, None, None]:
        yield self


def drive(work: Coroutine[Any, Any, T], clock: Clock) -> T:
    """Run a coroutine to its end, on an event loop only from the point where it asks for one."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # a coroutine's result is untyped here
    import asyncio

    found: list[T] = []
    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        runner.run(_resumed(work, found))
    return found[0]


async def _resumed(work: Coroutine[Any, Any, T], found: list[T]) -> None:
    """Come to the end beside the task: Python makes a text of a task's result, and drops it."""
    found.append(await _rest_of(work))


@coroutine
def _rest_of(work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    return (yield from work.__await__())
