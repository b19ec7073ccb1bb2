"""Limits and accounts: what a level may spend, and its spending (8.11).

A level is the workflow or one visit of a state; each has an account. A limit is exceeded by at most
one call. A call that runs concurrently with others is admitted if its reservation fits into the
amount that is neither spent nor reserved; of calls of unproven size, one at a time. A call without
concurrent calls is admitted until the limit is reached.
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
from asl.states.blocks.budget_limits import TOOL_CALLS, Amounts, BudgetLimits, counts_calls
from asl.states.effects import StateFrame, Workload

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
"""Actions that stop calls once a limit is exceeded."""
SHARES: Final = 16
"""A call of unknown size reserves one of this number of equal parts of a limit."""


class SpendingExecution(Workload, Protocol):
    """An execution as its budget sees it."""

    input: Json
    started: float
    usage: UsageTotals
    prices: Mapping[str, Price]

    @property
    def id(self) -> str:
        """Id of the execution."""
        ...

    @property
    def workflow_id(self) -> str:
        """Id of the workflow."""
        ...


Origin: TypeAlias = tuple[Step, int, int]
"""State, visit and ordinal of the parent's effect that forked a machine."""


class Spender(StateFrame, Protocol):
    """A machine as budgets see it."""

    spending: "Account | None"
    """Account of the latest visit of a state with a budget."""
    fork_accounts: "tuple[Origin, list[Account]] | None"
    """Origin of the machines forked last, and the accounts around them."""

    @property
    def parent(self) -> "Spender | None":
        """The machine that forked this one."""
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
    """Name of the call in shared budgets."""
    known: Amounts
    """Maximum usage of the call as far as it is known, including nested calls."""
    reserved: list[Amounts]
    """Reserved amounts by account, for an outermost call."""

    @property
    def root(self) -> "ReservedCall":
        """The outermost enclosing call, or the call itself."""
        ...

    @property
    def remaining_usage(self) -> Amounts:
        """Known remaining usage."""
        ...

    def proves(self, name: str) -> bool:
        """Return whether earlier usage or the document bounds its use of a limit."""
        ...

    def is_unproven(self, name: str, inner: "ReservedCall | None") -> bool:
        """Return whether this call, or a nested one that does not enclose *inner*, has no bound for
        a limit.
        """
        ...

    def is_within(self, other: "ReservedCall") -> bool:
        """Return whether it is nested in another call, at any depth."""
        ...

    def is_busy(self) -> bool:
        """Whether this call, or a nested one, will end without waiting for a reservation."""
        ...

    def count(self, limit: str) -> int:
        """Return 1 if a limit of calls counts this call, else 0."""
        ...


class ReservedPart(Protocol):
    """The reservation of an outermost call and its nested calls in one account."""

    number: int
    """Index of the account among those of the call."""

    def share(self, call: ReservedCall) -> "Share":
        """Return the amounts to reserve for a call; None if it has to wait for others."""
        ...

    def size(self, more: Amounts = UNKNOWN) -> Amounts:
        """Return the amounts to reserve for the outermost call and an additional nested call.

        Args:
            more: Amounts of the additional call.
        """
        ...


class Account:
    """The account of one level. `frame` and `visit` are those of the state's machine."""

    child_usage: dict[str, Decimal | int] | None = None
    """Spending of running child executions of this level; None without any."""
    reserved: Amounts = NOTHING
    """Sum of all reservations; replaced, never changed."""
    peak: Amounts = NOTHING
    """Highest sum of reservations so far."""
    peak_source: Amounts | None = NOTHING
    """Value of `reserved` that `peak` takes into account."""
    has_assumed = False
    """Whether the spending contains an assumed amount."""
    assumed: Amounts = NOTHING
    """Assumed part of `spent`; replaced, never changed."""
    has_unreported = False
    """Whether a call of unknown size has ended without a report."""
    label = ""
    """Name of the limit in messages, if it differs from the field."""
    owner = ""
    """Owner of the limits in messages; None for the workflow or the state."""
    period = 0
    """Number of resets of the counts."""
    excess_recorded = False
    """Whether the history has recorded the excess."""
    rejected = False
    """Whether an approver has refused to lift the limits."""
    restored = False
    """Whether it was restored with the usage of all own calls of the visit."""
    alerts_emitted = 0
    """Number of alerts emitted; alerts are sorted by their share."""

    def __init__(self, limits: BudgetLimits, frame: Spender | None = None, visit: int = 0) -> None:
        self.limits = limits
        self.frame = frame
        self.visit = visit
        self.limit_amounts: Amounts = limits.amounts
        """The limits; an approver may lift them."""
        self.spent = NOTHING
        self.is_unused = True
        """Whether nothing has been spent yet."""
        self.call_limits = tuple(name for name in limits.amounts if counts_calls(name))
        """Names of the limits on numbers of calls."""
        if self.call_limits:
            self.spent = {**NOTHING, **dict.fromkeys(self.call_limits, 0)}
            self.is_unused = False
        self.calls: set[ReservedCall] = set()
        """Outermost calls that hold a reservation."""
        self.below_thresholds = True
        """Whether no limit and no threshold is reached."""
        self.thresholds: Amounts = limits.amounts
        """Amounts from which on a limit or threshold is reached."""
        if limits.fallbacks or limits.alerts or self.call_limits:
            self.watch()

    def watch(self) -> None:
        """Compute the amounts at which a limit or threshold is reached."""
        limits, least = self.limits, dict(self.limit_amounts)
        shares: list[tuple[str, Decimal | int]] = [(e.of, e.percent) for e in limits.fallbacks]
        if self.alerts_emitted < len(limits.alerts):
            shares.append((self.alert_limit, limits.alerts[self.alerts_emitted].percent))
        for name, percent in shares:
            if name in least:
                share = DOWN.divide(DOWN.multiply(self.limit_amounts[name], percent), 100)
                least[name] = min(least[name], share)
        self.thresholds = least
        self.below_thresholds = (
            self.child_usage is None
            and all(name for name, _ in shares)  # an unconditional fallback has no threshold
            and all(self.spent[name] < each for name, each in least.items())
        )

    @property
    def base(self) -> "Account":
        """The account that holds the reservations: this one."""
        return self

    @property
    def is_active(self) -> bool:
        """Whether its visit has not ended."""
        return self.frame is not None and self.frame.spending is self

    @property
    def alert_limit(self) -> str:
        """Name of the limit to which the shares of alerts refer."""
        return "MaxCost" if "MaxCost" in self.limit_amounts else "MaxTokens"

    def spending_of(self, name: str) -> Decimal | int:
        """Return the spending of one limit, including running child executions."""
        return (
            self.spent[name]
            if self.child_usage is None
            else self.spent[name] + self.child_usage[name]
        )

    def unspent(self, name: str) -> Decimal | int:
        """Return the unspent amount of a limit, which one call may use at most."""
        return self.limit_amounts[name] - self.spending_of(name)

    @property
    def exceeded_limit(self) -> str | None:
        """Name of the exceeded limit, None if there is none."""
        spent, lent = self.spent, self.child_usage
        for name, most in self.limit_amounts.items():
            if (spent[name] if lent is None else spent[name] + lent[name]) > most:
                return name
        return None

    def reached_limit(self, call: ReservedCall | None = None) -> str | None:
        """Return the name of the limit that does not allow a call, None if there is none.

        A limit of money or tokens without any spending is not reached, not even a limit of 0: an
        agent may cost nothing.

        Args:
            call: The call; None for one that no limit of calls counts.
        """
        for name, most in self.limit_amounts.items():
            used = self.spending_of(name)
            if used < most:
                continue
            if (
                call is not None and call.count(name)
                if name in self.call_limits
                else used or self.has_assumed
            ):
                return name
        return None

    def reached_of_tools(self, call: ReservedCall) -> str | None:
        """Return the limit of a Tools block that does not allow a tool call, regardless of the
        action.

        Args:
            call: The tool call.
        """
        for name in self.call_limits:
            is_reached = (
                name.startswith(TOOL_CALLS) and self.spending_of(name) >= self.limit_amounts[name]
            )
            if is_reached and call.count(name):
                return name
        return None

    @property
    def remaining(self) -> dict[str, Json]:
        """Remaining amount of each limit."""
        return {
            self.label or name: reported_amount(name, max(ZERO, most - self.spending_of(name)))
            for name, most in self.limit_amounts.items()
        }

    @property
    def action(self) -> str:
        """The action when a limit is exceeded."""
        return "Fail" if self.rejected else self.limits.on_exceed

    @property
    def strict(self) -> bool:
        """Whether calls have to wait for their reservation."""
        action = self.action
        return action in HARD or (action == "UseFallback" and self.reached_limit() is None)

    def has_reached(self, name: str, percent: Decimal | int) -> bool:
        """Return whether this share of a limit has been spent.

        Args:
            name: Name of the limit.
            percent: The share in percent.
        """
        most = self.limit_amounts.get(name)
        return most is not None and self.spending_of(name) * 100 >= most * percent

    def refresh(self, now: float) -> None:
        """Read the current amounts, if other executions or the time change them.

        Args:
            now: Current time in epoch seconds.
        """

    # Reservations

    def reserve(self, call: ReservedCall, now: float) -> Amounts | None:
        """Reserve amounts for a call.

        Args:
            call: The call.
            now: Current time in epoch seconds.

        Returns:
            The reserved amounts; None if it has to wait for other calls.
        """
        held, known, calls = self.reserved, call.known, self.calls
        busy = bool(calls) and self.strict
        share: dict[str, Decimal | int] = {}
        for name, most in self.limit_amounts.items():
            if name in self.call_limits:
                continue
            size = known[name] if name in known else Decimal(most) / SHARES
            if busy and not (name in known and not size):
                rest = most - self.spending_of(name) - held[name]
                if size > rest or (not call.proves(name) and self.has_unproven_call(name)):
                    return None
            share[name] = size
        if share:
            calls.add(call)
            self.reserved = {**held, **add_amounts(held, share)}
        return share

    def has_unproven_call(self, name: str, call: ReservedCall | None = None) -> bool:
        """Return whether a running call that does not enclose *call* has no proven size."""
        return any(each.is_unproven(name, call) for each in self.calls)

    def mark(self) -> None:
        """Update the highest sum of reservations."""
        held, peak = self.reserved, self.peak
        self.peak_source = held
        for name in self.limit_amounts:
            if held.get(name, 0) > peak.get(name, 0):
                self.peak = peak = {**peak, name: held[name]}

    def release(self, call: ReservedCall, share: Amounts, now: float) -> None:
        """Release the reservation of a call."""
        if share:
            self.calls.discard(call)
            self.adjust(call, share, UNKNOWN, now)

    def adjust(self, call: ReservedCall, share: Amounts, instead: Amounts, now: float) -> None:
        """Change the reservation of a running call.

        Args:
            call: The call.
            share: The amounts reserved so far.
            instead: The new amounts.
            now: Current time in epoch seconds.
        """
        held = self.reserved
        changed = {name: held[name] - size + instead.get(name, 0) for name, size in share.items()}
        self.reserved = {**held, **changed}

    def begin(self, call: ReservedCall, part: ReservedPart, now: float) -> "Share":
        """Return the amounts to reserve for a nested call.

        Args:
            call: The nested call.
            part: Reservation of the outermost enclosing call in this account.
            now: Current time in epoch seconds.

        Returns:
            The amounts; None if it has to wait for others, a Refusal if a limit does not allow it.
        """
        return part.share(call)

    def is_shown(self, call: ReservedCall) -> bool:
        """Return whether the published state of a call is current; always true for an account of
        one execution.
        """
        return True

    @property
    def waits_for_others(self) -> bool:
        """Return whether a call may have to wait for calls of other executions."""
        return False

    def has_other_unproven_call(self, name: str, call: ReservedCall) -> bool:
        """Return whether another call with a reservation here has no proven size."""
        return any(each is not call and each.is_unproven(name, None) for each in self.calls)

    def is_busy(self) -> bool:
        """Return whether a call with a reservation here will end without waiting for a
        reservation.
        """
        return any(call.is_busy() for call in self.calls)

    # Settlement

    def settle(self, call: ReservedCall, used: Amounts, share: Amounts, now: float) -> None:
        """Add the usage of a call to the spending and release its reservation.

        Args:
            call: The call.
            used: Its usage.
            share: Its reserved amounts.
            now: Current time in epoch seconds.
        """
        self.add(used, now)
        self.release(call, share, now)

    def count(self, call: ReservedCall) -> None:
        """Count a call that is about to start, for limits on numbers of calls."""
        for name in self.call_limits:
            self.spent[name] += call.count(name)
            if self.spent[name] >= self.thresholds[name]:
                self.below_thresholds = False

    def add(self, used: Amounts, now: float) -> None:
        """Add usage to the spending."""
        spent = self.spent
        if self.is_unused:
            self.is_unused = False
            self.spent = spent = {**spent, **used}
        else:
            for name, each in used.items():
                spent[name] += each
        if self.below_thresholds:
            for name, least in self.thresholds.items():
                if spent[name] >= least:
                    self.below_thresholds = False

    def add_child_usage(self, used: Amounts) -> None:
        """Add usage of running child executions."""
        if self.child_usage is None:
            self.child_usage = dict.fromkeys(self.spent, 0)
        self.below_thresholds = False
        for name, each in used.items():
            self.child_usage[name] += each

    def assume(self, used: Amounts, now: float) -> None:
        """Add the assumed usage of a call beyond its report."""
        self.has_assumed = True
        self.assumed = {**self.assumed, **add_amounts(self.assumed, used)}
        self.add(used, now)

    def recover(self, known: Amounts) -> None:
        """Add the known usage of an interrupted call, as far as it is limited here."""
        used = {name: each for name, each in known.items() if each and name in self.limit_amounts}
        if used:
            self.assume(used, 0.0)

    # Persistence

    def reset(self, period: int) -> Amounts:
        """Reset the counts for a new period and return the reported spending of the previous
        one.
        """
        before = {name: each - self.assumed.get(name, 0) for name, each in self.spent.items()}
        self.spent, self.is_unused, self.assumed = NOTHING, True, NOTHING
        if self.call_limits:
            self.spent, self.is_unused = {**NOTHING, **dict.fromkeys(self.call_limits, 0)}, False
        self.period, self.excess_recorded, self.alerts_emitted, self.has_assumed = (
            period,
            False,
            0,
            False,
        )
        self.watch()
        return before

    def to_json(self) -> Json:
        """Return the account as JSON."""
        return [
            write_amounts(self.spent),
            write_amounts(self.limit_amounts),
            self.excess_recorded,
            self.rejected,
            self.alerts_emitted,
            self.period,
            self.has_assumed,
            write_amounts(self.assumed),
        ]

    def restore(self, written: Json) -> None:
        """Restore the account from JSON."""
        (
            spent,
            most,
            self.excess_recorded,
            self.rejected,
            self.alerts_emitted,
            self.period,
            *doubts,
        ) = written
        self.spent, self.limit_amounts = {**self.spent, **read_amounts(spent)}, read_amounts(most)
        self.is_unused = False
        self.has_assumed, assumed = doubts
        self.assumed = read_amounts(assumed)
        self.watch()


class Refusal(NamedTuple):
    """A nested call that may not start, because the limit of an account is reached."""

    account: Account
    name: str


Share: TypeAlias = Amounts | Refusal | None
"""Amounts to reserve for a nested call; None if it has to wait for others."""
