"""The shared budgets of a workflow: it sends changes by a local activity, which is one event."""

from __future__ import annotations

import asyncio
import json
from collections import ChainMap
from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, is_cancelled_exception

from asl.core.values import Json, compact
from asl.temporal.budgets.activities import BUDGETS, BudgetsAnswer
from asl.temporal.budgets.copies import BudgetCopies, Holding
from asl.temporal.budgets.workflow import ExchangeMessage
from asl.temporal.payloads import unpack

__all__ = ["WorkflowBudgets"]

PATCH: Final = "shared-budgets"
"""Before it, each execution counted alone."""
INTERVAL: Final = 5.0
"""Seconds between two checks of a waiting call; each costs events."""
TIMEOUT: Final = timedelta(seconds=60)
"""Time of one request; a lost one is repeated, and keeps its turn."""
SOON: Final = timedelta(seconds=0.1)
LATEST: Final = timedelta(seconds=10)
"""Time between the first two requests, and the longest one between two."""


class _WorkflowLink:
    """The connection of a workflow to those of budgets.

    Args:
        is_leaving: Returns whether the workflow continues as a new run, which makes the starts.
    """

    def __init__(self, is_leaving: Callable[[], bool]) -> None:
        self._is_leaving = is_leaving
        self.pools: dict[str, Decimal] = {}
        """Amounts of pools that workers know."""

    def holding(self) -> Holding:
        """Return who sends, and when."""
        info = workflow.info()
        length = info.get_current_history_length()
        return Holding(info.run_id, info.workflow_id, length, workflow.time())

    def is_leaving(self) -> bool:
        """Return whether the next run makes the starts."""
        return self._is_leaving()

    def is_shared(self) -> bool:
        """Return whether the execution has begun with shared budgets."""
        return workflow.patched(PATCH)

    async def exchange(self, messages: dict[str, ExchangeMessage]) -> dict[str, Json]:
        """Send changes by a local activity."""
        try:
            found: str = await workflow.execute_local_activity(
                BUDGETS,
                compact(messages),
                start_to_close_timeout=TIMEOUT,
                retry_policy=RetryPolicy(initial_interval=SOON, maximum_interval=LATEST),
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise asyncio.CancelledError from None
            raise
        answer: BudgetsAnswer = json.loads(found)
        self.pools.update({name: Decimal(each) for name, each in answer["pools"].items()})
        values: dict[str, Json] = unpack(answer["values"])
        return values


class WorkflowBudgets(BudgetCopies):
    """The shared budgets of a workflow.

    Args:
        is_leaving: Returns whether the workflow continues as a new run, which makes the starts.
    """

    def __init__(self, is_leaving: Callable[[], bool]) -> None:
        link = _WorkflowLink(is_leaving)
        super().__init__(link, INTERVAL)
        self._amounts = link.pools

    def pools(self, given: Mapping[str, Decimal]) -> Mapping[str, Decimal]:
        """Return the amounts of pools: those of the workers, else those of the start."""
        return ChainMap(self._amounts, dict(given))

    async def send_late(self) -> None:
        """Send what no call sends soon, such as the release of a cancelled call."""
        while True:
            await workflow.wait_condition(lambda: self.is_late)
            await self.send()
