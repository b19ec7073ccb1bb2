"""Limits: what one level may spend, and what it has spent (8.11).

A level is the workflow or one visit of a state; each has an account. A limit is not exceeded by
more than one call. Beside other calls, a call is admitted if what is reserved for it fits beside
what is spent and reserved; and of calls whose size nothing proves, one at a time. By itself, a call
is admitted as long as the limit is not reached.
"""

from collections.abc import Mapping
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Final, NamedTuple, Protocol, TypeAlias

from asl.core.values import Json
from asl.engine.usage import (
    NOTHING,
    UNKNOWN,
    ZERO,
    CallUsage,
    Price,
    UsageTotals,
    add_amounts,
    read_amounts,
    reported_amount,
    write_amounts,
)
from asl.program import Step
from asl.states.blocks.budget_limits import TOOL_CALLS, Amounts, Limits, counts_calls
from asl.states.effects import Frame, Workload

__all__ = [
    "HARD",
    "SHARES",
    "Account",
    "Refusal",
    "ReservedCall",
    "ReservedPart",
    "Share",
    "Spender",
    "SpendingExecution",
]

DOWN: Final = Context(rounding=ROUND_FLOOR)
HARD: Final = ("Fail", "PauseAndNotify")
"""The actions that stop calls once a limit is exceeded."""
SHARES: Final = 16
"""The number of parts of a limit of which one is reserved for a call of unknown size."""


class SpendingExecution(Workload, Protocol):
    """An execution as its budget sees it."""

    input: Json
    started: float
    usage: UsageTotals
    prices: Mapping[str, Price]

    @property
    def id(self) -> str:
        """The id of the execution."""
        ...

    @property
    def workflow_id(self) -> str:
        """The id of the workflow."""
        ...


Origin: TypeAlias = tuple[Step, int, int]
"""The state, visit and ordinal of the parent in which a machine was forked."""


class Spender(Frame, Protocol):
    """A machine as budgets see it."""

    spending: "Account | None"
    """The account of the latest visit of a state with a budget."""
    around: "tuple[Origin, list[Account]] | None"
    """The origin of the machines forked last, and the accounts around these."""

    @property
    def parent(self) -> "Spender | None":
        """The machine that has forked this one."""
        ...

    @property
    def execution(self) -> SpendingExecution:
        """The execution of the machine."""
        ...

    def account(self, state: str, result: Mapping[str, Json]) -> CallUsage:
        """Count the usage that an agent reports in its raw result, and return it."""
        ...


class ReservedCall(Protocol):
    """A call as an account sees it."""

    entry: str
    """Names the call in shared budgets."""
    known: Amounts
    """The most that the call will use, as far as it is known, calls within it included."""
    held: list[Amounts]
    """What is reserved in the accounts, of an outermost call."""

    @property
    def root(self) -> "ReservedCall":
        """The outermost call around it, or itself."""
        ...

    @property
    def rest(self) -> Amounts:
        """What is known of what it has still to use."""
        ...

    def proves(self, name: str) -> bool:
        """Return whether usage seen before, or the document, bounds what it uses of a limit."""
        ...

    def is_unproven(self, name: str, inner: "ReservedCall | None") -> bool:
        """Return whether nothing bounds this call, or one within it, that is not around *inner*."""
        ...

    def is_within(self, other: "ReservedCall") -> bool:
        """Return whether it is made within another call, at any depth."""
        ...

    def is_busy(self) -> bool:
        """Whether this call, or one within it, will end without waiting for a reservation."""
        ...

    def count(self, limit: str) -> int:
        """Return 1 if a limit of calls counts this one, else 0."""
        ...


class ReservedPart(Protocol):
    """What is reserved in one account for an outermost call and the calls within it."""

    number: int
    """The position of the account among those of the call."""

    def share(self, call: ReservedCall) -> "Share":
        """Return what to reserve for a call; None if it has to wait for others."""
        ...

    def size(self, more: Amounts = UNKNOWN) -> Amounts:
        """Return what to reserve for the outermost call now, and for one *more* in it."""
        ...


class Account:
    """What one level has spent. `frame` and `visit` are of the state's machine."""

    child_usage: dict[str, Decimal | int] | None = None
    """What running child executions of this level have spent so far."""
    held: Amounts = NOTHING
    """The sum of all reservations; replaced, never changed."""
    peak: Amounts = NOTHING
    """The highest sum of reservations so far."""
    marked: Amounts | None = NOTHING
    """The value of `held` that `peak` has taken into account."""
    doubtful = False
    """Whether an assumed amount is part of what is spent."""
    assumed: Amounts = NOTHING
    """The assumed part of `spent`; replaced, never changed."""
    guessed = False
    """Whether a call of unknown size has ended without a report."""
    label = ""
    """The name of the limit in messages, if it differs from the field."""
    owner = ""
    """Whose limits these are, if they are not those of the workflow or a state."""
    period = 0
    """How often the counts have been reset."""
    excess_recorded = False
    """Whether the excess has been recorded in the history."""
    rejected = False
    """Whether an approver has refused to lift the limits."""
    restored = False
    """Whether it was restored with all that the visit's own calls had used."""
    alerted = 0
    """The number of alerts emitted; alerts are sorted."""

    def __init__(self, limits: Limits, frame: Spender | None = None, visit: int = 0) -> None:
        self.limits = limits
        self.frame = frame
        self.visit = visit
        self.most: Amounts = limits.most
        """The limits; an approver may lift them."""
        self.spent = NOTHING
        self.untouched = True
        """Whether nothing was ever spent."""
        self.counted = tuple(name for name in limits.most if counts_calls(name))
        """The limits that count calls."""
        if self.counted:
            self.spent = {**NOTHING, **dict.fromkeys(self.counted, 0)}
            self.untouched = False
        self.calls: set[ReservedCall] = set()
        """The calls that hold a reservation here, without the calls within them."""
        self.quiet = True
        """Whether no limit and no threshold is reached."""
        self.least: Amounts = limits.most
        """The amounts from which on it is not quiet any more."""
        if limits.fallbacks or limits.alerts or self.counted:
            self.watch()

    def watch(self) -> None:
        """Compute the amounts at which a limit or threshold is reached."""
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
            self.child_usage is None
            and all(name for name, _ in shares)  # a fallback for always has none
            and all(self.spent[name] < each for name, each in least.items())
        )

    @property
    def base(self) -> "Account":
        """The account in which reservations are made: this one."""
        return self

    @property
    def is_active(self) -> bool:
        """Whether its visit has not ended."""
        return self.frame is not None and self.frame.spending is self

    @property
    def alerting(self) -> str:
        """The limit to which the shares of alerts refer."""
        return "MaxCost" if "MaxCost" in self.most else "MaxTokens"

    def used(self, name: str) -> Decimal | int:
        """Return what has been spent of one limit, running child executions included."""
        return (
            self.spent[name]
            if self.child_usage is None
            else self.spent[name] + self.child_usage[name]
        )

    def unspent(self, name: str) -> Decimal | int:
        """Return what one call may have used of a limit: all that is not spent."""
        return self.most[name] - self.used(name)

    @property
    def exceeded(self) -> str | None:
        """The limit that is exceeded, None if there is none."""
        spent, lent = self.spent, self.child_usage
        for name, most in self.most.items():
            if (spent[name] if lent is None else spent[name] + lent[name]) > most:
                return name
        return None

    def reached(self, call: ReservedCall | None = None) -> str | None:
        """Return the limit that does not allow a call, None if there is none.

        A limit of money or tokens in which nothing is spent is not reached, not even one of 0: an
        agent may cost nothing.

        Args:
            call: The call; None for any that no limit of calls counts.
        """
        for name, most in self.most.items():
            used = self.used(name)
            if used < most:
                continue
            if (
                call is not None and call.count(name)
                if name in self.counted
                else used or self.doubtful
            ):
                return name
        return None

    def reached_of_tools(self, call: ReservedCall) -> str | None:
        """Return the limit of a Tools block that does not allow a tool call, whatever the action.

        Args:
            call: The call of a tool.
        """
        for name in self.counted:
            is_reached = name.startswith(TOOL_CALLS) and self.used(name) >= self.most[name]
            if is_reached and call.count(name):
                return name
        return None

    @property
    def left(self) -> dict[str, Json]:
        """The rest of each limit."""
        return {
            self.label or name: reported_amount(name, max(ZERO, most - self.used(name)))
            for name, most in self.most.items()
        }

    @property
    def action(self) -> str:
        """The action when a limit is exceeded."""
        return "Fail" if self.rejected else self.limits.on_exceed

    @property
    def strict(self) -> bool:
        """Whether calls have to wait for their reservation."""
        action = self.action
        return action in HARD or (action == "UseFallback" and self.reached() is None)

    def has_reached(self, name: str, percent: Decimal | int) -> bool:
        """Whether this share of a limit has been spent."""
        most = self.most.get(name)
        return most is not None and self.used(name) * 100 >= most * percent

    def refresh(self, now: float) -> None:
        """Read the present state of the level, where others or the time change it."""

    # Reservations

    def reserve(self, call: ReservedCall, now: float) -> Amounts | None:
        """Reserve what a call may use, and return it; None if it has to wait for other calls."""
        held, known, calls = self.held, call.known, self.calls
        busy = bool(calls) and self.strict
        share: dict[str, Decimal | int] = {}
        for name, most in self.most.items():
            if name in self.counted:
                continue
            size = known[name] if name in known else Decimal(most) / SHARES
            if busy and not (name in known and not size):
                rest = most - self.used(name) - held[name]
                if size > rest or (not call.proves(name) and self.unproven(name)):
                    return None
            share[name] = size
        if share:
            calls.add(call)
            self.held = {**held, **add_amounts(held, share)}
        return share

    def unproven(self, name: str, call: ReservedCall | None = None) -> bool:
        """Return whether nothing proves the size of a call under way, but those around *call*."""
        return any(each.is_unproven(name, call) for each in self.calls)

    def mark(self) -> None:
        """Update the highest sum of reservations."""
        held, peak = self.held, self.peak
        self.marked = held
        for name in self.most:
            if held.get(name, 0) > peak.get(name, 0):
                self.peak = peak = {**peak, name: held[name]}

    def release(self, call: ReservedCall, share: Amounts, now: float) -> None:
        """Give back the reservation of a call."""
        if share:
            self.calls.discard(call)
            self.adjust(call, share, UNKNOWN, now)

    def adjust(self, call: ReservedCall, share: Amounts, instead: Amounts, now: float) -> None:
        """Change the reservation of a call that is under way."""
        held = self.held
        changed = {name: held[name] - size + instead.get(name, 0) for name, size in share.items()}
        self.held = {**held, **changed}

    def begin(self, call: ReservedCall, part: ReservedPart, now: float) -> "Share":
        """Return what to reserve here for a call within another one.

        Args:
            call: The call.
            part: What is reserved here for the outermost call around it.
            now: The present time, in epoch seconds.

        Returns:
            The amounts; None if it has to wait for others, or why it is not made.
        """
        return part.share(call)

    def is_shown(self, call: ReservedCall) -> bool:
        """Whether others see of a call what holds for it now; here there are none."""
        return True

    @property
    def waits_for_others(self) -> bool:
        """Whether calls of other executions may be waited for."""
        return False

    def others_unproven(self, name: str, call: ReservedCall) -> bool:
        """Whether nothing proves the size of another call with a reservation here."""
        return any(each is not call and each.is_unproven(name, None) for each in self.calls)

    def is_busy(self) -> bool:
        """Whether a call with a reservation here will end without waiting for a reservation."""
        return any(call.is_busy() for call in self.calls)

    # Settlement

    def settle(self, call: ReservedCall, used: Amounts, share: Amounts, now: float) -> None:
        """Add what a call has used, and release its reservation."""
        self.add(used, now)
        self.release(call, share, now)

    def count(self, call: ReservedCall) -> None:
        """Count a call that is about to be made, where the number of calls is limited."""
        for name in self.counted:
            self.spent[name] += call.count(name)
            if self.spent[name] >= self.least[name]:
                self.quiet = False

    def add(self, used: Amounts, now: float) -> None:
        """Add what a call has used to what is spent."""
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

    def add_child_usage(self, used: Amounts) -> None:
        """Add to what running child executions have spent."""
        if self.child_usage is None:
            self.child_usage = dict.fromkeys(self.spent, 0)
        self.quiet = False
        for name, each in used.items():
            self.child_usage[name] += each

    def assume(self, used: Amounts, now: float) -> None:
        """Add what a call may have used beyond its report."""
        self.doubtful = True
        self.assumed = {**self.assumed, **add_amounts(self.assumed, used)}
        self.add(used, now)

    def recover(self, known: Amounts) -> None:
        """Add what is known of a call that was cut off, as far as it is limited here."""
        used = {name: each for name, each in known.items() if each and name in self.most}
        if used:
            self.assume(used, 0.0)

    # Persistence

    def reset(self, period: int) -> Amounts:
        """Reset the counts for a new period; return what was reported in the one before."""
        before = {name: each - self.assumed.get(name, 0) for name, each in self.spent.items()}
        self.spent, self.untouched, self.assumed = NOTHING, True, NOTHING
        if self.counted:
            self.spent, self.untouched = {**NOTHING, **dict.fromkeys(self.counted, 0)}, False
        self.period, self.excess_recorded, self.alerted, self.doubtful = period, False, 0, False
        self.watch()
        return before

    def written(self) -> Json:
        """Return the account as JSON."""
        return [
            write_amounts(self.spent),
            write_amounts(self.most),
            self.excess_recorded,
            self.rejected,
            self.alerted,
            self.period,
            self.doubtful,
            write_amounts(self.assumed),
        ]

    def restore(self, written: Json) -> None:
        """Restore the account from JSON."""
        spent, most, self.excess_recorded, self.rejected, self.alerted, self.period, *doubts = (
            written
        )
        self.spent, self.most = {**self.spent, **read_amounts(spent)}, read_amounts(most)
        self.untouched = False
        self.doubtful, assumed = doubts
        self.assumed = read_amounts(assumed)
        self.watch()


class Refusal(NamedTuple):
    """A call within another one is not made: the limit of an account allows no more."""

    account: Account
    name: str


Share: TypeAlias = Amounts | Refusal | None
"""What is reserved for a call within another one; None if it has to wait for others."""
