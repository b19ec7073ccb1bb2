"""How often tools are called: sliding windows on the clock of the execution (8.9).

Calls count by workflow and tool. A call that is too many fails or waits; those that wait for the
same limit keep their order.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from asl.states.blocks.policy import WINDOWS, Limit
from asl.states.host import Raised

if TYPE_CHECKING:
    import asyncio

    from asl.hosts.local import LocalHost

__all__ = ["REQUESTS", "Demand", "Key", "Rates", "requests"]

DAY = WINDOWS["MaxPerDay"]
KEPT = 10_000
"""How many times of one tool are kept before old ones are dropped."""


Key: TypeAlias = tuple[str, tuple[str, ...]]
"""What calls count as: a workflow, and the names of a tool or `REQUESTS`."""
NETWORK: Final = "the network"
REQUESTS: Final = (NETWORK,)
"""Stands for whatever reaches the network."""


class Demand(NamedTuple):
    """A limit that a call is subject to, in one workflow."""

    workflow: str
    limit: Limit
    around: Sequence[Key] = ()
    """The calls of tools that wait for this one, and do nothing meanwhile."""

    @property
    def key(self) -> tuple[str, str]:
        """What calls share that wait for the same."""
        return self.workflow, self.limit.pattern


class _Excess(NamedTuple):
    """A limit that a call would exceed now."""

    limit: Limit
    field: str
    until: float
    """When it would not any more, infinite where another call has to end first."""


class _Turn:
    """A call that waits."""

    __slots__ = ("demands", "keys", "woken")

    def __init__(self, demands: list[Demand]) -> None:
        self.demands = demands
        self.keys = _queues(demands)
        self.woken: asyncio.Future[None] | None = None

    def wake(self) -> None:
        if self.woken is not None and not self.woken.done():
            self.woken.set_result(None)


class Rates:
    """The calls of tools in one run, by workflow and tool."""

    def __init__(self) -> None:
        self.times: dict[Key, list[float]] = {}
        """When calls began."""
        self.running: Counter[Key] = Counter()
        self.waiting: list[_Turn] = []

    async def begin(
        self, host: LocalHost, tool: str, keys: list[Key], demands: list[Demand]
    ) -> None:
        """Count a call as soon as it may begin; raises Raised("States.RateLimitExceeded")."""
        if demands:
            await self._admitted(host, tool, demands)
        now = host.now()
        for key in keys:
            self.count(key, now)
            self.running[key] += 1

    def count(self, key: Key, time: float) -> None:
        """Count a call that began at a time, which is not before that of any other."""
        times = self.times.setdefault(key, [])
        times.append(time)
        if len(times) > KEPT:
            del times[: bisect_right(times, time - DAY)]

    def recall(self, key: Key, time: float) -> None:
        """Count a call of an earlier process."""
        insort(self.times.setdefault(key, []), time)

    def end(self, keys: list[Key]) -> None:
        """Take note of a call that has ended."""
        for key in keys:
            self.running[key] -= 1
        self._wake()

    async def _admitted(self, host: LocalHost, tool: str, demands: list[Demand]) -> None:
        turn: _Turn | None = None
        try:
            while True:
                now = host.now()
                excess = [each for demand in demands for each in self._excess(demand, now)]
                for each in excess:
                    if not each.limit.waits:
                        raise _failure(tool, each)
                if not excess and self._is_next(turn, demands):
                    return
                if turn is None:
                    turn = _Turn(demands)
                    self.waiting.append(turn)
                finite = [each.until for each in excess if each.until < inf]
                await self._woken(host, turn, max(finite) - now if finite else None)
        finally:
            if turn is not None:
                self.waiting.remove(turn)
                self._wake()

    def _excess(self, demand: Demand, now: float) -> Iterator[_Excess]:
        limit = demand.limit
        counted = [key for key in self.times if key[0] == demand.workflow and limit.matches(key[1])]
        for field, most in limit.most.items():
            if field == "MaxConcurrent":
                waiting = sum(key in counted for key in demand.around)
                if sum(self.running[key] for key in counted) - waiting >= most:
                    yield _Excess(limit, field, inf)
                continue
            if sum(len(self.times[key]) for key in counted) < most:
                continue
            latest = sorted(time for key in counted for time in self.times[key][-most:])
            if latest[-most] + WINDOWS[field] > now:
                yield _Excess(limit, field, latest[-most] + WINDOWS[field])

    def _is_next(self, turn: _Turn | None, demands: list[Demand]) -> bool:
        """Whether nobody waits for the same who came earlier."""
        keys = _queues(demands)
        for other in self.waiting:
            if other is turn:
                return True
            if not keys.isdisjoint(other.keys):
                return False
        return True

    async def _woken(self, host: LocalHost, turn: _Turn, seconds: float | None) -> None:
        """Return when something has changed, or so many seconds have passed."""
        loop = await host.event_loop()
        turn.woken = loop.create_future()
        timer = None if seconds is None else loop.call_later(max(0.0, seconds), turn.wake)
        try:
            await turn.woken
        finally:
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        for turn in self.waiting:
            turn.wake()


def _queues(demands: list[Demand]) -> set[tuple[str, str]]:
    """Return what a call waits in line for: not behind those that wait for a call around it."""
    return {
        demand.key
        for demand in demands
        if not any(
            workflow == demand.workflow and demand.limit.matches(names)
            for workflow, names in demand.around
        )
    }


def requests(most: int) -> Limit:
    """Return the limit of calls in a minute that reach the network."""
    return Limit(NETWORK, lambda names: names is REQUESTS, {"MaxPerMinute": most}, False)


def _failure(tool: str, excess: _Excess) -> Raised:
    limit, field = excess.limit, excess.field
    which = "all tools" if limit.pattern == "*" else f"{limit.pattern!r}"
    text = f"tool {tool!r}: {field} of {which} is {limit.most[field]}"
    return Raised("States.RateLimitExceeded", text)
