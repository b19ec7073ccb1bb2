"""Task tokens of executions on Temporal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from asl.core.values import Json, compact
from asl.effects.task_tokens import TaskDoesNotExist, TokenError
from asl.engine.pending_callback import PendingCallback
from asl.executions.errors import RequestNotFound
from asl.executions.execution_reader import ExecutionReader
from asl.executions.task_tokens import StoreTaskTokens
from asl.states.errors import CallbackError
from asl.temporal.payloads import TokenMessage

__all__ = ["TemporalTaskTokens"]


class TemporalTaskTokens(StoreTaskTokens):
    """Task tokens of the executions of a store on Temporal.

    Args:
        reader: The copies of the executions.
        find: Copies the execution that waits for a token, and returns the name of its root.
        send: Sends an answer to the workflow of an execution.
        refresh: Copies the executions that wait for workers of an activity.
    """

    look = 1.0

    def __init__(
        self,
        reader: ExecutionReader,
        find: Callable[[str], str],
        send: Callable[[str, TokenMessage], object],
        refresh: Callable[[str], object],
    ) -> None:
        super().__init__(reader)
        self._find = find
        self._send = send
        self._refresh = refresh

    def _settle(self, token: str, output: Json, failure: CallbackError | None) -> None:
        name = self._root(token)
        super()._settle(token, output, failure)  # refuses a closed token before anything is sent
        message = TokenMessage(token=token, given=self.now())
        if failure is None:
            message["output"] = compact(output)
        else:
            message["failure"] = [*failure.args]
        self._send(name, message)

    def _sign(self, token: str) -> None:
        name = self._root(token)
        super()._sign(token)
        self._send(name, TokenMessage(token=token, given=self.now(), heartbeat=True))

    def _root(self, token: str) -> str:
        """Return the root of the execution that waits for a token."""
        try:
            return self._find(token)
        except RequestNotFound:
            raise TaskDoesNotExist(
                f"no task in {self.session.place} has the token {token}"
            ) from None

    def next_task(self, activity: str, worker: str | None) -> PendingCallback | None:
        """Take the next task of an activity; see `StoreTaskTokens.next_task`."""
        self._refresh(activity)
        while (task := super().next_task(activity, worker)) is not None:
            message = TokenMessage(token=task.token, given=self.now(), worker=worker)
            with suppress(TokenError):  # another worker was faster, or its execution has ended
                self._send(self._root(task.token), message)
                return task
        return None
