"""Reports of a running agent, passed to the thread of the execution."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any

from asl.core.errors import NotJson
from asl.core.values import Json, copy_foreign, excerpt
from asl.effects.caller import Caller
from asl.engine.agent import Call
from asl.states.blocks.progress import ProgressPlan, clamp, report_progress

if TYPE_CHECKING:
    import asyncio

__all__ = ["CrossThreadQueue", "ProgressReporter"]

MAX_REPORTS = 10_000
"""Maximum number of progress reports of one call; further ones are ignored."""


class CrossThreadQueue:
    """Passes items from any thread to the thread of the execution, in order.

    Items that arrive while the execution is busy are passed together.
    """

    loop: asyncio.AbstractEventLoop

    def __init__(self, receive: Callable[[list[Any]], object]) -> None:
        self.deal = receive
        self.thread = get_ident()
        self.lock = Lock()
        self.waiting: list[Any] = []

    def put(self, item: Any) -> None:
        """Add an item."""
        with self.lock:
            first = not self.waiting
            self.waiting.append(item)
        if get_ident() == self.thread:
            self.empty()
        elif first:
            self.loop.call_soon_threadsafe(self.empty)

    def empty(self) -> None:
        """Pass on the items since the last call."""
        with self.lock:
            waiting, self.waiting = self.waiting, []
        if waiting:
            self.deal(waiting)


class ProgressReporter:
    """The progress of one call."""

    def __init__(self, caller: Caller, call: Call, plan: ProgressPlan) -> None:
        self.caller = caller
        self.call = call
        self.plan = plan
        self.count = 0
        self.inbox = CrossThreadQueue(self._deal)

    async def follow(self, answer: Callable[..., Awaitable[Json]], *given: Any) -> Json:
        """Return an answer, after emitting the progress reported before it."""
        self.inbox.loop = await self.caller.runtime.event_loop()
        self.call.on_progress = self._take
        try:
            return await answer(*given)
        finally:
            self.call.on_progress = None
            self.inbox.empty()

    def _take(self, percentage: Json, message: str) -> bool:
        """Take a report; return whether it counts as a heartbeat."""
        self.count += 1
        if self.count <= MAX_REPORTS:
            self.inbox.put((percentage, message))
        return self.plan.heartbeat

    def _deal(self, reports: list[tuple[Json, str]]) -> None:
        at = self.call.at
        for percentage, message in reports:
            at.now = now = self.caller.runtime.now()
            share = clamp(percentage)
            if share is None:
                reason = f"a percentage must be a number, not {_shown(percentage)}"
                at.note("ProgressWarning", {"reason": reason})
            else:
                report_progress(at, self.plan, share, message, now)
        self.caller.persistence.calls.record_progress(at)


def _shown(percentage: Any) -> str:
    """Return a report as text for a warning; an agent may report any value."""
    try:
        return excerpt(copy_foreign(percentage), 100)
    except NotJson as error:
        return f"{error.found} ({error.reason})"
