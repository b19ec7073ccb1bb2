"""What an agent is to a host, and what it learns about the call it answers (Specification 7)."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from asl.core.values import Json
from asl.states.host import Frame, Options, Target

__all__ = ["Agent", "Call", "Find"]


class Call:
    """One call of an agent. Times are epoch seconds; safe to use from any thread."""

    __slots__ = ("_at", "_beat", "_sleep", "cancelled", "deadline", "progress", "state_name")

    def __init__(self, at: Frame, target: Target, options: Options | None) -> None:
        self._at = at
        self._beat: Callable[[], object] | None = None
        self._sleep: Callable[[float], Awaitable[None]] | None = None
        self.state_name = target.state
        self.deadline = (
            None if options is None or options.timeout is None else at.now + options.timeout
        )
        """When the state times out, None for never."""
        self.cancelled = False
        """Becomes True when nobody waits for the answer any more: stop working."""
        self.progress: tuple[float, str] | None = None
        """What was last reported: percentage and message."""

    @property
    def execution_id(self) -> str:
        """The id of the execution."""
        return self._at.execution_id

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of one visit to a state, and for no other visit."""
        return f"{self._at.execution_id}:{self._at.key}"

    @property
    def attempt(self) -> int:
        """1 for the first attempt of the visit, 2 for its first retry."""
        return self._at.retries + 1

    def heartbeat(self) -> None:
        """Say that the agent is alive: the heartbeat countdown starts anew."""
        if self._beat is not None:
            self._beat()

    def report_progress(self, percent: float, message: str = "") -> None:
        """Report how far the work is, 0 to 100; counts as a sign of life."""
        self.progress = (percent, message)
        self.heartbeat()

    async def sleep(self, seconds: float) -> None:
        """Wait on the execution's own clock, virtual or real."""
        if self._sleep is not None:
            await self._sleep(seconds)

    def attach(
        self, *, sleep: Callable[[float], Awaitable[None]], beat: Callable[[], object] | None = None
    ) -> None:
        """Connect the call to the host that performs it."""
        self._sleep = sleep
        self._beat = beat


class Agent(Protocol):
    """Something that answers calls; how it is reached is its own business.

    A host calls `answer` of a `blocking` agent off the event loop, and awaits that of any other,
    on an event loop if it `needs_loop`. `real` says that the answer comes from outside (a thread,
    a process, the network), so that a virtual clock must not run ahead of it. One that `holds`
    something is closed. One that is just awaited, and does not look at the call, says so by
    `direct`: the same answer without the detour.
    """

    blocking: bool
    needs_loop: bool
    real: bool
    holds: bool

    @property
    def direct(self) -> Callable[[Json], Awaitable[Json]] | None:
        """The function itself, where nothing but its parameters is needed."""
        ...

    def answer(self, payload: Json, call: Call | None) -> Any:
        """Return the raw result (or an awaitable of it), or raise StateError with a name."""
        ...

    async def close(self) -> None:
        """Release what the agent holds; called once at the end of the execution."""
        ...


Find = Callable[[Target], Agent]
"""Resolve a target; raises StateError("States.AgentNotFound") or the like."""
