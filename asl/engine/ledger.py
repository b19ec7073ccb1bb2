"""The ledger of one execution: what each level has spent, and whether it may spend more (8.11).

A level is the workflow or one visit of a state. Each has an account. Before a call of an agent all
accounts around it are asked (`admit`), and some of what is left is held for the call; after it,
what was used is counted (`settle`) and what was held is given back (`release`). So calls that run
at the same time cannot spend together what each of them could spend alone.

Nothing here waits: the host does (`asl.hosts.meter`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest
from typing import Any, Final, TypeAlias
from weakref import WeakValueDictionary

from asl.core.diagnostics import did_you_mean, escape
from asl.core.errors import StateError
from asl.core.values import Json, compact
from asl.engine.accounts import HARD, Account, Lent
from asl.engine.amounts import (
    NOTHING,
    amounts,
    beyond,
    kept,
    larger,
    read_back,
    spending,
    summed,
)
from asl.engine.excess import doubt, excess, failure
from asl.engine.execution import ZERO, Execution, Usage, Used, add_to, totals
from asl.engine.frame import Frame
from asl.engine.tabs import Tab, Tabs, Taken
from asl.expr.times import format_timestamp
from asl.states.blocks.budget import Amounts, Fallback, Limits, amount
from asl.states.errors import Exhausted

__all__ = ["LOST", "Later", "Ledger", "Pause", "Terms"]

LOST: Final = Used(ZERO, 0, 0, 0, None, fault="nothing")
"""What is known of a call that was given up before its end."""

UNKNOWN: Final[Amounts] = {}
"""What is known of an agent that was never called."""
UNCATEGORIZED: Final = "uncategorized"
UNSAID: Final = "the call ended before it said what it used: it counts as what was set aside for it"


class Terms:
    """On what terms a call is admitted."""

    model: str | None = None
    """The model to use instead of the preferred one."""
    instead: str | None = None
    """The agent to call instead."""
    reduced: bool = False
    """Whether lesser quality is asked for."""
    delay: float = 0.0
    """Seconds by which the call is delayed."""
    applied: Fallback | None = None
    entry = ""
    """Names the call where others see what it holds."""
    known: Amounts = UNKNOWN
    """What is known of the call beforehand."""
    counted: Amounts = UNKNOWN
    """What it counts as in the account of the state itself, once it is settled."""
    assumed: Amounts = UNKNOWN
    """What of that is assumed, in any account."""

    def __init__(self, frame: Frame, agent: str, accounts: list[Account]) -> None:
        self.frame = frame
        self.agent = agent
        self.accounts = accounts
        """From the workflow to the state itself."""
        self.held: list[Amounts] = []
        """What is held in the first of them."""


class Later:
    """A call has to wait for one of another execution, of which nobody here will hear."""


@dataclass(frozen=True, slots=True)
class Pause:
    """People have to decide before a call is made."""

    account: Account
    reason: str


Admission: TypeAlias = "Terms | Pause | type[Later] | None"
"""What a call is told: its terms, or why it is not made; None: others have to end before."""


class Ledger:
    """All accounts of one execution, and the report of what was spent on what."""

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
        self.largest: dict[str, Amounts] = {}
        """The most that one call of an agent has used, by its name; replaced, never changed."""
        self.foreseen: dict[str, tuple[Amounts, Amounts, Amounts]] = {}
        """By the name of an agent: that, the limits of the state that has called it last, and what
        is known of a call beforehand by both."""
        self.calling: set[int] = set()
        """The machines that have a call under way."""
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
        self.by_category: dict[str, tuple[Decimal, int]] = {}
        self.by_tag: dict[str, tuple[Decimal, int]] = {}
        self.by_attribution: dict[str, dict[str, tuple[Decimal, int]]] = {}

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
        self._surround(around, now)

    def borrow(self, lenders: Iterable[Account], counted: Usage, now: float) -> None:
        """Spend what the accounts around the state allow that has started this execution.

        *counted* is what they have counted already.
        """
        spent = self.execution.usage
        own = {
            **NOTHING,
            "MaxCost": spent.cost - counted.cost,
            "MaxTokens": spent.tokens - counted.tokens,
        }
        tabs = {each.name for each in self.around if isinstance(each, Tab)}
        for lender in lenders:
            if not isinstance(lender, Tab):
                self._surround([Lent(lender, own)], now)
            elif lender.name not in tabs:
                self._surround([lender], now)

    def _surround(self, accounts: Iterable[Account], now: float) -> None:
        for account in accounts:
            if isinstance(account, Tab):
                if self.cut:
                    account.give_up(self.cut, now)
            else:
                account.recover(self.assumed)
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
        found: list[Account] = []
        frame, step, visit, budget = at, at.step, at.visit, at.step.budget
        while True:
            if budget is not None:
                found.append(self._account(frame, budget, visit, frame is not at, step.name))
            if frame.parent is None:
                found.reverse()
                return self.whole + found
            step, visit, _ = frame.origin
            scope, frame = frame.scope, frame.parent
            budget = step.budget if scope is None else _included(scope.limits, step.name)

    def _account(self, frame: Frame, budget: Any, visit: int, around: bool, name: str) -> Account:
        account: Account | None = frame.spending
        if account is None or account.visit != visit:
            account = frame.spending = Account(budget(frame.data, frame), frame, visit)
            key = f"{frame.path}/{escape(name)}@{visit}" if around or self.kept else ""
            if key in self.kept:
                account.restore(self.kept.pop(key))
                account.recalled = around = True
            if around:
                self.visits[key] = account
        return account

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
        terms = Terms(at, agent, accounts)
        terms.known = self._known(terms, sizes)
        for account in accounts:
            if not account.quiet:
                pause = self._heed(at, terms)
                if pause is not None:
                    return pause
                break
        if id(at) in self.calling:  # a call within a call spends what is held for that
            return terms
        return self._hold(at, terms)

    def _heed(self, at: Frame, terms: Terms) -> Pause | None:
        """Apply to a call what comes of what was spent; raises as `admit` does."""
        spare = None
        for account in terms.accounts:
            name = account.gone
            if name is not None:
                if account.doubtful:
                    self._tell(at, account, name)
                action = account.action
                if action == "Fail":
                    raise failure(account, name, at)
                if action == "PauseAndNotify":
                    return Pause(account, excess(account, name))
                if action == "Throttle":
                    terms.delay += self._document(terms, account).limits.delay
                elif action == "UseFallback":
                    spare = spare or (account, name)
        if spare is not None or any(each.limits.fallbacks for each in terms.accounts):
            return self._fall_back(at, terms, spare)
        return None

    def _document(self, terms: Terms, account: Account) -> Account:
        """Return the account of the document in which the limits of another one are written."""
        found = self.workflow
        for each in terms.accounts:
            if each.limits.included:
                found = each
            if each is account:
                break
        return found

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

    def _fall_back(
        self, at: Frame, terms: Terms, spare: tuple[Account, str] | None
    ) -> Pause | None:
        """Apply the fallback with the highest threshold that has been reached."""
        if terms.accounts[-1].limits.priority == "critical":
            return None
        entries = [
            (entry, account)
            for account in reversed(terms.accounts)
            if account is self.workflow or account.limits.included
            for entry in account.limits.fallbacks
        ]
        entries.sort(key=lambda each: -each[0].percent)  # the innermost of those that are equal
        for entry, account in entries:
            reached = not entry.of or account.reached(entry.of, entry.percent)
            if reached and (spare is None or entry.model or entry.agent):
                break
        else:
            if spare is not None:
                raise failure(*spare, at)
            return None
        terms.applied = entry
        terms.model, terms.instead = entry.model, entry.agent
        if entry.action == "PauseAndNotify":
            return Pause(account, f"{entry.when} is reached")
        if entry.action == "Fail":
            raise StateError(
                "States.BudgetExceeded", f"state '{at.step.name}': {entry.when} is reached"
            )
        if entry.action == "Throttle":
            terms.delay += account.limits.delay
        terms.reduced = entry.action == "ReduceQuality"
        return None

    def _known(self, terms: Terms, sizes: Amounts) -> Amounts:
        """Return what is known of a call beforehand: by its state, its agent and its size."""
        own = terms.accounts[-1]
        if own.frame is terms.frame:
            known = self._foreseen(terms.agent, own)
        else:
            known = self.largest.get(terms.agent, UNKNOWN)
        return {**known, **sizes} if sizes else known

    def _hold(self, at: Frame, terms: Terms) -> "Terms | type[Later] | None":
        """Hold for the call what it may use, or say that it is not there now.

        The state itself makes one call at a time, so nothing is held of what is its own.
        """
        accounts, known = terms.accounts, terms.known
        outer = accounts[:-1] if accounts[-1].frame is at else accounts
        if self.around or self.keeps:
            terms.entry = f"{self.execution.id}:{at.key}"
        for account in outer:
            held = account.share(known)
            if not account.hold(held, terms.entry, at.now):
                self.release(terms)
                return Later if isinstance(account, Tab) else None
            terms.held.append(held)
        for account in self.whole:
            account.mark()
        self.calling.add(id(at))
        if self.keeps:
            self.open[terms.entry] = terms
        return terms

    def _foreseen(self, agent: str, own: Account) -> Amounts:
        """Return what is known of a call: no more than before, and than its state may spend."""
        largest = self.largest.get(agent, UNKNOWN)
        if not own.untouched:
            return {**largest, **_rest(own)}
        before, most, known = self.foreseen.get(agent, (NOTHING, NOTHING, NOTHING))
        if before is largest and most is own.most:
            return known
        known = {**largest, **own.most}
        self.foreseen[agent] = largest, own.most, known
        return known

    # After a call

    def release(self, terms: Terms) -> None:
        """Give back what is held for a call."""
        if terms.held:
            self._close(terms)
            for account, held in zip(terms.accounts, terms.held, strict=False):
                account.release(held, terms.entry, terms.frame.now)
            terms.held = []

    def _close(self, terms: Terms) -> None:
        self.calling.discard(id(terms.frame))
        self.open.pop(terms.entry, None)

    def settle(self, terms: Terms, state: str, used: Used, failed: bool = False) -> None:
        """Count what a call has used; raises as `admit` does where that exceeds a limit.

        What cannot be known (the report is none, or the price) counts as it was held, and is a
        failure by itself unless the call has *failed* already.
        """
        terms.counted = spending(used)
        counted = spending(used)
        if used.fault is None and not used.unpriced:
            largest = self.largest.get(terms.agent)
            if largest is None:
                self.largest[terms.agent] = amounts(used)
            else:
                for name, each in counted.items():
                    if each > largest[name]:
                        self.largest[terms.agent] = largest = {**largest, name: each}
        if used.cost or used.tokens:
            self._report(terms.accounts[-1].limits, used)
        unknown = doubt(state, used)
        failures: list[StateError | Exhausted] = []
        at, accounts, sizes = terms.frame, terms.accounts, terms.held
        if sizes:
            self._close(terms)
        done = 0
        try:
            for account, held in zip_longest(accounts, sizes):
                account.settle(counted, held, terms.entry, at.now)
                done += 1
                if unknown is not None and self._assume(terms, account, held, used):
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

    def _assume(self, terms: Terms, account: Account, held: Amounts | None, used: Used) -> bool:
        """Count what a call may have used beyond its report; say whether that must be known."""
        sizes = account.share(terms.known) if held is None else held
        if used.fault is None:  # its tokens are known
            sizes = {name: sizes[name] for name in ("MaxCost",) if name in sizes}
        rest = beyond(sizes, spending(used))
        if rest:
            account.assume(rest, terms.entry, terms.frame.now)
            terms.assumed = larger(terms.assumed, rest)
            if account.frame is terms.frame:
                terms.counted = {**terms.counted, **summed(terms.counted, rest)}
        return bool(sizes) and account.action in HARD

    def _tell_assumed(self, at: Frame, assumed: Amounts, used: Used) -> None:
        """Remember what a call counts as, and tell of one that has not even reported anything."""
        self.assumed = {**self.assumed, **summed(self.assumed, assumed)}
        if used.fault == LOST.fault:
            details = {name: float(each) for name, each in assumed.items()}
            at.note("UsageWarning", {"reason": UNSAID, "assumed": details})

    def _heeded(self, at: Frame, account: Account) -> Iterator[StateError | Exhausted]:
        """Tell of limits and shares that are reached; yield the failure that comes of one."""
        if account.limits.alerts:
            self._alert(at, account)
        name = account.exceeded
        if name is not None:
            self._tell(at, account, name)
            if account.action == "Fail":
                yield failure(account, name, at)

    def absorb(self, at: Frame, used: Used) -> None:
        """Count what an execution has used that a state has started; raises as `settle` does.

        Its calls are on all tabs already.
        """
        accounts = [each for each in self.accounts(at) if not isinstance(each, Tab)]
        terms = Terms(at, "", accounts)
        terms.known = self._known(terms, UNKNOWN)
        self.settle(terms, at.step.name, used)

    def recall(self, at: Frame, used: Amounts) -> None:
        """Count what a call of the present visit had used before this process, for that visit."""
        if at.step.budget is not None:
            account = self._account(at, at.step.budget, at.visit, False, at.step.name)
            if not account.recalled:
                account.add(used, "", at.now)

    def _report(self, limits: Limits, used: Used) -> None:
        cost, tokens = used.cost, used.tokens
        add_to(self.by_category, limits.category or UNCATEGORIZED, cost, tokens)
        for tag in limits.tags:
            add_to(self.by_tag, tag, cost, tokens)
        if limits.attribution is None:
            return
        for key, value in limits.attribution.items():
            track_by = self.workflow.limits.track_by
            if track_by is None or key in track_by:
                text = value if type(value) is str else compact(value)
                add_to(self.by_attribution.setdefault(key, {}), text, cost, tokens)

    def _alert(self, at: Frame, account: Account) -> None:
        """Emit the alerts whose share has been reached, once each."""
        alerts = account.limits.alerts
        name = account.alerting
        while account.alerted < len(alerts):
            alert = alerts[account.alerted]
            if not account.reached(name, alert.percent):
                return
            account.alerted += 1
            account.watch()
            details = {
                "at": float(alert.percent),
                "limit": name,
                "max": float(account.most[name]),
                "spent": float(account.spent[name]),
                **alert.details,
            }
            if alert.message is not None:
                details["message"] = self._message(at, alert.message)
            at.note("BudgetAlert", details)

    def _message(self, at: Frame, message: Any) -> Json:
        try:
            return message(self.execution.input, at)
        except StateError as error:  # an alert never fails the state that it tells of
            return f"({error})"

    def _tell(self, at: Frame, account: Account, name: str) -> None:
        if account.told:
            return
        account.told = True
        details: dict[str, Json] = {
            "level": account.limits.state or "workflow",
            "limit": account.label or name,
            "max": float(account.most[name]),
            "spent": float(account.used(name)),
            "action": account.action,
        }
        at.note("BudgetExceeded", details)

    def report(self) -> dict[str, Json]:
        """Return what was spent on what, as far as budgets say more than the states do."""
        attributed = {key: totals(table) for key, table in self.by_attribution.items()}
        assumed = self.assumed
        return {
            "currency": self.workflow.limits.currency,
            "reserved": {
                "cost": float(self.workflow.peak["MaxCost"]),
                "tokens": float(self.workflow.peak["MaxTokens"]),
            },
            "assumed": {"cost": float(assumed["MaxCost"]), "tokens": int(assumed["MaxTokens"])},
            "byCategory": totals(self.by_category),
            "byTag": totals(self.by_tag),
            "byAttribution": attributed,
        }

    # People

    def question(self, at: Frame, pause: Pause) -> dict[str, Json]:
        """Return what people are asked about a limit."""
        limits = pause.account.limits
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
                "most": {name: float(each) for name, each in pause.account.most.items()},
                "spent": {name: float(pause.account.used(name)) for name in pause.account.most},
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
        """Let expressions see what the workflow may spend."""
        spent, most = self.execution.usage, self.workflow.most.get("MaxCost")
        if most is not None:
            most += self.before
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
        tables = [self.by_category, self.by_tag, *self.by_attribution.values()]
        return {
            "workflow": self.workflow.written(),
            "visits": {key: each.written() for key, each in self.visits.items()} | self.kept,
            "questions": self.questions,
            "before": str(self.before),
            "assumed": kept(self.assumed),
            "open": {entry: kept(terms.known) for entry, terms in self.open.items()},
            "largest": {agent: kept(known) for agent, known in self.largest.items()},
            "reserved": kept(self.workflow.peak),
            "currency": self.workflow.limits.currency,
            "attributions": list(self.by_attribution),
            "tables": [
                {key: [str(cost), tokens] for key, (cost, tokens) in table.items()}
                for table in tables
            ],
        }

    def restore(self, written: Json) -> None:
        """Stand as it was written."""
        self.workflow.restore(written["workflow"])
        self.kept = written["visits"]
        self.questions = written["questions"]
        self.before = Decimal(written.get("before", "0"))
        self.assumed = {**NOTHING, **read_back(written.get("assumed", {}))}
        self.largest = {
            agent: read_back(known) for agent, known in written.get("largest", {}).items()
        }
        self.cut = {entry: read_back(known) for entry, known in written.get("open", {}).items()}
        for entry, known in self.cut.items():
            self._cut_off(entry.removeprefix(f"{self.execution.id}:"), known)
        self.workflow.peak = {**NOTHING, **read_back(written.get("reserved", {}))}
        self.by_attribution = {key: {} for key in written["attributions"]}
        tables = [self.by_category, self.by_tag, *self.by_attribution.values()]
        for table, found in zip(tables, written["tables"], strict=True):
            table.update({key: (Decimal(cost), tokens) for key, (cost, tokens) in found.items()})
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


def _rest(account: Account) -> dict[str, Decimal | int]:
    """Return what is left of an account."""
    spent, rest = account.spent, {}
    for name, most in account.most.items():
        rest[name] = most - spent[name] if most > spent[name] else 0
    return rest
