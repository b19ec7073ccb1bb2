"""Running a plain function outside the event loop, without ever waiting for it at exit."""

import asyncio
import ctypes
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

__all__ = ["Abandoned", "run_in_thread"]


class Abandoned(BaseException):
    """Raised inside a thread whose answer nobody waits for any more."""


async def run_in_thread(
    loop: asyncio.AbstractEventLoop, function: Callable[..., Any], *arguments: Any
) -> Any:
    """Run `function(*arguments)` in a daemon thread and return its result.

    When the caller is cancelled the thread is told by raising `Abandoned` in it: at its next
    Python instruction it ends. A call that blocks outside Python ends when that call returns; it
    never keeps the process alive.
    """
    future: asyncio.Future[Any] = loop.create_future()
    context = copy_context()

    def settle(set_answer: Callable[[Any], None], answer: Any) -> None:
        if not future.done():
            set_answer(answer)

    def deliver(set_answer: Callable[[Any], None], answer: Any) -> None:
        try:
            loop.call_soon_threadsafe(settle, set_answer, answer)
        except RuntimeError:  # the loop is closed: the execution ended without this answer
            return

    def run() -> None:
        try:
            answer = context.run(function, *arguments)
        except Abandoned:
            return
        except StopIteration as error:  # a future cannot carry it
            deliver(future.set_exception, RuntimeError(f"StopIteration: {error}"))
        except BaseException as error:  # handed to the awaiting coroutine, whatever it is
            deliver(future.set_exception, error)
        else:
            deliver(future.set_result, answer)

    thread = threading.Thread(target=run, name="asl-agent", daemon=True)
    thread.start()
    try:
        return await future
    except asyncio.CancelledError:
        _abandon(thread)
        raise


def _abandon(thread: threading.Thread) -> None:
    if thread.is_alive() and thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident), ctypes.py_object(Abandoned)
        )
