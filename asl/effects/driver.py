"""Drivers, which run a coroutine to its end, on an event loop only if it needs one.

An execution starts without an event loop. The first effect that has to wait requests one, and the
same coroutine continues there; so a run that never waits needs none and imports none.
"""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from os import getpid
from threading import get_ident
from types import coroutine
from typing import Any, TypeVar

from asl.effects.clock import Clock

__all__ = ["Driver", "EventLoopRequest", "drive"]

T = TypeVar("T")


class EventLoopRequest:
    """Yielded by a coroutine to its driver when it needs an event loop."""

    def __await__(self) -> Generator[Any, None, None]:
        yield self


class Driver:
    """Runs coroutines to their ends.

    The event loop is reused for the next coroutine in its thread, unless tasks are left on it. A
    forked process leaves its parent's loops alone, because they share file descriptors.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[tuple[int, int], _EventLoop] = {}
        """Event loops by process and thread."""
        self._is_closed = False

    def drive(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, on an event loop only after it requests one."""
        try:
            work.send(None)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # a coroutine's result is untyped here
        # Reserved for this run: an agent may start an execution in a thread of its own.
        mine = getpid(), get_ident()
        loop = self._kept.pop(mine, None) or _EventLoop(self._clock)
        found: list[T] = []
        left = True
        try:
            left = loop.run(_resumed(work, found))
        finally:
            if left or self._is_closed or mine in self._kept:
                loop.close()
            else:
                self._kept[mine] = loop
        return found[0]

    def close(self) -> None:
        """Close the idle event loops; the loop of a run closes with it."""
        self._is_closed = True
        for process, thread in [*self._kept]:
            if process == getpid():
                self._kept.pop((process, thread)).close()


class _EventLoop:
    """An event loop that a signal wakes, even if it arrives just before the loop waits."""

    def __init__(self, clock: Clock) -> None:
        import asyncio

        self._opened = ExitStack()
        self._runner = self._opened.enter_context(asyncio.Runner(loop_factory=clock.new_event_loop))
        self._loop = self._runner.get_loop()
        self._wakes: int | None = None
        """Where signals write; None on Windows, whose event loop has a place of its own."""
        if sys.platform != "win32":
            self._wakes = self._wakened_by()

    def _wakened_by(self) -> int:
        """Return a file descriptor that wakes the loop when something is written to it."""
        import socket

        heard, told = map(self._opened.enter_context, socket.socketpair())
        heard.setblocking(False)
        told.setblocking(False)
        place = heard.fileno()
        self._loop.add_reader(place, heard.recv, 4096)
        self._opened.callback(self._loop.remove_reader, place)
        return told.fileno()

    def run(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run a coroutine to its end; return whether it has left a task or a thread."""
        from asyncio import all_tasks
        from threading import active_count

        threads = active_count()
        with _written_by_signals(self._wakes):
            self._runner.run(work)
        return bool(all_tasks(self._loop)) or active_count() > threads

    def close(self) -> None:
        """Close the loop and end the tasks left on it."""
        self._opened.close()


def drive(work: Coroutine[Any, Any, T], clock: Clock) -> T:
    """Run one coroutine to its end and close its event loop."""
    with closing(Driver(clock)) as driver:
        return driver.drive(work)


@contextmanager
def _written_by_signals(place: int | None) -> Iterator[None]:
    """Have signals write to a file descriptor, if there is one, while the block runs."""
    import signal
    import threading

    if place is None or threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    before = signal.set_wakeup_fd(place, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)


async def _resumed(work: Coroutine[Any, Any, T], found: list[T]) -> None:
    """Store the result outside the task: asyncio formats a task's result and drops it."""
    found.append(await _rest_of(work))


@coroutine
def _rest_of(work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    return (yield from work.__await__())
