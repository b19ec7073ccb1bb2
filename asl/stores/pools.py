"""Shared budgets of a store, for the executions in all processes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractAsyncContextManager
from decimal import Decimal
from typing import Final, NamedTuple, Protocol

from asl.core.values import Json, encode
from asl.engine.journal_values import read_usage
from asl.engine.pool_entries import remove_calls, remove_execution
from asl.engine.pools import NOTHING_HELD, SharedBudgets
from asl.engine.usage import ZERO
from asl.stores.executions import ENDED, find_execution, top_of
from asl.stores.session import Session
from asl.stores.statements import PARAMETER, Insert, Select, is_set, one_of
from asl.stores.tables import BUDGET, EXECUTION
from asl.stores.workers import Workers, lock_of

__all__ = ["TOOLS", "Holder", "ReleasableBudgets", "StoreBudgets", "StoredBudget", "holder_of"]

ENDED_ONE = Select(
    EXECUTION,
    ("ended", "usage"),
    {"workflow": PARAMETER, "name": one_of(), "status": one_of(*ENDED), "ended": is_set()},
)
FIND = Select(BUDGET, ("body",), {"name": PARAMETER})
NAMES = Select(BUDGET, ("name",))
PUT = Insert(BUDGET, ("name", "body"), "update", ("body",))
TOOLS: Final = "Tools "
"""Prefix of the names of budgets that count tool calls, not money."""


def _charged(spending: Json) -> Decimal:
    """Return the cost of an execution from its stored spending."""
    usage, _, _, *ledger = spending
    assumed = ledger[0].get("assumed", {}) if ledger else {}
    return read_usage(usage).cost + Decimal(assumed.get("MaxCost", 0))


class ReleasableBudgets(SharedBudgets, Protocol):
    """Shared budgets whose reservations can be released by execution."""

    def release(self, execution: str, spent: Decimal, now: float) -> None:
        """Release the reservations of an execution that ends without running.

        Args:
            execution: Id of the execution.
            spent: Its whole spending.
            now: Current time in epoch seconds.
        """
        ...


class StoredBudget(NamedTuple):
    """A shared budget as it is stored.

    Attributes:
        name: `Pool NAME`, or the field of the limit and the workflow.
        spent: The spending by the end of its part of the time window, 0 without a window.
        reserved: Sum of the amounts that open calls and executions have reserved.
    """

    name: str
    spent: dict[float, Decimal]
    reserved: Decimal

    @classmethod
    def of(cls, name: str, value: Json) -> StoredBudget:
        """Return a budget from its stored form."""
        spent = {float(part): Decimal(each) for part, each in value["spent"].items()}
        reserved = sum((Decimal(entry[0]) for entry in value["open"].values()), ZERO)
        return cls(name, spent, reserved)


class Holder(NamedTuple):
    """An execution that holds a reservation in a shared budget.

    In a store an execution of a registered state machine has its id as its name.
    """

    id: str
    workflow: str
    name: str


def holder_of(entry: str) -> Holder | None:
    """Return the execution of an entry, None for a name that is not the id of an execution."""
    parts = entry.split(":")
    count = 9 if parts[5:6] == ["express"] else 8
    if len(parts) < count:
        return None
    return Holder(":".join(parts[:count]), parts[6], parts[7])


class StoreBudgets:
    """Shared budgets in a store; each change is a transaction (protocol
    `asl.engine.pools.SharedBudgets`).
    """

    interval = 1.0

    def __init__(self, session: Session) -> None:
        self.session = session

    def held(
        self, names: Collection[str], *, starts: bool = False
    ) -> AbstractAsyncContextManager[None]:
        """Return a context that does nothing: each change is one of all executions."""
        return NOTHING_HELD

    def change(self, name: str, make: Callable[[Json], Json]) -> None:
        """Replace a shared budget by the result of *make*.

        Raises:
            StoreError: The change cannot be written.
        """
        session = self.session
        with session.transaction():
            found = session.select(FIND, name)
            kept = self._without_lost(session.values.unpack(found[0][0])) if found else None
            session.write(PUT, name, session.values.pack(encode(make(kept))))

    def _without_lost(self, kept: Json) -> Json:
        """Return a shared budget without orphaned reservations.

        These are all reservations of ended executions, and those for calls of executions whose
        process has died.
        """
        holders: dict[Holder, bool] = {}
        for entry in kept["open"]:
            holder = holder_of(entry)
            if holder is not None:
                holders[holder] = holders.get(holder, False) or entry != holder.id
        for holder, has_calls in holders.items():
            ends = self.session.select(ENDED_ONE, holder.workflow, [holder.name, holder.id])
            for ended, usage in ends:
                spent = ZERO if usage is None else _charged(self.session.values.unpack(usage))
                kept = remove_execution(kept, holder.id, spent, ended)
            if not ends and has_calls and not self.is_at_work(holder):
                kept = remove_calls(kept, holder.id)
        return kept

    def is_at_work(self, holder: Holder) -> bool:
        """Return whether a process runs an execution, by its lock and the lease of its worker.

        An execution that is not in the store yet counts as running.
        """
        session, names = self.session, (holder.id, holder.name)
        if any(lock_of(name) in session.running_locks for name in names):
            return True
        found = [each for name in names if (each := find_execution(session, name)) is not None]
        top = find_execution(session, top_of(session, found[0].name)) if found else None
        if top is None:
            return True
        place = lock_of(top.name)
        if place in session.running_locks:
            return True
        return session.connection.is_locked(place) and not Workers(session).is_fenced(top.number)

    def stored(self) -> list[StoredBudget]:
        """Return the budgets of money, by name.

        Raises:
            StoreDamaged: A budget is damaged.
        """
        found = []
        for (name,) in self.session.select(NAMES):
            if name.startswith(TOOLS):
                continue
            with self.session.damage_reports(f"the budget {name!r}"):
                ((body,),) = self.session.select(FIND, name)
                found.append(StoredBudget.of(name, self.session.values.unpack(body)))
        return sorted(found)

    def release_lost(self) -> Iterator[str]:
        """Release orphaned reservations and yield the names of the budgets concerned."""
        for (name,) in self.session.select(NAMES):
            if name.startswith(TOOLS):
                continue
            ((body,),) = self.session.select(FIND, name)
            held = self.session.values.unpack(body)["open"]
            if self._without_lost({"spent": {}, "open": held})["open"] != held:
                self.change(name, lambda kept: kept)
                yield name

    def release(self, execution: str, spent: Decimal, now: float) -> None:
        """Release the reservations of an execution that ends without running."""
        for (name,) in self.session.select(NAMES):
            self.change(name, lambda kept: remove_execution(kept, execution, spent, now))
