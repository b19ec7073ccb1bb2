"""Rate limits of tools: sliding windows on the clock of the execution (8.9).

Calls count by workflow and tool, for all executions of the workflow: counts are shared by the
process or the store (`asl.engine.pools`). An excess call fails or waits; calls of one run that wait
for the same limit keep their order.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from asl.core.values import Json
from asl.engine.frame import Frame
from asl.engine.pools import SharedBudgets
from asl.expr.templates import SUFFIX
from asl.states.blocks.tool_policy import WINDOWS, RateLimit
from asl.states.errors import RaisedError

if TYPE_CHECKING:
    import asyncio

__all__ = [
    "NETWORK_REQUESTS",
    "NO_TRACKING",
    "CallKey",
    "CallTracking",
    "RateDemand",
    "RateLimiter",
    "network_limit",
    "tracking_of",
]

CallKey: TypeAlias = tuple[str, tuple[str, ...]]
"""A workflow, and the names of a tool or `NETWORK_REQUESTS`."""
NETWORK_REQUESTS: Final = ("", "")
"""Counts calls that reach the network; no tool has these names."""
NETWORK: Final = "the network"
SEPARATOR: Final = "\n"
"""Separator of the names of a tool in a shared budget."""
BUDGET: Final = "Tools "
"""Prefix of the names of shared budgets that count tool calls."""
STALE: Final = 3600.0
"""Seconds after which a call of a silent process no longer counts for `MaxConcurrent`."""
LATER: Final = 1.0
"""Seconds between two checks whether a call of another run has ended."""


class CallTracking(NamedTuple):
    """What has to be recorded about the calls of a workflow for the limits of its document."""

    window: float
    """Number of seconds."""
    concurrent: bool
    """Whether running calls matter."""


NO_TRACKING: Final = CallTracking(0.0, False)


def tracking_of(part: Json) -> CallTracking:
    """Return the tracking that the limits in a document, or in a part of it, require."""
    window, concurrent = NO_TRACKING
    for key, value in part.items() if type(part) is dict else ():
        name = key.removesuffix(SUFFIX)
        if name in WINDOWS:
            window = max(window, WINDOWS[name])
        elif name == "MaxRequestsPerMinute":
            window = max(window, WINDOWS["MaxPerMinute"])
        elif name == "MaxConcurrent":
            concurrent = True
        elif name == "RateLimits" and type(value) is not dict:  # computed as a whole
            return CallTracking(max(WINDOWS.values()), True)
        inner = tracking_of(value)
        window, concurrent = max(window, inner.window), concurrent or inner.concurrent
    for value in part if type(part) is list else ():
        inner = tracking_of(value)
        window, concurrent = max(window, inner.window), concurrent or inner.concurrent
    return CallTracking(window, concurrent)


class RateDemand(NamedTuple):
    """A limit that a call is subject to, in one workflow."""

    workflow: str
    limit: RateLimit
    around: Sequence[CallKey] = ()
    """Enclosing tool calls, which only wait for this one."""

    @property
    def key(self) -> tuple[str, str]:
        """Key shared by calls that wait for the same limit."""
        return self.workflow, self.limit.pattern

    def means(self, names: tuple[str, ...]) -> bool:
        """Return whether calls count for the limit: those of tools, or those that reach the
        network.
        """
        of_requests = self.limit.pattern == NETWORK
        return (names == NETWORK_REQUESTS) == of_requests and (
            of_requests or self.limit.matches(names)
        )


class _Excess(NamedTuple):
    """A limit that a call would exceed now."""

    limit: RateLimit
    field: str
    until: float
    """Time at which the limit allows it; infinite if a call of this run has to end first."""


class Timekeeper(Protocol):
    """The clock and event loop of an execution."""

    @property
    def now(self) -> Callable[[], float]:
        """Returns the current time in epoch seconds."""
        ...

    async def event_loop(self) -> asyncio.AbstractEventLoop:
        """Return the running event loop."""
        ...


class CountedCall:
    """A counted call until its end."""

    __slots__ = ("entry", "limited_workflows", "names", "shared_budgets", "time", "timekeeper")

    def __init__(
        self,
        timekeeper: Timekeeper,
        shared_budgets: SharedBudgets,
        entry: str,
        names: Sequence[tuple[str, ...]],
        watched: Mapping[str, CallTracking],
    ) -> None:
        self.timekeeper = timekeeper
        self.shared_budgets = shared_budgets
        """Storage of the counts."""
        self.entry = entry
        self.names = names
        """Names that it counts as: its tool, and `NETWORK_REQUESTS` if it reaches the network."""
        self.limited_workflows = {
            name: each for name, each in watched.items() if each != NO_TRACKING
        }
        """Workflows with limits."""
        self.time = 0.0
        """Start of the call."""

    @property
    def keys(self) -> list[CallKey]:
        """Keys under which it counts in each workflow."""
        return [(workflow, names) for workflow in self.limited_workflows for names in self.names]

    @property
    def budgets(self) -> list[str]:
        """Names of the shared budgets that count it."""
        return [f"{BUDGET}{workflow}" for workflow in self.limited_workflows]

    @property
    def machine(self) -> str:
        """Beginning of the entries of all calls of its machine."""
        return f"{self.entry.rpartition('#')[0]}#"


class _Turn:
    """A waiting call."""

    __slots__ = ("demands", "keys", "woken")

    def __init__(self, demands: list[RateDemand]) -> None:
        self.demands = demands
        self.keys = _queues(demands)
        self.woken: asyncio.Future[None] | None = None

    def wake(self) -> None:
        if self.woken is not None and not self.woken.done():
            self.woken.set_result(None)


class RateLimiter:
    """The tool calls of a run.

    Args:
        is_alone: Whether no other process makes calls of the same executions.
    """

    def __init__(self, *, is_alone: bool = True) -> None:
        self._is_alone = is_alone
        self.waiting: list[_Turn] = []
        self.running_entries: set[str] = set()
        """Entries of the running calls."""
        self.known_executions: set[tuple[str, str]] = set()
        """Workflows and executions of the tool calls in this run, or their machines."""
        self.number = 0

    async def begin(
        self,
        timekeeper: Timekeeper,
        shared_budgets: SharedBudgets,
        frame: Frame,
        tool: str,
        names: Sequence[tuple[str, ...]],
        watched: Mapping[str, CallTracking],
        demands: list[RateDemand],
    ) -> CountedCall:
        """Count a call once its limits allow it.

        Args:
            timekeeper: Clock and event loop of the execution.
            shared_budgets: Storage of the counts.
            frame: The machine.
            tool: Name of the tool, for messages.
            names: Names that the call counts as.
            watched: Tracking of calls by workflow.
            demands: Limits of the call.

        Raises:
            RaisedError: States.RateLimitExceeded; a limit fails the call.
        """
        self.number += 1
        entry = f"{frame.execution_id} {frame.key}#{self.number}"
        call = CountedCall(timekeeper, shared_budgets, entry, names, watched)
        if call.limited_workflows:
            await self._admitted(call, tool, demands)
        return call

    def end(self, call: CountedCall) -> None:
        """Count the end of a call."""
        if not call.limited_workflows:
            return
        self.running_entries.discard(call.entry)
        for workflow, watched in call.limited_workflows.items():
            if watched.concurrent:
                self._change(call, workflow, lambda calls, entries: entries.pop(call.entry, None))
        self._wake()

    async def _admitted(self, call: CountedCall, tool: str, demands: list[RateDemand]) -> None:
        turn: _Turn | None = None
        try:
            while True:
                call.time = now = call.timekeeper.now()
                following = not self._is_next(turn, demands)
                async with call.shared_budgets.held(call.budgets):
                    excess = self._taken(call, demands, following)
                for each in excess:
                    if not each.limit.waits:
                        raise _failure(tool, each)
                if not excess and not following:
                    return
                if turn is None:
                    turn = _Turn(demands)
                    self.waiting.append(turn)
                finite = [each.until for each in excess if each.until < inf]
                await self._woken(call.timekeeper, turn, max(finite) - now if finite else None)
        finally:
            if turn is not None:
                self.waiting.remove(turn)
                self._wake()

    def _taken(
        self, call: CountedCall, demands: list[RateDemand], only_look: bool
    ) -> list[_Excess]:
        """Count a call in all enclosing workflows, unless a limit of one is exceeded."""
        taken: list[str] = []
        for workflow in call.limited_workflows:
            own = [each for each in demands if each.workflow == workflow]
            excess = self._take(call, workflow, own, only_look)
            if excess:
                for each in taken:
                    self._give_back(call, each)
                return excess
            if not only_look:
                taken.append(workflow)
        if not only_look:
            self.running_entries.add(call.entry)
        return []

    def _take(
        self, call: CountedCall, workflow: str, demands: list[RateDemand], only_look: bool
    ) -> list[_Excess]:
        found: list[_Excess] = []

        def act(calls: dict[str, list[float]], entries: dict[str, list[Json]]) -> None:
            found.extend(
                each for demand in demands for each in self._excess(call, demand, calls, entries)
            )
            if found or only_look:
                return
            if call.limited_workflows[workflow].window:
                for names in call.names:
                    insort(calls.setdefault(SEPARATOR.join(names), []), call.time)
            if call.limited_workflows[workflow].concurrent:
                entries[call.entry] = [[SEPARATOR.join(each) for each in call.names], call.time]

        self._change(call, workflow, act)
        return found

    def _give_back(self, call: CountedCall, workflow: str) -> None:
        """Undo the count of a call that was not made."""

        def act(calls: dict[str, list[float]], entries: dict[str, list[Json]]) -> None:
            entries.pop(call.entry, None)
            for names in call.names if call.limited_workflows[workflow].window else ():
                calls[SEPARATOR.join(names)].remove(call.time)

        self._change(call, workflow, act)

    def _change(
        self,
        call: CountedCall,
        workflow: str,
        act: Callable[[dict[str, list[float]], dict[str, list[Json]]], object],
    ) -> None:
        """Change the counts of a workflow: times by names, and running calls."""
        watched, now = call.limited_workflows[workflow], call.timekeeper.now()
        own = f"{call.entry.partition(' ')[0]} " if self._is_alone else call.machine
        first = (workflow, own) not in self.known_executions
        self.known_executions.add((workflow, own))

        def make(kept: Json) -> Json:
            calls, entries = ({}, {}) if kept is None else (kept["calls"], kept["open"])
            for names, times in [*calls.items()]:
                calls[names] = recent = [each for each in times if each + watched.window > now]
                if not recent:
                    del calls[names]
            if first:  # calls of an earlier process of the execution or the machine
                for entry in [each for each in entries if each.startswith(own)]:
                    del entries[entry]
            act(calls, entries)
            return {"calls": calls, "open": entries}

        call.shared_budgets.change(f"{BUDGET}{workflow}", make)

    def _excess(
        self,
        call: CountedCall,
        demand: RateDemand,
        calls: Mapping[str, list[float]],
        entries: Mapping[str, list[Json]],
    ) -> Iterable[_Excess]:
        limit, now = demand.limit, call.time
        times = [each for text, each in calls.items() if demand.means(tuple(text.split(SEPARATOR)))]
        for field, most in limit.maximum.items():
            if field == "MaxConcurrent":
                running = [
                    entry
                    for entry, (names, since) in entries.items()
                    if since + STALE > now
                    and any(demand.means(tuple(text.split(SEPARATOR))) for text in names)
                ]
                waiting = sum(
                    workflow == demand.workflow and demand.means(names)
                    for workflow, names in demand.around
                )
                if len(running) - waiting >= most:
                    others = not self.running_entries.issuperset(running)
                    yield _Excess(limit, field, now + LATER if others else inf)
                continue
            latest = sorted(time for each in times for time in each[-most:])
            if len(latest) >= most and latest[-most] + WINDOWS[field] > now:
                yield _Excess(limit, field, latest[-most] + WINDOWS[field])

    def _is_next(self, turn: _Turn | None, demands: list[RateDemand]) -> bool:
        """Return whether no earlier call waits for the same limits."""
        keys = _queues(demands)
        for other in self.waiting:
            if other is turn:
                return True
            if not keys.isdisjoint(other.keys):
                return False
        return True

    async def _woken(self, timekeeper: Timekeeper, turn: _Turn, seconds: float | None) -> None:
        """Return after a change, or after *seconds*."""
        loop = await timekeeper.event_loop()
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


def _queues(demands: list[RateDemand]) -> set[tuple[str, str]]:
    """Return the queues of a call, without those of enclosing calls."""
    return {
        demand.key
        for demand in demands
        if not any(
            workflow == demand.workflow and demand.means(names) for workflow, names in demand.around
        )
    }


def network_limit(most: int) -> RateLimit:
    """Return the limit of calls per minute that reach the network."""
    return RateLimit(NETWORK, lambda names: True, {"MaxPerMinute": most}, False)


def _failure(tool: str, excess: _Excess) -> RaisedError:
    limit, field = excess.limit, excess.field
    which = "all tools" if limit.pattern == "*" else f"{limit.pattern!r}"
    text = f"tool {tool!r}: {field} of {which} is {limit.maximum[field]}"
    return RaisedError("States.RateLimitExceeded", text)
