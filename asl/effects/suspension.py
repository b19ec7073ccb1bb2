"""Waiting without a process: the branches of an execution that wait for time, people or tokens.

While one branch has work to do, the others wait in place and go on as soon as something has come
for them. Once every branch waits, the execution is suspended: it leaves the process, and the
runner that finds it due resumes it.
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
    """The waiting branches of one execution, and of all that it has started and waits for.

    Args:
        now: Returns the epoch second that it is.
        least: Seconds from which on a wait for time suspends the execution.
    """

    def __init__(self, now: Callable[[], float], least: float) -> None:
        self.now = now
        self.least = least
        self.active = 1
        """The branches that have work to do, or are about to begin."""
        self._waiting: dict[asyncio.Future[None], str] = {}

    def is_long(self, until: float) -> bool:
        """Whether a wait until an epoch second may suspend the execution."""
        return until - self.now() >= self.least

    def enter(self) -> None:
        """Count a branch that begins."""
        self.active += 1

    def leave(self, *_: object) -> None:
        """Count a branch that has ended."""
        self.active -= 1
        self._suspend_soon()

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Let a branch wait for others of the same execution."""
        self.leave()
        try:
            yield
        finally:
            self.enter()

    async def wait(self, what: str, until: float | None, *others: asyncio.Future[Any]) -> None:
        """Return when something may have come.

        Args:
            what: The id of a request or a token, as `wake` gets it; "" for time alone.
            until: The epoch second at which to look in any case.
            others: Whatever else is worth a look when it is done.

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
        """Return when *other* is done, which another branch does; raises Suspension as `wait`."""
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
        """Suspend the execution, unless a branch has something to do after all."""
        if self.active == 0 and not any(woken.done() for woken in self._waiting):
            for woken in self._waiting:
                woken.set_exception(Suspension())


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
