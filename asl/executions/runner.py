"""Runners, which run the due executions of a store on one event loop.

Several runners, in one process or in many, share the executions of a store. An execution that waits
for time, approvals or tokens needs no runner.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from threading import Event, Thread
from typing import Final, Protocol

from asl.bindings import Bindings, ResolvedBindings
from asl.core.errors import AslError, StateError
from asl.effects.clock import Clock, WallClock, steady_seconds
from asl.effects.suspension import SuspensionMonitor
from asl.engine.agent import Agent, Find
from asl.engine.result import Result
from asl.executions.errors import ExecutionBusy
from asl.executions.execution_reader import ExecutionReader
from asl.executions.executor import Executor
from asl.states.calls import Target
from asl.states.errors import Suspension
from asl.stores.errors import StoreDamaged, StoreError
from asl.stores.executions import MAKE_DUE
from asl.stores.workers import LEASE, Cancellation, Workers

__all__ = ["Runner", "RunnerContext", "RunnerProtocol"]

CONCURRENCY: Final = 100
"""Default maximum number of executions that a runner runs concurrently."""
LONG: Final = 1.0
"""Seconds from which on a wait releases the process."""
POLL: Final = 0.04
"""Seconds between two polls for changes by other processes."""
BEAT: Final = LEASE / 3
"""Seconds between two renewals of the lease."""
WATCH: Final = 2.0
"""Seconds between two checks for dead workers."""
STOPPED: Final = "a worker: the one that ran it was stopped"
"""Need of an execution that left a runner which was stopped."""
REST: Final = 1.0
"""Seconds until another attempt at an execution that another process holds."""


class _Live:
    """One execution that runs here (protocol `asl.executions.executor.Claim`)."""

    elsewhere = ("agents", "resources")
    """Kinds of bindings that other runners may have."""

    def __init__(
        self, now: Callable[[], float], long: float, is_stopping: Callable[[], bool]
    ) -> None:
        self.suspension = SuspensionMonitor(now, long)
        self.is_stopping = is_stopping
        self.missing_bindings: dict[str, None] = {}
        self.cancellation: Cancellation | None = None
        self.task: asyncio.Task[None] | None = None

    def prepare(self, bound: ResolvedBindings) -> ResolvedBindings:
        """Return bindings that let branches wait without a process, and wait for missing agents."""
        services = bound.services
        services.suspension = self.suspension
        services.on_missing = self._lack
        find = self._patient(bound.find, services.missing_binding)
        inner = services.without_mocks
        services.without_mocks = lambda: self._patient(inner(), services.missing_binding)
        return bound._replace(find=find)

    def _patient(
        self, find: Find, missing: Callable[[StateError], StateError | Suspension]
    ) -> Find:
        """Wrap a lookup of agents: a missing agent, or the end of the runner, suspends the
        execution.
        """

        def found(target: Target) -> Agent:
            is_call = not (target.is_helper or target.optional)
            if is_call and self.is_stopping():
                self._lack(STOPPED)
                raise Suspension
            try:
                return find(target)
            except StateError as error:
                if error.name != "States.AgentNotFound" or not is_call:
                    raise
                raise missing(error) from None

        return found

    def _lack(self, what: str) -> None:
        self.missing_bindings[what] = None

    def needs(self) -> Sequence[str]:
        """Return the missing bindings of the execution."""
        return [*self.missing_bindings]


class Runner:
    """Runs due executions of a store until it is stopped.

    Args:
        executor: Runs one execution.
        bindings: The bindings of the executions.
        clock: The clock of the store.
        concurrency: Maximum number of concurrent executions.
        report: Called with the name of an execution and its result, or the reason why it cannot
            continue here.
    """

    def __init__(
        self,
        executor: Executor,
        bindings: Bindings,
        clock: Clock,
        *,
        concurrency: int = CONCURRENCY,
        report: Callable[[str, Result | str], object] | None = None,
    ) -> None:
        if type(concurrency) is not int or concurrency < 1:
            raise AslError(f"'concurrency' must be 1 or more, got {concurrency!r}")
        self.executor = executor
        self.bindings = bindings
        self.clock = clock
        self._polls = isinstance(clock, WallClock)
        """Whether other processes may use the store."""
        self._lease_time = steady_seconds if self._polls else clock.now
        """Clock of leases in seconds: the same in all processes of a machine."""
        self.concurrency = concurrency
        self.report = report or _nothing
        self.id = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
        self._loop: asyncio.AbstractEventLoop
        self._live: dict[int, _Live] = {}
        self._retry_times: dict[int, float] = {}
        """Executions that other processes hold, and the time of the next attempt."""
        self._missing_bindings: dict[int, list[str]] = {}
        """Missing bindings of executions at their last attempt here."""
        self._idle_wait: asyncio.Future[None] | None = None
        """The future that the runner awaits while idle."""
        self._timer: asyncio.TimerHandle | None = None
        self._idle_until = 0.0
        """The latest end of the nap, in seconds since the epoch."""
        self._is_woken = False
        self._ended = asyncio.Event()
        self._is_stopping = False
        self._stop_time = inf
        """When `run` ends; executions that run then are interrupted."""
        self._last_renewal = self._last_worker_check = self._last_stuck_check = -inf
        """Times of the last lease renewal and checks for dead workers and stuck executions."""
        self._last_change: object = None
        """The change counter of the store before the last poll."""
        self._failure: BaseException | None = None

    @property
    def reader(self) -> ExecutionReader:
        """The executions of the store."""
        return self.executor.reader

    @property
    def workers(self) -> Workers:
        """Claims in the store, for this thread."""
        return Workers(self.executor.session)

    # Life cycle

    async def run(self) -> None:
        """Run due executions until `stop` is called; running ones can be continued later.

        Raises:
            LeaseLost: This process hung for so long that other runners have taken over.
            StoreError: The store cannot be read or written.
        """
        self._loop = asyncio.get_running_loop()
        self.workers.register(self.id, {"pid": os.getpid()}, self._lease_time())
        try:
            self.executor.listeners.append(self.wake)
            while not self._is_over():
                self._renew()
                self._look()
                await self._until_something()
        finally:
            self.executor.listeners.remove(self.wake)
            self._ended.set()
            await self._leave()
        self._raise_failure()

    def stop(self, grace: float = 0.0) -> None:
        """End `run`: no execution is started, and running ones leave at their next call.

        Args:
            grace: Seconds that running calls have to end; then they are interrupted as by the death
                of the process.
        """
        self._is_stopping = True
        self._stop_time = min(self._stop_time, self.clock.now() + grace)
        self._wake_up()

    def _is_over(self) -> bool:
        if not self._is_stopping:
            return False
        return not self._live or self.clock.now() >= self._stop_time

    def wake(self) -> None:
        """Make the runner poll the store now; any thread may call it."""
        self._loop.call_soon_threadsafe(self._wake_up)

    def _wake_up(self) -> None:
        self._is_woken = True
        self._end_nap()

    def _end_nap(self) -> None:
        if self._idle_wait is not None and not self._idle_wait.done():
            self._idle_wait.set_result(None)

    @property
    def is_running(self) -> bool:
        """Whether the runner starts what is due."""
        return not self._is_stopping and not self._ended.is_set()

    @property
    def is_stopping(self) -> bool:
        """Whether the runner was stopped, and starts nothing more."""
        return self._is_stopping

    @property
    def busy(self) -> int:
        """The number of executions that run here."""
        return len(self._live)

    async def wait_until_stopped(self) -> None:
        """Return when the runner was stopped."""
        await self._ended.wait()

    async def drain(self) -> None:
        """Return when no execution is due or runs here."""
        await asyncio.sleep(POLL)
        while not self._is_stopping and (self._live or self._is_any_ready()):
            await asyncio.sleep(POLL)

    def _is_any_ready(self) -> bool:
        """Return whether an execution is due that no runner holds."""
        ready = self.workers.ready(self.clock.now(), 1 + len(self._retry_times))
        return any(number not in self._retry_times for number, _ in ready)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _leave(self) -> None:
        tasks = [live.task for live in self._live.values() if live.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        with suppress(StoreError):  # its lock ends with its process, so others detect its death
            self.workers.deregister()

    def _renew(self) -> None:
        """Renew the lease periodically, and fence workers that have not renewed theirs."""
        now = self._lease_time()
        if now - self._last_worker_check >= WATCH:
            self._last_worker_check = now
            self.workers.fence(now)
        if now - self._last_renewal >= BEAT:
            self._last_renewal = now
            self.workers.renew(now)
            self.executor.session.flush()

    async def _until_something(self) -> None:
        """Wait until there may be work."""
        await asyncio.sleep(0)  # lets started tasks run
        self._idle_until = self._next_look()
        self._idle_wait = self._loop.create_future()
        self._peek()
        try:
            await self._idle_wait
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._idle_wait = None
        self._is_woken = False

    def _peek(self) -> None:
        """End the nap if there may be work, else schedule the next check."""
        seconds = self._idle_until - self.clock.now()
        if (
            self._is_woken
            or seconds <= 0
            or self.executor.session.connection.change_marker() != self._last_change
        ):
            self._end_nap()
        elif self._polls:
            self._timer = self._loop.call_later(min(seconds, POLL), self._peek)
        else:
            self._timer = None if seconds == inf else self._loop.call_later(seconds, self._peek)

    def _next_look(self) -> float:
        now = self.clock.now()
        due = self.workers.next_wake(now)
        times = [now + WATCH if self._polls else inf, self._stop_time]
        times += self._retry_times.values()
        if due is not None:
            times.append(due)
        return min(times)

    # Work

    def _look(self) -> None:
        """Start due executions, cancel others, and wake branches with an answer."""
        self._last_change = self.executor.session.connection.change_marker()
        self.executor.map_runs.apply_changes()
        for each in self.workers.cancellations():
            self._cancel(each)
        if any(live.suspension.ids for live in self._live.values()):
            answered = self.workers.answered_ids()
            for live in self._live.values():
                live.suspension.wake(answered)
        if not self._is_stopping:
            self._claim()

    def _claim(self) -> None:
        now, free = self.clock.now(), self.concurrency - len(self._live)
        self._retry_times = {
            number: until for number, until in self._retry_times.items() if until > now
        }
        if free <= 0:
            return
        if not self._polls or self._lease_time() - self._last_stuck_check >= WATCH:
            self._last_stuck_check = self._lease_time()
            for number, name, needs in self.workers.missing_bindings():
                if (
                    self._missing_bindings.get(number) != needs
                    and len(self._live) < self.concurrency
                ):
                    self._begin(number, name)
        for number, name in self.workers.ready(now, free + len(self._retry_times)):
            if len(self._live) < self.concurrency:
                self._begin(number, name)

    def _begin(self, number: int, name: str) -> None:
        if number in self._live or number in self._retry_times:
            return
        live = self._live[number] = _Live(self.clock.now, LONG, lambda: self.is_stopping)
        live.task = asyncio.create_task(self._run(number, name, live), name="asl-execution")

    def _cancel(self, request: Cancellation) -> None:
        live = self._live.get(request.number)
        if live is None:
            with suppress(ExecutionBusy, StoreDamaged):  # its own process cancels it
                self.executor.abort(request.name, request.error, request.cause)
        elif live.cancellation is None and live.task is not None:
            live.cancellation = request
            live.task.cancel()

    async def _run(self, number: int, name: str, live: _Live) -> None:
        """Run an execution until it ends or waits."""
        try:
            result = await self.executor.resume(name, self.bindings, True, None, live)
        except ExecutionBusy:
            self._retry_times[number] = self.clock.now() + REST
        except asyncio.CancelledError:
            if live.cancellation is None or self._is_stopping:
                raise
            self._aborted(name, live.cancellation)
        except StoreDamaged as damage:
            self._retry_times[number] = inf
            self.report(name, str(damage))
        except StoreError as error:  # nothing can be recorded for any execution
            self._failure = error
            self.stop()
        except AslError as error:
            self._cannot(number, name, str(error))
        except Exception as error:  # a bug in one execution must not end the others
            logging.getLogger("asl").exception("the execution %r cannot continue", name)
            self._cannot(number, name, f"internal error: {type(error).__name__}: {error}")
        else:
            if STOPPED in result.needs:
                self._hand_over(number)
            elif result.needs:
                self._missing_bindings[number] = [*result.needs]
            else:
                self._missing_bindings.pop(number, None)
            self.report(name, result)
        finally:
            del self._live[number]
            self._wake_up()

    def _cannot(self, number: int, name: str, reason: str) -> None:
        """Leave an execution to a runner that has its bindings."""
        self._missing_bindings[number] = [reason]
        self.workers.put_needs(number, [reason])
        self.workers.release(number)
        self.executor.session.flush()
        self.report(name, reason)

    def _hand_over(self, number: int) -> None:
        """Make an execution due for other runners; before that they find it by its need."""
        self.executor.session.write(MAKE_DUE, number)
        self.workers.put_needs(number, ())
        self.executor.session.flush()

    def _aborted(self, name: str, request: Cancellation) -> None:
        with suppress(AslError):  # it has ended meanwhile
            self.executor.abort(name, request.error, request.cause)


def _nothing(name: str, result: Result | str) -> None:
    """Ignore a report."""


class RunnerProtocol(Protocol):
    """A runner in this process.

    Attributes:
        id: Its name in the list of the workers.
    """

    id: str

    @property
    def busy(self) -> int:
        """The number of executions or calls that run here."""
        ...

    @property
    def is_running(self) -> bool:
        """Whether it runs, and was not stopped."""
        ...

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        ...

    async def run(self) -> None:
        """Run due executions until `stop` is called."""
        ...

    def stop(self, grace: float = 0.0) -> None:
        """End `run`.

        Args:
            grace: Seconds that calls have to end.
        """
        ...

    async def wait_until_stopped(self) -> None:
        """Return when the runner was stopped."""
        ...

    async def drain(self) -> None:
        """Return when no execution is due."""
        ...


class RunnerContext:
    """A runner for `with`, in a thread, or for `async with`, on the running event loop.

    Args:
        make: Returns a runner; raises for invalid arguments.
        clock: Clock of the store, for the event loop of the thread.
        grace: Seconds that calls of agents have to end when the block ends.
    """

    def __init__(self, make: Callable[[], RunnerProtocol], clock: Clock, grace: float) -> None:
        self._grace = grace
        self._make = make
        self._make()  # raises for invalid arguments
        self._runner: RunnerProtocol | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: BaseException | None = None
        self._clock = clock
        self._begun = Event()

    async def __aenter__(self) -> RunnerProtocol:
        self._runner = runner = self._make()
        self._task = asyncio.create_task(runner.run(), name="asl-runner")
        return runner

    async def __aexit__(self, *error: object) -> None:
        assert self._runner is not None
        assert self._task is not None
        self._runner.stop(self._grace)
        await self._task

    def __enter__(self) -> RunnerContext:
        self._thread = Thread(target=self._run, name="asl-runner", daemon=True)
        self._thread.start()
        self._begun.wait()
        return self

    def __exit__(self, *error: object) -> None:
        assert self._thread is not None
        if self._loop is not None and self._runner is not None:
            with suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._runner.stop, self._grace)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        async def main() -> None:
            self._loop = asyncio.get_running_loop()
            self._runner = self._make()
            self._begun.set()
            await self._runner.run()

        try:
            with asyncio.Runner(loop_factory=self._clock.new_event_loop) as loop:
                loop.run(main())
        except BaseException as failure:  # raised when the context ends
            self._failure = failure
        finally:
            self._begun.set()
