"""The store of executions on Temporal: the methods of `asl.Store` over a client."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NoReturn, TypeVar, Unpack, cast

import orjson

from asl.bindings import Bindings, bind, refuse_unknown, takes_bindings
from asl.core.errors import AslError
from asl.core.values import Json, compact, copy_foreign
from asl.effects.clock import WallClock
from asl.effects.driver import Driver
from asl.engine.checkpoints import Checkpoint
from asl.engine.result import Result
from asl.executions.base import StoreBase
from asl.executions.errors import ExecutionExists
from asl.executions.execution_start import ExecutionStart
from asl.executions.executor import Executor
from asl.executions.fork import ForkPoint
from asl.executions.handle import Handle
from asl.executions.redrive import Restart
from asl.executions.retention import Retention, not_ended
from asl.executions.runner import RunnerContext
from asl.executions.store import Store
from asl.executions.task_tokens import StoreTaskTokens
from asl.program import Program
from asl.stores.errors import StoreError
from asl.stores.executions import (
    ENDED,
    LARGEST_NUMBER,
    ExecutionFilter,
    StoredExecution,
    find_execution,
    top_of,
)
from asl.stores.pools import StoredBudget
from asl.stores.resources import find_resource
from asl.stores.session import ThreadSessions
from asl.stores.transfer import export_executions, import_execution
from asl.temporal.addresses import parse_address
from asl.temporal.answers import apply_answer
from asl.temporal.budgets.client import BudgetClient
from asl.temporal.client import TemporalClient
from asl.temporal.follower import ExecutionFollower
from asl.temporal.lists import ExecutionList
from asl.temporal.payloads import (
    ANSWER,
    CANCEL,
    TOKEN,
    AnswerMessage,
    CancelMessage,
    TokenMessage,
)
from asl.temporal.reader import TemporalReader
from asl.temporal.registry.backend import RegistryBackend
from asl.temporal.runner import TemporalRunner, calls_agents
from asl.temporal.starts import WorkflowStarter
from asl.temporal.task_tokens import TemporalTaskTokens
from asl.temporal.worker import connect
from asl.temporal.workflow_bindings import refuse_approvals
from asl.temporal.workflow_store import execution_number

__all__ = ["TemporalStore"]

T = TypeVar("T")
SEARCHED: Final = 100
"""Maximum number of executions that are searched for a Map Run."""
EXPORTED: Final = 1_000_000
"""Maximum number of exported executions."""


class _LoopDriver(Driver):
    """Runs coroutines on an event loop from their beginning."""

    def drive(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result."""
        return asyncio.run(work)


class TemporalStore(Store):
    """Executions on Temporal; methods as those of `asl.Store`.

    Args:
        address: `temporal://HOST:PORT/NAMESPACE?queue=NAME`.
        bindings: As for `asl.run`, for runners of this process.

    Raises:
        AslError: The server cannot be reached.
    """

    @takes_bindings
    def __init__(self, address: str, **bindings: Unpack[Bindings]) -> None:
        refuse_unknown(TemporalStore.__init__, bindings)
        refuse_approvals(bindings)
        self.address = parse_address(address)
        self.client = TemporalClient(self.address)
        backend = RegistryBackend(self.client)
        sessions = ThreadSessions(backend)
        StoreBase.__init__(self, sessions, WallClock(), bindings)
        self._reader = self._remote = TemporalReader(sessions, self.client, backend.put_map_runs)
        self._executor = Executor(self._reader, self.clock)
        self._driver = _LoopDriver(self.clock)
        self._registry = backend.registry
        self._list = ExecutionList(self.client)
        self._budget_client: BudgetClient | None = None
        self._starter = WorkflowStarter(self._remote, self._executor, self._bindings)

    def close(self) -> None:
        """Close the connection."""
        super().close()
        if self._budget_client is not None:
            self.client.run(self._budget_client.close())
            self._budget_client = None
        self._registry.close()
        self.client.close()

    runs_elsewhere = True

    # Starts

    def _record(self, new: ExecutionStart) -> Handle:
        return Handle(self, self._starter.start(new))

    async def _arecord(self, new: ExecutionStart) -> Handle:
        return await asyncio.to_thread(self._record, new)

    def _fork(
        self,
        known: StoredExecution,
        entry: ForkPoint,
        name: str | None,
        data: Json,
        program: Program,
    ) -> str:
        chosen = name or os.urandom(16).hex()
        self._starter.require_free(chosen)
        super()._fork(known, entry, chosen, data, program)
        self._starter.start_copy(chosen, former=self.client.given_bindings(self.root(known.name)))
        return chosen

    def import_execution(self, line: Json) -> str:
        """Start a workflow that continues an exported execution; return its name.

        Raises:
            StoreError: The line is damaged, or the name is taken.
        """
        name = Store("memory:").import_execution(line)  # raises before anything changes
        try:
            self._starter.require_free(name)
        except ExecutionExists:
            raise StoreError(f"{self.path} has an execution {name!r} already") from None
        import_execution(self.session, line)
        self._starter.start_copy(name)
        return name

    def _restart(self, name: str, restart: Restart) -> None:
        self._starter.restart(name, restart)

    # Runs

    @takes_bindings
    def runner(
        self,
        *,
        concurrency: int = 100,
        report: Callable[[str, Result | str], object] | None = None,
        grace: float = 0.0,
        only: str | None = None,
        build: str | None = None,
        **bindings: Unpack[Bindings],
    ) -> RunnerContext:
        """Return a worker in this process, for `with` or `async with`.

        Args:
            concurrency: Maximum number of concurrent calls.
            report: Called with the name of an execution that ends or pauses, and its result.
            grace: Seconds that calls have to end; by default 10.
            only: `"workflows"` to run workflows and call no agents, `"activities"` for the reverse.
            build: Version of the worker in the deployment of the queue; None for a worker without
                versions.
            bindings: As for `asl.run`; None for those of the store.
        """
        refuse_unknown(TemporalStore.runner, bindings)
        refuse_approvals(bindings)
        given = self._given(bindings)
        bind(given)
        make = partial(TemporalRunner, self.client, given, concurrency, report, only, grace, build)
        return RunnerContext(make, self.clock, grace)

    async def _execute(self, new: ExecutionStart, given: Bindings) -> Result:
        bind(given, new.program)  # raises before anything starts
        refuse_approvals(given)
        started = await asyncio.to_thread(self._starter.start, new, given)
        return await self._work(started.name, given)

    async def _continue(self, name: str, given: Bindings, restart: Restart | None) -> Result:
        top = await asyncio.to_thread(self.root, name)
        if restart is not None:
            await asyncio.to_thread(self._starter.restart, name, restart, given)
        return await self._work(top, given)

    async def _aget(self, name: str) -> StoredExecution:
        return await asyncio.to_thread(self.get, name)

    async def _work(self, name: str, given: Bindings) -> Result:
        """Follow an execution until it ends or pauses.

        Its calls are made here if bindings are given, or if no other worker makes any.
        """
        program = await asyncio.to_thread(self.program, name)
        calls = calls_agents(given) or "Agents" in program.document
        own = cast("Bindings", {**given, "listener": None})
        others = await asyncio.to_thread(self.client.workers, activities=True)
        only = "workflows" if others and not calls else None
        async with self.runner(only=only, **own):
            await self._follow(name, given, calls)
        return await asyncio.to_thread(self.result, name)

    async def _follow(self, name: str, given: Bindings, calls: bool) -> None:
        make = partial(ExecutionFollower, self._remote, name, given.get("listener"))
        follower = await asyncio.to_thread(make, calls_agents=calls)
        try:
            await asyncio.to_thread(follower.follow)
        finally:  # a cancellation does not end its thread
            follower.stop()

    # Lists

    def handle(self, name: str) -> Handle:
        """Return the handle of an execution; see `asl.Store.handle`."""
        known = find_execution(self.session, name)
        if known is None or self._remote.version(known.name) is not None:
            known = self.get(name)
        return Handle(self, known)

    def executions(
        self, *, status: str | None = None, before: int | None = None, limit: int = 50
    ) -> list[StoredExecution]:
        """Return a page of the latest executions; see `asl.Store.executions`.

        A redriven execution is listed by the time of its latest redrive.

        Raises:
            AslError: There is no such status.
        """
        return self._list.page(status, before, limit)

    def search(
        self, wanted: ExecutionFilter, *, before: int | None = None, limit: int = 50
    ) -> tuple[list[StoredExecution], int | None]:
        """Return a page of executions that meet conditions; see `asl.Store.search`."""
        return self._list.search(wanted, before, limit)

    def executions_of(
        self, machine: str, statuses: Sequence[str], before: int, limit: int
    ) -> list[StoredExecution]:
        """Return a page of the executions of a state machine; see `asl.Store.executions_of`."""
        return self._list.of_machine(machine, statuses, before, limit)

    def refresh_map_run(self, arn: str) -> None:
        """Copy the execution of a Map Run, if it is among the latest of its state machine."""
        known = find_resource(self.session, arn)
        if known is not None:
            self.get(known.owner)
            return
        machine = arn.replace(":mapRun:", ":stateMachine:", 1).partition("/")[0]
        for each in self.executions_of(machine, [], LARGEST_NUMBER - 1, SEARCHED):
            self.get(each.name)
            if find_resource(self.session, arn) is not None:
                return

    def position(self, name: str) -> int:
        """Return the position of an execution in lists, for `before`."""
        found = self.client.describe(self.root(name))
        return execution_number(found.id, found.start_time)

    def version(self, name: str) -> object:
        """Return a value that changes with an execution; see `asl.Store.version`."""
        top = self.root(name)
        self._remote.refresh(top)
        return self._remote.version(top)

    async def aversion(self, names: Iterable[str]) -> object:
        """Return a value that changes with some executions; see `asl.Store.aversion`."""
        found: list[object] = await asyncio.to_thread(lambda: [*map(self.version, names)])
        return found

    def of_number(self, number: int) -> StoredExecution | None:
        """Return the execution of a listed number; see `asl.Store.of_number`."""
        name = self._list.of_number(number)
        return None if name is None else self.get(name)

    def open_executions(self) -> list[tuple[str, str]]:
        """Return workflow and status of each execution that has not ended."""
        return self._list.open()

    def open_request_times(self) -> list[float]:
        """Return when each open request or task token was made; see `asl.Store`."""
        self._remote.refresh_waiting()
        return super().open_request_times()

    def queue_delay(self) -> float:
        """Return 0: the server shows the delays of its task queues."""
        return 0.0

    def due(self) -> list[str]:
        """Return nothing: workflows continue by themselves."""
        return []

    def interrupted(self) -> list[str]:
        """Return nothing: another worker continues the workflows of a dead one."""
        return []

    def is_interrupted(self, name: str) -> bool:
        """Return False: another worker continues the workflows of a dead one."""
        return False

    def needs(self, name: str) -> list[str]:
        """Return a sentence about each reason why an execution makes no progress."""
        return self._remote.needs(name)

    def stuck(self) -> dict[str, list[str]]:
        """Return why executions make no progress, by name; at most the latest 1000."""
        return self._list.stuck()

    def workers(self) -> list[str]:
        """Return the identities of the workers of the queue that polled within a minute."""
        return self.client.workers()

    def export(
        self, names: Sequence[str] | None = None, *, damaged: list[str] | None = None
    ) -> Iterator[Json]:
        """Yield executions as JSON; see `asl.Store.export`."""
        if names is None:
            names = [each.name for each in self.executions(limit=EXPORTED)]
        for name in names:
            top = self.root(name)
            yield from export_executions(self.session, [top], [] if damaged is None else damaged)

    def checkpoints(self, name: str | None = None) -> list[Checkpoint]:
        """Return the checkpoints of an execution; see `asl.Store.checkpoints`.

        Raises:
            StoreError: No execution is named.
        """
        if name is None:
            _refuse("lists executions, not what they save", "'asl checkpoints EXECUTION'")
        return super().checkpoints(name)

    # Answers

    def _record_answer(self, request_id: str, answer: dict[str, Json]) -> Json:
        """Send an answer that the copy accepts; a refused one is not sent."""
        text, now = compact(copy_foreign(answer)), self.clock.now()
        message = AnswerMessage(request=request_id, answer=text, given=now)
        name = self._root_of(request_id)
        judged = apply_answer(self, message)
        recorded = self._send(name, ANSWER, message)
        return judged if recorded is None else orjson.loads(recorded)

    def _root_of(self, id: str) -> str:
        """Return the root of the execution that made a request or waits for a token."""
        return top_of(self.session, self.execution_of(id))

    def _send(self, name: str, kind: str, message: AnswerMessage | TokenMessage) -> str | None:
        """Send an answer to a workflow.

        Args:
            name: Name of the execution.
            kind: Name of the update and of the signal.
            message: The answer.

        Returns:
            What the workflow answers; None if it receives a signal.
        """
        self._remote.outdate(name)
        try:
            return cast("str | None", self.client.update(name, kind, message))
        except TimeoutError:  # no worker is there, or it is slow: a repeated answer does no harm
            self.client.signal(name, kind, message)
            return None

    @property
    def tokens(self) -> StoreTaskTokens:
        """The task tokens of all executions; any process may answer them."""
        return TemporalTaskTokens(
            self._reader,
            self._root_of,
            lambda name, message: self._send(name, TOKEN, message),
            self._remote.refresh_polled,
        )

    # Ends

    def cancel(self, name: str, cause: str | None = None, *, error: str | None = None) -> None:
        """Abort an execution; see `asl.Store.cancel`.

        Raises:
            AslError: It has ended, or another execution started it.
        """
        known = self.get(name)
        if known.status in ENDED:
            raise AslError(f"the execution {known.name!r} has ended already: {known.status}")
        self._require_root(known, "cancel")
        self.client.cancel(known.name, CANCEL, CancelMessage(error=error, cause=cause))

    def delete(self, name: str) -> None:
        """Delete an ended execution; see `asl.Store.delete`.

        Raises:
            AslError: It has not ended, or another execution started it.
        """
        known = self.get(name)
        self._require_root(known, "delete")
        if known.status not in ENDED:
            raise not_ended(known)
        self.client.delete(known.name)
        self._remote.forget(known.name)

    def _require_root(self, known: StoredExecution, what: str) -> None:
        if known.parent is not None:
            top = top_of(self.session, known.name)
            raise AslError(f"the execution {known.name!r} is a part of {top!r}: {what} that one")

    # What a cluster has other tools for

    def retain(self, retention: Retention, *, dry_run: bool = False) -> list[str]:
        """Refuse: the namespace has a retention.

        Raises:
            StoreError: Always.
        """
        _refuse(
            "deletes ended executions after the retention of the namespace",
            "'temporal operator namespace update --retention 30d', or 'asl rm' for some",
        )

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Refuse: the database of the server holds the executions.

        Raises:
            StoreError: Always.
        """
        _refuse("keeps executions in its own database", "the backups of that, or 'asl export'")

    def faults(self, report: Callable[[str], object] = lambda part: None) -> Iterator[str]:
        """Refuse: the database of the server holds the executions.

        Raises:
            StoreError: Always.
        """
        _refuse("verifies its histories by itself", "'temporal workflow list' and 'asl ls --stuck'")

    # Shared budgets

    @property
    def _budgets(self) -> BudgetClient:
        """The shared budgets, on a connection of their own: one has one worker of a queue."""
        if self._budget_client is None:
            connection = self.client.run(connect(self.address))
            self._budget_client = BudgetClient(connection, self.address.queue)
        return self._budget_client

    def shared_budgets(self) -> list[StoredBudget]:
        """Return the budgets of money that executions share; see `asl.Store.shared_budgets`."""
        found = self.client.run(self._budgets.values())
        return sorted(
            StoredBudget.of(name, value) for name, value in found.items() if "spent" in value
        )

    def release_reservations(self) -> list[str]:
        """Release the reservations of workflows that have ended without releasing them.

        Returns:
            The names of the budgets that had such reservations for more than a minute.
        """
        return self.client.run(self._budgets.release_ended())


def _refuse(fact: str, instead: str) -> NoReturn:
    raise StoreError(f"a store on Temporal cannot do that: Temporal {fact}; use {instead}")
