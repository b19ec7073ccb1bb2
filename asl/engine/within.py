"""Calls within a call: of tools, of hooks, and of agents that a tool asks (8.11).

They cannot wait for other calls, which may be waiting for the one around them. So a call sets
aside beforehand what was used within calls of its agent before. Calls within it spend from that,
and where that is less than they may use, more is set aside for as long as they last.
"""

from asl.engine.accounts import Account
from asl.engine.admission import Terms
from asl.engine.amounts import NOTHING, larger, spending, summed
from asl.states.blocks.budget import Amounts

__all__ = ["Within"]


class Within:
    """What is set aside for the calls within one call, beside what is for the call itself."""

    def __init__(self, outer: Terms) -> None:
        self.outer = outer
        self.used: Amounts = NOTHING
        """What they have used; replaced, never changed."""
        held = outer.held
        # What the state itself may spend is for the call and all within it.
        own = {name for account in outer.accounts[len(held) :] for name in account.most}
        bounded = own - outer.sizes.keys()
        self.parts = []
        """One for each account in which something is held."""
        for account, sizes in zip(outer.accounts, held, strict=False):
            before = {
                name: size if name in bounded else min(size, outer.within.get(name, 0))
                for name, size in sizes.items()
            }
            self.parts.append(_Part(account, sizes, before))

    def begin(self, inner: Terms, now: float) -> None:
        """Set something aside for a call within."""
        inner.inside = self
        inner.shares = [part.account.share(inner.known) for part in self.parts]
        for part, share in zip(self.parts, inner.shares, strict=True):
            part.taken = summed(part.taken, share)
        self._hold(now)

    def end(self, inner: Terms, now: float) -> None:
        """Give back what was set aside for a call within, and count what it has used."""
        inner.inside = None
        for used in (spending(inner.used), inner.assumed):
            self.used = {**self.used, **summed(self.used, used)}
        for part, share in zip(self.parts, inner.shares, strict=True):
            part.taken = {name: part.taken.get(name, 0) - each for name, each in share.items()}
        self._hold(now)

    def close(self, now: float) -> None:
        """Set nothing aside for calls that have not ended when the one around them does."""
        for part in self.parts:
            part.open = False
        self._hold(now)

    def _hold(self, now: float) -> None:
        outer = self.outer
        for number, part in enumerate(self.parts):
            if outer.held:  # it has not ended
                before, size = outer.held[number], part.size(self.used)
                if size != before:
                    part.account.hold_instead(before, size, outer.rest, outer.entry, now)
                    outer.held[number] = size


class _Part:
    """What is set aside in one account."""

    def __init__(self, account: Account, held: Amounts, before: Amounts) -> None:
        self.account = account
        self.before = before
        """What is held for calls within beforehand."""
        self.own = {name: size - before[name] for name, size in held.items()}
        """What is held for the call itself."""
        self.taken: Amounts = {}
        """What the calls within that are under way may use."""
        self.open = True
        """Whether that is held."""

    def size(self, used: Amounts) -> Amounts:
        """Return what is to be held when so much was *used* within."""
        rest = {name: max(size - used[name], 0) for name, size in self.before.items()}
        inner = larger(rest, self.taken) if self.open else rest
        return {name: size + inner[name] for name, size in self.own.items()}
