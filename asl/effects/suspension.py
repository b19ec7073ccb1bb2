"""Suspension: branches of an execution that wait for time, approvals or tokens without a process.

While one branch works, the others wait in place and continue as soon as something arrives for them.
Once every branch waits, the execution is suspended: it leaves the process, and a runner resumes it
when it is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from asl.states.errors import Suspension

if TYPE_CHECKING:
    import asyncio

__all__ = ["SuspensionMonitor"]


class SuspensionMonitor:
    """The waiting branches of one execution, and of all executions that it has started and waits
    for.

    Args:
        now: Returns the current time in epoch seconds.
        least: Seconds from which on a wait for time suspends the execution.
    """

    def __init__(self, now: Callable[[], float], least: float) -> None:
        self.now = now
        self.minimum = least
        self.active = 1
        """Number of branches that work, or are about to start."""
        self._waiting: dict[asyncio.Future[None], str] = {}

    def is_long(self, until: float) -> bool:
        """Return whether a wait until an epoch second may suspend the execution."""
        return until - self.now() >= self.minimum

    def enter(self) -> None:
        """Count the start of a branch."""
        self.active += 1

    def leave(self, *_: object) -> None:
        """Count the end of a branch."""
        self.active -= 1
        self._suspend_soon()

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Count a branch as waiting for other branches while the block runs."""
        self.leave()
        try:
            yield
        finally:
            self.enter()

    async def wait(self, what: str, until: float | None, *others: asyncio.Future[Any]) -> None:
        """Return when something may have arrived.

        Args:
            what: Id of a request or a token, as passed to `wake`; "" for time alone.
            until: Epoch second at which to return in any case; None for never.
            others: Futures that also end the wait.

        Raises:
            Suspension: Every branch of the execution waits.
        """
        from asyncio import get_running_loop

        loop = get_running_loop()
        woken = loop.create_future()
        timer = None
        if until is not None:
            timer = loop.call_later(max(0.0, until - self.now()), _wake, woken)

        def heard(_: object) -> None:
            _wake(woken)

        for other in others:
            other.add_done_callback(heard)
        self._waiting[woken] = what
        try:
            with self.idle():
                await woken
        finally:
            del self._waiting[woken]
            if timer is not None:
                timer.cancel()
            for other in others:
                other.remove_done_callback(heard)

    async def await_branch(self, other: asyncio.Future[Any]) -> None:
        """Return when *other*, the future of another branch, is done.

        Raises:
            Suspension: Every branch of the execution waits.
        """
        while not other.done():
            await self.wait("", None, other)

    def wake(self, ids: Iterable[str]) -> None:
        """Wake the branches that wait for these requests or tokens."""
        found = frozenset(ids)
        for woken, what in self._waiting.items():
            if what in found:
                _wake(woken)

    @property
    def ids(self) -> Iterable[str]:
        """The requests and tokens for which branches wait."""
        return [what for what in self._waiting.values() if what]

    def _suspend_soon(self) -> None:
        if self.active == 0 and self._waiting:
            from asyncio import get_running_loop

            get_running_loop().call_soon(self._suspend)

    def _suspend(self) -> None:
        """Suspend the execution, unless a branch works again."""
        if self.active == 0 and not any(woken.done() for woken in self._waiting):
            for woken in self._waiting:
                woken.set_exception(Suspension())


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
