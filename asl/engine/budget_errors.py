"""Errors and events of exceeded budgets, and of calls whose usage is unknown (8.11)."""

from decimal import Decimal
from typing import Any

from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine.limits import Account, Spender
from asl.engine.usage import CallUsage, reported_amount
from asl.states.errors import BudgetOverrun

__all__ = [
    "emit_alerts",
    "excess_error",
    "excess_message",
    "record_excess",
    "unknown_usage_error",
]


def excess_error(account: Account, name: str, frame: Spender) -> StateError | BudgetOverrun:
    """Return the error for an exceeded limit: it fails this state, or one around it."""
    state = account.limits.state or frame.step.name
    error = StateError("States.BudgetExceeded", f"state '{state}': {excess_message(account, name)}")
    if account.frame is None or account.frame is frame:
        return error
    return BudgetOverrun(account.frame, account.visit, error)


def excess_message(account: Account, name: str) -> str:
    """Return the message for a limit that is reached: its name and the spending."""
    state = account.limits.state
    whose = f"of {account.owner or (repr(state) if state else 'the workflow')}"
    most, spent = account.limit_amounts[name], account.spending_of(name)
    are = "may be" if account.has_assumed else "are"
    return f"{account.label or name} {whose} is {_plain(most)}, and {_plain(spent)} {are} spent"


def _plain(amount: Decimal | int) -> str:
    return f"{Decimal(amount):f}"


def unknown_usage_error(state: str, used: CallUsage) -> StateError | None:
    """Return the error of a call whose usage is unknown, None if it is known."""
    if used.fault is not None:
        return _unreported(state, used.fault)
    return _unpriced(state, used.model) if used.unpriced else None


def _unpriced(state: str, model: str | None) -> StateError:
    missing = (
        "the agent reports tokens without a model"
        if model is None
        else f"no price is known for the model {model!r}"
    )
    return StateError(
        "States.BudgetExceeded",
        f"state '{state}': {missing}, so what it costs cannot be held against MaxCost: give "
        "prices, or let the agent report _cost",
    )


def _unreported(state: str, fault: str) -> StateError:
    return StateError(
        "Agent.InvalidOutput",
        f"state '{state}': the agent reports {fault}, which is not a usage, so nothing can be held "
        "against the budget: _tokens, _cost, and input and output of _usage are numbers from 0",
    )


def record_excess(frame: Spender, account: Account, name: str) -> None:
    """Record in the history, once, that a limit is exceeded."""
    if account.excess_recorded:
        return
    account.excess_recorded = True
    details: dict[str, Json] = {
        "level": account.limits.state or "workflow",
        "limit": account.label or name,
        "max": reported_amount(name, account.limit_amounts[name]),
        "spent": reported_amount(name, account.spending_of(name)),
        "action": account.action,
    }
    frame.note("BudgetExceeded", details)


def emit_alerts(frame: Spender, account: Account) -> None:
    """Emit the alerts whose share of the limit is reached, once each."""
    alerts, name = account.limits.alerts, account.alert_limit
    while account.alerts_emitted < len(alerts):
        found = alerts[account.alerts_emitted]
        if not account.has_reached(name, found.percent):
            return
        account.alerts_emitted += 1
        account.watch()
        details = {
            "at": float(found.percent),
            "limit": name,
            "max": reported_amount(name, account.limit_amounts[name]),
            "spent": reported_amount(name, account.spent[name]),
            **found.details,
        }
        if found.message is not None:
            details["message"] = _message(frame, found.message)
        frame.note("BudgetAlert", details)


def _message(frame: Spender, message: Any) -> Json:
    try:
        return message(frame.execution.input, frame)
    except StateError as error:  # an alert never fails the state that it reports
        return f"({error})"
