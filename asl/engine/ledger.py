"""The ledger of an execution: the spending of each level, and the admission of calls (8.11).

A level is the workflow or one visit of a state; each has an account. Before a call of an agent,
`admit` checks all accounts around it and reserves a part of the remaining amount; after the call,
`settle` counts its usage and `release` frees the reservation. So concurrent calls cannot together
spend an amount that is left only once.

Nothing here waits: `asl.effects.budget_gate` does.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from decimal import Decimal
from math import ceil
from weakref import WeakValueDictionary

from asl.core.errors import StateError
from asl.core.pointers import escape
from asl.core.values import Json
from asl.engine.budget_errors import emit_alerts, excess_error, record_excess, unknown_usage_error
from asl.engine.limits import (
    Account,
    Refusal,
    Spender,
    SpendingExecution,
)
from asl.engine.pools import (
    NOTHING_HELD,
    ParentAccount,
    PoolReservation,
    SharedBudget,
    SharedBudgets,
    join_shared_budgets,
)
from asl.engine.reservations import (
    Admission,
    CallMustWait,
    Estimate,
    NestedCalls,
    Pause,
    Reservation,
    WaitingCalls,
    apply_limits,
)
from asl.engine.usage import (
    BROKEN,
    LOST,
    NOTHING,
    UNKNOWN,
    UNUSED,
    ZERO,
    Attribution,
    CallUsage,
    ExecutionSpending,
    PastUsage,
    UsageTotals,
    add_amounts,
    amounts_of,
    read_amounts,
    reported_amount,
    subtract_amounts,
    write_amounts,
)
from asl.states.blocks.budget_limits import Amounts, BudgetLimits, CompileLimits
from asl.states.errors import BudgetOverrun
from asl.states.numbers import parse_amount

__all__ = ["Ledger"]

OPERATOR = "the operator's policy"
"""Owner of a ceiling's limits, in messages."""
UNREPORTED = {
    LOST.fault: ("the call ended without reporting its usage: it counts as its reservation"),
    BROKEN.fault: "the tool did not report its usage: it counts as its highest usage so far",
}
"""Reason in the warning about a call without a report, by the fault of its usage."""


class Ledger:
    """All accounts of one execution, and its running calls."""

    def __init__(self, execution: SpendingExecution, limits: BudgetLimits) -> None:
        self.execution = execution
        self.workflow = Account(limits)
        self.shared_accounts: list[Account] = []
        """Accounts that this execution shares with others."""
        self.shared_budgets: SharedBudgets | None = None
        """Storage of the budgets that it shares; None without any."""
        self.ceiling: Account | None = None
        """Account of the limits in the operator's policy."""
        self.outer_accounts: list[Account] = [self.workflow]
        """Accounts around every call: the shared ones and that of the workflow."""
        self.visits: WeakValueDictionary[str, Account] = WeakValueDictionary()
        """Accounts of visits with machines below them, by key of the visit."""
        self.recovered_visits: dict[str, Json] = {}
        """Accounts of visits found at recovery."""
        self.waiting = WaitingCalls()
        """Waiting calls; shared by executions that spend from the same accounts."""
        self.past_usage = PastUsage()
        self.attribution = Attribution(limits.track_by)
        self.running: dict[int, Reservation] = {}
        """Running outermost calls, by their machines."""
        self.open: dict[str, Reservation] = {}
        """Running calls by their entries, if another process may have to recover them."""
        self.is_recoverable = False
        """Whether another process may recover the execution."""
        self.interrupted: dict[str, Amounts] = {}
        """Known usage of calls that were interrupted when a process died, by their entries."""
        self.assumed: Amounts = NOTHING
        """Amounts counted for calls beyond their reports."""
        self.decisions = 0
        """Number of budget decisions so far."""
        self.past_cost = ZERO
        """Spending of earlier periods, which no longer counts towards limits."""

    # Accounts

    def apply_ceiling(self, most: Amounts) -> None:
        """Apply the operator's limits, regardless of the document.

        Earlier spending counts as far as it is recorded.
        """
        ceiling = self.ceiling = Account(BudgetLimits("", most))
        ceiling.owner = OPERATOR
        spent = self.execution.usage
        ceiling.add({"MaxCost": spent.cost, "MaxTokens": spent.tokens}, 0.0)
        self._surround([ceiling], 0.0, NOTHING)

    def join(
        self,
        budgets: SharedBudgets,
        pools: Mapping[str, Decimal],
        lenders: Iterable[Account],
        now: float,
    ) -> None:
        """Join the budgets that this execution shares with others.

        Args:
            budgets: Storage of shared budgets.
            pools: Amount of money in each pool.
            lenders: Accounts around the state that started this execution.
            now: Current time in epoch seconds.

        Raises:
            StateError: A pool is empty.
        """
        limits = self.workflow.limits
        joined = join_shared_budgets(budgets, limits, pools, lenders, self.execution, now)
        self._surround(joined, now, self.assumed)

    def attach_parent(
        self, parent: "Ledger", frame: Spender, counted: ExecutionSpending, now: float
    ) -> None:
        """Spend from the accounts of a parent execution as well.

        Args:
            parent: Ledger of the parent.
            frame: Machine of the state that started this execution.
            counted: Part of this execution's usage that the parent has already counted.
            now: Current time in epoch seconds.
        """
        self.waiting = parent.waiting
        parent.past_usage.restore(self.past_usage.to_json())
        self.past_usage = parent.past_usage
        lenders, spent = parent.accounts(frame), self.execution.usage
        own = {
            **NOTHING,
            "MaxCost": spent.cost - counted.usage.cost,
            "MaxTokens": spent.tokens - counted.usage.tokens,
        }
        assumed = subtract_amounts(self.assumed, counted.assumed)
        shared = {each.name for each in self.shared_accounts if isinstance(each, SharedBudget)}
        for lender in lenders:
            if not isinstance(lender, SharedBudget):
                self._surround([ParentAccount(lender, own)], now, assumed)
            elif lender.name not in shared:
                self._surround([lender], now, assumed)

    def _surround(self, accounts: Iterable[Account], now: float, assumed: Amounts) -> None:
        for account in accounts:
            if isinstance(account, SharedBudget):
                self.shared_budgets = account.budgets
                if (
                    self.is_recoverable or self.interrupted
                ):  # an earlier process may have died during a call
                    account.abandon(self.execution.id, now)
            else:
                account.recover(assumed)
            self.shared_accounts.append(account)
        self.outer_accounts = [*self.shared_accounts, self.workflow]

    def held(self, *, starts: bool = False) -> AbstractAsyncContextManager[None]:
        """Return a context in which only its holder changes the shared budgets, if there are any.

        Args:
            starts: Whether a call starts in it.

        Raises:
            Suspension: The start is deferred.
        """
        if self.shared_budgets is None:
            return NOTHING_HELD
        names = {each.name for each in self.shared_accounts if isinstance(each, SharedBudget)}
        return self.shared_budgets.held(names, starts=starts)

    def close(self, now: float) -> None:
        """Release the shared amounts that this execution no longer needs."""
        pool = self.workflow.limits.pool
        for account in self.shared_accounts:
            if isinstance(account, PoolReservation) and pool is not None:
                account.close(pool.release, now)

    def detach_parent(self) -> None:
        """Return the accounts of the parent execution, which then counts this execution itself."""
        for account in self.shared_accounts:
            if isinstance(account, ParentAccount):
                account.detach_parent()

    def accounts(self, frame: Spender) -> list[Account]:
        """Return the accounts around a call, from the widest to that of the state itself."""
        step = frame.step
        around = self.outer_accounts if frame.parent is None else self._around(frame, frame.parent)
        if step.budget is None:
            return around
        return [*around, self._account(frame, step.budget, frame.visit, False, step.name)]

    def _around(self, frame: Spender, parent: Spender) -> list[Account]:
        """Return the accounts around a machine: the same for all machines forked with it."""
        known = parent.fork_accounts
        if known is not None and known[0] is frame.origin:
            return known[1]
        step, visit, _ = frame.origin
        around = (
            self.outer_accounts if parent.parent is None else self._around(parent, parent.parent)
        )
        budget = step.budget if frame.scope is None else _included(frame.scope.limits, step.name)
        if budget is not None:
            around = [*around, self._account(parent, budget, visit, True, step.name)]
        parent.fork_accounts = frame.origin, around
        return around

    def _account(
        self, frame: Spender, budget: CompileLimits, visit: int, around: bool, name: str
    ) -> Account:
        account = frame.spending
        if account is None or account.visit != visit:
            account = frame.spending = Account(budget(frame.data, frame), frame, visit)
            if around or self.recovered_visits:
                self._find(account, f"{frame.path}/{escape(name)}@{visit}", around)
        return account

    def _find(self, account: Account, key: str, around: bool) -> None:
        """Restore a new account from recovery, and register it if other machines spend from it."""
        if key in self.recovered_visits:
            account.restore(self.recovered_visits.pop(key))
            account.restored = around = True
        if around:
            self.visits[key] = account

    def remaining_budgets(self, frame: Spender) -> dict[str, dict[str, Json]]:
        """Return the remaining amounts of limits, by `workflow` and `state`."""
        own = self.accounts(frame)[-1]
        workflow: dict[str, Json] = {}
        for account in self.outer_accounts:
            if not isinstance(account, ParentAccount):
                account.refresh(frame.now)
                for name, left in account.remaining.items():
                    workflow[name] = min(workflow.get(name, left), left)
        return {"workflow": workflow, "state": own.remaining if own.frame is frame else {}}

    # Before a call

    def admit(
        self,
        frame: Spender,
        agent: str,
        model: str | None = None,
        estimate: Estimate | None = None,
        parent: Reservation | None = None,
    ) -> Admission:
        """Return the reservation of a call, or the reason why it cannot start now.

        Args:
            frame: The calling machine.
            agent: Name of the agent.
            model: Model that the state prefers, None without a preference.
            estimate: Upper bounds of its tokens, None if the document gives none.
            parent: Enclosing call, None for an outermost one.

        Raises:
            StateError: A limit of the state does not allow the call.
            BudgetOverrun: A limit of an enclosing state or the workflow does not allow it.
        """
        self._refresh(frame)
        call = Reservation(frame, agent, self.accounts(frame), parent)
        for account in call.accounts:
            if not account.below_thresholds:
                pause = apply_limits(frame, call, self.workflow)
                if pause is not None:
                    return pause
                break
        model = call.model or model
        agent = call.fallback_agent or agent
        call.key = agent if model is None else f"{agent} {model}"
        if estimate is not None:
            price = None if model is None else self.execution.prices.get(model)
            call.sizes = estimate.amounts(price)
        call.own, call.known = self.past_usage.expect(call.key, call.sizes)
        if parent is not None:
            return self.begin(call)
        own = call.accounts[-1]
        if own.frame is frame:
            call.expect(own)
        return self._reserve(call)

    def _refresh(self, frame: Spender) -> None:
        """Read the spending of others, and start a new period if one has begun."""
        for account in self.shared_accounts:
            account.refresh(frame.now)
        reset = self.workflow.limits.reset
        if reset is not None:
            period = int((frame.now - self.execution.started) // reset)
            if period > self.workflow.period:
                self.past_cost += self.workflow.reset(period)["MaxCost"]
                self.show_limit()

    def _reserve(self, call: Reservation) -> Admission:
        """Reserve the expected usage of an outermost call in all accounts."""
        at = call.frame
        if self.shared_accounts or self.is_recoverable:
            call.entry = f"{self.execution.id}:{at.key}"
        for account in call.accounts:
            share = account.reserve(call, at.now)
            if share is None:
                self.release(call)
                return CallMustWait if isinstance(account, SharedBudget) else None
            call.reserved.append(share)
        self.count_admitted(call)
        self.running[id(at)] = call
        if self.is_recoverable:
            self.open[call.entry] = call
        return call

    def count_admitted(self, call: Reservation) -> None:
        """Count an admitted call, and the highest sum of reservations."""
        for account in call.accounts:
            if account.call_limits:
                account.count(call)
        for account in self.outer_accounts:
            if account.reserved is not account.peak_source:
                account.mark()

    def begin(self, call: Reservation) -> Reservation | type[CallMustWait] | None:
        """Reserve for a nested call.

        Args:
            call: The nested call.

        Returns:
            The reservation; None if it has to wait for other calls, CallMustWait if those belong to
            other executions.

        Raises:
            StateError: A limit of the state does not allow the call.
            BudgetOverrun: A limit of an enclosing state or the workflow does not allow it.
        """
        root, parent = call.root, call.parent
        if parent is None or not root.reserved:  # the outermost call has ended
            return call
        if root.nested is None:
            root.nested = NestedCalls(root)
        parent.inner_calls += 1
        begun = root.nested.begin(call, call.frame.now)
        if begun is True:
            self.count_admitted(call)
            return call
        parent.inner_calls -= 1
        if type(begun) is Refusal:
            raise excess_error(begun.account, begun.name, call.frame)
        return CallMustWait if begun is CallMustWait else None

    def show(self, call: Reservation) -> None:
        """Publish to other executions whether a call waits for a reservation."""
        nested = call.root.nested
        if nested is not None and call.root.reserved:
            nested.adjust(call.frame.now)

    # After a call

    def release(self, call: Reservation) -> None:
        """Release the reservation of a call."""
        now = call.frame.now
        if call.is_reserved:
            nested, parent = call.root.nested, call.parent
            assert nested is not None
            assert parent is not None
            parent.inner_calls -= 1
            nested.end(call, now)
        if call.reserved:
            self._close(call)
            for account, held in zip(call.accounts, call.reserved, strict=False):
                account.release(call, held, now)
            call.reserved = []

    def _close(self, call: Reservation) -> None:
        self.running.pop(id(call.frame), None)
        if self.is_recoverable:
            self.open.pop(call.entry, None)

    def settle(self, call: Reservation, state: str, failed: bool = False) -> None:
        """Count the usage of a call and release its reservation.

        Unknown usage (no report, or no price) counts as the reserved amount, and is an error of its
        own unless the call has failed already.

        Args:
            call: The call.
            state: Name of the state.
            failed: Whether the call has failed.

        Raises:
            StateError: A limit is exceeded, or the usage is unknown.
            BudgetOverrun: A limit of an enclosing state or the workflow is exceeded.
        """
        used, unknown, at = call.used, None, call.frame
        counted = call.counted = amounts_of(used)
        if call.nested is not None:
            call.nested.close(at.now)
        if used.fault is None and call.key:
            within = UNKNOWN if call.nested is None else call.nested.used
            self.past_usage.learn(call.key, counted, within, call.sizes, priced=not used.unpriced)
        unknown = unknown_usage_error(state, used)
        if used.cost or used.tokens:
            self.attribution.add(call.accounts[-1].limits, used)
        failures: list[StateError | BudgetOverrun] = []
        held = call.reserved
        if held:
            self._close(call)
        shares = held or (call.shares if call.is_reserved else [UNKNOWN] * len(call.accounts))
        done = 0
        try:
            for account, share in zip(call.accounts, shares, strict=False):
                if held:
                    account.settle(call, counted, share, at.now)
                else:
                    account.add(counted, at.now)
                done += 1
                if unknown is not None and call.assume(account, share):
                    failures.append(unknown)
                if not account.below_thresholds:
                    failures += self._excesses(at, account)
        except BaseException:  # the rest is released, not settled
            if held:
                call.accounts, call.reserved = call.accounts[done:], held[done:]
            raise
        call.reserved = []
        if unknown is not None:
            if call.assumed:
                self._record_assumed(at, call.assumed, used)
            if failed:  # the call's own error remains; later calls meet the exceeded limit
                return
        if failures:
            raise next((each for each in failures if isinstance(each, BudgetOverrun)), failures[0])

    def _record_assumed(self, frame: Spender, assumed: Amounts, used: CallUsage) -> None:
        """Record the assumed usage of a call, with a warning if it reported nothing."""
        self.assumed = {**self.assumed, **add_amounts(self.assumed, assumed)}
        self.show_limit()
        if used.fault in UNREPORTED:
            details = {name: reported_amount(name, each) for name, each in assumed.items()}
            frame.note("UsageWarning", {"reason": UNREPORTED[used.fault], "assumed": details})

    def _excesses(self, frame: Spender, account: Account) -> Iterator[StateError | BudgetOverrun]:
        """Emit events for limits and shares that are reached; yield the errors of exceeded
        limits.
        """
        if account.limits.alerts:
            emit_alerts(frame, account)
        name = account.exceeded_limit
        if name is not None:
            record_excess(frame, account, name)
            if account.action == "Fail":
                yield excess_error(account, name, frame)

    def absorb(
        self, frame: Spender, used: CallUsage, assumed: Amounts, found: bool = False
    ) -> None:
        """Count the usage of a child execution.

        Args:
            frame: Machine of the state that started it.
            used: Its usage, which shared budgets already contain.
            assumed: Amounts assumed for its calls beyond that.
            found: Whether the child was found ended at recovery, so that no account here contains
                *assumed*.

        Raises:
            StateError: A limit is exceeded.
            BudgetOverrun: A limit of an enclosing state or the workflow is exceeded.
        """
        accounts = [each for each in self.accounts(frame) if not isinstance(each, SharedBudget)]
        call = Reservation(frame, "", accounts)
        call.used = used
        if assumed:
            for account in accounts if found else ():
                account.recover(assumed)
            self.assumed = {**self.assumed, **add_amounts(self.assumed, assumed)}
            self.show_limit()
        self.settle(call, frame.step.name)

    # Tools, used within the call of an agent

    def tool(
        self,
        frame: Spender,
        names: tuple[str, ...],
        categories: Collection[str],
        parent: Reservation | None,
    ) -> Reservation:
        """Return the reservation of a tool call, without amounts until `begin`.

        Args:
            frame: Machine of the state.
            names: All names of the tool; the first is that of the registry.
            categories: Categories of the tool.
            parent: Call of the agent that uses the tool.

        Raises:
            StateError: A limit does not allow the call.
            BudgetOverrun: A limit of an enclosing state or the workflow does not allow it.
        """
        self._refresh(frame)
        tool = names[0].rpartition("/")[2]
        call = Reservation(frame, tool, self.accounts(frame), parent, True)
        call.names, call.categories = names, categories
        for account in call.accounts:
            name = account.reached_of_tools(call)
            if name is None and account.action == "Fail":
                name = account.reached_limit(call)
            if name is not None:
                raise excess_error(account, name, frame)
        call.key = f"tool {tool}"
        call.own, call.known = self.past_usage.expect(call.key, UNKNOWN)
        return call

    def use_tool(self, call: Reservation, used: CallUsage) -> Amounts:
        """Count the usage of a tool call and return it.

        A BROKEN call counts as the highest earlier usage of this tool: most tools use nothing, so a
        guess would only waste budget.

        Raises:
            StateError: A limit is exceeded.
            BudgetOverrun: A limit of an enclosing state or the workflow is exceeded.
        """
        call.used = used
        self.settle(call, call.frame.step.name, failed=used is BROKEN)
        return call.counted

    def end_tool(self, call: Reservation) -> None:
        """Release the reservation of a tool call."""
        if call.used is UNUSED:
            self.past_usage.learn(call.key, UNKNOWN)
        self.release(call)

    def restore_tool_usage(self, frame: Spender, used: Amounts, assumed: bool = False) -> None:
        """Count usage from before this process in the account of the current visit.

        Args:
            frame: The machine.
            used: The usage.
            assumed: Whether a part of it is assumed.
        """
        if frame.step.budget is not None:
            account = self._account(frame, frame.step.budget, frame.visit, False, frame.step.name)
            if not account.restored:
                account.add(used, frame.now)
                account.has_assumed = account.has_assumed or assumed

    def report(self) -> dict[str, Json]:
        """Return the spending by category, tag and attribution, and further totals of the
        budget.
        """
        assumed, peak = self.assumed, self.workflow.peak
        return {
            "currency": self.workflow.limits.currency,
            "reserved": {"cost": float(peak["MaxCost"]), "tokens": ceil(peak["MaxTokens"])},
            "assumed": {"cost": float(assumed["MaxCost"]), "tokens": int(assumed["MaxTokens"])},
            **self.attribution.report(),
        }

    # People

    def request(self, frame: Spender, pause: Pause) -> dict[str, Json]:
        """Return the body of a budget request."""
        return pause.request(frame, self.workflow.limits)

    def decide(self, pause: Pause, record: Mapping[str, Json]) -> None:
        """Apply an approver's decision: lift the limits, set new ones, or keep them."""
        account = pause.account
        self.decisions += 1
        if record["approval"] != "approve":
            account.rejected = True
            return
        new = {
            name: parse_amount(record[name]) for name in ("MaxCost", "MaxTokens") if name in record
        }
        account.limit_amounts = {name: each for name, each in new.items() if each is not None}
        account.excess_recorded = False
        account.watch()
        self.show_limit()

    def show_limit(self) -> None:
        """Set the limit that expressions see to the remaining budget without assumed amounts."""
        spent, most = self.execution.usage, self.workflow.limit_amounts.get("MaxCost")
        if most is not None:
            most += self.past_cost - self.workflow.assumed["MaxCost"]
        self.execution.usage = UsageTotals(spent.cost, spent.tokens, most)

    # Persistence

    @classmethod
    def read(cls, execution: SpendingExecution, written: Json) -> "Ledger":
        """Return a stored ledger, for its report only."""
        found = cls(execution, BudgetLimits("", {}, currency=written.get("currency", "USD")))
        found.restore(written)
        return found

    def to_json(self) -> Json:
        """Return the state of the ledger as JSON, for a recovery."""
        visits = {key: each.to_json() for key, each in self.visits.items() if each.is_active}
        return {
            "workflow": self.workflow.to_json(),
            "visits": visits | self.recovered_visits,
            "questions": self.decisions,
            "before": str(self.past_cost),
            "assumed": write_amounts(self.assumed),
            "open": {
                entry: write_amounts(call.remaining_usage) for entry, call in self.open.items()
            },
            **self.past_usage.to_json(),
            "reserved": write_amounts(self.workflow.peak),
            "currency": self.workflow.limits.currency,
            **({} if self.ceiling is None else {"ceiling": self.ceiling.to_json()}),
            **self.attribution.to_json(),
        }

    def restore(self, written: Json) -> None:
        """Restore the state of the ledger."""
        self.workflow.restore(written["workflow"])
        if self.ceiling is not None and "ceiling" in written:
            most = self.ceiling.limit_amounts  # the policy may have changed
            self.ceiling.restore(written["ceiling"])
            self.ceiling.limit_amounts = most
            self.ceiling.watch()
        self.recovered_visits = {**written["visits"]}
        self.decisions = written["questions"]
        self.past_cost = Decimal(written.get("before", "0"))
        self.assumed = {**NOTHING, **read_amounts(written.get("assumed", {}))}
        self.past_usage.restore(written)
        self.interrupted = {
            entry: read_amounts(known) for entry, known in written.get("open", {}).items()
        }
        for entry, known in self.interrupted.items():
            self._cut_off(entry.removeprefix(f"{self.execution.id}:"), known)
        self.workflow.peak = {**NOTHING, **read_amounts(written.get("reserved", {}))}
        self.attribution.restore(written)
        self.show_limit()

    def _cut_off(self, key: str, known: Amounts) -> None:
        """Count a call that was running when its process died, and is repeated.

        It counts as its known usage, because a guess would waste budget; its own state repeats only
        this call.
        """
        self.assumed = {**self.assumed, **add_amounts(self.assumed, known)}
        self.workflow.recover(known)
        if self.ceiling is not None:
            self.ceiling.recover(known)
        for path, written in self.recovered_visits.items():
            if key.startswith(f"{path}."):
                account = Account(BudgetLimits("", {}))
                account.restore(written)
                account.recover(known)
                self.recovered_visits[path] = account.to_json()


def _included(limits: BudgetLimits | None, state: str) -> CompileLimits | None:
    """Return the budget of a visit of an Include, None for a document without one."""
    if limits is None:
        return None
    own = limits._replace(state=state, included=True)
    return lambda raw, frame: own
