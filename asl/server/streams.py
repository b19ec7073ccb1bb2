"""Live events of executions: one reader of the store for all watchers of an execution."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from itertools import islice
from typing import Final

import orjson

from asl.core.errors import AslError
from asl.engine.events import Event
from asl.executions import Store
from asl.executions.execution_reader import EventFeed
from asl.stores.executions import ENDED

__all__ = ["EventHub", "encode_event"]

POLL: Final = 0.05
"""Seconds between two polls for changes of the store."""
KEPT: Final = 2000
"""Number of the last events of an execution that are kept for its watchers."""
COMMENT: Final = b": waiting\n\n"
"""What shows that a connection without events is alive."""
BATCH: Final = 500
"""Number of past events that are read from the store at a time."""


def encode_event(event: Event) -> bytes:
    """Return an event as a server-sent event; a live chunk of an agent's answer has no id."""
    number = b"id: %d\n" % event.id if event.id else b""
    return b"%sevent: %s\ndata: %s\n\n" % (
        number,
        event.type.encode(),
        orjson.dumps(event.to_json()),
    )


class _Topic:
    """The last events of one execution, encoded, and who waits for the next."""

    def __init__(self, feed: EventFeed) -> None:
        self.feed = feed
        self.frames: deque[tuple[int, bytes]] = deque(maxlen=KEPT)
        """Text of each event, with the id of the last recorded event up to it."""
        self.count = 0
        """Number of all events so far."""
        self.last = 0
        """Id of the last recorded event."""
        self.watchers = 0
        self.reading = asyncio.Lock()
        """Held while events are read, also in another thread."""
        self._failure: AslError | None = None
        self._changed = asyncio.Event()

    @property
    def first(self) -> int:
        """The position of the first event in memory."""
        return self.count - len(self.frames)

    def read(self) -> None:
        """Read the new events."""
        for event in self.feed.new_events():
            self.last = event.id or self.last
            self.frames.append((self.last, encode_event(event)))
            self.count += 1

    async def refresh(self) -> None:
        """Read the new events and wake who waits for them."""
        before = self.count
        try:
            self.read()
        except AslError as failure:  # a damaged history ends the streams of this execution alone
            self._failure = failure
        if self.count != before or self.feed.is_over or self._failure is not None:
            self.wake()

    def wake(self) -> None:
        """Wake who waits for events."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, position: int, seconds: float | None) -> bool:
        """Wait for events after a position, or the end; return False if the time is over first.

        Raises:
            StoreDamaged: The history is damaged.
        """
        changed = self._changed
        if self._failure is not None:
            raise self._failure
        if self.count == position and not self.feed.is_over:
            try:
                await asyncio.wait_for(changed.wait(), seconds)
            except TimeoutError:
                return False
        return True

    def since(self, position: int) -> tuple[int, bytes] | None:
        """Return the position and the text of everything after a position; None if it is gone."""
        if position < self.first:
            return None
        texts = islice(self.frames, position - self.first, None)
        return self.count, b"".join(text for _, text in texts)

    def position_of(self, event_id: int) -> int | None:
        """Return the position after an event; None if the next one is gone."""
        if self.first and self.frames[0][0] > event_id + 1:
            return None
        return self.first + sum(1 for last, _ in self.frames if last <= event_id)


class EventHub:
    """Streams of the events of executions.

    All watchers of an execution share one reader and the encoded text. A watcher holds only its
    position, so a slow one costs nothing: it continues from the store where it is.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._topics: dict[str, _Topic] = {}
        self.is_closed = False
        """Whether streams end before their executions, because the server stops."""
        self._task: asyncio.Task[None] | None = None

    def close(self) -> None:
        """End all streams; their watchers continue at another server, or at this one later."""
        self.is_closed = True
        for topic in self._topics.values():
            topic.wake()

    async def watch(
        self, name: str, after: int = 0, silence: float | None = None
    ) -> AsyncIterator[bytes]:
        """Yield the server-sent events of an execution until its end.

        Args:
            name: Name of the execution.
            after: Id of the last event that the watcher has seen.
            silence: Seconds without an event after which a comment follows; None for never.

        Raises:
            ExecutionNotFound: There is no such execution.
        """
        stored = self._store.get(name)
        if stored.status in ENDED:
            async for _, text in self._past(stored.name, after, None):
                yield text
            return
        topic = self._join(stored.name)
        try:
            async with topic.reading:
                if not topic.count:
                    await asyncio.to_thread(topic.read)
            async for text in self._follow(stored.name, topic, after, silence):
                yield text
        finally:
            self._leave(stored.name, topic)

    async def _follow(
        self, name: str, topic: _Topic, after: int, silence: float | None
    ) -> AsyncIterator[bytes]:
        """Yield what follows an event: from the store what is no longer in memory, then live."""
        while True:
            position = topic.position_of(after)
            if position is None:
                async for last, text in self._past(name, after, topic):
                    after = last
                    yield text
                position = topic.position_of(after) or topic.first
            while (found := topic.since(position)) is not None:
                position, text = found
                if text:
                    after = topic.last
                    yield text
                elif topic.feed.is_over or self.is_closed:
                    return
                elif not await topic.wait(position, silence):
                    yield COMMENT

    async def _past(
        self, name: str, after: int, topic: _Topic | None
    ) -> AsyncIterator[tuple[int, bytes]]:
        """Yield past events from the store with the id of the last one, until those in memory
        follow.
        """
        texts: list[bytes] = []
        for event in self._store.feed(name).new_events():
            if event.id > after:
                after = event.id
                texts.append(encode_event(event))
            if len(texts) >= BATCH:
                yield after, b"".join(texts)
                texts = []
                await asyncio.sleep(0)
                if topic is not None and topic.position_of(after) is not None:
                    return
        if texts:
            yield after, b"".join(texts)

    def _join(self, name: str) -> _Topic:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = _Topic(self._store.feed(name))
        topic.watchers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._poll(), name="asl-events")
        return topic

    def _leave(self, name: str, topic: _Topic) -> None:
        topic.watchers -= 1
        if not topic.watchers and self._topics.get(name) is topic:
            del self._topics[name]

    async def _poll(self) -> None:
        """Read new events of the watched executions while there are any."""
        seen: object = None
        while self._topics:
            version = await self._store.aversion([*self._topics])
            if version == seen:
                await asyncio.sleep(POLL)
                continue
            seen = version
            for topic in [*self._topics.values()]:
                async with topic.reading:
                    await topic.refresh()
