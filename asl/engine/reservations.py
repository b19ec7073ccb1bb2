"""Reservations: the terms of a call, and the amounts reserved for it (8.11).

A nested call (of a tool, a hook, or an agent that a tool calls) cannot wait for the call that
encloses it. It uses the amount reserved for nested calls of the outer call, which is their earlier
usage; beyond that it waits only as long as some call will end without waiting for a reservation.
"""

from collections import deque
from collections.abc import Collection, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine.budget_errors import excess_error, excess_message, record_excess
from asl.engine.limits import (
    HARD,
    SHARES,
    Account,
    Refusal,
    ReservedCall,
    Share,
    Spender,
)
from asl.engine.usage import (
    BROKEN,
    LOST,
    NOTHING,
    UNKNOWN,
    UNUSED,
    CallUsage,
    Price,
    add_amounts,
    amounts_of,
    max_amounts,
    reported_amount,
    subtract_amounts,
)
from asl.expr.text_matching import compile_glob
from asl.expr.times import format_timestamp
from asl.states.blocks.budget_limits import (
    ALL_CALLS,
    CALLS_OF,
    TOOL_CALLS,
    Amounts,
    BudgetLimits,
    Fallback,
)

__all__ = [
    "Admission",
    "CallMustWait",
    "Estimate",
    "NestedCalls",
    "Pause",
    "Reservation",
    "WaitingCalls",
    "apply_limits",
]

_glob = lru_cache(maxsize=256)(compile_glob)


class Estimate(NamedTuple):
    """Upper bounds of the tokens of one call."""

    input: int
    output: int

    def amounts(self, price: Price | None) -> Amounts:
        """Return the bounds by the fields that limit them, with the cost if the price is known."""
        sizes: dict[str, Decimal | int] = {
            "MaxTokens": self.input + self.output,
            "MaxInputTokens": self.input,
            "MaxOutputTokens": self.output,
        }
        if price is not None:
            sizes["MaxCost"] = price.input * self.input + price.output * self.output
        return sizes


class Reservation:
    """The terms of one call, its reserved amounts and its usage."""

    model: str | None = None
    """Model to use instead of the preferred one."""
    fallback_agent: str | None = None
    """Agent to call instead."""
    reduced: bool = False
    """Whether reduced quality is requested."""
    counted: Amounts = UNKNOWN
    """Amounts counted in the account of the state, once the call is settled."""
    assumed: Amounts = UNKNOWN
    """Largest amounts assumed in any account."""
    known: Amounts = UNKNOWN
    """Known maximum usage, including nested calls."""
    own: Amounts = UNKNOWN
    """Known maximum usage without nested calls."""
    sizes: Amounts = UNKNOWN
    """Bounds that the document gives."""
    unproven: frozenset[str] = frozenset()
    """Limits whose only bound is the budget of the state."""
    nested: "NestedCalls | None" = None
    """Nested calls of an outermost call, None before the first one."""
    shares: "list[Amounts]"
    """Amounts of a nested call, by account of the outermost call."""
    names: tuple[str, ...] = ()
    """All names of the called tool."""
    categories: Collection[str] = ()
    """Categories of the tool."""
    is_complete = False
    """Whether the usage is complete although the call was cancelled."""
    is_reserved = False
    """Whether it is a nested call that holds a reservation."""
    inner_calls = 0
    """Number of calls directly within it that run or wait."""

    def __init__(
        self,
        frame: Spender,
        agent: str,
        accounts: list[Account],
        parent: "Reservation | None" = None,
        tool: bool = False,
    ) -> None:
        self.frame = frame
        self.agent = agent
        self.accounts = accounts
        """From the widest to that of the state itself."""
        self.parent = parent
        """Enclosing call, None for an outermost one."""
        self.tool = tool
        """Whether it is a tool call, not one of an agent."""
        self.reserved: list[Amounts] = []
        """Reserved amounts by account, for an outermost call."""
        self.entry = ""
        """Name of the call in shared budgets."""
        self.key = agent
        """Key of similar calls, whose usage predicts that of this one."""
        self.delay = 0.0
        """Delay of the call in seconds."""
        self.applied: Fallback | None = None
        self.used = UNUSED
        """Reported usage."""

    @property
    def root(self) -> "Reservation":
        """The outermost enclosing call, or the call itself."""
        call = self
        while call.parent is not None:
            call = call.parent
        return call

    @property
    def remaining_usage(self) -> Amounts:
        """Known remaining usage."""
        return self.known if self.nested is None else subtract_amounts(self.known, self.nested.used)

    def expect(self, account: Account) -> None:
        """Expect the call and its nested calls to use the whole budget of the state.

        Because it may use more, this proves nothing.
        """
        own, known, unproven = dict(self.own), dict(self.known), []
        for name, most in account.limit_amounts.items():
            if name in self.sizes or name in account.call_limits:
                continue
            rest = max(most - account.spending_of(name), 0)
            if name not in known:
                unproven.append(name)
                own[name] = 0
            known[name] = max(rest, known.get(name, 0))
        self.own, self.known, self.unproven = own, known, frozenset(unproven)

    def proves(self, name: str) -> bool:
        """Return whether earlier usage or the document bounds its use of a limit."""
        return name in self.known and name not in self.unproven

    def is_unproven(self, name: str, inner: ReservedCall | None) -> bool:
        """Return whether this call, or a nested one that does not enclose *inner*, has no bound for
        a limit.
        """
        calls = [self] if self.nested is None else [self, *self.nested.calls]
        return any(
            not each.proves(name) and not (inner is not None and inner.is_within(each))
            for each in calls
        )

    def count(self, limit: str) -> int:
        """Return 1 if a limit of calls counts this call, else 0."""
        if limit == ALL_CALLS:
            return int(not self.tool)
        if limit.startswith(TOOL_CALLS):
            pattern = limit.removeprefix(TOOL_CALLS)
            return int(pattern in self.categories or any(map(_glob(pattern), self.names)))
        return int(limit == f"{CALLS_OF}{self.fallback_agent or self.agent}")

    def is_within(self, other: ReservedCall) -> bool:
        """Return whether it is nested in another call, at any depth."""
        call = self.parent
        while call is not None and call is not other:
            call = call.parent
        return call is not None

    def is_busy(self) -> bool:
        """Return whether this call, or a nested one, will end without waiting for a reservation."""
        return not self.inner_calls or (
            self.nested is not None and any(not each.inner_calls for each in self.nested.calls)
        )

    def account(self, state: str, result: Mapping[str, Json]) -> CallUsage:
        """Count the report of the agent for its state, and return it."""
        self.used = used = self.frame.account(state, result)
        return used

    def assume(self, account: Account, share: Amounts) -> bool:
        """Count the possible usage of the call beyond its report; return whether it must be known.

        A cancelled call of unknown size counts as a share of the limit; from the second one on, and
        after a wrong report, as the whole remaining amount.

        Args:
            account: The account to count it in.
            share: The amount reserved there for the call.
        """
        sizes, fault = dict(share), self.used.fault
        if fault is None:  # its tokens are known
            sizes = {name: sizes[name] for name in ("MaxCost",) if name in sizes}
        elif fault == BROKEN.fault:
            sizes = {name: size for name, size in sizes.items() if name in self.known}
        if account.action in HARD:
            for name in sizes:
                if not self.proves(name) and (account.has_unreported or fault != LOST.fault):
                    left = account.unspent(name) + self.counted.get(name, 0)
                    sizes[name] = max(left, sizes[name])
            account.has_unreported = account.has_unreported or not all(map(self.proves, sizes))
        rest = subtract_amounts(sizes, amounts_of(self.used))
        if rest:
            account.assume(rest, self.frame.now)
            self.assumed = max_amounts(self.assumed, rest)
            if account.frame is self.frame:
                self.counted = {**self.counted, **add_amounts(self.counted, rest)}
        return bool(sizes) and account.action in HARD


class CallMustWait:
    """A call has to wait for a call of another execution, whose end is not signalled here."""


class Pause(NamedTuple):
    """A budget request has to be answered before a call starts."""

    account: Account
    reason: str

    def request(self, frame: Spender, document: BudgetLimits) -> dict[str, Json]:
        """Return the body of the budget request.

        Args:
            frame: The calling machine.
            document: Limits of the workflow.
        """
        account, limits, most = self.account, self.account.limits, self.account.limit_amounts
        prompt = f"{self.reason}: may the execution spend more?"
        body: dict[str, Json] = {
            "state": frame.step.name,
            "path": [*frame.place, frame.step.name],
            "prompt": prompt,
            "promptText": prompt,
            "options": ["approve", "reject"],
            "budget": {
                "level": limits.state or "workflow",
                "currency": document.currency,
                "most": {name: reported_amount(name, each) for name, each in most.items()},
                "spent": {name: reported_amount(name, account.spending_of(name)) for name in most},
                "at": format_timestamp(frame.now),
            },
        }
        notify = limits.notify if limits.included else document.notify
        if notify is not None:
            body["notify"] = notify
        return body


Admission: TypeAlias = "Reservation | Pause | type[CallMustWait] | None"
"""The reservation of a call, or the reason why it does not start; None if other calls have to end
before."""


class NestedCalls:
    """The nested calls of one outermost call, and their reservations."""

    def __init__(self, root: Reservation) -> None:
        self.root = root
        self.calls: set[Reservation] = set()
        """Running nested calls."""
        self.used: Amounts = NOTHING
        """Usage of ended nested calls; replaced, never changed."""
        self.parts = [AccountShare(self, number) for number in range(len(root.reserved))]

    def begin(self, call: Reservation, now: float) -> "bool | Refusal | type[CallMustWait]":
        """Reserve for a call.

        Returns:
            True if it may start, False if it has to wait for others, CallMustWait for other
            executions, a Refusal if a limit does not allow it.
        """
        shares: list[Amounts] = []
        for part in self.parts:
            share = part.account.base.begin(call, part, now)
            if share is None or type(share) is Refusal:
                self.adjust(now)
                if share is None and part.account.base.waits_for_others:
                    return CallMustWait
                return share or False
            shares.append(share)  # type: ignore[arg-type]
        call.shares, call.is_reserved = shares, True
        self.calls.add(call)
        self.adjust(now)
        return True

    def end(self, call: Reservation, now: float) -> None:
        """Release the reservation of a call and count its usage."""
        call.is_reserved = False
        self.calls.discard(call)
        for used in (amounts_of(call.used), call.assumed):
            self.used = {**self.used, **add_amounts(self.used, used)}
        self.adjust(now)

    def close(self, now: float) -> None:
        """Release the reservations of nested calls that have not ended with the outermost one."""
        self.calls.clear()
        self.adjust(now)

    def adjust(self, now: float) -> None:
        """Reserve the needs of the running calls, and publish them."""
        root = self.root
        for part, share in zip(self.parts, list(root.reserved), strict=False):
            size, base = part.size(), part.account.base
            if size != share or not base.is_shown(root):
                base.adjust(root, share, size, now)
                root.reserved[part.number] = size


class AccountShare:
    """The reservation of an outermost call and its nested calls in one account."""

    def __init__(self, nested: NestedCalls, number: int) -> None:
        root = nested.root
        self.nested = nested
        self.number = number
        self.account = root.accounts[number]
        held = root.reserved[number]
        self.own = {name: root.own[name] if name in root.known else held[name] for name in held}
        """Amounts of the outermost call itself."""
        self.before = {name: size - self.own[name] for name, size in held.items()}
        """Amounts reserved in advance for nested calls."""

    def running_amount(self, name: str) -> Decimal | int:
        """Return the amount reserved for running nested calls."""
        return sum(call.shares[self.number].get(name, 0) for call in self.nested.calls)

    def available_amount(self, name: str) -> Decimal | int:
        """Return the amount of a limit that other outermost calls have neither spent nor
        reserved.
        """
        account, nested = self.account, self.nested
        others = account.base.reserved[name] - nested.root.reserved[self.number][name]
        return (
            account.limit_amounts[name]
            - account.spending_of(name)
            - others
            + nested.used.get(name, 0)
        )

    def free(self, name: str) -> Decimal | int:
        """Return the part of it that is neither spent nor reserved for a nested call."""
        spent = self.nested.used.get(name, 0)
        return self.available_amount(name) - spent - self.own[name] - self.running_amount(name)

    def advance_amount(self, name: str) -> Decimal | int:
        """Return the rest of the amount reserved in advance for nested calls."""
        return self.before[name] - self.nested.used.get(name, 0) - self.running_amount(name)

    def share(self, call: ReservedCall) -> Share:
        """Return the amounts to reserve for a call; None if it has to wait for others."""
        account, known = self.account, call.known
        base, strict = account.base, account.strict
        share: dict[str, Decimal | int] = {}
        for name in self.own:
            most = account.limit_amounts.get(name)
            if most is None:  # an approver has lifted it
                continue
            share[name] = size = known[name] if name in known else Decimal(most) / SHARES
            if not strict or (name in known and not size):
                continue
            fits = size <= self.free(name) or size <= self.advance_amount(name)
            if not fits or (name not in known and base.has_unproven_call(name, call)):
                if base.is_busy():
                    return None
                if self.available_amount(name) <= 0 or base.has_other_unproven_call(
                    name, self.nested.root
                ):
                    return Refusal(account, name)
        return share

    def size(self, more: Amounts = UNKNOWN) -> Amounts:
        """Return the amounts to reserve for the outermost call, with an additional nested call."""
        used, found = self.nested.used, {}
        for name, own in self.own.items():
            rest = max(self.before[name] - used.get(name, 0), 0)
            found[name] = own + max(rest, self.running_amount(name) + more.get(name, 0))
        return found


# Reached limits


def apply_limits(frame: Spender, call: Reservation, workflow: Account) -> Pause | None:
    """Apply fallbacks, throttling and requests of reached limits to a call.

    Returns:
        The budget request that has to be answered before, None without one.

    Raises:
        StateError: A limit of the state does not allow the call.
        BudgetOverrun: A limit of an enclosing state or the workflow does not allow it.
    """
    spare = None
    for account in call.accounts:
        name = account.reached_limit(call)
        if name is not None:
            action = account.action
            if action != "Continue" or account.has_assumed:
                record_excess(frame, account, name)
            if action == "Fail":
                raise excess_error(account, name, frame)
            if action == "PauseAndNotify":
                return Pause(account, excess_message(account, name))
            if action == "Throttle":
                call.delay += _document(call, account, workflow).limits.delay
            elif action == "UseFallback":
                spare = spare or (account, name)
    if spare is not None or any(each.limits.fallbacks for each in call.accounts):
        return _fall_back(frame, call, workflow, spare)
    return None


def _document(call: Reservation, account: Account, workflow: Account) -> Account:
    """Return the account of the document that contains the limits of another one."""
    found = workflow
    for each in call.accounts:
        if each.limits.included:
            found = each
        if each is account:
            break
    return found


def _fall_back(
    frame: Spender, call: Reservation, workflow: Account, spare: tuple[Account, str] | None
) -> Pause | None:
    """Apply the fallback with the highest threshold that has been reached."""
    if call.accounts[-1].limits.priority == "critical":
        return None
    entries = [
        (entry, account)
        for account in reversed(call.accounts)
        if account is workflow or account.limits.included
        for entry in account.limits.fallbacks
    ]
    entries.sort(key=lambda each: -each[0].percent)  # the innermost of equal ones
    for entry, account in entries:
        reached = not entry.of or account.has_reached(entry.of, entry.percent)
        if reached and (spare is None or entry.model or entry.agent):
            break
    else:
        if spare is not None:
            raise excess_error(*spare, frame)
        return None
    call.applied = entry
    call.model, call.fallback_agent = entry.model, entry.agent
    if entry.action == "PauseAndNotify":
        return Pause(account, f"{entry.when} is reached")
    if entry.action == "Fail":
        raise StateError(
            "States.BudgetExceeded", f"state '{frame.step.name}': {entry.when} is reached"
        )
    if entry.action == "Throttle":
        call.delay += account.limits.delay
    call.reduced = entry.action == "ReduceQuality"
    return None


# Waiting calls


class CallWaiter(Protocol):
    """The waiter of one call, such as a future."""

    def done(self) -> bool:
        """Return whether the call continues or is cancelled."""
        ...

    def set_result(self, result: None, /) -> object:
        """Continue the call."""
        ...


class WaitingCalls:
    """The calls of a run that wait for others to end; they keep their order."""

    def __init__(self) -> None:
        self.outermost: deque[CallWaiter] = deque()
        self.nested: deque[CallWaiter] = deque()
        """Nested calls, which come first: enclosing calls end only after them."""

    def wake(self) -> None:
        """Let all nested calls, and the first outermost one, try again."""
        for turn in self.nested:
            if not turn.done():
                turn.set_result(None)
        while self.outermost:
            turn = self.outermost.popleft()
            if not turn.done():
                turn.set_result(None)
                return
