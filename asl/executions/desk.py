"""The desk of a store: where any process answers the task tokens of its executions."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import TYPE_CHECKING

from asl.core.errors import AslError
from asl.core.values import Json, compact
from asl.hosts.tokens import (
    POLL,
    TaskDoesNotExist,
    TaskTimedOut,
    TaskTokens,
    check_activity,
    check_token,
    read_output,
)
from asl.stores.journal import addressed, put_outcome, put_sign

if TYPE_CHECKING:
    from asl.engine.awaited import Awaited
    from asl.stores.sqlite import SqliteStore

__all__ = ["StoreTokens"]

LOOK = 0.2
"""Seconds between two looks at whether there is a task."""
DUE = (
    "UPDATE execution SET wake = min(coalesce(wake, ?1), ?1) "
    "WHERE status = 'PAUSED' AND number = (SELECT execution FROM request WHERE id = ?2)"
)


class StoreTokens:
    """Answers to task tokens, and tasks for the workers of activities, of the executions in a file.

    Its methods are those of `asl.TaskTokens`. An answer is durable when they return; `Store.resume`
    goes on with the execution where nobody is at work on it.
    """

    exceptions = TaskTokens.exceptions

    def __init__(self, file: SqliteStore, now: Callable[[], float]) -> None:
        self.file = file
        self.now = now

    def send_task_success(self, taskToken: str, output: Json) -> dict[str, Json]:  # noqa: N803
        """Answer the task of a token; see `asl.TaskTokens.send_task_success`."""
        return self._settle(taskToken, read_output(output), None)

    def send_task_failure(
        self,
        taskToken: str,  # noqa: N803
        error: str | None = None,
        cause: str | None = None,
    ) -> dict[str, Json]:
        """Fail the task of a token; see `asl.TaskTokens.send_task_failure`."""
        for text in (error, cause):
            if not (text is None or isinstance(text, str)):
                raise AslError(f"error and cause of a failure are texts, not {text!r}")
        return self._settle(taskToken, None, [error, cause])

    def send_task_heartbeat(self, taskToken: str) -> dict[str, Json]:  # noqa: N803
        """Say that the work goes on: the state's `HeartbeatSeconds` starts anew."""
        with self.file.transaction():
            task = self._open(taskToken)
            task.beat = self.now()
            self._sign(task)
        return {}

    def get_activity_task(
        self,
        activityArn: str,  # noqa: N803
        workerName: str | None = None,  # noqa: N803
        *,
        wait: float = POLL,
    ) -> dict[str, str | None]:
        """Take the next task of an activity: its `taskToken`, and its `input` as JSON text.

        Blocks for *wait* seconds at most, then both are None: there is no task.
        """
        check_activity(activityArn)
        until = monotonic() + wait
        while True:
            task = self._taken(activityArn, workerName)
            if task is not None:
                return {"taskToken": task.token, "input": compact(task.payload)}
            if monotonic() >= until:
                return {"taskToken": None, "input": None}
            sleep(min(LOOK, max(0.0, until - monotonic())))

    def _taken(self, activity: str, worker: str | None) -> Awaited | None:
        condition = "status = 'open' AND digest = ?"
        address = addressed(activity)
        if not self._next(condition, address):  # no need to keep others from writing
            return None
        with self.file.transaction():
            task = self._next(condition, address)
            if task is not None:
                task.taken = task.beat = self.now()
                task.worker = worker
                self._sign(task)
        return task

    def _next(self, condition: str, address: str) -> Awaited | None:
        now = self.now()
        for task in self.file.tasks(condition, address):
            if task.taken is None and (task.due is None or now < task.due):
                return task
        return None

    def _settle(self, token: str, output: Json, failure: Json) -> dict[str, Json]:
        with self.file.transaction():
            task = self._open(token)
            task.outcome, task.status = [self.now(), output, failure], "answered"
            put_outcome(self.file, task)
            self.file.write(DUE, 0.0, token)
        return {}

    def _sign(self, task: Awaited) -> None:
        put_sign(self.file, task)
        if task.due is not None:
            self.file.write(DUE, task.due, task.token)

    def _open(self, token: str) -> Awaited:
        """Return the task of a token that may still be answered."""
        check_token(token)
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
