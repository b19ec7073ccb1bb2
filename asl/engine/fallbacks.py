"""What comes of the limits that are reached for the next call of an agent (8.11)."""

from asl.core.errors import StateError
from asl.engine.excess import excess, failure, tell_excess
from asl.engine.frame import Frame
from asl.engine.limits import Account
from asl.engine.reservations import Pause, Reservation

__all__ = ["heed"]


def heed(at: Frame, call: Reservation, workflow: Account) -> Pause | None:
    """Apply to a call what comes of what was spent.

    Raises StateError, or Exhausted where it is a state around that fails.
    """
    spare = None
    for account in call.accounts:
        name = account.reached(call)
        if name is not None:
            action = account.action
            if action != "Continue" or account.doubtful:
                tell_excess(at, account, name)
            if action == "Fail":
                raise failure(account, name, at)
            if action == "PauseAndNotify":
                return Pause(account, excess(account, name))
            if action == "Throttle":
                call.delay += _document(call, account, workflow).limits.delay
            elif action == "UseFallback":
                spare = spare or (account, name)
    if spare is not None or any(each.limits.fallbacks for each in call.accounts):
        return _fall_back(at, call, workflow, spare)
    return None


def _document(call: Reservation, account: Account, workflow: Account) -> Account:
    """Return the account of the document in which the limits of another one are written."""
    found = workflow
    for each in call.accounts:
        if each.limits.included:
            found = each
        if each is account:
            break
    return found


def _fall_back(
    at: Frame, call: Reservation, workflow: Account, spare: tuple[Account, str] | None
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
    entries.sort(key=lambda each: -each[0].percent)  # the innermost of those that are equal
    for entry, account in entries:
        reached = not entry.of or account.has_reached(entry.of, entry.percent)
        if reached and (spare is None or entry.model or entry.agent):
            break
    else:
        if spare is not None:
            raise failure(*spare, at)
        return None
    call.applied = entry
    call.model, call.instead = entry.model, entry.agent
    if entry.action == "PauseAndNotify":
        return Pause(account, f"{entry.when} is reached")
    if entry.action == "Fail":
        raise StateError(
            "States.BudgetExceeded", f"state '{at.step.name}': {entry.when} is reached"
        )
    if entry.action == "Throttle":
        call.delay += account.limits.delay
    call.reduced = entry.action == "ReduceQuality"
    return None
