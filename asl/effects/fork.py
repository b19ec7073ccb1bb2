"""Forks: workers take items, and more workers start only when one waits.

The forking coroutine is itself the first worker. As long as no child suspends, it takes item after
item without an event loop, a task or a switch. Once it yields to the loop, a callback starts more
workers, twice as many each time, up to the limit (Specification 6.3, 6.4).
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import islice
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from asl.core.errors import StateError
from asl.core.values import Json
from asl.effects.runtime import RuntimeContext
from asl.engine.execution import FAIR
from asl.engine.frame import Frame
from asl.engine.interpreter import UNFINISHED, interpret, run_pure_states
from asl.engine.records import ABORTED
from asl.states.effects import ABSENT, FanIn, FanOut, StateFrame
from asl.states.errors import Suspension

if TYPE_CHECKING:
    import asyncio

__all__ = ["MANY", "RELAXED_THRESHOLD", "Fork", "relaxed_gc"]

MANY = 1000
"""Number of parallel children from which the garbage collector is relaxed."""
BREATH = 1024
"""Number of pure children between two calls of `Effects.yield_`, which keep a long series
cancellable."""
RESULT: Final = 256
"""Bytes that a result that is handed on takes as a member of an object, roughly."""
CHILD = 420
"""Steps of work that a child with an effect counts as, in addition to its evaluations; one with
many effects yields by itself."""


class Fork:
    """A running fan-out: the next child, and the results so far."""

    def __init__(
        self,
        frame: Frame,
        fan: FanOut,
        runtime: RuntimeContext,
        run: Callable[[Any], Awaitable[Json]] = interpret,
    ) -> None:
        self.at = frame
        self.runtime = runtime
        self.now = runtime.now
        self.run = run
        """Runs one child."""
        self.suspension = runtime.suspension
        """Counts the workers with work."""
        self.fan_out = fan
        fan.widen = self.widen
        self.length = inf if fan.length is None else fan.length
        self.values: list[Json] = [ABSENT] * (fan.length or 0) if fan.on_end is None else []
        self.next = 0
        self.failed = 0
        self.failure: BaseException | None = None
        self.running: dict[int, StateFrame] = {}
        """Running children."""
        self.tasks: list[asyncio.Task[None]] = []
        """Tasks of the further workers, including ended ones."""
        self.started = 0
        self.ended = 0
        self.suspended = 0
        """Children that wait for approvals; they count as running."""
        self.first: asyncio.Task[Any] | None = None
        """Task of the first worker while it works, so that a sibling can stop it."""
        self.stopping_first = False
        self.worker_start: asyncio.Handle | None = None
        self.idle: asyncio.Future[None] | None = None
        """Future of the end of all workers; created on demand."""

    @property
    def held_results(self) -> Iterable[object]:
        """The results so far that are in memory."""
        return self.values or self.fan_out.held_results

    @property
    def at_once(self) -> float:
        """Maximum number of concurrent children."""
        return min(self.length, self.fan_out.limit or inf)

    async def join(self, in_event_loop: bool) -> FanIn:
        """Run all children and return their results.

        Raises:
            StateError: A child failed beyond the tolerated failures.
        """
        if in_event_loop:
            self.spread_soon()
        try:
            await self._work_first()
            if self._busy():
                with nullcontext() if self.suspension is None else self.suspension.idle():
                    await self._until_idle()
        except BaseException as stop:
            # Cancelled from outside, or a child failed: no child outlives its fork.
            self._fail(stop)
            self.failure = stop
        finally:
            if self.worker_start is not None:
                self._spread_over()
        while self._busy():
            await self._stopped()
        if self.failure is not None:
            raise self.failure
        if self.suspended:
            raise Suspension
        return FanIn(self.values, self.failed)

    async def _work_first(self) -> None:
        try:
            if self.fan_out.series is None:
                await self._work()
            else:
                await self._work_at_once(self.fan_out.series)
        except BaseException as error:
            # Only a cancellation by a failed sibling ends here; `join` raises the sibling's error.
            if not self._stopped_by_sibling(error):
                raise
        finally:
            self.first = None

    def _busy(self) -> bool:
        """Return whether a further worker works or will; one cancelled before its start never
        does.
        """
        coming = len(self.tasks) if self.failure is None else self.started
        return coming > self.ended

    def _stopped_by_sibling(self, error: BaseException) -> bool:
        """Return whether the first worker was cancelled by `_fail` alone."""
        if not self.stopping_first:
            return False
        from asyncio import CancelledError, current_task

        task = current_task()
        return isinstance(error, CancelledError) and task is not None and task.uncancel() == 0

    async def _work(self, further: bool = False) -> None:
        """Run children until none is left."""
        self.started += further
        at, now, run, running, values = self.at, self.now, self.run, self.running, self.values
        fan, child, ended = self.fan_out, self.fan_out.child, self.fan_out.on_end
        whole = at.execution.outermost
        try:
            while True:  # a fork with an end condition keeps its concurrency
                if whole.work_since_yield >= FAIR:
                    await at.effects.yield_(at)
                index = self.next
                if self.failure is not None or index >= self.length:
                    return
                if fan.limit and self.suspended + len(running) >= fan.limit:
                    return
                at.now = now()  # start of the child's own time
                frame = child(index)
                if frame is None:
                    self.length = index
                    return
                self.next = index + 1
                running[index] = frame
                whole.work_since_yield += CHILD
                try:
                    value = await run(frame)
                except StateError as error:
                    if self._fails(frame, error):
                        return
                except Suspension:
                    del running[index]
                    self.suspended += 1
                else:
                    del running[index]
                    if ended is None:
                        values[index] = value
                    else:
                        ended(frame, value)
                        whole.count_received(RESULT)
        except BaseException as error:
            # An exception of a further worker is passed to the forking coroutine, because only
            # that awaits the task. A cancellation comes from there.
            if not further:
                raise
            self._fail(error)
        finally:
            if further:
                self.ended += 1
                if not self._busy() and self.idle is not None and not self.idle.done():
                    self.idle.set_result(None)

    async def _work_at_once(self, series: Iterator[StateFrame]) -> None:
        """Run pure children one after the other, without waiting."""
        ended, execution = self.fan_out.on_end, self.at.execution.outermost
        assert ended is not None
        frame: StateFrame | None = self.at
        while frame is not None:
            await self.at.effects.yield_(self.at)
            execution.count_received(RESULT * BREATH)
            frame = None
            for frame in islice(series, BREATH):
                try:
                    value = run_pure_states(frame)  # type: ignore[arg-type]  # the engine made it
                    if value is UNFINISHED:
                        self.running[frame.index] = frame
                        execution.work_since_yield += CHILD
                        value = await self.run(frame)
                        del self.running[frame.index]
                except StateError as error:
                    if self._fails(frame, error):
                        return
                else:
                    ended(frame, value)
                if execution.work_since_yield >= FAIR:
                    break

    def _fails(self, frame: StateFrame, error: StateError) -> bool:
        """Handle the failure of a child; return whether it fails the fork."""
        self.running.pop(frame.index, None)
        self.failed += 1
        failure = self.fan_out.on_failure(frame, error)
        if failure is not None:
            self._fail(failure)
        return failure is not None

    # More workers

    def spread_soon(self) -> None:
        """Start more workers once the current one yields to the event loop."""
        from asyncio import current_task, get_running_loop

        loop = get_running_loop()
        if self.first is None:
            self.first = current_task(loop)
        if self.fan_out.series or self.fan_out.limit == 1:
            return
        if self.length - self.next > (0 if self.next else 1):
            if self.suspension is not None:
                self.suspension.enter()
            self.worker_start = loop.call_soon(self._spread, loop)

    def widen(self) -> None:
        """Start more workers after the limit was raised; called on the event loop."""
        works = self.first is not None or self._busy()
        if works and self.worker_start is None and self.failure is None:
            from asyncio import get_running_loop

            loop = get_running_loop()
            if self.suspension is not None:
                self.suspension.enter()
            self.worker_start = loop.call_soon(self._spread, loop)

    def _spread(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.worker_start is None:  # the fork has ended
            return
        if self.failure is None and self._start_workers(loop):
            self.worker_start = loop.call_soon(self._spread, loop)
        else:
            self._spread_over()

    def _spread_over(self) -> None:
        self.worker_start = None
        if self.suspension is not None:
            self.suspension.leave()

    def _start_workers(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Start as many workers as there are; return whether more may start after them."""
        present = len(self.tasks) - self.ended + 1
        most = min(self.fan_out.limit or inf, present + self.length - self.next)
        for _ in range(int(min(2 * present, most)) - present):
            task = loop.create_task(self._work(further=True), name="asl-worker")
            self.tasks.append(task)
            if self.suspension is not None:
                self.suspension.enter()
                task.add_done_callback(self.suspension.leave)
        return len(self.tasks) - self.ended + 1 < most

    # The end

    def _fail(self, error: BaseException) -> None:
        if self.failure is not None:
            return
        self.failure = error
        self.at.stops_children = self.runtime.checks_end = True
        # A child that resumes with the execution is not reported as aborted.
        cut = isinstance(error, StateError)
        for frame in self.running.values() if self.runtime.is_over() else ():
            step = frame.step if cut else None
            frame.emit((ABORTED, self.now(), frame, frame.visit, step))
            self.fan_out.on_abort(frame)
        for task in self.tasks:
            task.cancel()
        if self.first is not None:
            from asyncio import current_task

            if current_task() is not self.first:
                self.stopping_first = True
                self.first.cancel()

    async def _until_idle(self) -> None:
        from asyncio import get_running_loop

        self.idle = get_running_loop().create_future()
        await self.idle

    async def _stopped(self) -> None:
        """Wait for the end of every worker; another cancellation does not interrupt this."""
        from asyncio import CancelledError

        try:
            await self._until_idle()
        except CancelledError as stop:
            self.failure = stop


RELAXED_THRESHOLD: Final = 50_000
"""New objects between two collections: a few megabytes."""


class _RelaxedGC:
    """Raise the collector's threshold while at least one run is inside.

    The last run to leave restores it, unless other code has changed it meanwhile.
    """

    def __init__(self) -> None:
        self.within = 0
        self.before = 0
        """The previous threshold; 0 if it was not changed."""
        self.lock = Lock()

    def __enter__(self) -> None:
        with self.lock:
            self.within += 1
            usual = gc.get_threshold()[0]
            if self.within == 1 and 0 < usual < RELAXED_THRESHOLD:  # 0 is never
                self.before = usual
                gc.set_threshold(RELAXED_THRESHOLD)

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.within -= 1
            if not self.within and self.before:
                if gc.get_threshold()[0] == RELAXED_THRESHOLD:
                    gc.set_threshold(self.before)
                self.before = 0


relaxed_gc: Final = _RelaxedGC()
"""One for the process, like the collector."""
