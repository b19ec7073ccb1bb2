"""A worker of Temporal in this process, with the methods of a runner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from asl.bindings import Bindings
from asl.core.errors import AslError
from asl.engine.result import Result
from asl.temporal.client import TemporalClient
from asl.temporal.worker import LIVE, make_worker, new_identity
from asl.temporal.workflow import ExecutionWorkflow

__all__ = ["TemporalRunner", "calls_agents"]

POLL: Final = 0.3
"""Seconds between two looks for executions that run."""
GRACE: Final = 10.0
"""Seconds that calls have to end by default."""
CALLED: Final = (
    *("agents", "resources", "mocks", "tools", "aws"),
    *("memory", "buckets", "sinks", "notify"),
)
"""Bindings of calls, and of the services that workers perform."""


def calls_agents(bindings: Bindings) -> bool:
    """Return whether a worker with these bindings makes calls."""
    return any(bindings.get(name) for name in CALLED)


class _CountedCalls(ActivityInboundInterceptor):
    """Counts the calls while they run."""

    def __init__(self, following: ActivityInboundInterceptor, counter: _CallCounter) -> None:
        super().__init__(following)
        self._counter = counter

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        """Run a call."""
        self._counter.count += 1
        try:
            return await super().execute_activity(input)
        finally:
            self._counter.count -= 1


class _CallCounter(Interceptor):
    """Counts the calls that run in a worker."""

    def __init__(self) -> None:
        self.count = 0

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Return the interceptor of a call."""
        return _CountedCalls(next, self)


class TemporalRunner:
    """Runs workflows and calls agents until it is stopped.

    Args:
        client: The client.
        bindings: What it performs.
        concurrency: Maximum number of concurrent calls.
        report: Called with the name of an execution that ends or pauses, and its result.
        only: `"workflows"` or `"activities"`; None for both.
        grace: Seconds that calls have to end after `stop`; by default 10.
        build: Version of the worker; None for a worker without versions.
    """

    def __init__(
        self,
        client: TemporalClient,
        bindings: Bindings,
        concurrency: int,
        report: Callable[[str, Result | str], object] | None,
        only: str | None = None,
        grace: float = 0.0,
        build: str | None = None,
    ) -> None:
        if type(concurrency) is not int or concurrency < 1:
            raise AslError(f"'concurrency' must be 1 or more, got {concurrency!r}")
        if only not in (None, "workflows", "activities"):
            raise AslError(f"'only' must be 'workflows' or 'activities', got {only!r}")
        self.id = new_identity()
        self._client = client
        self._report = report
        self._stopped = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop
        self._calls = _CallCounter()
        self._make = partial(
            make_worker,
            client.raw,
            client.address.queue,
            bindings,
            workflows=only != "activities",
            activities=only != "workflows",
            concurrency=concurrency,
            identity=self.id,
            grace=grace or GRACE,
            interceptors=[self._calls],
            build=build,
        )

    async def run(self) -> None:
        """Work until `stop` is called; calls in progress get some seconds to end."""
        self._loop = asyncio.get_running_loop()
        ExecutionWorkflow.listeners.append(self._hear)
        LIVE.add(self.id)
        try:
            async with self._make():
                await self._stopped.wait()
        finally:
            ExecutionWorkflow.listeners.remove(self._hear)
            LIVE.discard(self.id)

    def _hear(self, queue: str, result: Result) -> None:
        """Report a result of this worker on its event loop."""
        if queue == self._client.address.queue and self._report is not None:
            self._loop.call_soon_threadsafe(self._report, result.name, result)

    @property
    def busy(self) -> int:
        """The number of calls that run here."""
        return self._calls.count

    @property
    def is_running(self) -> bool:
        """Whether it runs, and was not stopped."""
        return self.id in LIVE and not self.is_stopping

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped.is_set()

    def stop(self, grace: float = 0.0) -> None:
        """End `run`; another worker continues the executions.

        Args:
            grace: Without effect: calls have the seconds that the runner was made with.
        """
        self._stopped.set()

    async def wait_until_stopped(self) -> None:
        """Return when the worker was stopped."""
        await self._stopped.wait()

    async def drain(self) -> None:
        """Return when every open execution waits for answers."""
        while not self._stopped.is_set():
            await asyncio.sleep(POLL)
            open_ones = await asyncio.to_thread(self._client.list_open)
            if all(each.memo.get("status") == "PAUSED" for each in open_ones):
                return
