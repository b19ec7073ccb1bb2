"""Changes of a shared budget as data (`asl.engine.pool_entries`), which executions send.

A change has the sections of the budget. Of `spent` it has the differences of amounts, so that it
applies to whatever others have spent meanwhile; of other sections the new values by key. None
removes a key.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final, TypeAlias

from asl.core.values import Json

__all__ = ["Change", "apply", "compare", "copy_budget", "invert", "merge"]

Change: TypeAlias = dict[str, dict[str, Json]]
AMOUNTS: Final = "spent"
"""The section whose values are amounts."""


def copy_budget(budget: Json) -> Json:
    """Return a budget whose sections can be changed."""
    return {section: dict(values) for section, values in budget.items()}


def compare(before: Json, after: Json) -> Change:
    """Return the change from a budget to another one."""
    change: Change = {}
    for section in dict.fromkeys([*before, *after]):
        old, new = before.get(section, {}), after.get(section, {})
        keys = [key for key in dict.fromkeys([*old, *new]) if old.get(key) != new.get(key)]
        if keys or section not in before:
            subtract = _subtract if section == AMOUNTS else _replace
            change[section] = {key: subtract(old.get(key), new.get(key)) for key in keys}
    return change


def apply(budget: Json, change: Change) -> Json:
    """Return a budget with a change."""
    found = copy_budget(budget)
    for section, values in change.items():
        _combine(found.setdefault(section, {}), values, _add if section == AMOUNTS else _replace)
    return found


def merge(first: Change, second: Change) -> Change:
    """Return the change that two changes make together."""
    found: Change = {section: dict(values) for section, values in first.items()}
    for section, values in second.items():
        own = found.setdefault(section, {})
        for key, value in values.items():
            is_sum = section == AMOUNTS and value is not None and own.get(key) is not None
            own[key] = _add(own[key], value) if is_sum else value
    return found


def invert(change: Change, budget: Json) -> Change:
    """Return the change that undoes a change of a budget, also after changes of others."""
    found: Change = {}
    for section, values in change.items():
        old = budget.get(section, {})
        if section == AMOUNTS:
            found[section] = {
                key: old.get(key) if value is None else str(-Decimal(value))
                for key, value in values.items()
            }
        else:
            found[section] = {key: old.get(key) for key in values}
    return found


def _combine(
    own: dict[str, Json], values: dict[str, Json], combine: Callable[[Json, Json], Json]
) -> None:
    for key, value in values.items():
        new = None if value is None else combine(own.get(key), value)
        if new is None:
            own.pop(key, None)
        else:
            own[key] = new


def _replace(old: Json, new: Json) -> Json:
    return new


def _subtract(old: Json, new: Json) -> Json:
    """Return the difference between amounts, None for one that is removed."""
    return None if new is None else str(Decimal(new) - Decimal(old or 0))


def _add(old: Json, difference: Json) -> Json:
    """Return a changed amount, None for nothing."""
    total = Decimal(old or 0) + Decimal(difference)
    return str(total) if total else None
