"""Shared budgets: limits that several executions share, per hour, day, pool or parent (8.11).

A shared budget outlives the execution: the process or the store of the execution holds it. Every
change replaces it as a whole, so that executions in several threads and processes never reserve the
same amount twice.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from decimal import Decimal
from typing import Final, Protocol

from asl.core.diagnostics import did_you_mean
from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine.limits import SHARES, Account, ReservedCall, ReservedPart, Share, SpendingExecution
from asl.engine.pool_entries import (
    charge,
    draw,
    drawn_amount,
    is_part,
    part_of,
    settle_calls,
    undrawn,
)
from asl.engine.usage import NOTHING, ZERO, add_amounts
from asl.states.blocks.budget_limits import Amounts, BudgetLimits

__all__ = [
    "NOTHING_HELD",
    "ParentAccount",
    "PoolReservation",
    "SharedBudget",
    "SharedBudgets",
    "join_shared_budgets",
    "shared_names",
]

STALE: Final = 3600.0
"""Seconds for which others wait for a call to end; its reservation remains longer."""
REPORTED: Final = ("MaxCost", "MaxTokens")
"""Limits of amounts that the result of an execution reports."""


class SharedBudgets(Protocol):
    """The storage of shared budgets."""

    interval: float
    """Seconds between two checks whether a call of another execution has ended."""

    def held(
        self, names: Collection[str], *, starts: bool = False
    ) -> AbstractAsyncContextManager[None]:
        """Return a context in which only its holder changes some budgets.

        Args:
            names: Names of the budgets.
            starts: Whether a call or an execution starts in it; the storage may defer a start.

        Raises:
            Suspension: The start is deferred.
        """
        ...

    def change(self, name: str, make: Callable[[Json], Json]) -> None:
        """Replace a shared budget atomically.

        Args:
            name: Name of the budget.
            make: Maps the present value, None at first, to the new one.

        Raises:
            StateError: States.BudgetExceeded; the storage cannot be reached.
        """
        ...


NOTHING_HELD: Final = nullcontext()
"""For storages whose changes take effect immediately."""


class SharedBudget(Account):
    """A shared budget as an account of an execution: `{"spent": {part: amount}, "open": {...}}`.

    An entry of `open` is a reservation with its time. The entry of a call has its known usage, the
    length of the window, whether its size and that of its nested calls is proven, whether it waits
    for a reservation, and the part of the budget on which it draws. Such a part is the entry of a
    whole execution: its spending before the reservation, whether the rest is released, the length,
    and the amount that calls have drawn on it, which already counts as spent.
    """

    def __init__(
        self,
        budgets: SharedBudgets,
        name: str,
        label: str,
        most: Decimal,
        limits: BudgetLimits,
        length: float | None,
    ) -> None:
        super().__init__(limits._replace(amounts={"MaxCost": most}, fallbacks=(), alerts=()))
        self.label = label
        self.below_thresholds = False
        self.budgets = budgets
        self.name = name
        self.length = length
        """Seconds after which spending no longer counts, None for never."""
        self.entries: frozenset[str] = frozenset()
        """Entries of calls whose end others wait for, as of the last reading."""
        self.draw_part: str | None = None
        """The part on which calls draw: of this execution, or of an enclosing one."""
        self.final_spending = ZERO
        """Spending without parts that are never released."""
        self.has_releasable = False
        """Whether others may still release some of their parts."""
        self.has_unproven = False
        """Whether one of those calls has no proven size."""
        self.others_unproven = False
        """Whether such a call belongs to another execution."""
        self.others_end = False
        """Whether a call of another execution will end without waiting for a reservation."""
        self.published: dict[str, list[Json]] = {}
        """Published state of the calls of this execution, by their entries."""

    def watch(self) -> None:
        """Do nothing: others also spend from this account."""

    def refresh(self, now: float) -> None:
        """Read the spending and the reservations of all executions."""
        self._change(now, lambda spent, entries: None)

    def _change(
        self, now: float, act: Callable[[dict[str, str], dict[str, list[Json]]], object]
    ) -> None:
        def make(kept: Json) -> Json:
            spent, entries = ({}, {}) if kept is None else (kept["spent"], kept["open"])
            if self.length is not None:
                for part in [part for part in spent if float(part) <= now - self.length]:
                    del spent[part]
            self._read(spent, entries, now)
            act(spent, entries)
            self._read(spent, entries, now)
            return {"spent": spent, "open": entries}

        self.budgets.change(self.name, make)

    def _read(
        self, spent: Mapping[str, str], entries: Mapping[str, list[Json]], now: float
    ) -> None:
        self.final_spending = total = sum(map(Decimal, spent.values()), ZERO)
        held, calls = ZERO, []
        own = {call.entry for call in self.calls}
        drawn = dict.fromkeys(self._parts_of_others(entries), ZERO)
        self.has_unproven = self.others_unproven = self.others_end = False
        for name, entry in entries.items():
            if is_part(entry):
                continue
            amount, since, _, _, *shown = entry
            part = part_of(entry)
            if part in drawn:
                drawn[part] += Decimal(amount)
            else:
                held += Decimal(amount)
            if since > now - STALE:
                calls.append(name)
                is_guess, waits = shown[:1] == [False], shown[1:2] == [True]
                self.has_unproven = self.has_unproven or is_guess
                if name not in own:
                    self.others_unproven = self.others_unproven or is_guess
                    self.others_end = self.others_end or not waits
        self.has_releasable = False
        for name, reserved in drawn.items():
            _, since, _, release, *_ = entries[name]
            rest = undrawn(entries[name])
            if rest and release and since > now - STALE:
                self.has_releasable = True
                held += max(rest, reserved)
            else:  # no call waits for it
                total += rest
                held += max(reserved - rest, ZERO)
        self.spent = {**NOTHING, "MaxCost": total}
        self.reserved, self.entries = {**NOTHING, "MaxCost": held}, frozenset(calls)

    def _parts_of_others(self, entries: Mapping[str, list[Json]]) -> list[str]:
        """Return the parts that limit a call here: none, as long as its own part has a rest.

        Otherwise executions with a part each would wait for one another, once a call of another one
        has exceeded the budget.
        """
        if (
            self.draw_part is not None
            and self.draw_part in entries
            and undrawn(entries[self.draw_part])
        ):
            return []
        return [
            name for name, entry in entries.items() if name != self.draw_part and is_part(entry)
        ]

    # Calls

    def reserve(self, call: ReservedCall, now: float) -> Amounts | None:
        """Reserve amounts for a call; None if it has to wait for other calls."""
        share: dict[str, Decimal | int] | None = {}

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            nonlocal share
            if "MaxCost" not in self.limit_amounts:  # an approver has lifted it
                return
            known, most = call.known, self.limit_amounts["MaxCost"]
            size = known["MaxCost"] if "MaxCost" in known else Decimal(most) / SHARES
            rest = most - self.spending_of("MaxCost") - self.reserved["MaxCost"]
            alone = self.has_unproven and not call.proves("MaxCost")
            fits = size <= rest and not alone
            waits = self.has_other_reservation(call) or (self.has_releasable and rest <= 0)
            if self.strict and waits and not fits and (size or alone):
                share = None
                return
            share = {"MaxCost": size}
            entries[call.entry] = self._entry(call, share, now)

        self._change(now, act)
        if share:
            self.calls.add(call)
        return share

    def _entry(
        self,
        call: ReservedCall,
        share: Amounts,
        since: float,
        inner: ReservedCall | None = None,
    ) -> list[Json]:
        """Return the entry of a call; *inner* is a nested call that is about to start."""
        shown = self.published[call.entry] = _shown(call)
        if inner is not None:
            shown[:] = [shown[0] and inner.proves("MaxCost"), False]
        known = call.remaining_usage.get("MaxCost", 0)
        return [str(share["MaxCost"]), since, str(known), self.length, *shown, self.draw_part]

    def begin(self, call: ReservedCall, part: ReservedPart, now: float) -> Share:
        """Reserve for a nested call and read the budget in one change."""
        share: Share = None

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            nonlocal share
            share, root = part.share(call), call.root
            if isinstance(share, dict) and root.entry in entries:
                size = part.size(share)
                if size:
                    root.reserved[part.number] = size
                    since = entries[root.entry][1]
                    entries[root.entry] = self._entry(root, size, since, call)

        self._change(now, act)
        return share

    def is_shown(self, call: ReservedCall) -> bool:
        """Return whether the published state of a call is current."""
        return self.published.get(call.entry) in (None, _shown(call))

    @property
    def waits_for_others(self) -> bool:
        """Return whether a call may have to wait for calls of other executions."""
        return self.others_end

    def unspent(self, name: str) -> Decimal | int:
        """Return the unspent amount of a limit, including parts of others."""
        return self.limit_amounts[name] - self.final_spending

    def has_unproven_call(self, name: str, call: ReservedCall | None = None) -> bool:
        """Return whether a call of any execution has no proven size."""
        return self.others_unproven or super().has_unproven_call(name, call)

    def has_other_unproven_call(self, name: str, call: ReservedCall) -> bool:
        """Return whether another call, of any execution, has no proven size."""
        return self.others_unproven or super().has_other_unproven_call(name, call)

    def is_busy(self) -> bool:
        """Return whether a call of any execution will end without waiting for a reservation."""
        return self.others_end or super().is_busy()

    def adjust(self, call: ReservedCall, share: Amounts, instead: Amounts, now: float) -> None:
        """Change the reservation of a running call."""

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            if call.entry in entries:
                entries[call.entry] = self._entry(call, instead, entries[call.entry][1])

        self._change(now, act)

    def release(self, call: ReservedCall, share: Amounts, now: float) -> None:
        """Release the reservation of a call."""
        self._discard(call)
        self._change(now, lambda spent, entries: entries.pop(call.entry, None))

    def _discard(self, call: ReservedCall) -> None:
        self.calls.discard(call)
        self.published.pop(call.entry, None)

    def has_other_reservation(self, call: ReservedCall) -> bool:
        """Return whether a call other than *call* holds a reservation."""
        return bool(self.entries - {call.entry})

    def settle(self, call: ReservedCall, used: Amounts, share: Amounts, now: float) -> None:
        """Add the usage of a call to the spending and release its reservation, in one change."""

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            entries.pop(call.entry, None)
            self._spend(spent, used, now)
            draw(entries, self.draw_part, used.get("MaxCost", ZERO))

        self._discard(call)
        self._change(now, act)

    def add(self, used: Amounts, now: float) -> None:
        """Add usage to the spending."""

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            self._spend(spent, used, now)
            draw(entries, self.draw_part, used.get("MaxCost", ZERO))

        self._change(now, act)

    def _spend(self, spent: dict[str, str], used: Amounts, now: float) -> None:
        charge(spent, used.get("MaxCost", ZERO), self.length, now)

    # Executions

    def abandon(self, execution: str, now: float) -> None:
        """Replace the reservations of an execution's calls by their known usage.

        Args:
            execution: Id of the execution, which has no running call.
            now: Current time in epoch seconds.
        """

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            settle_calls(spent, entries, execution, now)

        self._change(now, act)

    def reserve_part(
        self, entry: str, most: Decimal, before: Decimal, release: bool, now: float
    ) -> list[Decimal]:
        """Reserve a part for a whole execution, at most *most*; its calls draw on it.

        Args:
            entry: Entry of the execution.
            most: Largest amount to reserve.
            before: Spending of the execution so far.
            release: Whether the rest is released at its end.
            now: Current time in epoch seconds.

        Returns:
            The reserved amount, and the execution's spending at its first reservation.
        """
        found: list[Decimal] = []

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            if entry not in entries:
                rest = (
                    self.limit_amounts["MaxCost"]
                    - self.spending_of("MaxCost")
                    - self.reserved["MaxCost"]
                )
                there = max(ZERO, min(most, rest))
                entries[entry] = [str(there), now, str(before), release, self.length, "0"]
            amount, _, base, *_ = entries[entry]
            found[:] = Decimal(amount), Decimal(base)
            self.draw_part = entry

        self._change(now, act)
        return found

    def release_part(self, entry: str, used: Decimal | int, now: float) -> None:
        """Replace the reservation of a whole execution by its spending, once."""

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            if entry in entries:
                rest = used - drawn_amount(entries.pop(entry))
                self._spend(spent, {"MaxCost": max(rest, ZERO)}, now)

        self._change(now, act)


class PoolReservation(Account):
    """The part of a pool that an execution reserves at its start, as a limit of its calls.

    If an enclosing execution already holds a part, it is a part of that one.
    """

    def __init__(
        self,
        pool: SharedBudget,
        entry: str,
        most: Decimal,
        limits: BudgetLimits,
        spent: Decimal,
        now: float,
    ) -> None:
        self.pool = pool
        self.entry = entry
        release = limits.pool is not None and limits.pool.release
        amount, base = most, ZERO
        if pool.draw_part is None:
            amount, base = pool.reserve_part(entry, most, spent, release, now)
        super().__init__(limits._replace(amounts={"MaxCost": amount}, fallbacks=(), alerts=()))
        self.label = "MaxFromPool"
        self.base_spent = base
        """Spending of the execution before the reservation."""
        self.has_assumed = amount < most and not amount  # an empty pool allows no call
        self.spent, self.is_unused = {**NOTHING, "MaxCost": spent - base}, False
        self.watch()

    def close(self, release: bool, now: float) -> None:
        """Leave the pool with the spending or, without *release*, with the whole reservation."""
        if self.pool.draw_part == self.entry:
            spent = self.spent["MaxCost"]
            used = spent if release else max(spent, self.limits.amounts["MaxCost"])
            self.pool.release_part(self.entry, used, now)


class ParentAccount(Account):
    """An account of a parent execution, as the calls of its child execution see it.

    Their usage is child usage there until the child ends; then the parent counts it itself.
    """

    peak_source = None
    """Stored in the parent's account."""

    def __init__(self, account: Account, spent: Amounts) -> None:
        super().__init__(account.limits)
        self.label, self.owner = account.label, account.owner
        self.below_thresholds = False
        self.account = account
        self.total: dict[str, Decimal | int] = {}
        """Spending of this execution."""
        self.add(spent, 0.0)

    @property
    def base(self) -> Account:
        """The account that holds the reservations: that of the outermost execution."""
        return self.account.base

    def watch(self) -> None:
        """Do nothing: others also spend from this account."""

    def spending_of(self, name: str) -> Decimal | int:
        """Return the spending of one limit."""
        return self.account.spending_of(name)

    def refresh(self, now: float) -> None:
        """Read the account of the parent."""
        self.account.refresh(now)
        self._read()

    def _read(self) -> None:
        account = self.account
        self.limit_amounts, self.rejected, self.has_assumed = (
            account.limit_amounts,
            account.rejected,
            account.has_assumed,
        )
        self.spent, self.child_usage = account.spent, account.child_usage

    def reserve(self, call: ReservedCall, now: float) -> Amounts | None:
        """Reserve in the account of the parent."""
        return self.account.reserve(call, now)

    def mark(self) -> None:
        """Update the highest sum of reservations in the account of the parent."""
        self.account.mark()

    def release(self, call: ReservedCall, share: Amounts, now: float) -> None:
        """Release in the account of the parent."""
        self.account.release(call, share, now)

    def count(self, call: ReservedCall) -> None:
        """Count a call in the account of the parent."""
        self.account.count(call)

    def add(self, used: Amounts, now: float) -> None:
        """Add usage to the child usage of the parent."""
        self.add_child_usage(used)

    def add_child_usage(self, used: Amounts) -> None:
        """Add usage to the spending of this execution and to the child usage of the parent."""
        self.account.add_child_usage(used)
        for name, each in used.items():
            self.total[name] = self.total.get(name, 0) + each
        self._read()

    def assume(self, used: Amounts, now: float) -> None:
        """Add an assumed amount, which remains when the child ends."""
        self.base.has_assumed = True
        self.assumed = {**self.assumed, **add_amounts(self.assumed, used)}
        self.add(used, now)

    def detach_parent(self) -> None:
        """Remove the child usage that the parent will count itself; the assumed part remains."""
        self.account.add_child_usage({name: -each for name, each in self.total.items()})
        own = {name: each for name, each in self.total.items() if name not in REPORTED}
        if own:
            self.account.add(own, 0.0)
        if self.assumed is not NOTHING:
            assumed = {name: each for name, each in self.assumed.items() if name in REPORTED}
            self.account.assume(assumed, 0.0)
        self.total, self.assumed = {}, NOTHING


def join_shared_budgets(
    budgets: SharedBudgets,
    limits: BudgetLimits,
    pools: Mapping[str, Decimal],
    lenders: Iterable[Account],
    execution: SpendingExecution,
    now: float,
) -> list[Account]:
    """Return the accounts that limit an execution together with others.

    These are shared by executions of the same workflow or with the same pool.

    Args:
        budgets: Storage of shared budgets.
        limits: Limits of the document.
        pools: Amount of money in each pool.
        lenders: Accounts around the state that started this execution.
        execution: The execution.
        now: Current time in epoch seconds.

    Raises:
        StateError: A pool is empty.
    """
    names = shared_names(limits, execution)
    joined: list[Account] = [
        SharedBudget(budgets, name, each.field, each.maximum, limits, each.length)
        for name, each in zip(names, limits.windows, strict=False)
    ]
    pool = limits.pool
    if pool is None:
        return joined
    if pool.name not in pools:
        hint = did_you_mean(pool.name, pools)
        raise StateError(
            "States.BudgetExceeded",
            f"the pool {pool.name!r} is empty{f' ({hint})' if hint else ''}: fill it with "
            f"pools={{{pool.name!r}: AMOUNT}}, or --pool {pool.name}=AMOUNT",
        )
    shared = SharedBudget(budgets, names[-1], "Pool", pools[pool.name], limits, limits.reset)
    for each in lenders:
        if isinstance(each, SharedBudget) and each.name == shared.name:
            shared.draw_part = each.draw_part
    if pool.maximum is not None:
        spent = execution.usage.cost
        joined.append(PoolReservation(shared, execution.id, pool.maximum, limits, spent, now))
    return [*joined, shared]


def shared_names(limits: BudgetLimits, execution: SpendingExecution) -> list[str]:
    """Return the names of the budgets that limit an execution together with others: those of the
    limits per hour and day, and last that of the pool.
    """
    names = [f"{each.field} {execution.workflow_id}" for each in limits.windows]
    return names if limits.pool is None else [*names, f"Pool {limits.pool.name}"]


def _shown(call: ReservedCall) -> list[Json]:
    """Return whether the size of a call is proven, and whether it waits for a reservation."""
    return [not call.is_unproven("MaxCost", None), not call.is_busy()]
