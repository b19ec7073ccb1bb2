"""Budgets within a call on a worker: its tools spend from copies of the accounts around the call.

The worker refuses what a limit does not allow, and reports what was spent; the workflow counts it
in its own accounts, which then record events and errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, cast

from asl.core.values import Json
from asl.effects.agent_caller import AgentCaller
from asl.effects.budget_gate import LedgerGate
from asl.effects.local import LocalEffects
from asl.engine.frame import Frame
from asl.engine.ledger import Ledger
from asl.engine.limits import Account, Spender
from asl.engine.reservations import Reservation
from asl.engine.usage import (
    UNKNOWN,
    CallUsage,
    read_amounts,
    write_amounts,
)
from asl.states.blocks.budget_limits import BudgetLimits

__all__ = ["WORKFLOW_EVENTS", "count_begun", "count_used", "open_ledger", "write_ledger"]

WORKFLOW_EVENTS: Final = frozenset({"BudgetExceeded", "BudgetAlert", "UsageWarning"})
"""Events of budgets, which the workflow records itself."""


# In the workflow


def write_ledger(frame: Frame) -> Json:
    """Return the accounts around a call and the usage of earlier calls; None without a budget."""
    ledger = frame.execution.ledger
    if ledger is None:
        return None
    accounts = [_write_account(each, frame) for each in ledger.accounts(frame)]
    return [accounts, ledger.past_usage.to_json()]


def _write_account(account: Account, frame: Frame) -> Json:
    owner = "inner" if account.frame is frame else "outer" if account.frame is None else "around"
    names = account.limit_amounts
    return {
        "at": owner,
        "state": account.limits.state,
        "label": account.label,
        "owner": account.owner,
        "action": account.action,
        "limits": write_amounts(names),
        "spent": write_amounts({name: account.spending_of(name) for name in names}),
        "assumed": account.has_assumed,
    }


def count_begun(frame: Frame, written: Json) -> None:
    """Count the start of a call within a call, for limits on numbers of calls."""
    ledger = _ledger_of(frame)
    call = _reservation(ledger, frame, written)
    ledger.count_admitted(call)
    own = call.accounts[-1]
    if own.call_limits and own.frame is frame:
        counts = {name: count for name in own.call_limits if (count := call.count(name))}
        _caller(frame).persistence.calls.record_usage(frame, counts)


def count_used(frame: Frame, written: Json, used: Json, failed: bool) -> None:
    """Count the usage of a call within a call.

    Raises:
        StateError: A limit is exceeded.
        BudgetOverrun: A limit of an enclosing state or the workflow is exceeded.
    """
    ledger = _ledger_of(frame)
    call = _reservation(ledger, frame, written)
    call.own, call.known = known, _ = ledger.past_usage.expect(call.key, UNKNOWN)
    call.shares = [
        {name: known[name] for name in each.limit_amounts if name in known}
        for each in call.accounts
    ]
    call.is_reserved = True  # so far by the worker
    cost, *others = used
    call.used = CallUsage(Decimal(cost), *others)
    try:
        ledger.settle(call, frame.step.name, failed)
    finally:
        calls = _caller(frame).persistence.calls
        calls.record_usage(frame, call.counted, bool(call.assumed))


def _ledger_of(frame: Frame) -> Ledger:
    ledger = frame.execution.ledger
    assert ledger is not None  # its accounts travelled with the call
    return ledger


def _caller(frame: Frame) -> AgentCaller:
    return cast("LocalEffects", frame.effects).caller


def _reservation(ledger: Ledger, frame: Frame, written: Json) -> Reservation:
    agent, tool, key, names, categories = written
    call = Reservation(frame, agent, ledger.accounts(frame), None, tool)
    call.key, call.names, call.categories = key, tuple(names), categories
    return call


# In the worker


class _CallLedger(Ledger):
    """The accounts around a call, and its tool calls."""

    own: list[Account]
    reports: list[Json]

    def accounts(self, frame: Spender) -> list[Account]:
        """Return the accounts around the call."""
        return self.own

    def count_admitted(self, call: Reservation) -> None:
        """Count an admitted call, and report it."""
        super().count_admitted(call)
        self.reports.append(["begun", _write_reservation(call)])

    def settle(self, call: Reservation, state: str, failed: bool = False) -> None:
        """Count the usage of a call, and report it."""
        used = [str(call.used.cost), *call.used[1:]]
        self.reports.append(["used", _write_reservation(call), used, failed])
        super().settle(call, state, failed)


def _write_reservation(call: Reservation) -> Json:
    return [call.agent, call.tool, call.key, [*call.names], sorted(call.categories)]


def open_ledger(
    frame: Frame, around: Frame, reports: list[Json], agent: str, written: Json
) -> None:
    """Give the execution of a call a ledger, with a reservation of the call.

    Args:
        frame: The machine of the call.
        around: Another machine, for the accounts of enclosing states.
        reports: Receives what the calls within the call spend.
        agent: Name of the agent.
        written: The accounts and the usage of earlier calls.
    """
    accounts, past = written
    ledger = frame.execution.ledger = _CallLedger(frame.execution, BudgetLimits("", {}))
    ledger.reports = reports
    frames = {"inner": frame, "outer": None, "around": around}
    ledger.own = [_read_account(each, frames[each["at"]]) for each in accounts]
    ledger.past_usage.restore(past)
    call = Reservation(frame, agent, ledger.own)
    call.own, call.known = ledger.past_usage.expect(call.key, UNKNOWN)
    own = call.accounts[-1]
    if own.frame is frame:
        call.expect(own)
    call.reserved = [account.reserve(call, frame.now) or {} for account in ledger.own]
    ledger.running[id(frame)] = call
    effects = cast("LocalEffects", frame.effects)
    effects.caller.budget_gate = LedgerGate(effects.caller, ledger, effects.decide)


def _read_account(written: Mapping[str, Any], at: Frame | None) -> Account:
    limits = BudgetLimits(
        written["state"], read_amounts(written["limits"]), on_exceed=written["action"]
    )
    account = Account(limits, at)
    account.label, account.owner = written["label"], written["owner"]
    account.spent = {**account.spent, **read_amounts(written["spent"])}
    account.is_unused, account.has_assumed = False, written["assumed"]
    account.watch()
    return account
