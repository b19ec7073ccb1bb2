"""Running a plain function outside the event loop, without ever waiting for it at exit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

from asl.engine.exception_mapping import make_portable

__all__ = ["CallAbandoned", "Slot", "run_in_thread"]


class CallAbandoned(BaseException):
    """Raised inside a thread whose answer is no longer awaited."""


class Slot:
    """The place of one call among those that may be in threads at the same time.

    A call whose thread waits for another call gives its place back meanwhile: that may need one.
    """

    def __init__(self, places: asyncio.Semaphore) -> None:
        self.places = places
        self.held = self.over = False

    async def take(self) -> None:
        """Wait for a place, unless the call is over."""
        await self.places.acquire()
        self.held = True
        if self.over:
            self.release()

    def release(self) -> None:
        """Leave the place to another call."""
        if self.held:
            self.held = False
            self.places.release()

    def end(self) -> None:
        """Say that the call is over."""
        self.over = True
        self.release()


async def run_in_thread(
    loop: asyncio.AbstractEventLoop, function: Callable[..., Any], *arguments: Any
) -> Any:
    """Run `function(*arguments)` in a daemon thread and return its result.

    When the caller is cancelled, `Abandoned` is raised in the thread, which ends at its next
    Python instruction. A call that blocks outside Python ends when that call returns; it
    never keeps the process alive.
    """
    from asyncio import CancelledError

    call = _Call(loop, function, arguments)
    call.thread.start()
    try:
        return await call.future
    except CancelledError:
        call.abandon()
        raise


class _Call:
    """One function in one thread, and the future that its answer goes to."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
    ) -> None:
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.function = function
        self.arguments = arguments
        self.context = copy_context()
        self.guard = threading.Lock()
        self.finished = False
        self.thread = threading.Thread(target=self.run, name="asl-agent", daemon=True)

    def run(self) -> None:
        try:
            settle, answer = self.outcome()
            with self.guard:
                self.finished = True
            _checkpoint()
        except CallAbandoned:
            return
        try:
            self.loop.call_soon_threadsafe(self.deliver, settle, answer)
        except RuntimeError:  # the loop is closed: the execution ended without this answer
            return

    def outcome(self) -> tuple[Callable[[Any], None], Any]:
        try:
            return self.future.set_result, self.context.run(self.function, *self.arguments)
        except CallAbandoned:
            raise
        except BaseException as error:  # handed to the awaiting coroutine, whatever it is
            return self.future.set_exception, make_portable(error)

    def deliver(self, settle: Callable[[Any], None], answer: Any) -> None:
        if not self.future.done():
            settle(answer)

    def abandon(self) -> None:
        import ctypes

        with self.guard:
            if not self.finished and self.thread.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self.thread.ident), ctypes.py_object(CallAbandoned)
                )


def _checkpoint() -> None:
    """Do nothing: entering a function is where a pending `Abandoned` is raised at the latest."""
