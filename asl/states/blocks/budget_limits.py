"""The limits of budgets as values, and the amounts of money, tokens and calls in them (8.11)."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Final, NamedTuple, TypeAlias

from asl.core.errors import StateError
from asl.core.lazy import lazy_pattern
from asl.core.values import Json, excerpt, is_integer
from asl.expr.frame import Evaluate, ExpressionFrame
from asl.states.numbers import NO_BOUND, parse_amount

__all__ = [
    "ALL_CALLS",
    "CALLS_OF",
    "DELAY",
    "LIMITS",
    "TOOL_CALLS",
    "WINDOWS",
    "Alert",
    "Amounts",
    "BudgetLimits",
    "CompileLimits",
    "Fallback",
    "Pool",
    "Window",
    "counts_calls",
    "fixed_limits",
    "has_limits",
    "parse_limits",
    "parse_money",
    "parse_threshold",
    "parse_whole_number",
]

LIMITS: Final = ("MaxCost", "MaxTokens", "MaxInputTokens", "MaxOutputTokens")
ALL_CALLS: Final = "MaxCalls"
"""The limit of all calls of agents."""
CALLS_OF: Final = "MaxCalls."
"""The beginning of a limit of the calls of one agent or tool; its name follows."""
TOOL_CALLS: Final = "Tools.MaxCalls."
"""The beginning of a limit in a Tools block; a pattern or category of tools follows."""
WINDOWS: Final[Mapping[str, float]] = {"MaxCostPerHour": 3600.0, "MaxCostPerDay": 86400.0}
"""The limits of all executions of a workflow together, and within how many seconds they hold."""
Amounts: TypeAlias = Mapping[str, Decimal | int]
"""Amounts by the fields that limit them: money and whole numbers of tokens."""
DELAY: Final = 1.0
"""Default delay of a throttled call in seconds."""


class Fallback(NamedTuple):
    """One entry of a cascade; it applies from a share of a limit on."""

    when: str
    of: str
    """`MaxCost` or `MaxTokens`; empty for always."""
    percent: int
    model: str | None = None
    agent: str | None = None
    action: str | None = None
    notify: Json = None


class Alert(NamedTuple):
    """An event at a share of the limit, once."""

    percent: Decimal
    message: Evaluate | None
    details: Mapping[str, Json]


class Window(NamedTuple):
    """What all executions of a workflow may spend together within some time."""

    field: str
    maximum: Decimal
    length: float
    """In seconds."""


class Pool(NamedTuple):
    """The money from which several executions spend."""

    name: str
    maximum: Decimal | None
    """What this execution takes of it at its beginning; None: what it spends, when it does."""
    release: bool
    """Whether what is left of that goes back at the end."""


class BudgetLimits(NamedTuple):
    """What one level may spend: the workflow, or one visit of a state."""

    state: str
    """The name of the state, empty for the workflow."""
    amounts: Amounts
    """The limits by their fields."""
    on_exceed: str = "Fail"
    currency: str = "USD"
    fallbacks: tuple[Fallback, ...] = ()
    alerts: tuple[Alert, ...] = ()
    delay: float = DELAY
    notify: Json = None
    track_by: tuple[str, ...] | None = None
    priority: str = "normal"
    category: str | None = None
    tags: tuple[str, ...] = ()
    attribution: Json = None
    windows: tuple[Window, ...] = ()
    pool: Pool | None = None
    included: bool = False
    """Whether it is the budget of a document that the state includes."""
    reset: float | None = None
    """Seconds after which the counts start again, None for never."""


CompileLimits: TypeAlias = Callable[[Json, ExpressionFrame], BudgetLimits]
"""`(raw input, frame) -> limits`; raises StateError for computed fields that do not fit."""


def fixed_limits(block: Mapping[str, Json]) -> Amounts:
    """Return the limits of a constant Budget block that has nothing else.

    Raises:
        StateError: An amount is none.
    """
    return {name: most for field in block for name, most in parse_limits(field, block[field])}


def counts_calls(limit: str) -> bool:
    """Return whether a limit counts calls, not money or tokens."""
    return limit.startswith((ALL_CALLS, TOOL_CALLS))


def has_limits(part: Mapping[str, Json], tools: str) -> bool:
    """Return whether a state or document limits anything; its tool policy is the field *tools*."""
    policy = part.get(tools)
    counted = type(policy) is dict and not policy.keys().isdisjoint((ALL_CALLS, f"{ALL_CALLS}.$"))
    return "Budget" in part or counted


def parse_limits(field: str, value: Json) -> Iterator[tuple[str, Decimal | int]]:
    """Yield the limits that a field sets, with their names; raises StateError for wrong values."""
    if "Cost" in field:
        yield field, parse_money(value, field)
    elif field == ALL_CALLS and type(value) is dict:
        for name, most in value.items():
            yield f"{CALLS_OF}{name}", parse_whole_number(most, f"{field}.{name}")
    else:
        yield field, parse_whole_number(value, field)


def parse_money(value: Json, field: str) -> Decimal:
    """Return an amount of money; raises StateError for any other value."""
    found = parse_amount(value)
    if found is None:
        cause = f"Budget.{field} is no amount of money: {excerpt(value, 200)}"
        raise StateError("States.Runtime", cause)
    return found


def parse_whole_number(value: Json, field: str, block: str = "Budget.") -> int:
    """Return a whole number from 0, at most `NO_BOUND`; raises StateError for any other value."""
    if not is_integer(value) or value < 0:
        cause = f"{block}{field} must be a whole number from 0, not {excerpt(value, 200)}"
        raise StateError("States.Runtime", cause)
    return min(int(value), NO_BOUND)


_WHEN: Final = lazy_pattern("(Budget|Tokens)At([1-9][0-9]?|100)Percent")
_SHARED: Final = {"Budget": "MaxCost", "Tokens": "MaxTokens"}


def parse_threshold(when: Json) -> tuple[str, int] | None:
    """Return the limit and the percentage of a threshold, as `BudgetAt80Percent`.

    Returns:
        None for a value that is no threshold.
    """
    form = _WHEN.fullmatch(when) if type(when) is str else None
    return None if form is None else (_SHARED[form[1]], int(form[2]))
