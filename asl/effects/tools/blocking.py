"""The tools of a plain function, which blocks in its thread for each call."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from asl.core.values import Json
from asl.effects.runtime import RuntimeContext
from asl.effects.tools.outcomes import call_ended
from asl.engine.tools import CallTools

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["BlockingTools", "ThreadRequests"]


class ThreadRequests:
    """Unfinished requests of threads during a call of an agent."""

    def __init__(self) -> None:
        self.over = False
        """Whether the call of the agent has ended."""
        self.tasks: set[Future[Any]] = set()

    def end(self) -> None:
        """Cancel the unfinished requests."""
        self.over = True
        for task in list(self.tasks):
            task.cancel()


class BlockingTools:
    """The tools of a plain function; each method blocks until it is done.

    Args:
        tools: The tools.
        asked: Requests of threads.
        runtime: Runtime context of the execution.
    """

    def __init__(self, tools: CallTools, requests: ThreadRequests, runtime: RuntimeContext) -> None:
        self._tools = tools
        self._requests = requests
        self._runtime = runtime
        self._threaded = runtime.in_event_loop

    def call(self, name: str, arguments: Json = None) -> Json:
        """Use a tool of the run by its name.

        Raises:
            RaisedError: The tool fails or may not be used.
        """
        if self._requests.over:
            raise call_ended(name)
        return self._done(self._tools.call(name, arguments))

    def names(self) -> list[str]:
        """Return the names of the tools of the run that may be used."""
        return self._done(self._tools.names())  # type: ignore[no-any-return]

    def _done(self, work: Coroutine[Any, Any, Any]) -> Any:
        if not self._threaded:  # there are no tools, so nothing waits
            try:
                work.send(None)
            except StopIteration as done:
                return done.value
            raise AssertionError("a tool of a function without a thread")
        from asyncio import run_coroutine_threadsafe

        asked = run_coroutine_threadsafe(work, self._runtime.loop)
        self._requests.tasks.add(asked)
        if self._requests.over:  # it has ended meanwhile
            asked.cancel()
        try:
            return asked.result()
        finally:
            self._requests.tasks.discard(asked)
