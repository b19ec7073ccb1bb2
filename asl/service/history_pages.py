"""Pages of histories: the next page continues where the last one ended.

Events have no stored numbers: the history is derived from the log, from its beginning. So a reader
stays open between two pages, and a page costs what its events cost. Only a page whose reader is
gone is counted from the beginning.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Final, Generic, TypeAlias, TypeVar

from asl.core.values import Json

__all__ = ["HistoryPages"]

HistoryEvent: TypeAlias = dict[str, Json]
Events: TypeAlias = Iterator[HistoryEvent]
MAX_OPEN: Final = 64
"""Number of readers that stay open, in each direction."""
WINDOW: Final = 1000
"""Number of events that one reading provides for pages in reverse order: AWS's largest page."""
TOGETHER: Final = 200
"""Number of events that are read before others have their turn."""
T = TypeVar("T")


class _Recent(Generic[T]):
    """What pages continue with, by execution and position; the oldest is dropped."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], T] = {}

    def put(self, name: str, position: int, what: T) -> None:
        self._open.pop((name, position), None)
        self._open[name, position] = what
        if len(self._open) > MAX_OPEN:
            del self._open[next(iter(self._open))]

    def take(self, name: str, position: int) -> T | None:
        return self._open.pop((name, position), None)


class HistoryPages:
    """The pages of the histories of a service."""

    def __init__(self) -> None:
        self._readers: _Recent[tuple[HistoryEvent, Events]] = _Recent()
        self._windows: _Recent[deque[HistoryEvent]] = _Recent()

    async def read(
        self, name: str, events: Events, position: int, size: int
    ) -> tuple[list[HistoryEvent], int | None]:
        """Return a page, and the position of the next one, None for the last.

        Args:
            name: The execution.
            events: Its events from the first one, for a page without an open reader.
            position: Number of the events before the page.
            size: Largest number of events.
        """
        page: list[HistoryEvent] = []
        known = self._readers.take(name, position)
        if known is None:
            async for _ in _turns(islice(events, position)):
                pass
        else:
            following, events = known
            page.append(following)
        page += [event async for event in _turns(islice(events, size - len(page)))]
        ahead = next(events, None)
        if ahead is None:
            return page, None
        position += len(page)
        self._readers.put(name, position, (ahead, events))
        return page, position

    async def read_back(
        self, name: str, events: Events, position: int, size: int
    ) -> tuple[list[HistoryEvent], int | None]:
        """Return a page in reverse order, and the position of the next one, None for the last.

        Args:
            name: The execution.
            events: Its events from the first one, for a page without a window.
            position: Id of the first event of the page; 0 for the last one.
            size: Largest number of events.
        """
        window = self._windows.take(name, position)
        if window is None or len(window) < min(size, position):
            window = deque(maxlen=max(WINDOW, size))
            async for event in _turns(islice(events, position or None)):
                window.append(event)
        page = [window.pop() for _ in range(min(size, len(window)))]
        position = int(page[-1]["id"]) - 1 if page else 0
        if position == 0:
            return page, None
        self._windows.put(name, position, window)
        return page, position


async def _turns(events: Events) -> AsyncIterator[HistoryEvent]:
    """Yield events, and let others have their turn now and then."""
    for number, event in enumerate(events, 1):
        yield event
        if number % TOGETHER == 0:
            await asyncio.sleep(0)
