"""Tabs: what several executions spend together, within an hour, a day, or of a pool (8.11).

A tab is kept beyond the execution: by the process, or by the store of the execution. Whatever
changes it changes it as a whole, so that executions in several threads and processes never hold
together what only one of them may.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, Protocol

from asl.core.values import Json
from asl.engine.accounts import HARD, Account
from asl.engine.amounts import NOTHING
from asl.engine.execution import ZERO
from asl.states.blocks.budget import Amounts, Limits

__all__ = ["Tab", "Tabs", "Taken", "without"]

PARTS: Final = 60
"""Into how many parts a window is divided: what was spent counts until its whole part is over."""
STALE: Final = 3600.0
"""Seconds for which others wait for a call to end; what it holds is held for longer."""


class Tabs(Protocol):
    """Where tabs are kept."""

    def change(self, name: str, make: Callable[[Json], Json]) -> None:
        """Replace a tab by what *make* makes of it, None at first; nobody else does meanwhile.

        What cannot be reached raises StateError("States.BudgetExceeded").
        """
        ...


class Tab(Account):
    """One tab, as an account of an execution: `{"spent": {part: amount}, "open": {entry: ...}}`.

    An entry is what is held for a call or a whole execution, since when, and of a call what is
    known of it beforehand.
    """

    def __init__(
        self, tabs: Tabs, name: str, label: str, most: Decimal, limits: Limits, length: float | None
    ) -> None:
        super().__init__(limits._replace(most={"MaxCost": most}, fallbacks=(), alerts=()))
        self.label = label
        self.quiet = False
        self.tabs = tabs
        self.name = name
        self.length = length
        """The seconds after which something spent does not count any more, None for never."""

    def watch(self) -> None:
        """It is never quiet: others spend from it."""

    def refresh(self, now: float) -> None:
        """Look at what everybody has spent and holds."""
        self._change(now, lambda spent, entries: None)

    def _change(
        self, now: float, act: Callable[[dict[str, str], dict[str, list[Json]]], object]
    ) -> None:
        def make(kept: Json) -> Json:
            spent, entries = ({}, {}) if kept is None else (kept["spent"], kept["open"])
            if self.length is not None:
                for part in [part for part in spent if float(part) <= now - self.length]:
                    del spent[part]
            act(spent, entries)
            self.spent = {**NOTHING, "MaxCost": sum(map(Decimal, spent.values()), ZERO)}
            held = sum((Decimal(amount) for amount, *_ in entries.values()), ZERO)
            self.held = {**NOTHING, "MaxCost": held}
            self.open = sum(since > now - STALE for _, since, *_ in entries.values())
            return {"spent": spent, "open": entries}

        self.tabs.change(self.name, make)

    def _part(self, now: float) -> str:
        return _part(self.length, now)

    # Calls

    def hold(self, known: Amounts, entry: str, now: float) -> Amounts | None:
        """Hold for a call what it may use; None where that is not there beside other calls."""
        sizes, fits = self.share(known), True

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            nonlocal fits
            others = [each for name, each in entries.items() if name != entry]
            used = sum(map(Decimal, spent.values()), ZERO)
            held = sum((Decimal(amount) for amount, *_ in others), ZERO)
            waits = any(since > now - STALE for _, since, *_ in others)
            if waits and self.action in HARD:
                fits = all(used + held + size <= self.most[name] for name, size in sizes.items())
            if fits and sizes:
                entries[entry] = self._entry(sizes, known, now)

        self._change(now, act)
        return sizes if fits else None

    def _entry(self, sizes: Amounts, known: Amounts, since: float) -> list[Json]:
        return [str(sizes["MaxCost"]), since, str(known.get("MaxCost", 0)), self.length]

    def hold_instead(
        self, sizes: Amounts, instead: Amounts, known: Amounts, entry: str, now: float
    ) -> None:
        """Hold something else for a call that is under way, of which so much is *known* now."""

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            if entry in entries:
                entries[entry] = self._entry(instead, known, entries[entry][1])

        self._change(now, act)

    def release(self, sizes: Amounts, entry: str, now: float) -> None:
        """Give back what was held for a call."""
        self._change(now, lambda spent, entries: entries.pop(entry, None))

    def add(self, used: Amounts, held: Amounts | None, entry: str, now: float) -> None:
        """Count what a call has used: what was held for it is not held any more."""

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            entries.pop(entry, None)
            if used.get("MaxCost"):
                part = self._part(now)
                spent[part] = str(Decimal(spent.get(part, "0")) + used["MaxCost"])

        self._change(now, act)

    # Whole executions

    def give_up(self, calls: Mapping[str, Amounts], now: float) -> None:
        """Count what is known of calls that were cut off, if nobody has: by their entries."""

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            for entry, known in calls.items():
                if entries.pop(entry, None) is not None and "MaxCost" in known:
                    part = self._part(now)
                    spent[part] = str(Decimal(spent.get(part, "0")) + known["MaxCost"])

        self._change(now, act)

    def take(
        self, entry: str, most: Decimal, before: Decimal, release: bool, now: float
    ) -> list[Decimal]:
        """Hold for a whole execution as much as is there, at most *most*.

        Returns that, and what the execution had spent when it took it first: *before* if it is now.
        *release* says whether others get at its end what it has not spent.
        """
        found: list[Decimal] = []

        def act(spent: dict[str, str], entries: dict[str, list[Json]]) -> None:
            if entry not in entries:
                used = sum(map(Decimal, spent.values()), ZERO)
                used += sum((Decimal(amount) for amount, *_ in entries.values()), ZERO)
                there = max(ZERO, min(most, self.most["MaxCost"] - used))
                entries[entry] = [str(there), now, str(before), release, self.length]
            amount, _, base, *_ = entries[entry]
            found[:] = Decimal(amount), Decimal(base)

        self._change(now, act)
        return found


def without(kept: Json, execution: str, spent: Decimal, now: float) -> Json:
    """Return a tab without what is held for an execution that has ended, and for its calls.

    *spent* is what the execution has spent in all: what it had taken for itself counts as spent, or
    only that, where it gives back the rest. A call that never ended counts as what was known of it.
    """
    entries = {}
    for entry, held in kept["open"].items():
        if entry == execution:
            amount, _, base, release, length = held
            used = spent - Decimal(base)
            kept = _charged(kept, used if release else max(used, Decimal(amount)), length, now)
        elif entry.startswith(f"{execution}:"):
            _, _, known, length = held
            kept = _charged(kept, Decimal(known), length, now)
        elif not entry.startswith(f"{execution} "):  # the call of a tool (`asl.hosts.rates`)
            entries[entry] = held
    return {**kept, "open": entries}


def _charged(kept: Json, used: Decimal, length: float | None, now: float) -> Json:
    """Return a tab on which this is spent, too."""
    part = _part(length, now)
    known = Decimal(kept["spent"].get(part, "0"))
    return {**kept, "spent": {**kept["spent"], part: str(known + used)}}


def _part(length: float | None, now: float) -> str:
    """Return the end of the part of a window in which something is spent at *now*."""
    if length is None:
        return "0"
    size = length / PARTS
    return repr((now // size + 1) * size)


class Taken(Account):
    """What an execution has taken of a pool, all of it at its beginning."""

    def __init__(
        self, tab: Tab, entry: str, most: Decimal, limits: Limits, spent: Decimal, now: float
    ) -> None:
        self.tab = tab
        self.entry = entry
        release = limits.pool is not None and limits.pool.release
        amount, base = tab.take(entry, most, spent, release, now)
        only = limits._replace(most={"MaxCost": amount}, fallbacks=(), alerts=())
        super().__init__(only)
        self.label = "MaxFromPool"
        self.base = base
        """What the execution had spent before."""
        self.doubtful = amount < most and not amount  # else all that come to an empty pool spend
        self.spent, self.untouched = {**NOTHING, "MaxCost": spent - base}, False
        self.watch()

    def close(self, release: bool, now: float) -> None:
        """Leave the pool for good: with what was spent, or, without *release*, with all of it."""
        spent = self.spent["MaxCost"]
        used = spent if release else max(spent, self.limits.most["MaxCost"])
        self.tab.add({"MaxCost": used}, None, self.entry, now)
