"""The ledger of one execution: what each level has spent, and whether it may spend more (8.11).

A level is the workflow or one visit of a state. Each has an account. Before a call of an agent all
accounts around it are asked (`admit`), and some of what is left is held for the call; after it,
what was used is counted (`settle`) and what was held is given back (`release`). So calls that run
at the same time cannot spend together what each of them could spend alone.

Nothing here waits: the host does (`asl.hosts.meter`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final
from weakref import WeakValueDictionary

from asl.core.diagnostics import escape
from asl.core.errors import StateError
from asl.core.values import Json, compact
from asl.engine.execution import ZERO, Execution, Usage, Used, add_to, totals
from asl.engine.frame import Frame
from asl.expr.times import format_timestamp
from asl.states.blocks.budget import LIMITS, Fallback, Limits, amount
from asl.states.host import Exhausted

__all__ = ["Account", "Ledger", "Pause", "Terms", "amounts"]

SHARES: Final = 16
"""Into how many parts a limit is divided as long as nobody knows what a call uses."""
UNCATEGORIZED: Final = "uncategorized"
_HARD: Final = ("Fail", "PauseAndNotify")
"""What a level does that must not be exceeded by calls at the same time."""
_NOTHING: Final = dict.fromkeys(LIMITS, ZERO)

Amounts = Mapping[str, Decimal]
"""Amounts by the fields that limit them: money and whole numbers of tokens."""


class Account:
    """What one level has spent. `frame` and `visit` are of the state's machine."""

    __slots__ = (
        "__weakref__", "alerted", "frame", "held", "limits", "most", "open", "recalled",
        "rejected", "spent", "told", "visit",
    )  # fmt: skip

    def __init__(self, limits: Limits, frame: Frame | None = None, visit: int = 0) -> None:
        self.limits = limits
        self.frame = frame
        self.visit = visit
        self.most = dict(limits.most)
        """The limits; people may lift them."""
        self.spent = dict(_NOTHING)
        self.held = dict(_NOTHING)
        self.open = 0
        """How many calls hold something."""
        self.told = False
        """Whether there was an event of the excess."""
        self.rejected = False
        """Whether people have refused to lift the limits."""
        self.recalled = False
        """Whether it was found as it stood, with all that the visit's own calls had used."""
        self.alerted = 0
        """How many alerts there were; they are sorted."""

    @property
    def exceeded(self) -> str | None:
        """The limit that is exceeded, None if there is none."""
        for name, most in self.most.items():
            if self.spent[name] > most:
                return name
        return None

    @property
    def left(self) -> dict[str, Json]:
        """What is left of each limit."""
        return {name: float(max(ZERO, most - self.spent[name])) for name, most in self.most.items()}

    @property
    def action(self) -> str:
        """What is done about an excess."""
        return "Fail" if self.rejected else self.limits.on_exceed

    def reached(self, name: str, percent: Decimal | int) -> bool:
        """Whether this share of a limit has been spent."""
        return name in self.most and self.spent[name] * 100 >= self.most[name] * percent

    def room(self, name: str, size: Decimal) -> bool:
        """Whether a call of this size fits beside those under way."""
        return self.spent[name] + self.held[name] + size <= self.most[name]

    def add(self, used: Amounts) -> None:
        """Count what was used."""
        for name, each in used.items():
            self.spent[name] += each

    def written(self) -> Json:
        """Return the account as JSON."""
        return [
            {name: str(each) for name, each in self.spent.items()},
            {name: str(each) for name, each in self.most.items()},
            self.told,
            self.rejected,
            self.alerted,
        ]

    def restore(self, written: Json) -> None:
        """Stand as it was written."""
        spent, most, self.told, self.rejected, self.alerted = written
        self.spent = {name: Decimal(each) for name, each in spent.items()}
        self.most = {name: Decimal(each) for name, each in most.items()}


@dataclass(slots=True)
class Terms:
    """On what terms a call is admitted."""

    frame: Frame
    agent: str
    accounts: list[Account]
    """From the workflow to the state itself."""
    model: str | None = None
    """The model to use instead of the preferred one."""
    instead: str | None = None
    """The agent to call instead."""
    reduced: bool = False
    """Whether lesser quality is asked for."""
    delay: float = 0.0
    """Seconds by which the call is delayed."""
    applied: Fallback | None = None
    held: list[tuple[Account, Amounts]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Pause:
    """People have to decide before a call is made."""

    account: Account
    reason: str


class Ledger:
    """All accounts of one execution, and the report of what was spent on what."""

    def __init__(self, execution: Execution, limits: Limits) -> None:
        self.execution = execution
        self.workflow = Account(limits)
        self.visits: WeakValueDictionary[str, Account] = WeakValueDictionary()
        """The accounts of visits that have machines below them, by the key of the visit."""
        self.kept: dict[str, Json] = {}
        """Such accounts as they were found at recovery."""
        self.largest: dict[str, Amounts] = {}
        """The most that one call of an agent has used, by its name."""
        self.calling: set[int] = set()
        """The machines that have a call under way."""
        self.questions = 0
        """How often people have decided."""
        self.peak = dict(_NOTHING)
        """The most that was held for calls at one time."""
        self.by_category: dict[str, tuple[Decimal, int]] = {}
        self.by_tag: dict[str, tuple[Decimal, int]] = {}
        self.by_attribution: dict[str, dict[str, tuple[Decimal, int]]] = {}

    # Accounts

    def _accounts(self, at: Frame) -> list[Account]:
        """Return the accounts around a call, from the workflow to the state itself."""
        found: list[Account] = []
        frame, step, visit = at, at.step, at.visit
        while True:
            if step.budget is not None:
                found.append(self._account(frame, step.budget, visit, frame is not at, step.name))
            if frame.parent is None:
                return [self.workflow, *reversed(found)]
            step, visit, _ = frame.origin
            frame = frame.parent

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
        own = self._accounts(at)[-1]
        return {
            "workflow": self.workflow.left,
            "state": own.left if own.frame is at else {},
        }

    # Before a call

    def admit(self, at: Frame, agent: str, sizes: Amounts) -> Terms | Pause | None:
        """Return the terms of a call, None where it has to wait for others to end.

        *sizes* are upper bounds of what it will use, as far as they are known. Raises StateError,
        or Exhausted where it is a state around that fails.
        """
        accounts = self._accounts(at)
        terms = Terms(at, agent, accounts)
        for account in accounts:
            name = account.exceeded
            if name is not None:
                if account.action == "Fail":
                    raise _failure(account, name, at)
                if account.action == "PauseAndNotify":
                    return Pause(account, _excess(account, name))
                if account.action == "Throttle":
                    terms.delay += self.workflow.limits.delay
        own = accounts[-1].limits
        if own.priority != "critical":
            pause = self._fall_back(at, terms)
            if pause is not None:
                return pause
        if id(at) in self.calling:  # a call within a call spends what is held for that
            return terms
        return self._hold(at, terms, sizes)

    def _fall_back(self, at: Frame, terms: Terms) -> Pause | None:
        """Apply the fallback with the highest threshold that has been reached."""
        workflow = self.workflow
        entries = [
            entry
            for entry in workflow.limits.fallbacks
            if not entry.of or workflow.reached(entry.of, entry.percent)
        ]
        exceeded = next(
            (each for each in terms.accounts if each.exceeded and each.action == "UseFallback"),
            None,
        )
        if exceeded is not None:
            entries = [entry for entry in entries if entry.model or entry.agent]
            if not entries:
                raise _failure(exceeded, exceeded.exceeded or "", at)
        if not entries:
            return None
        entry = terms.applied = entries[0]
        terms.model, terms.instead = entry.model, entry.agent
        if entry.action == "PauseAndNotify":
            return Pause(workflow, f"{entry.when} is reached")
        if entry.action == "Fail":
            raise StateError(
                "States.BudgetExceeded", f"state '{at.step.name}': {entry.when} is reached"
            )
        if entry.action == "Throttle":
            terms.delay += workflow.limits.delay
        terms.reduced = entry.action == "ReduceQuality"
        return None

    def _hold(self, at: Frame, terms: Terms, sizes: Amounts) -> Terms | None:
        """Hold for the call what it may use, or return None where that is not there now."""
        known = {**self.largest.get(terms.agent, {}), **_bounds(at, terms.accounts[-1]), **sizes}
        for account in terms.accounts:
            held: Amounts = {
                name: known.get(name, most / SHARES) for name, most in account.most.items()
            }
            terms.held.append((account, held))
            fits = all(account.room(name, size) for name, size in held.items())
            if account.open and account.action in _HARD and not fits:
                return None
        for account, held in terms.held:
            account.open += 1
            for name, size in held.items():
                account.held[name] += size
        for name, size in self.workflow.held.items():
            self.peak[name] = max(self.peak[name], size)
        self.calling.add(id(at))
        return terms

    # After a call

    def release(self, terms: Terms) -> None:
        """Give back what was held for a call."""
        if terms.held:
            self.calling.discard(id(terms.frame))
        for account, held in terms.held:
            account.open -= 1
            for name, size in held.items():
                account.held[name] -= size
        terms.held = []

    def settle(self, terms: Terms, state: str, used: Used) -> None:
        """Count what a call has used; raises as `admit` does where that exceeds a limit."""
        at, counted = terms.frame, amounts(used)
        known = self.largest.get(terms.agent, _NOTHING)
        self.largest[terms.agent] = {name: max(known[name], each) for name, each in counted.items()}
        self._report(terms.accounts[-1].limits, used)
        failures: list[StateError | Exhausted] = []
        for account in terms.accounts:
            account.add(counted)
            self._alert(at, account)
            name = account.exceeded
            if name is not None:
                self._tell(at, account, name)
                if account.action == "Fail":
                    failures.append(_failure(account, name, at))
            if used.unpriced and "MaxCost" in account.most and account.action in _HARD:
                failures.append(_unpriced(state, used.model))
        if failures:
            raise next((each for each in failures if isinstance(each, Exhausted)), failures[0])

    def absorb(self, at: Frame, used: Used) -> None:
        """Count what an execution has used that a state has started; raises as `settle` does."""
        self.settle(Terms(at, "", self._accounts(at)), at.step.name, used)

    def recall(self, at: Frame, used: Amounts) -> None:
        """Count what a call of the present visit had used before this process, for that visit."""
        if at.step.budget is not None:
            account = self._account(at, at.step.budget, at.visit, False, at.step.name)
            if not account.recalled:
                account.add(used)

    def _report(self, limits: Limits, used: Used) -> None:
        cost, tokens = used.cost, used.tokens
        if not cost and not tokens:
            return
        add_to(self.by_category, limits.category or UNCATEGORIZED, cost, tokens)
        for tag in limits.tags:
            add_to(self.by_tag, tag, cost, tokens)
        for key, value in (limits.attribution or {}).items():
            track_by = self.workflow.limits.track_by
            if track_by is None or key in track_by:
                text = value if type(value) is str else compact(value)
                add_to(self.by_attribution.setdefault(key, {}), text, cost, tokens)

    def _alert(self, at: Frame, account: Account) -> None:
        """Emit the alerts whose share has been reached, once each."""
        alerts = account.limits.alerts
        name = "MaxCost" if "MaxCost" in account.most else "MaxTokens"
        while account.alerted < len(alerts):
            alert = alerts[account.alerted]
            if not account.reached(name, alert.percent):
                return
            account.alerted += 1
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
            "limit": name,
            "max": float(account.most[name]),
            "spent": float(account.spent[name]),
            "action": account.action,
        }
        at.note("BudgetExceeded", details)

    def report(self) -> dict[str, Json]:
        """Return what was spent on what, as far as budgets say more than the states do."""
        attributed = {key: totals(table) for key, table in self.by_attribution.items()}
        return {
            "currency": self.workflow.limits.currency,
            "reserved": {
                "cost": float(self.peak["MaxCost"]),
                "tokens": float(self.peak["MaxTokens"]),
            },
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
                "spent": {name: float(pause.account.spent[name]) for name in pause.account.most},
                "at": format_timestamp(at.now),
            },
        }
        if self.workflow.limits.notify is not None:
            body["notify"] = self.workflow.limits.notify
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
        self.show_limit()

    def show_limit(self) -> None:
        """Let expressions see what the workflow may spend."""
        spent, most = self.execution.usage, self.workflow.most.get("MaxCost")
        self.execution.usage = Usage(spent.cost, spent.tokens, most)

    # Keeping

    def written(self) -> Json:
        """Return all that a recovery needs as JSON."""
        tables = [self.by_category, self.by_tag, *self.by_attribution.values()]
        return {
            "workflow": self.workflow.written(),
            "visits": {key: each.written() for key, each in self.visits.items()} | self.kept,
            "questions": self.questions,
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
        self.by_attribution = {key: {} for key in written["attributions"]}
        tables = [self.by_category, self.by_tag, *self.by_attribution.values()]
        for table, found in zip(tables, written["tables"], strict=True):
            table.update({key: (Decimal(cost), tokens) for key, (cost, tokens) in found.items()})
        self.show_limit()


def _bounds(at: Frame, account: Account) -> Amounts:
    """Return what the state itself lets a call use."""
    if account.frame is not at:
        return {}
    return {name: max(ZERO, most - account.spent[name]) for name, most in account.most.items()}


def amounts(used: Used) -> Amounts:
    """Return what was used by the fields that limit it."""
    tokens = map(Decimal, (used.tokens, used.input, used.output))
    return dict(zip(LIMITS, (used.cost, *tokens), strict=True))


def _failure(account: Account, name: str, at: Frame) -> StateError | Exhausted:
    """Return what an excess ends in: the failure of this state, or of one around it."""
    state = account.limits.state or at.step.name
    error = StateError("States.BudgetExceeded", f"state '{state}': {_excess(account, name)}")
    if account.frame is None or account.frame is at:
        return error
    return Exhausted(account.frame, account.visit, error)


def _excess(account: Account, name: str) -> str:
    whose = f"of '{account.limits.state}'" if account.limits.state else "of the workflow"
    most, spent = account.most[name], account.spent[name]
    return f"{name} {whose} is {most:f}, and {spent:f} are spent"


def _unpriced(state: str, model: str | None) -> StateError:
    return StateError(
        "States.BudgetExceeded",
        f"state '{state}': no price is known for the model {model!r}, so what it costs cannot be "
        "held against MaxCost: give prices, or let the agent report _cost",
    )
