"""The stored form of shared budgets (`asl.engine.pools`).

A shared budget is `{"spent": {PART: AMOUNT}, "open": {ENTRY: [...]}}`; amounts are decimal texts.
The parts of `spent` are the ends of parts of its time window, or "0" without one. An entry is

* a call, `EXECUTION:...`: reserved amount, time of the reservation, known usage, length of the
  window, whether its size is proven, whether it waits, and the part of a pool on which it draws;
* the part of a pool that a whole execution holds, `EXECUTION`: reserved amount, time, spending of
  the execution before, whether the rest is released, length of the window, drawn amount.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final

from asl.core.values import Json
from asl.engine.usage import ZERO

__all__ = [
    "charge",
    "draw",
    "drawn_amount",
    "is_part",
    "part_of",
    "release_entries",
    "remove_calls",
    "remove_execution",
    "settle_calls",
    "undrawn",
]

PARTS: Final = 60
"""Number of parts of a time window: an amount counts until its whole part is over."""


def is_part(entry: list[Json]) -> bool:
    """Return whether an entry is the part of a whole execution, not a call."""
    return type(entry[3]) is bool


def part_of(call: list[Json]) -> str | None:
    """Return the part on which a call draws."""
    part: str | None = call[6]
    return part


def drawn_amount(part: list[Json]) -> Decimal:
    """Return the amount that calls have drawn on a part."""
    return Decimal(part[5])


def undrawn(part: list[Json]) -> Decimal:
    """Return the amount of a part that no call has drawn."""
    return max(Decimal(part[0]) - drawn_amount(part), ZERO)


def draw(entries: dict[str, list[Json]], part: str | None, amount: Decimal | int) -> None:
    """Draw an amount from a part, if it still exists."""
    if part is not None and part in entries:
        found = entries[part]
        entries[part] = [*found[:5], str(drawn_amount(found) + amount)]


def charge(spent: dict[str, str], amount: Decimal | int, length: float | None, now: float) -> None:
    """Add an amount to the spending of a shared budget.

    Args:
        spent: The spending by parts of the time window.
        amount: The amount.
        length: Length of the window in seconds, None without one.
        now: Time at which the amount was spent, in epoch seconds.
    """
    if not amount:
        return
    if length is None:
        part = "0"
    else:
        size = length / PARTS
        part = repr((now // size + 1) * size)
    spent[part] = str(Decimal(spent.get(part, "0")) + amount)


def settle_calls(
    spent: dict[str, str], entries: dict[str, list[Json]], execution: str, now: float | None
) -> None:
    """Replace the entries of an execution's calls by their known usage.

    It counts from *now* on, or from the time of each call if that is None.
    """
    for name in [each for each in entries if each.startswith(f"{execution}:")]:
        call = entries.pop(name)
        _, since, known, length, *_ = call
        charge(spent, Decimal(known), length, since if now is None else now)
        draw(entries, part_of(call), Decimal(known))


def remove_execution(budget: Json, execution: str, spent: Decimal, now: float) -> Json:
    """Return a shared budget without the reservations of an execution that has ended.

    Args:
        budget: The shared budget.
        execution: Id of the execution.
        spent: Its whole spending. It replaces the reservation of the execution, which counts in
            full without release; known usage replaces the reservations of its calls.
        now: Current time in epoch seconds.
    """
    total, entries = _copied(budget)
    settle_calls(total, entries, execution, now)
    part = entries.pop(execution, None)
    if part is not None:
        amount, _, base, release, length, *_ = part
        used = spent - Decimal(base)
        used = (used if release else max(used, Decimal(amount))) - drawn_amount(part)
        charge(total, max(used, ZERO), length, now)
    for name in [each for each in entries if each.startswith(f"{execution} ")]:
        del entries[name]  # of tools (`rates`)
    return _replaced(budget, total, entries)


def remove_calls(budget: Json, execution: str) -> Json:
    """Return a shared budget without the calls of an execution that no process runs.

    The known usage of each call counts as spent. The reservation of the execution itself remains.

    Args:
        budget: The shared budget.
        execution: Id of the execution.
    """
    total, entries = _copied(budget)
    settle_calls(total, entries, execution, None)
    return _replaced(budget, total, entries)


def release_entries(budget: Json, names: Iterable[str], now: float) -> Json:
    """Return a shared budget without entries of executions that have ended unobserved.

    The known usage of each call counts as spent. The part of an execution counts as far as its
    calls have drawn on it, and in full without release.

    Args:
        budget: The shared budget.
        names: Names of the entries.
        now: Current time in epoch seconds.
    """
    total, entries = _copied(budget)
    found = {name: entries.pop(name) for name in names if name in entries}
    parts_last = sorted(found, key=lambda name: is_part(found[name])) if "spent" in budget else []
    for name in parts_last:
        entry = found[name]
        if is_part(entry):
            _, _, _, release, length, *_ = entry
            charge(total, ZERO if release else undrawn(entry), length, now)
        else:
            _, since, known, length, *_ = entry
            charge(total, Decimal(known), length, since)
            draw(entries, part_of(entry), Decimal(known))
            draw(found, part_of(entry), Decimal(known))
    return _replaced(budget, total, entries)


def _copied(budget: Mapping[str, Json]) -> tuple[dict[str, str], dict[str, list[Json]]]:
    return dict(budget.get("spent", {})), dict(budget["open"])


def _replaced(budget: Json, spent: Json, entries: Json) -> Json:
    """Return a shared budget with other spending and entries; rate limits have no spending."""
    return {**budget, "open": entries, **({"spent": spent} if "spent" in budget else {})}
