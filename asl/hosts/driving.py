"""Running a coroutine to its end, on an event loop only where it needs one.

An execution starts on no event loop at all. The first effect that has to wait asks for one, and
the very same coroutine goes on there; so a run that never waits needs none and imports none.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager
from types import coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from asl.hosts.clock import Clock

if TYPE_CHECKING:
    import asyncio

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
    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner, _woken(runner.get_loop()):
        runner.run(_resumed(work, found))
    return found[0]


@contextmanager
def _woken(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let a signal wake an event loop, even one that comes the instant before it begins to wait."""
    import signal
    import socket
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears of signals
        return
    heard, told = socket.socketpair()
    with heard, told:
        heard.setblocking(False)
        told.setblocking(False)
        loop.add_reader(heard.fileno(), heard.recv, 4096)
        before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(heard.fileno())


async def _resumed(work: Coroutine[Any, Any, T], found: list[T]) -> None:
    """Come to the end beside the task: Python makes a text of a task's result, and drops it."""
    found.append(await _rest_of(work))


@coroutine
def _rest_of(work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    return (yield from work.__await__())
