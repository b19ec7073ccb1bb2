"""Answers of states to task tokens of other workflows, sent by a worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from asl.core.errors import StateError
from asl.core.values import Json
from asl.temporal.payloads import TOKEN, ForeignTokenMessage, TokenMessage
from asl.temporal.queries import execution_query

__all__ = ["send_token_answer"]

LOOKS: Final = 4
PAUSE: Final = 0.5
"""Number of searches for the execution of a token, since lists are late, and seconds between."""
PATIENCE: Final = 3.0
"""Seconds to wait for a worker's answer to an update, before a signal is sent."""


async def send_token_answer(
    client: Client, queue: str, message: ForeignTokenMessage, key: str
) -> None:
    """Answer the token of another execution of a queue.

    Args:
        client: The client.
        queue: Task queue of the executions.
        message: The answer.
        key: Identifies the answer, so that a repeated one is the same.

    Raises:
        StateError: `TaskDoesNotExist` or `TaskTimedOut`, as AWS names it.
    """
    answer, token = message["answer"], message["answer"]["token"]
    async for name, is_certain in _candidates(client, queue, token, message["starter"]):
        try:
            await asyncio.wait_for(_update(client, name, answer, key), PATIENCE)
            return
        except TimeoutError:
            if is_certain:
                await client.get_workflow_handle(name).signal(TOKEN, answer)
                return
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
        except StateError as error:
            if error.name != "TaskDoesNotExist":
                raise
    raise StateError("TaskDoesNotExist", f"no task of the queue {queue!r} has the token {token}")


async def _candidates(
    client: Client, queue: str, token: str, starter: str | None
) -> AsyncIterator[tuple[str, bool]]:
    """Yield the workflows that may wait for a token, and whether they certainly do."""
    seen: set[str] = set()
    if starter is not None:
        seen.add(starter)
        yield starter, False
    query = execution_query(queue, ["ExecutionStatus = 'Running'"])
    for look in range(LOOKS):
        if look:
            await asyncio.sleep(PAUSE)
        async for each in client.list_workflows(query, page_size=1000):
            memo: dict[str, Json] = {**await each.memo()}
            waits = token in memo.get("waits", ())
            if waits or (memo.get("more") and each.id not in seen):
                seen.add(each.id)
                yield each.id, waits


async def _update(client: Client, name: str, answer: TokenMessage, key: str) -> None:
    """Send an answer to a workflow.

    Raises:
        StateError: It is refused.
    """
    try:
        await client.get_workflow_handle(name).execute_update(TOKEN, answer, id=key)
    except WorkflowUpdateFailedError as error:
        cause = error.cause
        if isinstance(cause, ApplicationError):
            raise StateError(cause.type or "", cause.message) from None
        raise
