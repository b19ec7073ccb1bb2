"""Clients that poll for tasks of activities: the one that has waited longest gets the next task."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["ActivityPolls", "Turn"]


class Turn:
    """The place of a poll in the queue of its activity."""

    def __init__(self) -> None:
        self.is_first = False
        self._came = asyncio.Event()

    def come(self) -> None:
        """Make it the first of its queue."""
        self.is_first = True
        self._came.set()

    async def wait(self, seconds: float) -> None:
        """Return when this is the first of its queue, after *seconds* at the latest."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._came.wait(), seconds)


class ActivityPolls:
    """The polls of one service by activity, oldest first.

    Only the first of each queue looks for a task, so that a thousand polls cost as much as one.
    """

    def __init__(self) -> None:
        self._queues: dict[str, dict[Turn, None]] = {}

    @contextmanager
    def queued(self, activity: str) -> Iterator[Turn]:
        """Return a context in which a poll is in the queue of an activity."""
        turn = Turn()
        queue = self._queues.setdefault(activity, {})
        if not queue:
            turn.come()
        queue[turn] = None
        try:
            yield turn
        finally:
            del queue[turn]
            if not queue:
                del self._queues[activity]
            elif turn.is_first:
                next(iter(queue)).come()
