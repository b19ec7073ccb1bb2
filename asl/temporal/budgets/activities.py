"""The local activity by which executions change shared budgets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any, Final, TypedDict

from temporalio import activity

from asl.bindings import Bindings, bind
from asl.core.values import compact
from asl.temporal.budgets.client import BudgetClient
from asl.temporal.budgets.workflow import ExchangeMessage
from asl.temporal.payloads import pack

__all__ = ["BUDGETS", "BudgetActivities", "BudgetsAnswer"]

BUDGETS: Final = "asl.budgets"
"""Type of the activity."""


class BudgetsAnswer(TypedDict):
    """What the activity returns."""

    values: str
    """Packed budgets by name."""
    pools: dict[str, str]
    """Amounts of the pools that this worker knows."""


class BudgetActivities:
    """The shared budgets of a worker.

    Args:
        bindings: What the worker performs, as for `asl.run`.
    """

    def __init__(self, bindings: Bindings) -> None:
        self._pools: Mapping[str, Decimal] = bind(bindings).services.pools
        self._client: BudgetClient | None = None

    @property
    def all(self) -> list[Callable[..., Any]]:
        """All activities, for a worker."""
        return [self.exchange]

    @property
    def client(self) -> BudgetClient:
        """The budgets of the queue of the activity that runs."""
        if self._client is None:
            self._client = BudgetClient(activity.client(), activity.info().task_queue)
        return self._client

    @activity.defn(name=BUDGETS)
    async def exchange(self, text: str) -> str:
        """Change budgets one after the other, and return those that are held now."""
        messages: dict[str, ExchangeMessage] = json.loads(text)
        values = {}
        for name, each in messages.items():
            values[name] = await self.client.exchange(name, each)
        pools = {name: str(amount) for name, amount in self._pools.items()
                 if f"Pool {name}" in values}  # fmt: skip
        return compact(BudgetsAnswer(values=pack(values), pools=pools))

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Return a context at whose end the budgets are closed."""
        try:
            yield
        finally:
            if self._client is not None:
                await self._client.close()
