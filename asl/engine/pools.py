"""Pools: limits that several executions share, of an hour, a day, a pool or a parent (8.11).

A shared budget outlives the execution: the process keeps it, or the store of the execution. Every
change replaces it as a whole, so that executions in several threads and processes never reserve
together what only one of them may.
"""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Final, Protocol

from asl.core.diagnostics import did_you_mean
from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine.limits import SHARES, Account, ReservedCall, ReservedPart, Share, SpendingExecution
from asl.engine.usage import NOTHING, ZERO, add_amounts
from asl.states.blocks.budget_limits import Amounts, Limits

__all__ = [
    "ParentAccount",
    "PoolReservation",
    "SharedBudget",
    "SharedBudgets",
    "join_shared_budgets",
    "remove_calls",
    "remove_execution",
]

PARTS: Final = 60
"""The number of parts of a window: what was spent counts until its whole part is over."""
STALE: Final = 3600.0
"""Seconds for which others wait for a call to end; its reservation stands for longer."""
REPORTED: Final = ("MaxCost", "MaxTokens")
"""The limits of amounts that the result of an execution reports."""


class SharedBudgets(Protocol):
    """The place of shared budgets."""

    def change(self, name: str, make: Callable[[Json], Json]) -> None:
        """Replace a shared budget by what *make* returns for it, None at first, atomically.

        Raises StateError("States.BudgetExceeded") for a place that cannot be reached.
        """
        ...


class SharedBudget(Account):
    """A shared budget as an account of an execution: `{"spent": {part: amount}, "open": {...}}`.

    An entry of `open` is a reservation with its time. That of a call has what is known of the call,
    the length of the window, whether its size is proven with that of the calls within it, whether
    it waits for a reservation, and the part of the budget on which it draws. Such a part is the
    entry of a whole execution; it has what that had spent before, whether it gives back the rest,
    the length, and what calls have drawn on it, which counts as spent already.
    """

    def __init__(
        self,
        budgets: SharedBudgets,
        name: str,
        label: str,
        most: Decimal,
        limits: Limits,
        length: float | None,
    ) -> None:
        super().__init__(limits._replace(most={"MaxCost": most}, fallbacks=(), alerts=()))
        self.label = label
        self.quiet = False
        self.budgets = budgets
        self.name = name
        self.length = length
        """The seconds after which an amount spent does not count any more, None for never."""
        self.entries: frozenset[str] = frozenset()
        """The entries of calls whose end others wait for, when it was read last."""
        self.part: str | None = None
        """The part on which calls draw: of this execution, or of one around it."""
        self.paid = ZERO
        """What is spent, without parts that nobody gives back."""
        self.taken = False
        """Whether others may give back some of the parts that they hold."""
        self.guesses = False
        """Whether nothing proves the size of one of those calls."""
        self.others_guess = False
        """Whether that is so of a call of another execution."""
        self.others_end = False
        """Whether a call of another execution will end without waiting for a reservation."""
        self.shown: dict[str, list[Json]] = {}
        """What others see of the calls of this execution, by their entries."""

    def watch(self) -> None:
        """Stay loud: others spend from it."""

    def refresh(self, now: float) -> None:
        """Read what all executions have spent and reserved."""
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
        self.paid = total = sum(map(Decimal, spent.values()), ZERO)
        held, calls = ZERO, []
        own = {call.entry for call in self.calls}
        drawn = dict.fromkeys(self._parts_of_others(entries), ZERO)
        self.guesses = self.others_guess = self.others_end = False
        for name, entry in entries.items():
            if _is_part(entry):
                continue
            amount, since, _, _, *shown = entry
            part = _part_of(entry)
            if part in drawn:
                drawn[part] += Decimal(amount)
            else:
                held += Decimal(amount)
            if since > now - STALE:
                calls.append(name)
                is_guess, waits = shown[:1] == [False], shown[1:2] == [True]
                self.guesses = self.guesses or is_guess
                if name not in own:
                    self.others_guess = self.others_guess or is_guess
                    self.others_end = self.others_end or not waits
        self.taken = False
        for name, reserved in drawn.items():
            _, since, _, release, *_ = entries[name]
            rest = _rest(entries[name])
            if rest and release and since > now - STALE:
                self.taken = True
                held += max(rest, reserved)
            else:  # nobody waits for it
                total += rest
                held += max(reserved - rest, ZERO)
        self.spent = {**NOTHING, "MaxCost": total}
        self.held, self.entries = {**NOTHING, "MaxCost": held}, frozenset(calls)

    def _parts_of_others(self, entries: Mapping[str, list[Json]]) -> list[str]:
        """Return the parts that limit a call here: none, as long as its own part has a rest.

        Executions with a part each would wait for one another otherwise, once a call of another one
        has cost more than there was.
        """
        if self.part is not None and self.part in entries and _rest(entries[self.part]):
            return []
        return [name for name, entry in entries.items() if name != self.part and _is_part(entry)]

    # Calls

    def reserve(self, call: ReservedCall, now: float) -> Amounts | None:
        """Reserve what a call may use; None if it has to wait for other calls."""
        share: dict[str, Decimal | int] | None = {}

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            nonlocal share
            if "MaxCost" not in self.most:  # an approver has lifted it
                return
            known, most = call.known, self.most["MaxCost"]
            size = known["MaxCost"] if "MaxCost" in known else Decimal(most) / SHARES
            rest = most - self.used("MaxCost") - self.held["MaxCost"]
            alone = self.guesses and not call.proves("MaxCost")
            fits = size <= rest and not alone
            waits = self.others(call) or (self.taken and rest <= 0)
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
        """Return the entry of a call; *inner* is one within it that is about to be made."""
        shown = self.shown[call.entry] = _shown(call)
        if inner is not None:
            shown[:] = [shown[0] and inner.proves("MaxCost"), False]
        known = call.rest.get("MaxCost", 0)
        return [str(share["MaxCost"]), since, str(known), self.length, *shown, self.part]

    def begin(self, call: ReservedCall, part: ReservedPart, now: float) -> Share:
        """Reserve for a call within another one, in one change with the look at what there is."""
        share: Share = None

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            nonlocal share
            share, root = part.share(call), call.root
            if isinstance(share, dict) and root.entry in entries:
                size = part.size(share)
                if size:
                    root.held[part.number] = size
                    since = entries[root.entry][1]
                    entries[root.entry] = self._entry(root, size, since, call)

        self._change(now, act)
        return share

    def is_shown(self, call: ReservedCall) -> bool:
        """Whether others see of a call what holds for it now."""
        return self.shown.get(call.entry) in (None, _shown(call))

    @property
    def waits_for_others(self) -> bool:
        """Whether calls of other executions may be waited for."""
        return self.others_end

    def unspent(self, name: str) -> Decimal | int:
        """Return all that is not spent, the parts of others included."""
        return self.most[name] - self.paid

    def unproven(self, name: str, call: ReservedCall | None = None) -> bool:
        """Return whether nothing proves the size of a call, of any execution."""
        return self.others_guess or super().unproven(name, call)

    def others_unproven(self, name: str, call: ReservedCall) -> bool:
        """Whether nothing proves the size of another call, of any execution."""
        return self.others_guess or super().others_unproven(name, call)

    def is_busy(self) -> bool:
        """Whether a call of any execution will end without waiting for a reservation."""
        return self.others_end or super().is_busy()

    def adjust(self, call: ReservedCall, share: Amounts, instead: Amounts, now: float) -> None:
        """Change the reservation of a call that is under way."""

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            if call.entry in entries:
                entries[call.entry] = self._entry(call, instead, entries[call.entry][1])

        self._change(now, act)

    def release(self, call: ReservedCall, share: Amounts, now: float) -> None:
        """Give back the reservation of a call."""
        self._discard(call)
        self._change(now, lambda spent, entries: entries.pop(call.entry, None))

    def _discard(self, call: ReservedCall) -> None:
        self.calls.discard(call)
        self.shown.pop(call.entry, None)

    def others(self, call: ReservedCall) -> bool:
        """Whether another call holds a reservation beside the one of *call*."""
        return bool(self.entries - {call.entry})

    def settle(self, call: ReservedCall, used: Amounts, share: Amounts, now: float) -> None:
        """Add what a call has used, and release its reservation, in one change."""

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            entries.pop(call.entry, None)
            self._spend(spent, used, now)
            _draw(entries, self.part, used)

        self._discard(call)
        self._change(now, act)

    def add(self, used: Amounts, now: float) -> None:
        """Add what a call has used to what is spent."""

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            self._spend(spent, used, now)
            _draw(entries, self.part, used)

        self._change(now, act)

    def _spend(self, spent: dict[str, str], used: Amounts, now: float) -> None:
        if used.get("MaxCost"):
            part = _part(self.length, now)
            spent[part] = str(Decimal(spent.get(part, "0")) + used["MaxCost"])

    # Whole executions

    def abandon(self, execution: str, now: float) -> None:
        """Replace the reservations of the calls of an execution by what is known of them.

        Args:
            execution: The id of the execution, of which no call is under way.
            now: The present time, in epoch seconds.
        """

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            for entry in [each for each in entries if each.startswith(f"{execution}:")]:
                found = entries.pop(entry)
                used = {"MaxCost": Decimal(str(found[2]))}
                self._spend(spent, used, now)
                _draw(entries, _part_of(found), used)

        self._change(now, act)

    def take(
        self, entry: str, most: Decimal, before: Decimal, release: bool, now: float
    ) -> list[Decimal]:
        """Reserve for a whole execution as much as there is, at most *most*; its calls draw on it.

        Args:
            entry: Names the execution.
            most: The largest amount to reserve.
            before: What the execution has spent by now.
            release: Whether the rest is given back at its end.
            now: The present time, in epoch seconds.

        Returns:
            The amount reserved, and what the execution had spent when it reserved it first.
        """
        found: list[Decimal] = []

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            if entry not in entries:
                rest = self.most["MaxCost"] - self.used("MaxCost") - self.held["MaxCost"]
                there = max(ZERO, min(most, rest))
                entries[entry] = [str(there), now, str(before), release, self.length, "0"]
            amount, _, base, *_ = entries[entry]
            found[:] = Decimal(amount), Decimal(base)
            self.part = entry

        self._change(now, act)
        return found

    def leave(self, entry: str, used: Decimal | int, now: float) -> None:
        """Replace the reservation of a whole execution by what it has used, once."""

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            if entry in entries:
                rest = used - _drawn(entries.pop(entry))
                self._spend(spent, {"MaxCost": max(rest, ZERO)}, now)

        self._change(now, act)


class PoolReservation(Account):
    """The part of a pool that an execution has reserved at its beginning, as a limit of its calls.

    Where an execution around it holds a part already, it is a part of that.
    """

    def __init__(
        self,
        pool: SharedBudget,
        entry: str,
        most: Decimal,
        limits: Limits,
        spent: Decimal,
        now: float,
    ) -> None:
        self.pool = pool
        self.entry = entry
        release = limits.pool is not None and limits.pool.release
        amount, base = most, ZERO
        if pool.part is None:
            amount, base = pool.take(entry, most, spent, release, now)
        super().__init__(limits._replace(most={"MaxCost": amount}, fallbacks=(), alerts=()))
        self.label = "MaxFromPool"
        self.base_spent = base
        """What the execution had spent before."""
        self.doubtful = amount < most and not amount  # an empty pool allows no call
        self.spent, self.untouched = {**NOTHING, "MaxCost": spent - base}, False
        self.watch()

    def close(self, release: bool, now: float) -> None:
        """Leave the pool: with what was spent or, without *release*, with all that was reserved."""
        if self.pool.part == self.entry:
            spent = self.spent["MaxCost"]
            used = spent if release else max(spent, self.limits.most["MaxCost"])
            self.pool.leave(self.entry, used, now)


class ParentAccount(Account):
    """An account of a parent execution, as the calls of its child execution see it.

    What they spend stands there as lent until the child ends; then the parent counts it itself.
    """

    marked = None
    """The parent's account has it."""

    def __init__(self, account: Account, spent: Amounts) -> None:
        super().__init__(account.limits)
        self.label, self.owner = account.label, account.owner
        self.quiet = False
        self.account = account
        self.total: dict[str, Decimal | int] = {}
        """What this execution has spent."""
        self.add(spent, 0.0)

    @property
    def base(self) -> Account:
        """The account in which reservations are made: that of the outermost execution."""
        return self.account.base

    def watch(self) -> None:
        """Stay loud: other executions spend from it."""

    def used(self, name: str) -> Decimal | int:
        """Return what has been spent of one limit."""
        return self.account.used(name)

    def refresh(self, now: float) -> None:
        """Read the account of the parent."""
        self.account.refresh(now)
        self._read()

    def _read(self) -> None:
        account = self.account
        self.most, self.rejected, self.doubtful = account.most, account.rejected, account.doubtful
        self.spent, self.child_usage = account.spent, account.child_usage

    def reserve(self, call: ReservedCall, now: float) -> Amounts | None:
        """Reserve in the account of the parent."""
        return self.account.reserve(call, now)

    def mark(self) -> None:
        """Update the account of the parent."""
        self.account.mark()

    def release(self, call: ReservedCall, share: Amounts, now: float) -> None:
        """Release in the account of the parent."""
        self.account.release(call, share, now)

    def count(self, call: ReservedCall) -> None:
        """Count a call in the account of the parent, for good."""
        self.account.count(call)

    def add(self, used: Amounts, now: float) -> None:
        """Add to what the account of the parent has lent."""
        self.add_child_usage(used)

    def add_child_usage(self, used: Amounts) -> None:
        """Add to what this execution has spent, and to what the account of the parent has lent."""
        self.account.add_child_usage(used)
        for name, each in used.items():
            self.total[name] = self.total.get(name, 0) + each
        self._read()

    def assume(self, used: Amounts, now: float) -> None:
        """Add an assumed amount, which stays spent when the child ends."""
        self.base.doubtful = True
        self.assumed = {**self.assumed, **add_amounts(self.assumed, used)}
        self.add(used, now)

    def detach_parent(self) -> None:
        """Take back what is lent and the parent will count; what it cannot know stays spent."""
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
    limits: Limits,
    pools: Mapping[str, Decimal],
    lenders: Iterable[Account],
    execution: SpendingExecution,
    now: float,
) -> list[Account]:
    """Return the accounts that limit an execution and others together.

    Those are the executions of the same workflow, or with the same pool.

    Args:
        budgets: Where shared budgets are kept.
        limits: The limits of the document.
        pools: How much there is in each pool.
        lenders: The accounts around the state that has started this execution.
        execution: The execution.
        now: The present time, in epoch seconds.

    Raises:
        StateError: A pool is empty.
    """
    joined: list[Account] = [
        SharedBudget(
            budgets,
            f"{each.field} {execution.workflow_id}",
            each.field,
            each.most,
            limits,
            each.length,
        )
        for each in limits.windows
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
    shared = SharedBudget(
        budgets, f"Pool {pool.name}", "Pool", pools[pool.name], limits, limits.reset
    )
    for each in lenders:
        if isinstance(each, SharedBudget) and each.name == shared.name:
            shared.part = each.part
    if pool.most is not None:
        spent = execution.usage.cost
        joined.append(PoolReservation(shared, execution.id, pool.most, limits, spent, now))
    return [*joined, shared]


def remove_execution(kept: Json, execution: str, spent: Decimal, now: float) -> Json:
    """Return a shared budget without the reservations of an execution that has ended.

    Args:
        kept: The shared budget.
        execution: The id of the execution.
        spent: What it has spent in all. That, or without release at least what it has reserved,
            replaces its own reservation; what is known of them replaces those of its calls.
        now: The present time, in epoch seconds.
    """
    kept = _without_calls(kept, execution, now)
    entries = {
        entry: held
        for entry, held in kept["open"].items()
        if entry != execution and not entry.startswith(f"{execution} ")  # of tools (`rates`)
    }
    if execution in kept["open"]:
        amount, _, base, release, length, *_ = held = kept["open"][execution]
        used = spent - Decimal(base)
        used = (used if release else max(used, Decimal(amount))) - _drawn(held)
        kept = _charged(kept, max(used, ZERO), length, now)
    return {**kept, "open": entries}


def remove_calls(kept: Json, execution: str) -> Json:
    """Return a shared budget without the calls of an execution that nobody runs any more.

    What is known of each call counts as spent. The reservation of the execution itself stays.

    Args:
        kept: The shared budget.
        execution: The id of the execution.
    """
    return _without_calls(kept, execution, None)


def _without_calls(kept: Json, execution: str, now: float | None) -> Json:
    """Return a shared budget with what is known of the calls of an execution instead of them.

    It counts from *now* on, or from when they were made.
    """
    entries = dict(kept["open"])
    for entry in [each for each in entries if each.startswith(f"{execution}:")]:
        found = entries.pop(entry)
        _, since, known, length, *_ = found
        used = Decimal(known)
        kept = _charged(kept, used, length, since if now is None else now)
        _draw(entries, _part_of(found), {"MaxCost": used})
    return {**kept, "open": entries}


def _is_part(entry: list[Json]) -> bool:
    """Whether an entry is the part that a whole execution has reserved, not a call."""
    return type(entry[3]) is bool


def _part_of(call: list[Json]) -> str | None:
    """Return the part on which a call draws; those of older versions draw on none."""
    return call[6] if len(call) > 6 else None


def _drawn(part: list[Json]) -> Decimal:
    """Return what calls have drawn on a part; those of older versions did not."""
    return Decimal(part[5]) if len(part) > 5 else ZERO


def _rest(part: list[Json]) -> Decimal:
    """Return what no call has drawn of a part."""
    return max(Decimal(part[0]) - _drawn(part), ZERO)


def _draw(entries: dict[str, list[Json]], part: str | None, used: Amounts) -> None:
    """Take what is spent from the part on which it draws, if that is still held."""
    if part is not None and part in entries:
        found = entries[part]
        entries[part] = [*found[:5], str(_drawn(found) + used.get("MaxCost", ZERO))]


def _shown(call: ReservedCall) -> list[Json]:
    """Return whether the size of a call is proven, and whether it waits for a reservation."""
    return [not call.is_unproven("MaxCost", None), not call.is_busy()]


def _charged(kept: Json, used: Decimal, length: float | None, now: float) -> Json:
    """Return a shared budget with an amount added to what is spent."""
    part = _part(length, now)
    known = Decimal(kept["spent"].get(part, "0"))
    return {**kept, "spent": {**kept["spent"], part: str(known + used)}}


def _part(length: float | None, now: float) -> str:
    """Return the end of the part of a window in which something is spent at *now*."""
    if length is None:
        return "0"
    size = length / PARTS
    return repr((now // size + 1) * size)
