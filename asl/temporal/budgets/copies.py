"""Copies of shared budgets in a workflow or a call, and the changes to send.

A holder changes its copies. While it holds budgets, they are those of all executions, and the
changes are sent at the end. Other changes are sent with the next ones, or by `send`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import NamedTuple, Protocol

from asl.core.values import Json
from asl.engine.pool_entries import remove_execution
from asl.states.errors import Suspension
from asl.temporal.budgets.changes import Change, apply, compare, copy_budget, merge
from asl.temporal.budgets.workflow import ExchangeMessage

__all__ = ["BudgetCopies", "BudgetLink", "Holding"]


class Holding(NamedTuple):
    """A holder at a time.

    Attributes:
        holder: Its unique name.
        workflow: Id of its workflow.
        length: Length of the history of its workflow; with another length the history has
            everything that was sent before.
        now: Time in epoch seconds.
    """

    holder: str
    workflow: str
    length: int
    now: float


class BudgetLink(Protocol):
    """The connection of a holder to the workflows of budgets."""

    def holding(self) -> Holding:
        """Return who sends, and when."""
        ...

    def is_leaving(self) -> bool:
        """Return whether starts are deferred."""
        ...

    def is_shared(self) -> bool:
        """Return whether there are such workflows; else the copies are all."""
        ...

    async def exchange(self, messages: dict[str, ExchangeMessage]) -> dict[str, Json]:
        """Send changes, and return the budgets that are held now."""
        ...


class _Copy:
    """A budget as its holder knows it."""

    def __init__(self) -> None:
        self.value: Json = {}
        self.unsent: Change = {}
        self.number = 0
        """Number of the next change."""
        self.recorded = 0
        """Number from which on the history may not have the changes."""
        self.length = 0
        """Length of the history at the last message."""
        self.is_claimed = False
        """Whether the holder has, or may have, the turn."""

    def message(self, at: Holding, holds: bool) -> ExchangeMessage:
        """Return the message with the changes to send."""
        if at.length != self.length:
            self.length, self.recorded = at.length, self.number
        return ExchangeMessage(
            holder=at.holder,
            workflow=at.workflow,
            number=self.number,
            recorded=self.recorded,
            change=self.unsent,
            holds=holds,
            ended=[],
            now=at.now,
        )


class BudgetCopies:
    """The shared budgets of a holder (protocol `asl.engine.pools.SharedBudgets`).

    Args:
        link: Its connection to the workflows of budgets.
        interval: Seconds between two checks whether a call of another execution has ended.
    """

    def __init__(self, link: BudgetLink, interval: float) -> None:
        self.interval = interval
        self._link = link
        self._copies: dict[str, _Copy] = {}
        self._lock = asyncio.Lock()
        self._waiting: list[frozenset[str]] = []
        """Names for which machines wait, in their order."""
        self._held: frozenset[str] = frozenset()

    def change(self, name: str, make: Callable[[Json], Json]) -> None:
        """Replace the copy of a budget by the result of *make*."""
        known = self._copies.setdefault(name, _Copy())
        after = make(copy_budget(known.value) or None)
        known.unsent = merge(known.unsent, compare(known.value, after))
        known.value = after

    def release(self, execution: str, spent: Decimal, now: float) -> None:
        """Release the reservations of an execution that ends without running."""
        for name, known in self._copies.items():
            if known.value:
                self.change(name, lambda kept: remove_execution(kept, execution, spent, now))

    @asynccontextmanager
    async def held(self, names: Collection[str], *, starts: bool = False) -> AsyncIterator[None]:
        """Hold budgets; machines of this holder that wait for the same ones take them over.

        Raises:
            Suspension: The next run of the workflow makes the start.
        """
        if starts and self._link.is_leaving():
            raise Suspension
        if not self._link.is_shared():
            yield
            return
        wanted = frozenset(names)
        async with self._turn(wanted):
            if not wanted <= self._held:
                await self._exchange(wanted, holds=True)
            try:
                yield
            finally:
                if not (self._waiting and self._waiting[0] <= self._held):
                    await self._exchange(self._unsent, holds=False)

    @asynccontextmanager
    async def _turn(self, wanted: frozenset[str]) -> AsyncIterator[None]:
        self._waiting.append(wanted)
        try:
            await self._lock.acquire()
        finally:
            self._waiting.remove(wanted)
        try:
            yield
        finally:
            self._lock.release()

    async def send(self) -> None:
        """Send the changes that were not sent, and leave the budgets to others."""
        while self._unsent and self._link.is_shared():
            async with self._turn(frozenset()):
                await self._exchange(self._unsent, holds=False)

    @property
    def is_late(self) -> bool:
        """Whether there is something to send, and no machine is about to send it."""
        return bool(self._copies) and not self._lock.locked() and bool(self._unsent)

    @property
    def _unsent(self) -> frozenset[str]:
        copies = self._copies.items()
        return frozenset(name for name, each in copies if each.unsent or each.is_claimed)

    async def _exchange(self, names: Collection[str], *, holds: bool) -> None:
        """Send the changes of budgets; hold them, or leave them to others."""
        at = self._link.holding()
        copies = {name: self._copies.setdefault(name, _Copy()) for name in sorted(names)}
        sent = {name: each.unsent for name, each in copies.items()}
        messages = {name: each.message(at, holds) for name, each in copies.items()}
        for each in copies.values():
            each.unsent, each.is_claimed = {}, each.is_claimed or holds
        self._held = frozenset()
        try:
            values = await self._link.exchange(messages)
        except BaseException:  # raised again: the next message has this change and its number
            for name, each in copies.items():
                each.unsent = merge(sent[name], each.unsent)
            raise
        for name, each in copies.items():
            each.number += 1
            each.is_claimed = holds
            if holds:
                each.value = apply(values[name], each.unsent)
        if holds:
            self._held = frozenset(copies)
