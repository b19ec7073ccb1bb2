"""The desk of a store: where any process answers the task tokens of its executions."""

from __future__ import annotations

from time import monotonic, sleep
from typing import TYPE_CHECKING

from asl.core.values import Json
from asl.hosts.tokens import Desk, TaskDoesNotExist, TaskTimedOut
from asl.stores.requests import addressed, put_outcome, put_sign

if TYPE_CHECKING:
    from asl.engine.awaited import Awaited
    from asl.executions.kept import Kept
    from asl.states.errors import Reported
    from asl.stores.sqlite import SqliteStore

__all__ = ["StoreTokens"]

LOOK = 0.2
"""Seconds between two looks at whether there is a task."""
DUE = (
    "UPDATE execution SET wake = min(coalesce(wake, ?), ?) "
    "WHERE status = 'PAUSED' AND number = (SELECT execution FROM request WHERE id = ?)"
)


class StoreTokens(Desk):
    """Answers to task tokens, and tasks for the workers of activities, of the executions in a file.

    Its methods are those of `asl.TaskTokens`; any thread may call them. An answer is durable when
    they return; `Store.resume` goes on with the execution where nobody is at work on it.
    """

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self.now = kept.now

    @property
    def file(self) -> SqliteStore:
        """The store as this thread has it."""
        return self._kept.file

    def _settle(self, token: str, output: Json, failure: Reported | None) -> None:
        written = None if failure is None else [*failure.args]
        with self.file.transaction():
            task = self._open(token)
            task.outcome, task.status = [self.now(), output, written], "answered"
            put_outcome(self.file, task)
            self.file.write(DUE, 0.0, 0.0, token)

    def _sign(self, token: str) -> None:
        with self.file.transaction():
            task = self._open(token)
            task.beat = self.now()
            self._keep_sign(task)

    def _taken(self, activity: str, worker: str | None, until: float) -> tuple[str | None, Json]:
        while True:
            task = self._next_taken(activity, worker)
            if task is not None:
                return task.token, task.payload
            if monotonic() >= until:
                return None, None
            sleep(min(LOOK, max(0.0, until - monotonic())))

    def _next_taken(self, activity: str, worker: str | None) -> Awaited | None:
        condition = "status = 'open' AND digest = ?"
        address = addressed(activity)
        if not self._next(condition, address):  # no need to keep others from writing
            return None
        with self.file.transaction():
            task = self._next(condition, address)
            if task is not None:
                task.taken = task.beat = self.now()
                task.worker = worker
                self._keep_sign(task)
        return task

    def _next(self, condition: str, address: str) -> Awaited | None:
        now = self.now()
        for task in self.file.tasks(condition, address):
            if task.taken is None and (task.due is None or now < task.due):
                return task
        return None

    def _keep_sign(self, task: Awaited) -> None:
        put_sign(self.file, task)
        if task.due is not None:
            self.file.write(DUE, task.due, task.due, task.token)

    def _open(self, token: str) -> Awaited:
        """Return the task of a token that may still be answered."""
        found = self.file.tasks("id = ?", token)
        if not found:
            raise TaskDoesNotExist(f"no task in {self.file.path} has the token {token}")
        (task,) = found
        became = {"answered": "it was answered already", "timeout": "it timed out"}
        why = became.get(task.status, "its execution has ended")
        if task.status == "open":
            if task.due is None or self.now() < task.due:
                return task
            why = "it timed out"
        raise TaskTimedOut(f"the task of the token {token} is closed: {why}")
