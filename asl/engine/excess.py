"""What it ends in that a budget is exceeded, or cannot be held (8.11)."""

from decimal import Decimal

from asl.core.errors import StateError
from asl.engine.accounts import Account
from asl.engine.execution import Used
from asl.engine.frame import Frame
from asl.states.errors import Exhausted

__all__ = ["doubt", "excess", "failure"]


def failure(account: Account, name: str, at: Frame) -> StateError | Exhausted:
    """Return what an excess ends in: the failure of this state, or of one around it."""
    state = account.limits.state or at.step.name
    error = StateError("States.BudgetExceeded", f"state '{state}': {excess(account, name)}")
    if account.frame is None or account.frame is at:
        return error
    return Exhausted(account.frame, account.visit, error)


def excess(account: Account, name: str) -> str:
    """Say which limit is reached, and what is spent."""
    whose = f"of '{account.limits.state}'" if account.limits.state else "of the workflow"
    most, spent = account.most[name], account.used(name)
    are = "may be" if account.doubtful else "are"
    return f"{account.label or name} {whose} is {_plain(most)}, and {_plain(spent)} {are} spent"


def _plain(amount: Decimal | int) -> str:
    return f"{Decimal(amount):f}"


def doubt(state: str, used: Used) -> StateError | None:
    """Return the failure of a call of which it is not known what it has used."""
    if used.fault is not None:
        return _unreported(state, used.fault)
    return _unpriced(state, used.model) if used.unpriced else None


def _unpriced(state: str, model: str | None) -> StateError:
    return StateError(
        "States.BudgetExceeded",
        f"state '{state}': no price is known for the model {model!r}, so what it costs cannot be "
        "held against MaxCost: give prices, or let the agent report _cost",
    )


def _unreported(state: str, fault: str) -> StateError:
    return StateError(
        "Agent.InvalidOutput",
        f"state '{state}': the agent reports {fault}, which is no usage, so nothing can be held "
        "against the budget: numbers from 0",
    )
