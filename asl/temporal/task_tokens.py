"""Task tokens of executions on Temporal."""

from __future__ import annotations

from collections.abc import Callable

from asl.core.values import Json, compact
from asl.effects.task_tokens import TaskDoesNotExist
from asl.engine.pending_callback import PendingCallback
from asl.executions.errors import RequestNotFound
from asl.executions.execution_reader import ExecutionReader
from asl.executions.task_tokens import StoreTaskTokens
from asl.states.errors import CallbackError
from asl.stores.errors import StoreError
from asl.temporal.payloads import TokenMessage

__all__ = ["TemporalTaskTokens"]


class TemporalTaskTokens(StoreTaskTokens):
    """Task tokens of the executions of a store on Temporal.

    Args:
        reader: The copies of the executions.
        find: Copies the execution that waits for a token, and returns the name of its root.
        send: Sends an answer to the workflow of an execution.
    """

    def __init__(
        self,
        reader: ExecutionReader,
        find: Callable[[str], str],
        send: Callable[[str, TokenMessage], object],
    ) -> None:
        super().__init__(reader)
        self._find = find
        self._send = send

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
        """Refuse: tasks of activities are not handed out here.

        Raises:
            StoreError: Always.
        """
        raise StoreError(
            f"executions on Temporal have no queue of the activity {activity!r}: bind it as a "
            "resource of 'asl worker', or use .waitForTaskToken"
        )
