"""Accounts: what one level has spent, and what is held for calls under way (8.11)."""

from decimal import ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Final

from asl.core.values import Json
from asl.engine.amounts import NOTHING, kept, read_back, summed, told
from asl.engine.execution import ZERO
from asl.states.blocks.budget import Amounts, Limits

if TYPE_CHECKING:
    from asl.engine.frame import Frame

__all__ = ["HARD", "Account", "Lent"]

DOWN: Final = Context(rounding=ROUND_FLOOR)
HARD: Final = ("Fail", "PauseAndNotify")
"""What a level does that must not be exceeded by calls at the same time."""
SHARES: Final = 16
"""Into how many parts a limit is divided as long as nobody knows what a call uses."""


class Account:
    """What one level has spent. `frame` and `visit` are of the state's machine."""

    lent: dict[str, Decimal | int] | None = None
    """What executions that were started here, and have not ended, have spent so far."""
    open = 0
    """How many calls hold something."""
    held: Amounts = NOTHING
    """What they hold together; replaced, never changed."""
    peak: Amounts = NOTHING
    """The most that was held at one time."""
    marked: Amounts | None = NOTHING
    """What was held when that was looked at last."""
    _shared: tuple[Amounts, Amounts, Amounts] = NOTHING, NOTHING, NOTHING
    """What was known of the last call, the limits then, and what it had to hold."""
    doubtful = False
    """Whether some of what was used is assumed, so that a limit that is reached is gone."""
    assumed: Amounts = NOTHING
    """What of `spent` is assumed; replaced, never changed."""
    label = ""
    """What the limit is called where it is not called as the field that it limits."""
    period = 0
    """How often the counts have started again."""
    told = False
    """Whether there was an event of the excess."""
    rejected = False
    """Whether people have refused to lift the limits."""
    recalled = False
    """Whether it was found as it stood, with all that the visit's own calls had used."""
    alerted = 0
    """How many alerts there were; they are sorted."""

    def __init__(self, limits: Limits, frame: "Frame | None" = None, visit: int = 0) -> None:
        self.limits = limits
        self.frame = frame
        self.visit = visit
        self.most: Amounts = limits.most
        """The limits; people may lift them."""
        self.spent = NOTHING
        self.untouched = True
        """Whether nothing was ever spent."""
        self.quiet = True
        """Whether no limit and no threshold is reached, so that nothing comes of what was spent."""
        self.least: Amounts = limits.most
        """From which amounts on it is not quiet any more."""
        if limits.fallbacks or limits.alerts:
            self.watch()

    def watch(self) -> None:
        """Look anew at what may come of what is spent."""
        limits, least = self.limits, dict(self.most)
        shares: list[tuple[str, Decimal | int]] = [(e.of, e.percent) for e in limits.fallbacks]
        if self.alerted < len(limits.alerts):
            shares.append((self.alerting, limits.alerts[self.alerted].percent))
        for name, percent in shares:
            if name in least:
                share = DOWN.divide(DOWN.multiply(self.most[name], percent), 100)
                least[name] = min(least[name], share)
        self.least = least
        self.quiet = (
            self.lent is None
            and all(name for name, _ in shares)  # a fallback for always has none
            and all(self.spent[name] < each for name, each in least.items())
        )

    @property
    def stands(self) -> bool:
        """Whether its visit has not ended."""
        return self.frame is not None and self.frame.spending is self

    @property
    def alerting(self) -> str:
        """The limit whose shares alerts tell of."""
        return "MaxCost" if "MaxCost" in self.most else "MaxTokens"

    def used(self, name: str) -> Decimal | int:
        """Return what has been spent of one limit, by executions that were started here as well."""
        return self.spent[name] if self.lent is None else self.spent[name] + self.lent[name]

    @property
    def exceeded(self) -> str | None:
        """The limit that is exceeded, None if there is none."""
        spent, lent = self.spent, self.lent
        for name, most in self.most.items():
            if (spent[name] if lent is None else spent[name] + lent[name]) > most:
                return name
        return None

    @property
    def gone(self) -> str | None:
        """The limit for which no call is made any more, None if there is none.

        As much as the limit may be spent, but not after a call of which nobody knows what it used.
        """
        name = self.exceeded
        if name is None and self.doubtful:
            return next((name for name, most in self.most.items() if self.used(name) >= most), None)
        return name

    @property
    def left(self) -> dict[str, Json]:
        """What is left of each limit."""
        return {
            self.label or name: told(name, max(ZERO, most - self.used(name)))
            for name, most in self.most.items()
        }

    @property
    def rest(self) -> Amounts:
        """The same as amounts, of the state itself."""
        spent = self.spent
        return {name: max(0, most - spent[name]) for name, most in self.most.items()}

    @property
    def action(self) -> str:
        """What is done about an excess."""
        return "Fail" if self.rejected else self.limits.on_exceed

    def reached(self, name: str, percent: Decimal | int) -> bool:
        """Whether this share of a limit has been spent."""
        most = self.most.get(name)
        return most is not None and self.used(name) * 100 >= most * percent

    def refresh(self, now: float) -> None:
        """Look at how the level stands at *now*, where others or the time change that."""

    # A call

    def share(self, known: Amounts) -> Amounts:
        """Return what a call has to hold, of which so much is *known*."""
        most = self.most
        share = {
            name: known[name] if name in known else Decimal(each) / SHARES
            for name, each in most.items()
        }
        self._shared = known, most, share
        return share

    def hold(self, known: Amounts, entry: str, now: float) -> Amounts | None:
        """Hold for a call what it may use, of which so much is *known*, and return that.

        None where it is not there beside other calls.
        """
        before, most, share = self._shared
        if before is not known or most is not self.most:
            share = self.share(known)
        if self.open:
            held = self.held
            sizes = {name: held.get(name, 0) + size for name, size in share.items()}
            if self.action in HARD:
                for name, each in sizes.items():
                    if self.used(name) + each > self.most[name]:
                        return None
            self.held = {**held, **sizes}
        else:
            self.held = share
        self.open += 1
        return share

    def mark(self) -> None:
        """Remember the most that was held at one time."""
        held, peak = self.held, self.peak
        self.marked = held
        for name in self.most:
            if held.get(name, 0) > peak[name]:
                self.peak = peak = {**peak, name: held[name]}

    def release(self, sizes: Amounts, entry: str, now: float) -> None:
        """Give back what was held for a call."""
        self.open -= 1
        if self.open:
            held = self.held
            self.held = {**held, **{name: held[name] - size for name, size in sizes.items()}}
        else:
            self.held = NOTHING

    def hold_instead(
        self, sizes: Amounts, instead: Amounts, known: Amounts, entry: str, now: float
    ) -> None:
        """Hold something else for a call that is under way, of which so much is *known* now."""
        held = self.held
        changed = {name: held[name] - size + instead[name] for name, size in sizes.items()}
        self.held = {**held, **changed}

    def add(self, used: Amounts, held: Amounts | None, entry: str, now: float) -> None:
        """Count what a call has used, in place of what was held for it, if anything was."""
        spent = self.spent
        if self.untouched:
            self.untouched = False
            self.spent = spent = {**spent, **used}
        else:
            for name, each in used.items():
                spent[name] += each
        if self.quiet:
            for name, least in self.least.items():
                if spent[name] >= least:
                    self.quiet = False
        if held is not None:
            self.release(held, entry, now)

    def assume(self, used: Amounts, entry: str, now: float) -> None:
        """Count what a call may have used of which nobody knows."""
        self.doubtful = True
        self.assumed = {**self.assumed, **summed(self.assumed, used)}
        self.add(used, None, entry, now)

    def recover(self, known: Amounts) -> None:
        """Count what is known of a call that was cut off, as far as that is limited here."""
        used = {name: each for name, each in known.items() if each and name in self.most}
        if used:
            self.assume(used, "", 0.0)

    # Keeping

    def start_again(self, period: int) -> Amounts:
        """Count from 0 in a new period; return what was reported in the one before."""
        before = {name: each - self.assumed[name] for name, each in self.spent.items()}
        self.spent, self.untouched, self.assumed = NOTHING, True, NOTHING
        self.period, self.told, self.alerted, self.doubtful = period, False, 0, False
        self.watch()
        return before

    def written(self) -> Json:
        """Return the account as JSON."""
        return [
            kept(self.spent),
            kept(self.most),
            self.told,
            self.rejected,
            self.alerted,
            self.period,
            self.doubtful,
            kept(self.assumed),
        ]

    def restore(self, written: Json) -> None:
        """Stand as it was written."""
        spent, most, self.told, self.rejected, self.alerted, self.period, *doubts = written
        self.spent, self.most, self.untouched = read_back(spent), read_back(most), False
        self.doubtful, assumed = doubts
        self.assumed = read_back(assumed)
        self.watch()


class Lent(Account):
    """An account of the execution that has started this one, as the calls of this one see it.

    What they spend stands there as lent, until this execution ends and it is counted as spent.
    """

    marked = None
    """It is looked at there."""

    def __init__(self, account: Account, spent: Amounts) -> None:
        super().__init__(account.limits)
        self.label = account.label
        self.quiet = False
        self.account = account
        self.total = dict(NOTHING)
        """What this execution has spent."""
        self.add(spent, None, "", 0.0)

    def watch(self) -> None:
        """It is never quiet: others spend from it."""

    def refresh(self, now: float) -> None:
        """Stand as the account of the other execution does."""
        self.account.refresh(now)
        self._look()

    def _look(self) -> None:
        account = self.account
        self.most, self.rejected = account.most, account.rejected
        self.spent, self.lent, self.held = account.spent, account.lent, account.held
        self.open, self.doubtful = account.open, account.doubtful

    def hold(self, known: Amounts, entry: str, now: float) -> Amounts | None:
        """Hold it there."""
        return self.account.hold(known, entry, now)

    def mark(self) -> None:
        """Remember it there."""
        self.account.mark()

    def release(self, sizes: Amounts, entry: str, now: float) -> None:
        """Give it back there."""
        self.account.release(sizes, entry, now)

    def hold_instead(
        self, sizes: Amounts, instead: Amounts, known: Amounts, entry: str, now: float
    ) -> None:
        """Hold it there."""
        self.account.hold_instead(sizes, instead, known, entry, now)

    def add(self, used: Amounts, held: Amounts | None, entry: str, now: float) -> None:
        """Count it there as lent."""
        account = self.account
        if account.lent is None:
            account.lent = dict(NOTHING)
        account.quiet = False
        for name, each in used.items():
            account.lent[name] += each
            self.total[name] += each
        if held is not None:
            account.release(held, entry, now)
        self._look()

    def assume(self, used: Amounts, entry: str, now: float) -> None:
        """Count it there, for good."""
        self.account.doubtful = True
        self.assumed = {**self.assumed, **summed(self.assumed, used)}
        self.add(used, None, entry, now)

    def give_back(self) -> None:
        """Lend nothing any more; what is assumed stays spent."""
        lent = self.account.lent
        assert lent is not None
        for name, each in self.total.items():
            lent[name] -= each
        if self.assumed is not NOTHING:
            self.account.assume(self.assumed, "", 0.0)
        self.total, self.assumed = dict(NOTHING), NOTHING
