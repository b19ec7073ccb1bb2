"""The ledger of one execution: what each level has spent, and whether it may spend more (8.11).

A level is the workflow or one visit of a state. Each has an account. Before a call of an agent all
accounts around it are asked (`admit`), and a part of what is left is reserved for the call; after
it, what was used is counted and the reservation is given back (`settle`, `release`). So concurrent
calls cannot spend together what each of them could spend alone.

Nothing here waits: `asl.effects.budget_gate` does.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
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
    ParentAccount,
    PoolReservation,
    SharedBudget,
    SharedBudgets,
    join_shared_budgets,
)
from asl.engine.reservations import (
    Admission,
    Estimate,
    MustWait,
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
from asl.states.blocks.budget_limits import Amounts, CompileLimits, Limits
from asl.states.errors import BudgetOverrun
from asl.states.numbers import amount

__all__ = ["Ledger"]

OPERATOR = "the operator's policy"
"""Whose limits those of a ceiling are, in messages."""
UNREPORTED = {
    LOST.fault: (
        "the call ended before it said what it used: it counts as what was set aside for it"
    ),
    BROKEN.fault: "the tool did not say what it used: it counts as the most that it used before",
}
"""The reason in the warning about a call that reported nothing, by the fault of its usage."""


class Ledger:
    """All accounts of one execution, and what is known of the calls that spend from them."""

    def __init__(self, execution: SpendingExecution, limits: Limits) -> None:
        self.execution = execution
        self.workflow = Account(limits)
        self.around: list[Account] = []
        """What limits this execution and others together."""
        self.ceiling: Account | None = None
        """What the operator's policy allows every execution."""
        self.whole: list[Account] = [self.workflow]
        """The accounts around every call: those, and that of the workflow."""
        self.visits: WeakValueDictionary[str, Account] = WeakValueDictionary()
        """The accounts of visits that have machines below them, by the key of the visit."""
        self.kept: dict[str, Json] = {}
        """Such accounts as they were found at recovery."""
        self.waiting = WaitingCalls()
        """The calls that wait; shared by executions that spend from the same accounts."""
        self.past_usage = PastUsage()
        self.attribution = Attribution(limits.track_by)
        self.calling: dict[int, Reservation] = {}
        """The outermost calls under way, by their machines."""
        self.open: dict[str, Reservation] = {}
        """The calls under way by their entries, where another process may have to find them."""
        self.keeps = False
        """Whether they have: the execution is kept, so that another process may go on with it."""
        self.interrupted: dict[str, Amounts] = {}
        """What is known of calls that were cut off when a process died, by their entries."""
        self.assumed: Amounts = NOTHING
        """What calls count as beyond what they have reported."""
        self.questions = 0
        """How often people have decided."""
        self.before = ZERO
        """What was spent in earlier periods, whose counts do not limit anything any more."""

    # Accounts

    def apply_ceiling(self, most: Amounts) -> None:
        """Hold the execution to the limits of the operator, whatever its document says.

        What it has spent before counts, as far as that is recorded.
        """
        ceiling = self.ceiling = Account(Limits("", most))
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
        """Spend from the limits that this execution shares with others.

        Args:
            budgets: Where shared budgets are kept.
            pools: How much there is in each pool.
            lenders: The accounts around the state that has started this execution.
            now: The present time, in epoch seconds.

        Raises:
            StateError: A pool is empty.
        """
        limits = self.workflow.limits
        joined = join_shared_budgets(budgets, limits, pools, lenders, self.execution, now)
        self._surround(joined, now, self.assumed)

    def attach_parent(
        self, parent: "Ledger", at: Spender, counted: ExecutionSpending, now: float
    ) -> None:
        """Spend from the accounts of a parent execution, too.

        Args:
            parent: Its ledger.
            at: The machine of the state that has started this execution.
            counted: What of the usage of this execution is counted there already.
            now: The present time, in epoch seconds.
        """
        self.waiting = parent.waiting
        parent.past_usage.restore(self.past_usage.written())
        self.past_usage = parent.past_usage
        lenders, spent = parent.accounts(at), self.execution.usage
        own = {
            **NOTHING,
            "MaxCost": spent.cost - counted.usage.cost,
            "MaxTokens": spent.tokens - counted.usage.tokens,
        }
        assumed = subtract_amounts(self.assumed, counted.assumed)
        shared = {each.name for each in self.around if isinstance(each, SharedBudget)}
        for lender in lenders:
            if not isinstance(lender, SharedBudget):
                self._surround([ParentAccount(lender, own)], now, assumed)
            elif lender.name not in shared:
                self._surround([lender], now, assumed)

    def _surround(self, accounts: Iterable[Account], now: float, assumed: Amounts) -> None:
        for account in accounts:
            if isinstance(account, SharedBudget):
                if self.keeps or self.interrupted:  # an earlier process may have died within a call
                    account.abandon(self.execution.id, now)
            else:
                account.recover(assumed)
            self.around.append(account)
        self.whole = [*self.around, self.workflow]

    def close(self, now: float) -> None:
        """Let others have what this execution does not need any more."""
        pool = self.workflow.limits.pool
        for account in self.around:
            if isinstance(account, PoolReservation) and pool is not None:
                account.close(pool.release, now)

    def detach_parent(self) -> None:
        """Let the accounts around the state that has started this execution count by themselves."""
        for account in self.around:
            if isinstance(account, ParentAccount):
                account.detach_parent()

    def accounts(self, at: Spender) -> list[Account]:
        """Return the accounts around a call, from the widest to that of the state itself."""
        step = at.step
        around = self.whole if at.parent is None else self._around(at, at.parent)
        if step.budget is None:
            return around
        return [*around, self._account(at, step.budget, at.visit, False, step.name)]

    def _around(self, at: Spender, parent: Spender) -> list[Account]:
        """Return the accounts around a machine: the same for all that were forked with it."""
        known = parent.around
        if known is not None and known[0] is at.origin:
            return known[1]
        step, visit, _ = at.origin
        around = self.whole if parent.parent is None else self._around(parent, parent.parent)
        budget = step.budget if at.scope is None else _included(at.scope.limits, step.name)
        if budget is not None:
            around = [*around, self._account(parent, budget, visit, True, step.name)]
        parent.around = at.origin, around
        return around

    def _account(
        self, frame: Spender, budget: CompileLimits, visit: int, around: bool, name: str
    ) -> Account:
        account = frame.spending
        if account is None or account.visit != visit:
            account = frame.spending = Account(budget(frame.data, frame), frame, visit)
            if around or self.kept:
                self._find(account, f"{frame.path}/{escape(name)}@{visit}", around)
        return account

    def _find(self, account: Account, key: str, around: bool) -> None:
        """Let a new account stand as it did at recovery, and be kept if others spend from it."""
        if key in self.kept:
            account.restore(self.kept.pop(key))
            account.restored = around = True
        if around:
            self.visits[key] = account

    def remaining(self, at: Spender) -> dict[str, dict[str, Json]]:
        """Return what may still be spent, by `workflow` and `state`."""
        own = self.accounts(at)[-1]
        workflow: dict[str, Json] = {}
        for account in self.whole:
            if not isinstance(account, ParentAccount):
                account.refresh(at.now)
                for name, left in account.left.items():
                    workflow[name] = min(workflow.get(name, left), left)
        return {"workflow": workflow, "state": own.left if own.frame is at else {}}

    # Before a call

    def admit(
        self,
        at: Spender,
        agent: str,
        model: str | None = None,
        estimate: Estimate | None = None,
        parent: Reservation | None = None,
    ) -> Admission:
        """Return the reservation of a call, or why it cannot be made now.

        Args:
            at: The machine that calls.
            agent: The agent to call.
            model: The model that the state prefers.
            estimate: Upper bounds of its tokens, if the document gives them.
            parent: The call within which it is made, None for an outermost one.

        Raises:
            StateError: The state may not call.
            BudgetOverrun: A state around it fails.
        """
        self._refresh(at)
        call = Reservation(at, agent, self.accounts(at), parent)
        for account in call.accounts:
            if not account.quiet:
                pause = apply_limits(at, call, self.workflow)
                if pause is not None:
                    return pause
                break
        model = call.model or model
        agent = call.instead or agent
        call.key = agent if model is None else f"{agent} {model}"
        if estimate is not None:
            price = None if model is None else self.execution.prices.get(model)
            call.sizes = estimate.amounts(price)
        call.own, call.known = self.past_usage.expect(call.key, call.sizes)
        if parent is not None:
            return self.begin(call)
        own = call.accounts[-1]
        if own.frame is at:
            call.expect(own)
        return self._reserve(call)

    def _refresh(self, at: Spender) -> None:
        """Read what others have spent, and whether a new period has begun."""
        for account in self.around:
            account.refresh(at.now)
        reset = self.workflow.limits.reset
        if reset is not None:
            period = int((at.now - self.execution.started) // reset)
            if period > self.workflow.period:
                self.before += self.workflow.reset(period)["MaxCost"]
                self.show_limit()

    def _reserve(self, call: Reservation) -> Admission:
        """Reserve in all accounts what an outermost call may use."""
        at = call.frame
        if self.around or self.keeps:
            call.entry = f"{self.execution.id}:{at.key}"
        for account in call.accounts:
            share = account.reserve(call, at.now)
            if share is None:
                self.release(call)
                return MustWait if isinstance(account, SharedBudget) else None
            call.held.append(share)
        self._admitted(call)
        self.calling[id(at)] = call
        if self.keeps:
            self.open[call.entry] = call
        return call

    def _admitted(self, call: Reservation) -> None:
        """Count a call that is about to be made, and the highest sum of reservations."""
        for account in call.accounts:
            if account.counted:
                account.count(call)
        for account in self.whole:
            if account.held is not account.marked:
                account.mark()

    def begin(self, call: Reservation) -> Reservation | type[MustWait] | None:
        """Reserve for a call within another one; None if it has to wait for others.

        Later if those are calls of other executions.

        Raises as `admit`.
        """
        root, parent = call.root, call.parent
        if parent is None or not root.held:  # the outermost call has ended
            return call
        if root.nested is None:
            root.nested = NestedCalls(root)
        parent.below += 1
        begun = root.nested.begin(call, call.frame.now)
        if begun is True:
            self._admitted(call)
            return call
        parent.below -= 1
        if type(begun) is Refusal:
            raise excess_error(begun.account, begun.name, call.frame)
        return MustWait if begun is MustWait else None

    def show(self, call: Reservation) -> None:
        """Let other executions see whether a call waits for a reservation."""
        nested = call.root.nested
        if nested is not None and call.root.held:
            nested.adjust(call.frame.now)

    # After a call

    def release(self, call: Reservation) -> None:
        """Give back what is reserved for a call."""
        now = call.frame.now
        if call.under_way:
            nested, parent = call.root.nested, call.parent
            assert nested is not None
            assert parent is not None
            parent.below -= 1
            nested.end(call, now)
        if call.held:
            self._close(call)
            for account, held in zip(call.accounts, call.held, strict=False):
                account.release(call, held, now)
            call.held = []

    def _close(self, call: Reservation) -> None:
        self.calling.pop(id(call.frame), None)
        if self.keeps:
            self.open.pop(call.entry, None)

    def settle(self, call: Reservation, state: str, failed: bool = False) -> None:
        """Count what a call has used; raises as `admit` does where that exceeds a limit.

        What cannot be known (there is no report, or no price) counts as what was reserved, and is a
        failure by itself unless the call has *failed* already.
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
        held = call.held
        if held:
            self._close(call)
        shares = held or (call.shares if call.under_way else [UNKNOWN] * len(call.accounts))
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
                if not account.quiet:
                    failures += self._excesses(at, account)
        except BaseException:  # the rest is given back, not settled
            if held:
                call.accounts, call.held = call.accounts[done:], held[done:]
            raise
        call.held = []
        if unknown is not None:
            if call.assumed:
                self._record_assumed(at, call.assumed, used)
            if failed:  # by an error of its own; limits that are gone are those of later calls
                return
        if failures:
            raise next((each for each in failures if isinstance(each, BudgetOverrun)), failures[0])

    def _record_assumed(self, at: Spender, assumed: Amounts, used: CallUsage) -> None:
        """Record what a call counts as, with a warning for one that has not reported anything."""
        self.assumed = {**self.assumed, **add_amounts(self.assumed, assumed)}
        self.show_limit()
        if used.fault in UNREPORTED:
            details = {name: reported_amount(name, each) for name, each in assumed.items()}
            at.note("UsageWarning", {"reason": UNREPORTED[used.fault], "assumed": details})

    def _excesses(self, at: Spender, account: Account) -> Iterator[StateError | BudgetOverrun]:
        """Emit events for limits and shares that are reached; yield the failure of an excess."""
        if account.limits.alerts:
            emit_alerts(at, account)
        name = account.exceeded
        if name is not None:
            record_excess(at, account, name)
            if account.action == "Fail":
                yield excess_error(account, name, at)

    def absorb(self, at: Spender, used: CallUsage, assumed: Amounts, found: bool = False) -> None:
        """Count what a child execution has used; raises as `settle` does.

        Args:
            at: The machine of the state that has started it.
            used: Its usage; its calls are in all shared budgets already.
            assumed: What its calls count as beyond that.
            found: Whether it was found at its end, so that no account here knows of *assumed*.
        """
        accounts = [each for each in self.accounts(at) if not isinstance(each, SharedBudget)]
        call = Reservation(at, "", accounts)
        call.used = used
        if assumed:
            for account in accounts if found else ():
                account.recover(assumed)
            self.assumed = {**self.assumed, **add_amounts(self.assumed, assumed)}
            self.show_limit()
        self.settle(call, at.step.name)

    # Tools, which are used within the call of an agent

    def tool(
        self,
        at: Spender,
        names: tuple[str, ...],
        categories: Collection[str],
        parent: Reservation | None,
    ) -> Reservation:
        """Return the call of a tool, for which nothing is reserved yet (`begin`).

        Raises as `admit` does where a limit that fails calls does not allow it.

        Args:
            at: The machine of the state.
            names: All names of the tool; the first is that of the registry.
            categories: The categories that the tool belongs to.
            parent: The call of the agent that uses the tool.
        """
        self._refresh(at)
        tool = names[0].rpartition("/")[2]
        call = Reservation(at, tool, self.accounts(at), parent, True)
        call.names, call.categories = names, categories
        for account in call.accounts:
            name = account.reached_of_tools(call)
            if name is None and account.action == "Fail":
                name = account.reached(call)
            if name is not None:
                raise excess_error(account, name, at)
        call.key = f"tool {tool}"
        call.own, call.known = self.past_usage.expect(call.key, UNKNOWN)
        return call

    def use_tool(self, call: Reservation, used: CallUsage) -> Amounts:
        """Count what a tool has used, and return it; raises as `settle` does.

        One that is BROKEN counts as the most that this tool has used before: nobody should lose a
        budget to a guess, and most tools use nothing.
        """
        call.used = used
        self.settle(call, call.frame.step.name, failed=used is BROKEN)
        return call.counted

    def end_tool(self, call: Reservation) -> None:
        """Give back what is reserved for a tool."""
        if call.used is UNUSED:
            self.past_usage.learn(call.key, UNKNOWN)
        self.release(call)

    def restore_tool_usage(self, at: Spender, used: Amounts) -> None:
        """Count what a call of the present visit had used before this process, for that visit."""
        if at.step.budget is not None:
            account = self._account(at, at.step.budget, at.visit, False, at.step.name)
            if not account.restored:
                account.add(used, at.now)

    def report(self) -> dict[str, Json]:
        """Return what was spent on what, as far as budgets say more than the states do."""
        assumed, peak = self.assumed, self.workflow.peak
        return {
            "currency": self.workflow.limits.currency,
            "reserved": {"cost": float(peak["MaxCost"]), "tokens": ceil(peak["MaxTokens"])},
            "assumed": {"cost": float(assumed["MaxCost"]), "tokens": int(assumed["MaxTokens"])},
            **self.attribution.report(),
        }

    # People

    def request(self, at: Spender, pause: Pause) -> dict[str, Json]:
        """Return the body of a budget request."""
        return pause.request(at, self.workflow.limits)

    def decide(self, pause: Pause, record: Mapping[str, Json]) -> None:
        """Apply what people have decided: lift the limits, set new ones, or hold to them."""
        account = pause.account
        self.questions += 1
        if record["approval"] != "approve":
            account.rejected = True
            return
        new = {name: amount(record[name]) for name in ("MaxCost", "MaxTokens") if name in record}
        account.most = {name: each for name, each in new.items() if each is not None}
        account.excess_recorded = False
        account.watch()
        self.show_limit()

    def show_limit(self) -> None:
        """Let expressions see what the workflow may spend, without what nobody will report."""
        spent, most = self.execution.usage, self.workflow.most.get("MaxCost")
        if most is not None:
            most += self.before - self.workflow.assumed["MaxCost"]
        self.execution.usage = UsageTotals(spent.cost, spent.tokens, most)

    # Keeping

    @classmethod
    def read(cls, execution: SpendingExecution, written: Json) -> "Ledger":
        """Return the ledger of an execution as it was written, for its report alone."""
        found = cls(execution, Limits("", {}, currency=written.get("currency", "USD")))
        found.restore(written)
        return found

    def written(self) -> Json:
        """Return all that a recovery needs as JSON."""
        visits = {key: each.written() for key, each in self.visits.items() if each.is_active}
        return {
            "workflow": self.workflow.written(),
            "visits": visits | self.kept,
            "questions": self.questions,
            "before": str(self.before),
            "assumed": write_amounts(self.assumed),
            "open": {entry: write_amounts(call.rest) for entry, call in self.open.items()},
            **self.past_usage.written(),
            "reserved": write_amounts(self.workflow.peak),
            "currency": self.workflow.limits.currency,
            **({} if self.ceiling is None else {"ceiling": self.ceiling.written()}),
            **self.attribution.written(),
        }

    def restore(self, written: Json) -> None:
        """Stand as it was written."""
        self.workflow.restore(written["workflow"])
        if self.ceiling is not None and "ceiling" in written:
            most = self.ceiling.most  # a policy may be another one by now
            self.ceiling.restore(written["ceiling"])
            self.ceiling.most = most
            self.ceiling.watch()
        self.kept = {**written["visits"]}
        self.questions = written["questions"]
        self.before = Decimal(written.get("before", "0"))
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
        """Count a call that was under way when its process died, and is made again.

        It counts as what was known of it, for nobody should lose a budget to a guess; and its own
        state makes that call only.
        """
        self.assumed = {**self.assumed, **add_amounts(self.assumed, known)}
        self.workflow.recover(known)
        if self.ceiling is not None:
            self.ceiling.recover(known)
        for path, written in self.kept.items():
            if key.startswith(f"{path}."):
                account = Account(Limits("", {}))
                account.restore(written)
                account.recover(known)
                self.kept[path] = account.written()


def _included(limits: Limits | None, state: str) -> CompileLimits | None:
    """Return the budget of a visit of an Include, None for a document without one."""
    if limits is None:
        return None
    own = limits._replace(state=state, included=True)
    return lambda raw, frame: own
