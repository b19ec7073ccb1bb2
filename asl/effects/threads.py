"""Plain functions in threads, which never delay the exit of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

from asl.engine.exception_mapping import make_portable

__all__ = ["CallAbandoned", "Slot", "call_soon", "run_in_thread"]


def call_soon(
    loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: object
) -> None:
    """Let an event loop call a function soon, from any thread.

    The loop of a workflow, which knows no other threads, calls for itself.

    Raises:
        RuntimeError: The loop is closed.
    """
    from asyncio import _get_running_loop

    own = _get_running_loop() is loop
    (loop.call_soon if own else loop.call_soon_threadsafe)(function, *arguments)


class CallAbandoned(BaseException):
    """Raised inside a thread whose answer is no longer needed."""


class Slot:
    """The slot of a call among those that may run in threads at the same time.

    A call whose thread waits for another call releases its slot meanwhile, because that may need
    one.
    """

    def __init__(self, places: asyncio.Semaphore) -> None:
        self.places = places
        self.is_held = self.is_over = False

    async def take(self) -> None:
        """Wait for a free slot, unless the call has ended."""
        await self.places.acquire()
        self.is_held = True
        if self.is_over:
            self.release()

    def release(self) -> None:
        """Release the slot to another call."""
        if self.is_held:
            self.is_held = False
            self.places.release()

    def end(self) -> None:
        """Mark the call as ended."""
        self.is_over = True
        self.release()


async def run_in_thread(
    loop: asyncio.AbstractEventLoop, function: Callable[..., Any], *arguments: Any
) -> Any:
    """Run `function(*arguments)` in a daemon thread and return its result.

    When the caller is cancelled, `CallAbandoned` is raised in the thread, which ends at its next
    Python instruction. A call that blocks outside Python ends when it returns; it never keeps the
    process alive.
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
    """One function in one thread, and the future of its result."""

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
        except BaseException as error:  # any exception is passed to the awaiting coroutine
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
    """Do nothing: entering a function is the last moment at which a pending `CallAbandoned` is
    raised.
    """
