"""The part of a store that reads executions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from asl.core.values import Json
from asl.engine.checkpoints import Checkpoint
from asl.engine.events import Event
from asl.engine.result import Result
from asl.executions.base import StoreBase
from asl.executions.execution_reader import EventFeed
from asl.executions.locking import interrupted_executions, is_interrupted
from asl.program import Program
from asl.stores.checkpoints import read_checkpoints
from asl.stores.executions import (
    ExecutionFilter,
    StoredExecution,
    descendants,
    due_executions,
    execution_of_number,
    executions_of,
    find_execution,
    list_executions,
    read_value,
    search_executions,
    top_of,
)
from asl.stores.pools import StoreBudgets, StoredBudget
from asl.stores.statements import Select, one_of
from asl.stores.tables import EXECUTION, REQUEST
from asl.stores.workers import Workers

__all__ = ["StoreReader"]

OPEN_EXECUTIONS = Select(
    EXECUTION, ("workflow", "status"), {"status": one_of("RUNNING", "PAUSED"), "parent": None}
)
OPEN_REQUESTS = Select(REQUEST, ("created",), {"status": "open"})


class StoreReader(StoreBase):
    """Results, histories and waits of the executions of a store."""

    def executions(
        self, *, status: str | None = None, before: int | None = None, limit: int = 50
    ) -> list[StoredExecution]:
        """Return a page of root executions, newest first.

        Args:
            status: Only executions with this status, such as `"PAUSED"`; None for all.
            before: `number` of the last execution of the previous page; None for the first page.
            limit: Maximum number of executions.

        Raises:
            AslError: There is no such status.
        """
        return list_executions(self.session, status=status, before=before, limit=limit)

    def search(
        self, wanted: ExecutionFilter, *, before: int | None = None, limit: int = 50
    ) -> tuple[list[StoredExecution], int | None]:
        """Return a page of root executions that meet conditions, newest first.

        Args:
            wanted: The conditions.
            before: Second result for the previous page; None for the first page.
            limit: Maximum number of executions.

        Returns:
            The executions, and the position of the next page, None after the last one.

        Raises:
            AslError: There is no such status.
        """
        return search_executions(self.session, wanted, before=before, limit=limit)

    def executions_of(
        self, machine: str, statuses: Sequence[str], before: int, limit: int
    ) -> list[StoredExecution]:
        """Return a page of the executions of a registered state machine, newest first.

        Args:
            machine: ARN of the state machine.
            statuses: Statuses of the executions.
            before: `number` of the last execution of the previous page, or `LARGEST_NUMBER`.
            limit: Maximum number.
        """
        return executions_of(self.session, machine, statuses, before, limit)

    def position(self, name: str) -> int:
        """Return the position of an execution in lists, for `before`.

        Raises:
            ExecutionNotFound: There is no such execution.
        """
        return self.get(name).number

    def version(self, name: str) -> object:
        """Return a value that changes with an execution, and may change with others."""
        return self.session.version

    async def aversion(self, names: Iterable[str]) -> object:
        """Return a value that changes with some executions, on the running event loop."""
        return self.session.version

    def of_number(self, number: int) -> StoredExecution | None:
        """Return the execution of a `number`, None without one."""
        return execution_of_number(self.session, number)

    def open_executions(self) -> list[tuple[str, str]]:
        """Return workflow and status of each root execution that has not ended."""
        return [(row[0], row[1]) for row in self.session.select(OPEN_EXECUTIONS)]

    def open_request_times(self) -> list[float]:
        """Return when each open request or task token was made, in epoch seconds."""
        return [row[0] for row in self.session.select(OPEN_REQUESTS)]

    def shared_budgets(self) -> list[StoredBudget]:
        """Return the budgets of money that executions share, by name.

        Raises:
            StoreDamaged: A budget is damaged.
        """
        return StoreBudgets(self.session).stored()

    def queue_delay(self) -> float:
        """Return the seconds for which the longest due execution has waited for a runner."""
        delays, now = [0.0], self.clock.now()
        for _, name in self._workers.ready(now, 1):
            found = find_execution(self.session, name)
            if found is not None:
                due = found.wake if found.status == "PAUSED" else found.started
                delays.append(now - (due or found.started))
        return max(delays)

    def descendants(self, name: str) -> list[StoredExecution]:
        """Return the executions that this one started, directly or indirectly, oldest first.

        Raises:
            ExecutionNotFound: There is no such execution.
        """
        return descendants(self.session, self.get(name).number)

    def root(self, name: str) -> str:
        """Return the name of the root execution that led to this one, its own if it is one.

        Raises:
            ExecutionNotFound: There is no such execution.
        """
        return top_of(self.session, self.get(name).name)

    def input(self, name: str) -> Json:
        """Return the input of an execution.

        Raises:
            ExecutionNotFound: There is no such execution.
        """
        return self._reader.input(self.get(name))

    def output(self, name: str) -> Json:
        """Return the output of an execution, None before its successful end.

        Raises:
            ExecutionNotFound: There is no such execution.
        """
        return read_value(self.session, self.get(name).number, "output")

    def program(self, name: str) -> Program:
        """Return the program of an execution.

        Raises:
            ExecutionNotFound: There is no such execution.
        """
        return self._reader.program(self.get(name))

    def events(self, name: str, *, wait: Callable[[], object] | None = None) -> Iterator[Event]:
        """Yield the recorded history of an execution.

        Args:
            name: Name or id of the execution.
            wait: Called whenever there is nothing new, to follow the history to its end; None to
                stop at the last recorded event.

        Raises:
            ExecutionNotFound: There is no such execution.
        """
        return self._reader.events(name, wait)

    def feed(self, name: str) -> EventFeed:
        """Return a reader that follows the history of an execution."""
        return EventFeed(self._reader, name)

    def result(self, name: str, *, with_history: bool = True) -> Result:
        """Return the result of an execution so far.

        Args:
            name: Name or id of the execution.
            with_history: Whether to read the history. Without it `visited` and `events` of the
                result are empty, and the time to read it does not depend on the history.

        Raises:
            ExecutionNotFound: There is no such execution.
        """
        known = self.get(name)
        return self._reader.result(known, self._reader.program(known), with_history)

    def checkpoints(self, name: str | None = None) -> list[Checkpoint]:
        """Return the checkpoints of an execution, or of all executions, oldest first."""
        if name is not None:
            return self._reader.checkpoints(self.get(name))
        return read_checkpoints(self.session)

    def command(self, name: str) -> tuple[list[str], str] | None:
        """Return the command line options that bound the names of an execution, and their folder.

        Returns:
            Options and current folder of the command; None if no command ran the execution.
        """
        found = self._reader.bound_names(self.get(self.root(name)))["command"]
        return None if found is None else (found["options"], found["folder"])

    def due(self) -> list[str]:
        """Return the names of the paused executions that can continue now.

        One of their requests was answered, or an escalation or a timeout is due.
        """
        return due_executions(self.session, self.clock.now())

    def is_interrupted(self, name: str) -> bool:
        """Return whether the process of a running execution has died.

        Raises:
            ExecutionNotFound: There is no such execution.
        """
        return is_interrupted(self.session, self.get(name))

    def interrupted(self) -> list[str]:
        """Return the names of the executions whose process has died, oldest first."""
        return interrupted_executions(self.session)

    def needs(self, name: str) -> list[str]:
        """Return a sentence about each binding that an execution needs and no runner has."""
        return self._workers.needs(self.get(name).number)

    def stuck(self) -> dict[str, list[str]]:
        """Return the missing bindings of the executions that no runner can continue, by name."""
        return {name: needs for _, name, needs in self._workers.missing_bindings()}

    def workers(self) -> list[str]:
        """Return the ids of the live runners of the store."""
        return self._workers.alive()

    @property
    def _workers(self) -> Workers:
        return Workers(self.session)
