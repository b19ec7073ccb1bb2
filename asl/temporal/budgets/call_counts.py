"""The counts of tool calls that a call on a worker shares with others (`asl.effects.rate_limits`).

The worker asks the workflows of the counts directly, and sends each change soon.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final
from uuid import uuid4

from asl.core.values import Json
from asl.temporal.budgets.client import BudgetClient
from asl.temporal.budgets.copies import BudgetCopies, Holding
from asl.temporal.budgets.workflow import ExchangeMessage

__all__ = ["CallCounts"]

INTERVAL: Final = 1.0
"""Seconds between two checks whether a call of another execution has ended."""


class _CallLink:
    """The connection of a call to the workflows of counts.

    Args:
        client: The shared budgets of the queue.
        workflow: Id of the workflow that makes the call.
    """

    def __init__(self, client: BudgetClient, workflow: str) -> None:
        self._client = client
        self._workflow = workflow
        self._holder = uuid4().hex
        self._sent = 0
        """Number of messages; a lost worker repeats none."""

    def holding(self) -> Holding:
        """Return who sends, and when."""
        self._sent += 1
        return Holding(self._holder, self._workflow, self._sent, time.time())

    def is_leaving(self) -> bool:
        """Return False: no start is deferred."""
        return False

    def is_shared(self) -> bool:
        """Return True: there are such workflows."""
        return True

    async def exchange(self, messages: dict[str, ExchangeMessage]) -> dict[str, Json]:
        """Send changes one after the other."""
        return {name: await self._client.exchange(name, each) for name, each in messages.items()}


class CallCounts(BudgetCopies):
    """The counts of a call.

    Args:
        client: The shared budgets of the queue.
        workflow: Id of the workflow that makes the call.
    """

    def __init__(self, client: BudgetClient, workflow: str) -> None:
        super().__init__(_CallLink(client, workflow), INTERVAL)
        self._sending: asyncio.Task[None] | None = None

    def change(self, name: str, make: Callable[[Json], Json]) -> None:
        """Replace the copy of a count by the result of *make*, and send the change."""
        super().change(name, make)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self.send())

    async def close(self) -> None:
        """Send what was not sent."""
        if self._sending is not None:
            await self._sending
        await self.send()
