"""Streaming of an answer: events, callbacks, and text that is held back (8.12)."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from asl.core.errors import NotJson, StateError
from asl.core.values import Json, replace_surrogates
from asl.effects.caller import Caller
from asl.effects.progress_reporter import CrossThreadQueue
from asl.engine.agent import Call
from asl.engine.exception_mapping import describe_exception, is_fault, unwrap_group
from asl.states.blocks.streaming import (
    CHUNK,
    StreamOutput,
    StreamPlan,
    callback_warning,
    response_text,
)
from asl.states.calls import CallOptions, Target
from asl.states.errors import RaisedError

if TYPE_CHECKING:
    import asyncio

__all__ = ["Stream"]

PATIENCE: Final = 30.0
"""Seconds of the execution's clock that one callback may take."""
WAITING: Final = 64
"""Maximum number of chunks in the queue of a callback; further ones are appended to the last."""


class Stream:
    """The stream of one call.

    Text is processed in the order in which it arrives, and before the answer.
    """

    loop: asyncio.AbstractEventLoop

    def __init__(self, caller: Caller, call: Call, plan: StreamPlan) -> None:
        self.caller = caller
        self.call = call
        self.plan = plan
        self.shown = StreamOutput(plan)
        self.inbox = CrossThreadQueue(self._deal)
        self.hidden_text: list[str] = []
        """All text so far, while it may not be shown."""
        self.length = 0
        self.overflow: StateError | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.waiting: deque[dict[str, Json]] = deque()
        """Chunks in the queue of the callback."""
        self.delivery: asyncio.Task[None] | None = None
        self.timed_out_callbacks: set[str] = set()
        """Callbacks that timed out."""

    async def follow(self, answer: Callable[..., Awaitable[Json]], *given: Any) -> Json:
        """Return an answer after passing on the text before it.

        Raises:
            RaisedError: States.DataLimitExceeded for too much text, else the error of the call.
        """
        self.loop = self.inbox.loop = await self.caller.runtime.event_loop()
        self.call.listener = self.take
        try:
            try:
                result = await answer(*given)
                if self.overflow is not None:
                    raise self.overflow
            except BaseException as raised:  # any exception of user code propagates
                error = unwrap_group(raised)
                if isinstance(error, StateError):
                    await self._broken({"error": error.name, "cause": error.cause})
                elif isinstance(error, NotJson) or is_fault(error):
                    await self._broken(
                        {"error": "States.TaskFailed", "cause": describe_exception(error)}
                    )
                raise
            await self._complete(result)
            return result
        finally:
            self.call.listener = None
            if self.timer is not None:
                self.timer.cancel()
            if self.delivery is not None:
                self.delivery.cancel()

    async def _complete(self, result: Json) -> None:
        """Show the rest of a complete answer."""
        self.inbox.empty()
        if self.plan.guarded:
            said = self.call.at.partial_answer = "".join(self.hidden_text)
            self.caller.persistence.calls.record_unshown_text(self.call.at, said)
            return
        if not self.length:
            with suppress(StateError):  # too large an answer is refused later
                self.take(response_text(result))
        self._tell(self.shown.end())
        await self._delivered()
        await self._callback("OnComplete", {"result": result, "chunks": self.shown.count})

    async def _broken(self, failure: dict[str, Json]) -> None:
        """Show the rest of an interrupted answer, unless it may not be shown."""
        self.inbox.empty()
        if not self.plan.guarded:
            self._tell(self.shown.end())
            await self._delivered()
        await self._callback("OnError", {**failure, "chunks": self.shown.count})

    # Text

    def take(self, text: str) -> None:
        """Take text of an agent, in any thread.

        Raises:
            StateError: States.DataLimitExceeded; there is too much text.
        """
        self.length += len(text)
        if self.length > self.caller.limit:
            self.overflow = RaisedError(
                "States.DataLimitExceeded",
                f"{self.call.target.name} says more than {self.caller.limit} characters",
            )
            raise self.overflow
        self.inbox.put(replace_surrogates(text))

    def _deal(self, said: list[str]) -> None:
        """Process the text since the last call."""
        if self.plan.guarded:
            self.hidden_text += said
            return
        for text in said:
            self._tell(self.shown.feed(text))
        self._set_timer()

    def _tell(self, chunks: Iterable[dict[str, Json]]) -> None:
        at = self.call.at
        for details in chunks:
            at.now = self.caller.runtime.now()
            at.note(CHUNK, details)
            if "OnChunk" in self.plan.callbacks and "OnChunk" not in self.timed_out_callbacks:
                self._queue(details)

    def _set_timer(self) -> None:
        """Set a timer that sends the collected text in time."""
        buffer, interval = self.shown.buffer, self.plan.interval
        if buffer is None or interval is None:
            return
        if not buffer.held and self.timer is not None:
            self.timer.cancel()
            self.timer = None
        elif buffer.held and self.timer is None:
            self.timer = self.loop.call_later(interval, self._flush)

    def _flush(self) -> None:
        self.timer = None
        self._tell(self.shown.flush())

    # Callbacks

    def _queue(self, details: dict[str, Json]) -> None:
        if len(self.waiting) < WAITING:
            self.waiting.append(details)
        else:
            last = self.waiting[-1]
            self.waiting[-1] = {**last, "chunk": f"{last['chunk']}{details['chunk']}"}
        if self.delivery is None or self.delivery.done():
            self.delivery = self.loop.create_task(self._deliver(), name="asl-stream")

    async def _deliver(self) -> None:
        while self.waiting:
            await self._callback("OnChunk", self.waiting.popleft())

    async def _delivered(self) -> None:
        """Return when the callback has received all chunks."""
        if self.delivery is not None:
            await self.delivery

    async def _callback(self, kind: str, details: dict[str, Json]) -> None:
        """Call an agent as a callback; its failure is a warning."""
        agent = self.plan.callbacks.get(kind)
        if agent is None or kind in self.timed_out_callbacks:
            return
        at, state = self.call.at, self.call.state_name
        target = Target("agent", agent, state, is_helper=True)
        options = CallOptions(PATIENCE, None, state)
        if self.call.tool_rules is not None:  # it has the rights of the agent
            options.blocks["tools"] = self.call.tool_rules
        try:
            await self.caller.invoke(at, target, {"state": state, **details}, options)
        except StateError as error:
            if error.name == "States.Timeout":
                self.timed_out_callbacks.add(kind)
                self.waiting.clear()
            at.note(*callback_warning(kind, error))
