"""What comes of the limits that are reached for the next call of an agent (8.11)."""

from asl.core.errors import StateError
from asl.engine.accounts import Account
from asl.engine.admission import Pause, Terms
from asl.engine.excess import excess, failure, tell_excess
from asl.engine.frame import Frame

__all__ = ["heed"]


def heed(at: Frame, terms: Terms, workflow: Account) -> Pause | None:
    """Apply to a call what comes of what was spent.

    Raises StateError, or Exhausted where it is a state around that fails.
    """
    spare = None
    for account in terms.accounts:
        name = account.gone
        if name is not None:
            if account.doubtful:
                tell_excess(at, account, name)
            action = account.action
            if action == "Fail":
                raise failure(account, name, at)
            if action == "PauseAndNotify":
                return Pause(account, excess(account, name))
            if action == "Throttle":
                terms.delay += _document(terms, account, workflow).limits.delay
            elif action == "UseFallback":
                spare = spare or (account, name)
    if spare is not None or any(each.limits.fallbacks for each in terms.accounts):
        return _fall_back(at, terms, workflow, spare)
    return None


def _document(terms: Terms, account: Account, workflow: Account) -> Account:
    """Return the account of the document in which the limits of another one are written."""
    found = workflow
    for each in terms.accounts:
        if each.limits.included:
            found = each
        if each is account:
            break
    return found


def _fall_back(
    at: Frame, terms: Terms, workflow: Account, spare: tuple[Account, str] | None
) -> Pause | None:
    """Apply the fallback with the highest threshold that has been reached."""
    if terms.accounts[-1].limits.priority == "critical":
        return None
    entries = [
        (entry, account)
        for account in reversed(terms.accounts)
        if account is workflow or account.limits.included
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
