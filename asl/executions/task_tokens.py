"""Task tokens of stored executions, which any process may answer."""

from __future__ import annotations

from time import monotonic, sleep
from typing import ClassVar

from asl.core.values import Json
from asl.effects.task_tokens import TaskDoesNotExist, TaskTimedOut, TaskTokenService
from asl.engine.pending_callback import PendingCallback
from asl.executions.execution_reader import ExecutionReader
from asl.states.errors import CallbackError
from asl.stores.requests import (
    BY_ID,
    FOR,
    find_tasks,
    owner_of,
    put_heartbeat,
    put_outcome,
    resource_digest,
    scan_tasks,
)
from asl.stores.session import Session
from asl.stores.statements import PARAMETER, Select, Update
from asl.stores.tables import EXECUTION

__all__ = ["StoreTaskTokens"]

WAKE = Select(EXECUTION, ("wake",), {"number": PARAMETER, "status": "PAUSED"})
DUE = Update(EXECUTION, {"wake": PARAMETER}, {"number": PARAMETER, "status": "PAUSED"})


class StoreTaskTokens(TaskTokenService):
    """Task tokens and activity tasks of the executions of a store.

    The methods are those of `asl.TaskTokens`; any thread may call them. An answer is durable when
    they return; `Store.resume` or a runner continues the execution.
    """

    look: ClassVar[float] = 0.2
    """Seconds between two looks for a task."""

    def __init__(self, reader: ExecutionReader) -> None:
        self._reader = reader
        self.now = reader.now

    @property
    def session(self) -> Session:
        """The session of this thread."""
        return self._reader.session

    def _settle(self, token: str, output: Json, failure: CallbackError | None) -> None:
        written = None if failure is None else [*failure.args]
        with self.session.transaction():
            task = self._open(token)
            task.outcome, task.status = [self.now(), output, written], "answered"
            put_outcome(self.session, task)
            self._wake(token, 0.0)

    def _sign(self, token: str) -> None:
        with self.session.transaction():
            task = self._open(token)
            task.last_heartbeat = self.now()
            self._keep_sign(task)

    def _taken(self, activity: str, worker: str | None, until: float) -> tuple[str | None, Json]:
        while True:
            task = self.next_task(activity, worker)
            if task is not None:
                return task.token, task.payload
            if monotonic() >= until:
                return None, None
            sleep(min(self.look, max(0.0, until - monotonic())))

    def next_task(self, activity: str, worker: str | None) -> PendingCallback | None:
        """Take the next task of an activity, None without one.

        Args:
            activity: ARN of the activity.
            worker: Name of the worker for the history; None for none.
        """
        address = resource_digest(activity)
        if not self._next(address):  # without a transaction, which would block writers
            return None
        with self.session.transaction():
            task = self._next(address)
            if task is not None:
                self._give(task, worker)
        return task

    def take(self, token: str, worker: str | None) -> None:
        """Take the task of a token for a worker.

        Raises:
            TaskDoesNotExist: No task has the token.
            TaskTimedOut: The task is closed, or another worker has it.
        """
        with self.session.transaction():
            task = self._open(token)
            if task.taken_at is not None:
                raise TaskTimedOut(f"the task of the token {token} is taken already")
            self._give(task, worker)

    def _give(self, task: PendingCallback, worker: str | None) -> None:
        task.taken_at = task.last_heartbeat = self.now()
        task.worker = worker
        self._keep_sign(task)

    def _next(self, address: str) -> PendingCallback | None:
        now = self.now()
        for task in scan_tasks(self.session, FOR, address):
            if task.taken_at is None and (task.due is None or now < task.due):
                return task
        return None

    def _keep_sign(self, task: PendingCallback) -> None:
        put_heartbeat(self.session, task)
        if task.due is not None:
            self._wake(task.token, task.due)

    def _wake(self, token: str, time: float) -> None:
        """Make the paused execution of a token due at a time, at the latest."""
        session, number = self.session, owner_of(self.session, token)
        for (wake,) in session.select(WAKE, number):
            session.write(DUE, time if wake is None else min(wake, time), number)

    def _open(self, token: str) -> PendingCallback:
        """Return the open task of a token."""
        found = find_tasks(self.session, BY_ID, token)
        if not found:
            raise TaskDoesNotExist(f"no task in {self.session.place} has the token {token}")
        (task,) = found
        became = {"answered": "it was answered already", "timeout": "it timed out"}
        why = became.get(task.status, "its execution has ended")
        if task.status == "open":
            if task.due is None or self.now() < task.due:
                return task
            why = "it timed out"
        raise TaskTimedOut(f"the task of the token {token} is closed: {why}")
