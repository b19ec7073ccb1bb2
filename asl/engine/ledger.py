"""The ledger of one execution: what each level has spent, and whether it may spend more (8.11).

A level is the workflow or one visit of a state. Each has an account. Before a call of an agent all
accounts around it are asked (`admit`), and some of what is left is held for the call; after it,
what was used is counted (`settle`) and what was held is given back (`release`). So calls that run
at the same time cannot spend together what each of them could spend alone.

Nothing here waits: the host does (`asl.hosts.meter`).
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import zip_longest
from math import ceil
from typing import Any
from weakref import WeakValueDictionary

from asl.core.diagnostics import did_you_mean
from asl.core.errors import StateError
from asl.core.pointers import escape
from asl.core.values import Json
from asl.engine.accounts import HARD, Account, Lent
from asl.engine.admission import BROKEN, LOST, UNKNOWN, UNUSED, Admission, Later, Pause, Terms
from asl.engine.amounts import NOTHING, beyond, kept, larger, read_back, spending, summed, told
from asl.engine.attribution import Attribution
from asl.engine.excess import alert, doubt, failure, tell_excess
from asl.engine.execution import ZERO, Execution, Spent, Usage, Used
from asl.engine.fallbacks import heed
from asl.engine.foresight import Foresight
from asl.engine.frame import Frame
from asl.engine.tabs import Tab, Tabs, Taken
from asl.engine.within import Within
from asl.expr.times import format_timestamp
from asl.states.blocks.budget import Amounts, Limits, amount
from asl.states.errors import Exhausted

__all__ = ["Ledger"]

UNSAID = {
    LOST.fault: (
        "the call ended before it said what it used: it counts as what was set aside for it"
    ),
    BROKEN.fault: "the tool did not say what it used: it counts as the most that it used before",
}
"""What is told of calls that reported nothing, by what is known of them."""


class Ledger:
    """All accounts of one execution, and what is known of the calls that spend from them."""

    def __init__(self, execution: Execution, limits: Limits) -> None:
        self.execution = execution
        self.workflow = Account(limits)
        self.around: list[Account] = []
        """What limits this execution and others together."""
        self.whole: list[Account] = [self.workflow]
        """The accounts around every call: those, and that of the workflow."""
        self.visits: WeakValueDictionary[str, Account] = WeakValueDictionary()
        """The accounts of visits that have machines below them, by the key of the visit."""
        self.kept: dict[str, Json] = {}
        """Such accounts as they were found at recovery."""
        self.foresight = Foresight()
        self.attribution = Attribution(limits.track_by)
        self.calling: dict[int, Terms] = {}
        """The calls under way by their machines: all others of one are made within its call."""
        self.open: dict[str, Terms] = {}
        """The calls under way by their entries, where another process may have to find them."""
        self.keeps = False
        """Whether they have: the execution is kept, so that another process may go on with it."""
        self.cut: dict[str, Amounts] = {}
        """What is known of calls that were cut off when a process died, by their entries."""
        self.assumed: Amounts = NOTHING
        """What calls count as beyond what they have reported."""
        self.questions = 0
        """How often people have decided."""
        self.before = ZERO
        """What was spent in earlier periods, whose counts do not limit anything any more."""

    # Accounts

    def share(self, tabs: Tabs, pools: Mapping[str, Decimal], now: float) -> None:
        """Take part in what limits other executions of the workflow, or those with the same pool.

        *pools* says how much there is in each. Raises StateError for one that nobody has filled.
        """
        limits, workflow = self.workflow.limits, self.execution.workflow_id
        around: list[Account] = [
            Tab(tabs, f"{each.field} {workflow}", each.field, each.most, limits, each.length)
            for each in limits.windows
        ]
        if limits.pool is not None:
            pool = limits.pool
            if pool.name not in pools:
                hint = did_you_mean(pool.name, pools)
                raise StateError(
                    "States.BudgetExceeded",
                    f"the pool {pool.name!r} is empty{f' ({hint})' if hint else ''}: fill it with "
                    f"pools={{{pool.name!r}: AMOUNT}}, or --pool {pool.name}=AMOUNT",
                )
            tab = Tab(tabs, f"Pool {pool.name}", "Pool", pools[pool.name], limits, limits.reset)
            if pool.most is None:
                around.append(tab)
            else:
                spent, name = self.execution.usage.cost, self.execution.id
                around.append(Taken(tab, name, pool.most, limits, spent, now))
        self._surround(around, now, self.assumed)

    def borrow(self, lenders: Iterable[Account], counted: Spent, now: float) -> None:
        """Spend what the accounts around the state allow that has started this execution.

        *counted* is what they have counted already.
        """
        spent = self.execution.usage
        own = {
            **NOTHING,
            "MaxCost": spent.cost - counted.usage.cost,
            "MaxTokens": spent.tokens - counted.usage.tokens,
        }
        assumed = beyond(self.assumed, counted.assumed)
        tabs = {each.name for each in self.around if isinstance(each, Tab)}
        for lender in lenders:
            if not isinstance(lender, Tab):
                self._surround([Lent(lender, own)], now, assumed)
            elif lender.name not in tabs:
                self._surround([lender], now, assumed)

    def _surround(self, accounts: Iterable[Account], now: float, assumed: Amounts) -> None:
        for account in accounts:
            if isinstance(account, Tab):
                if self.cut:
                    account.give_up(self.cut, now)
            else:
                account.recover(assumed)
            self.around.append(account)
        self.whole = [*self.around, self.workflow]

    def close(self, now: float) -> None:
        """Let others have what this execution does not need any more."""
        pool = self.workflow.limits.pool
        for account in self.around:
            if isinstance(account, Taken) and pool is not None:
                account.close(pool.release, now)

    def give_back(self) -> None:
        """Let the accounts around the state that has started this execution count by themselves."""
        for account in self.around:
            if isinstance(account, Lent):
                account.give_back()

    def accounts(self, at: Frame) -> list[Account]:
        """Return the accounts around a call, from the widest to that of the state itself."""
        step = at.step
        around = self.whole if at.parent is None else self._around(at, at.parent)
        if step.budget is None:
            return around
        return [*around, self._account(at, step.budget, at.visit, False, step.name)]

    def _around(self, at: Frame, parent: Frame) -> list[Account]:
        """Return the accounts around a machine: the same for all that were forked with it."""
        known = parent.around
        if known is not None and known[0] is at.origin:
            return known[1]  # type: ignore[no-any-return]
        step, visit, _ = at.origin
        around = self.whole if parent.parent is None else self._around(parent, parent.parent)
        budget = step.budget if at.scope is None else _included(at.scope.limits, step.name)
        if budget is not None:
            around = [*around, self._account(parent, budget, visit, True, step.name)]
        parent.around = at.origin, around
        return around

    def _account(self, frame: Frame, budget: Any, visit: int, around: bool, name: str) -> Account:
        account: Account | None = frame.spending
        if account is None or account.visit != visit:
            account = frame.spending = Account(budget(frame.data, frame), frame, visit)
            if around or self.kept:
                self._find(account, f"{frame.path}/{escape(name)}@{visit}", around)
        return account

    def _find(self, account: Account, key: str, around: bool) -> None:
        """Let a new account stand as it did at recovery, and be kept if others spend from it."""
        if key in self.kept:
            account.restore(self.kept.pop(key))
            account.recalled = around = True
        if around:
            self.visits[key] = account

    def remaining(self, at: Frame) -> dict[str, dict[str, Json]]:
        """Return what may still be spent, by `workflow` and `state`."""
        own = self.accounts(at)[-1]
        workflow: dict[str, Json] = {}
        for account in self.whole:
            if not isinstance(account, Lent):
                account.refresh(at.now)
                workflow |= account.left
        return {"workflow": workflow, "state": own.left if own.frame is at else {}}

    # Before a call

    def admit(self, at: Frame, agent: str, sizes: Amounts) -> Admission:
        """Return the terms of a call, None where it has to wait for others to end.

        *sizes* are upper bounds of what it will use, as far as they are known. Raises StateError,
        or Exhausted where it is a state around that fails.
        """
        if self.around or self.workflow.limits.reset is not None:
            self._refresh(at)
        accounts = self.accounts(at)
        own = accounts[-1] if accounts[-1].frame is at else None
        outer, foresight = self.calling.get(id(at)), self.foresight
        known = foresight.of(agent, own) if outer is None else foresight.of_inner(agent, own)
        terms = Terms(at, agent, accounts, known)
        if agent in foresight.within:
            terms.within = foresight.within[agent]
        if sizes:
            terms.sizes = sizes
            terms.known = {**known, **summed(terms.within, sizes)}
        for account in accounts:
            if not account.quiet:
                pause = heed(at, terms, self.workflow)
                if pause is not None:
                    return pause
                break
        if outer is not None:
            self._begin(terms, outer)
            return terms
        return self._hold(at, terms, own)

    def _refresh(self, at: Frame) -> None:
        """Look at what others have spent, and whether a new period has begun."""
        for account in self.around:
            account.refresh(at.now)
        reset = self.workflow.limits.reset
        if reset is not None:
            period = int((at.now - self.execution.started) // reset)
            if period > self.workflow.period:
                self.before += self.workflow.start_again(period)["MaxCost"]
                self.show_limit()

    def _hold(self, at: Frame, terms: Terms, own: Account | None) -> Admission:
        """Hold for the call what it may use, or say that it is not there now.

        The state itself makes one call at a time, so nothing is held of what is its own.
        """
        known, held = terms.known, terms.held
        if self.around or self.keeps:
            terms.entry = f"{self.execution.id}:{at.key}"
        for account in terms.accounts:
            if account is not own:
                share = account.hold(known, terms.entry, at.now)
                if share is None:
                    self.release(terms)
                    return Later if isinstance(account, Tab) else None
                held.append(share)
        self._mark()
        self.calling[id(at)] = terms
        if self.keeps:
            self.open[terms.entry] = terms
        return terms

    def _mark(self) -> None:
        for account in self.whole:
            if account.held is not account.marked:
                account.mark()

    def _begin(self, terms: Terms, outer: Terms) -> None:
        """Set something aside for a call within another one."""
        if outer.inner is None:
            outer.inner = Within(outer)
        outer.inner.begin(terms, terms.frame.now)
        self._mark()

    # After a call

    def release(self, terms: Terms) -> None:
        """Give back what is held for a call."""
        if terms.inside is not None:
            terms.inside.end(terms, terms.frame.now)
        if terms.held:
            self._close(terms)
            for account, held in zip(terms.accounts, terms.held, strict=False):
                account.release(held, terms.entry, terms.frame.now)
            terms.held = []

    def _close(self, terms: Terms) -> None:
        self.calling.pop(id(terms.frame), None)
        if self.keeps:
            self.open.pop(terms.entry, None)

    def settle(self, terms: Terms, state: str, failed: bool = False) -> None:
        """Count what a call has used; raises as `admit` does where that exceeds a limit.

        What cannot be known (the report is none, or the price) counts as it was held, and is a
        failure by itself unless the call has *failed* already.
        """
        used, unknown = terms.used, None
        at, accounts, sizes, entry = terms.frame, terms.accounts, terms.held, terms.entry
        counted = terms.counted = spending(used)
        if terms.inner is not None:
            terms.inner.close(at.now)
        if used.fault is None and not used.unpriced:
            within = UNKNOWN if terms.inner is None else terms.inner.used
            self.foresight.learn(terms.agent, counted, within)
        else:
            unknown = doubt(state, used)
        if used.cost or used.tokens:
            self.attribution.add(accounts[-1].limits, used)
        failures: list[StateError | Exhausted] = []
        if sizes:
            self._close(terms)
        done = 0
        try:
            for account, held in zip_longest(accounts, sizes):
                account.add(counted, held, entry, at.now)
                done += 1
                if unknown is not None and self._assume(terms, account, held):
                    failures.append(unknown)
                if not account.quiet:
                    failures += self._heeded(at, account)
        except BaseException:  # the rest is given back, not settled
            terms.accounts, terms.held = accounts[done:], sizes[done:]
            raise
        terms.held = []
        if unknown is not None:
            if terms.assumed:
                self._tell_assumed(at, terms.assumed, used)
            if failed:  # by an error of its own; limits that are gone are those of later calls
                return
        if failures:
            raise next((each for each in failures if isinstance(each, Exhausted)), failures[0])

    def _assume(self, terms: Terms, account: Account, held: Amounts | None) -> bool:
        """Count what a call may have used beyond its report; say whether that must be known."""
        sizes = account.share(terms.known) if held is None else held
        if terms.used.fault is None:  # its tokens are known
            sizes = {name: sizes[name] for name in ("MaxCost",) if name in sizes}
        rest = beyond(sizes, spending(terms.used))
        if rest:
            account.assume(rest, terms.entry, terms.frame.now)
            terms.assumed = larger(terms.assumed, rest)
            if account.frame is terms.frame:
                terms.counted = {**terms.counted, **summed(terms.counted, rest)}
        return bool(sizes) and account.action in HARD

    def _tell_assumed(self, at: Frame, assumed: Amounts, used: Used) -> None:
        """Remember what a call counts as, and tell of one that has not even reported anything."""
        self.assumed = {**self.assumed, **summed(self.assumed, assumed)}
        self.show_limit()
        if used.fault in UNSAID:
            details = {name: told(name, each) for name, each in assumed.items()}
            at.note("UsageWarning", {"reason": UNSAID[used.fault], "assumed": details})

    def _heeded(self, at: Frame, account: Account) -> Iterator[StateError | Exhausted]:
        """Tell of limits and shares that are reached; yield the failure that comes of one."""
        if account.limits.alerts:
            alert(at, account)
        name = account.exceeded
        if name is not None:
            tell_excess(at, account, name)
            if account.action == "Fail":
                yield failure(account, name, at)

    def absorb(self, at: Frame, used: Used, assumed: Amounts, found: bool = False) -> None:
        """Count what an execution has used that a state has started; raises as `settle` does.

        Its calls are on all tabs already. *assumed* is what they count as beyond that; if it was
        *found* at its end, no account here knows of that yet.
        """
        accounts = [each for each in self.accounts(at) if not isinstance(each, Tab)]
        own = accounts[-1] if accounts[-1].frame is at else None
        terms = Terms(at, "", accounts, self.foresight.of("", own))
        terms.used = used
        if assumed:
            for account in accounts if found else ():
                account.recover(assumed)
            self.assumed = {**self.assumed, **summed(self.assumed, assumed)}
            self.show_limit()
        self.settle(terms, at.step.name)

    # Tools, which are used within the call of an agent

    def allow_tool(self, at: Frame) -> None:
        """Raise as `admit` does where the call that wants to use a tool is to fail anyway."""
        for account in self.accounts(at):
            name = account.exceeded
            if name is not None and account.action == "Fail":
                raise failure(account, name, at)

    def begin_tool(self, at: Frame, tool: str) -> Terms:
        """Set something aside for a tool; raises as `allow_tool` does."""
        self.allow_tool(at)
        name, outer = f"tool {tool}", self.calling.get(id(at))
        terms = Terms(at, name, self.accounts(at), self.foresight.largest.get(name, UNKNOWN))
        if outer is not None:
            self._begin(terms, outer)
        return terms

    def use_tool(self, terms: Terms, used: Used) -> Amounts:
        """Count what a tool has used, and return it; raises as `settle` does.

        One that is BROKEN counts as the most that this tool has used before: nobody should lose a
        budget to a guess, and most tools use nothing.
        """
        at, broken = terms.frame, used is BROKEN
        terms.used = used
        if terms.known or not broken:
            own = terms.accounts[-1]
            if own.frame is at and not broken:
                terms.known = {**terms.known, **own.rest}
            self.settle(terms, at.step.name, failed=broken)
        return terms.counted

    def end_tool(self, terms: Terms) -> None:
        """Give back what is set aside for a tool."""
        if terms.used is UNUSED:
            self.foresight.learn(terms.agent, UNKNOWN)
        self.release(terms)

    def recall(self, at: Frame, used: Amounts) -> None:
        """Count what a call of the present visit had used before this process, for that visit."""
        if at.step.budget is not None:
            account = self._account(at, at.step.budget, at.visit, False, at.step.name)
            if not account.recalled:
                account.add(used, None, "", at.now)

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

    def question(self, at: Frame, pause: Pause) -> dict[str, Json]:
        """Return what people are asked about a limit."""
        limits, most = pause.account.limits, pause.account.most
        prompt = f"{pause.reason}: may the execution spend more?"
        body: dict[str, Json] = {
            "state": at.step.name,
            "path": [*at.place, at.step.name],
            "prompt": prompt,
            "promptText": prompt,
            "options": ["approve", "reject"],
            "budget": {
                "level": limits.state or "workflow",
                "currency": self.workflow.limits.currency,
                "most": {name: told(name, each) for name, each in most.items()},
                "spent": {name: told(name, pause.account.used(name)) for name in most},
                "at": format_timestamp(at.now),
            },
        }
        notify = limits.notify if limits.included else self.workflow.limits.notify
        if notify is not None:
            body["notify"] = notify
        return body

    def decide(self, pause: Pause, record: Mapping[str, Json]) -> None:
        """Apply what people have decided: lift the limits, set new ones, or hold to them."""
        account = pause.account
        self.questions += 1
        if record["approval"] != "approve":
            account.rejected = True
            return
        new = {name: amount(record[name]) for name in ("MaxCost", "MaxTokens") if name in record}
        account.most = {name: each for name, each in new.items() if each is not None}
        account.told = False
        account.watch()
        self.show_limit()

    def show_limit(self) -> None:
        """Let expressions see what the workflow may spend, without what nobody will report."""
        spent, most = self.execution.usage, self.workflow.most.get("MaxCost")
        if most is not None:
            most += self.before - self.workflow.assumed["MaxCost"]
        self.execution.usage = Usage(spent.cost, spent.tokens, most)

    # Keeping

    @classmethod
    def read(cls, execution: Execution, written: Json) -> "Ledger":
        """Return the ledger of an execution as it was written, for its report alone."""
        found = cls(execution, Limits("", {}, currency=written.get("currency", "USD")))
        found.restore(written)
        return found

    def written(self) -> Json:
        """Return all that a recovery needs as JSON."""
        visits = {key: each.written() for key, each in self.visits.items() if each.stands}
        return {
            "workflow": self.workflow.written(),
            "visits": visits | self.kept,
            "questions": self.questions,
            "before": str(self.before),
            "assumed": kept(self.assumed),
            "open": {entry: kept(terms.rest) for entry, terms in self.open.items()},
            **self.foresight.written(),
            "reserved": kept(self.workflow.peak),
            "currency": self.workflow.limits.currency,
            **self.attribution.written(),
        }

    def restore(self, written: Json) -> None:
        """Stand as it was written."""
        self.workflow.restore(written["workflow"])
        self.kept = written["visits"]
        self.questions = written["questions"]
        self.before = Decimal(written.get("before", "0"))
        self.assumed = {**NOTHING, **read_back(written.get("assumed", {}))}
        self.foresight.restore(written)
        self.cut = {entry: read_back(known) for entry, known in written.get("open", {}).items()}
        for entry, known in self.cut.items():
            self._cut_off(entry.removeprefix(f"{self.execution.id}:"), known)
        self.workflow.peak = {**NOTHING, **read_back(written.get("reserved", {}))}
        self.attribution.restore(written)
        self.show_limit()

    def _cut_off(self, key: str, known: Amounts) -> None:
        """Count a call that was under way when its process died, and is made again.

        It counts as what was known of it, for nobody should lose a budget to a guess; and its own
        state makes that call only.
        """
        self.assumed = {**self.assumed, **summed(self.assumed, known)}
        self.workflow.recover(known)
        for path, written in self.kept.items():
            if key.startswith(f"{path}."):
                account = Account(Limits("", {}))
                account.restore(written)
                account.recover(known)
                self.kept[path] = account.written()


def _included(limits: Limits | None, state: str) -> Any:
    """Return what says what a visit of an Include may spend, None for a document without budget."""
    if limits is None:
        return None
    own = limits._replace(state=state, included=True)
    return lambda raw, frame: own
