"""What a host lives on: the clock, the event loop where it is needed, and what is to be closed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from asl.engine.agent import Agent
from asl.hosts.clock import Clock
from asl.hosts.driving import EventLoopWanted
from asl.hosts.fork import Fork
from asl.states.errors import Expired
from asl.states.host import Frame

if TYPE_CHECKING:
    import asyncio

    from asl.hosts.local import LocalHost

__all__ = ["MAX_NESTED", "LivingHost"]


COUNTED: Final = sys.version_info >= (3, 13)
"""Whether the cancellations that a task counts are those that nobody has taken back: until then a
task group that has failed leaves its own among them."""
MAX_NESTED: Final = 16
"""How deep executions may start one another, in whichever way (Specification 1.2)."""


MONTH = 30 * 86_400.0
"""Seconds to a deadline within which no call of an agent lasts until then."""


class LivingHost:
    """The time, the event loop and the ends of one execution."""

    # As with an execution: slots for what every host has.
    __slots__ = ("__dict__", "clock", "deadline", "holds", "in_event_loop", "now")
    clock: Clock
    now: Callable[[], float]
    """The epoch second that it is."""
    in_event_loop: bool
    loop: asyncio.AbstractEventLoop
    """On which those wait that threads ask for."""
    deadline: float | None
    """The epoch second at which the execution times out, None for never."""
    expired = False
    heeds = COUNTED
    """Whether anything may have told a part of the execution to end that its agents kept back."""
    holds: bool
    """Whether there is anything to close."""
    forks: tuple[Fork, ...] = ()
    wake: float | None = None
    """The epoch second at which a suspended wait of the execution is over, None for none."""
    first: LocalHost | None = None
    """The host of the execution with which the run began, None for that one itself."""
    _timer: asyncio.TimerHandle | None = None
    _closing: tuple[Agent, ...] = ()

    async def event_loop(self) -> asyncio.AbstractEventLoop:
        """Return the running event loop, asking the driver for one at the first need."""
        if not self.in_event_loop:
            await EventLoopWanted()
            self.enter_event_loop()
        return _running_loop()

    def enter_event_loop(self) -> None:
        """Go on under the event loop that is running now."""
        self.in_event_loop = True
        if self.deadline is not None:
            self.keep_time()
        for fork in self.forks:
            fork.spread_soon()

    def keep_time(self) -> None:
        """End the execution at its deadline, from now on by the event loop."""
        assert self.deadline is not None
        self.heeds = self.heeds or self.is_due_soon
        self._timer = _cancel_at(self.deadline - self.now(), self._expire)
        self.holds = True

    @property
    def is_due_soon(self) -> bool:
        """Whether agents may have to be interrupted for the deadline."""
        return self.deadline is not None and self.deadline - self.now() < MONTH

    def _expire(self, task: asyncio.Task[Any]) -> None:
        self.expired = True
        task.cancel()

    def insist_on_time(self) -> None:
        """Raise Expired where the time of the execution is over: nothing is begun any more."""
        if self.deadline is not None and self.now() > self.deadline:
            raise Expired

    def heed(self, at: Frame) -> None:
        """Raise what ends this part of the execution, though foreign code has kept it back.

        To be asked wherever such code has run and the execution `heeds` anything.
        Code may catch its cancellation, and answer; or hold up the event loop for so long that the
        deadline could not come. Only on an event loop.
        """
        if self.deadline is not None and (self.expired or at.now > self.deadline):
            raise Expired
        if at.is_stopped() or (COUNTED and self.is_cancelled()):
            from asyncio import CancelledError

            raise CancelledError

    def is_cancelled(self) -> bool:
        """Whether the task that runs was told to end; only on an event loop."""
        from asyncio import current_task

        task = current_task()
        return task is not None and task.cancelling() > 0

    async def close(self) -> None:
        """End what agents still hold: processes, connections, threads."""
        if self._timer is not None:
            self._timer.cancel()
        self.clock.real_begins()
        try:
            for agent in self._closing:
                await agent.close()
        finally:
            self.clock.real_ends()

    async def _sleep(self, seconds: float) -> None:
        await self.event_loop()
        import asyncio

        await asyncio.sleep(seconds)

    async def pause(self, seconds: float) -> None:
        """Let time pass within an effect."""
        await self._sleep(seconds)

    def _keep(self, agent: Agent) -> None:
        """Remember what has to be closed."""
        first = self.first or self
        if agent.holds and agent not in first._closing:
            first._closing += (agent,)
            first.holds = True


def _running_loop() -> asyncio.AbstractEventLoop:
    from asyncio import get_running_loop

    return get_running_loop()


def _cancel_at(delay: float, expire: Callable[[asyncio.Task[Any]], None]) -> asyncio.TimerHandle:
    from asyncio import current_task

    task = current_task()
    assert task is not None
    return _running_loop().call_later(max(0.0, delay), expire, task)
