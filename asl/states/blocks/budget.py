"""Budget: what a workflow, and a visit of a state, may spend (Specification 8.11).

The document becomes plain data here. The ledger of an execution counts against it
(`asl.engine.ledger`), its host lets calls wait, pause and fail (`asl.hosts.meter`).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

from asl.core.diagnostics import Finding, Severity
from asl.core.errors import ExpressionFault, StateError
from asl.core.values import Json, compact, is_integer, is_number
from asl.expr.frame import Evaluate, Frame
from asl.expr.times import parse_duration
from asl.states.base import Compiler, Node
from asl.states.blocks.base import Block, given

__all__ = [
    "BUDGET",
    "LEVELS",
    "LIMITS",
    "Alert",
    "CompileLimits",
    "Fallback",
    "Limits",
    "amount",
    "compile_state",
    "compile_workflow",
]

LEVELS: Final = ("Task", "Debate", "Map", "Parallel")
"""The state types that have budgets of their own."""
LIMITS: Final = ("MaxCost", "MaxTokens", "MaxInputTokens", "MaxOutputTokens")
OWN: Final = (*LIMITS, "MaxCostPerHour", "MaxCostPerDay", "Pool")
"""The fields of a workflow's budget that limit anything."""
ACTIONS: Final = ("Fail", "PauseAndNotify", "UseFallback", "Continue", "Throttle")
PRIORITIES: Final = ("critical", "high", "normal", "low", "background")
_AMOUNT: Final = re.compile("[$\u00a2-\u00a5\u20a0-\u20cf]?([0-9]+(?:[.][0-9]+)?)")
DELAY: Final = 1.0
"""Seconds by which a throttled call is delayed, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """One entry of a cascade; it applies from a share of a limit on."""

    when: str
    of: str
    """`MaxCost` or `MaxTokens`; empty for always."""
    percent: int
    model: str | None = None
    agent: str | None = None
    action: str | None = None
    notify: Json = None


@dataclass(frozen=True, slots=True)
class Alert:
    """An event at a share of the limit, once."""

    percent: Decimal
    message: Evaluate | None
    details: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one level may spend: the workflow, or one visit of a state."""

    state: str
    """The name of the state, empty for the workflow."""
    most: Mapping[str, Decimal]
    """The limits by their fields; tokens are whole numbers."""
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


CompileLimits: TypeAlias = Callable[[Json, Frame], Limits]
"""`(raw input, frame) -> limits`; raises StateError for computed fields that do not fit."""


def amount(value: Json) -> Decimal | None:
    """Return an amount of money as it is written, None for what is none: `"$2.50"`, `"3"`, `4`."""
    if is_number(value):
        return Decimal(str(value)) if value >= 0 else None
    found = _AMOUNT.fullmatch(value) if type(value) is str else None
    return None if found is None else Decimal(found[1])


# --------------------------------------------------------------------------------------------
# Compiling


def compile_state(compiler: Compiler) -> CompileLimits:
    """Compile the `Budget` of a state."""
    effective, block = compiler.input(), compiler.within("Budget")
    most = _amounts(block)
    fields = given(block, ("OnExceed", "Priority", "Category", "Tags"))
    attribution = block.template("Attribution") or block.scalar("Attribution")

    def limits(raw: Json, frame: Frame) -> Limits:
        data = effective(raw, frame)
        found = fields(data, frame)
        category = found.get("Category")
        return Limits(
            compiler.name,
            most(data, frame),
            _one_of(found.get("OnExceed", "Fail"), ACTIONS, "OnExceed"),
            priority=_one_of(found.get("Priority", "normal"), PRIORITIES, "Priority"),
            category=None if category is None else _string(category),
            tags=tuple(map(_string, _listed(found.get("Tags", [])))),
            attribution=None if attribution is None else attribution(data, frame),
        )

    return limits


def compile_workflow(compiler: Compiler) -> CompileLimits:
    """Compile the `Budget` of a workflow; its expressions see the execution input."""
    block = compiler.within("Budget")
    most = _amounts(block)
    fields = given(block, ("OnExceed", "Currency", "ThrottleDelay", "Notify", "TrackBy"))
    fallbacks = _fallbacks(block)
    alerts = [_alert(block.within("Alerts", i)) for i in range(len(block.state.get("Alerts", ())))]
    alerts.sort(key=lambda alert: alert.percent)

    def limits(data: Json, frame: Frame) -> Limits:
        found = fields(data, frame)
        track_by = found.get("TrackBy")
        return Limits(
            "",
            most(data, frame),
            _one_of(found.get("OnExceed", "Fail"), ACTIONS, "OnExceed"),
            _string(found.get("Currency", "USD")),
            fallbacks(data, frame),
            tuple(alerts),
            _seconds(found["ThrottleDelay"]) if "ThrottleDelay" in found else DELAY,
            found.get("Notify"),
            None if track_by is None else tuple(map(_string, _listed(track_by))),
        )

    return limits


def _listed(value: Json) -> list[Json]:
    return value if type(value) is list else [value]


def _string(value: Json) -> str:
    return value if type(value) is str else compact(value)


def _amounts(block: Compiler) -> Callable[[Json, Frame], Mapping[str, Decimal]]:
    """Compile the limits that are there."""
    fields = given(block, LIMITS)
    return lambda data, frame: {
        field: (_money if field == "MaxCost" else _tokens)(value, field)
        for field, value in fields(data, frame).items()
    }


def _money(value: Json, field: str) -> Decimal:
    found = amount(value)
    if found is None:
        raise StateError("States.Runtime", f"Budget.{field} is no amount of money: {value!r}")
    return found


def _tokens(value: Json, field: str) -> Decimal:
    if not is_integer(value) or value < 0:
        raise StateError("States.Runtime", f"Budget.{field} is a whole number from 0: {value!r}")
    return Decimal(int(value))


def _one_of(value: Json, allowed: tuple[str, ...], field: str) -> str:
    if value not in allowed:
        raise StateError("States.Runtime", f"Budget.{field} is one of {', '.join(allowed)}")
    return str(value)


def _seconds(value: Json) -> float:
    try:
        return parse_duration(value)
    except ExpressionFault as fault:
        raise StateError("States.InvalidTTL", f"Budget.ThrottleDelay: {fault}") from None


def _fallbacks(block: Compiler) -> Callable[[Json, Frame], tuple[Fallback, ...]]:
    """Compile the entries, the highest threshold first; the order of the document breaks ties."""
    whole = block.within("Fallback")
    entries = [whole.within("Cascade", i) for i in range(len(whole.state.get("Cascade", ())))]
    fields = ("When", "UseModel", "Agent", "Action", "Notify")
    made = [given(entry, fields) for entry in (*entries, whole)]

    def fallbacks(data: Json, frame: Frame) -> tuple[Fallback, ...]:
        written = [entry(data, frame) for entry in made]
        found = [_fallback(each) for each in written if _USES & each.keys()]
        return tuple(sorted(found, key=lambda entry: -entry.percent))

    return fallbacks


_USES: Final = {"UseModel", "Agent", "Action"}
_WHEN: Final = re.compile("(Budget|Tokens)At([1-9][0-9]?|100)Percent")


def _fallback(written: Mapping[str, Json]) -> Fallback:
    when = written.get("When", "Always")
    form = _WHEN.fullmatch(when) if type(when) is str else None
    if form is None and when != "Always":
        raise StateError("States.Runtime", f"Budget.Fallback.When is no threshold: {when!r}")
    return Fallback(
        when,
        "" if form is None else {"Budget": "MaxCost", "Tokens": "MaxTokens"}[form[1]],
        0 if form is None else int(form[2]),
        written.get("UseModel"),
        written.get("Agent"),
        written.get("Action"),
        written.get("Notify"),
    )


def _alert(entry: Compiler) -> Alert:
    written = entry.state
    details = {
        name.lower(): written[name] for name in ("Notify", "Channel", "Priority") if name in written
    }
    return Alert(Decimal(str(written["At"]).removesuffix("%")), entry.text("Message"), details)


# --------------------------------------------------------------------------------------------
# Checking


def _check_workflow(budget: Mapping[str, Json]) -> Iterator[Finding]:
    """Yield what is wrong with the `Budget` of a workflow and no schema can say."""
    names = {field.removesuffix(".$") for field in budget}
    at = "/Budget"
    if "OnExceed" in names and names.isdisjoint(OWN):
        message = "'OnExceed' has no effect without a limit"
        yield Finding("V-BUD-06", message, f"{at}/OnExceed", "add MaxCost or MaxTokens")
    fallback = budget.get("Fallback")
    usable = type(fallback) is dict and not {"UseModel", "Agent", "Cascade"}.isdisjoint(fallback)
    if budget.get("OnExceed") == "UseFallback" and not usable:
        message = "'UseFallback' has no Fallback to use: calls fail once the limit is exceeded"
        yield Finding("V-BUD-06", message, f"{at}/OnExceed", "add Fallback with UseModel or Agent")
    if budget.get("OnExceed") == "Fail" and not usable:
        message = "calls of agents fail abruptly once the limit is exceeded"
        yield Finding(
            "V-BUD-07", message, f"{at}/OnExceed", "add a Fallback", severity=Severity.INFO
        )
    yield from _signs(budget, at)


def _check(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    """Yield what is wrong with the `Budget` of a state, beside that of its workflow."""
    budget = node.value["Budget"]
    names = {field.removesuffix(".$") for field in budget}
    if "OnExceed" in names and names.isdisjoint(LIMITS):
        message = "'OnExceed' has no effect without a limit"
        yield Finding(
            "V-BUD-06", message, node.at("Budget", "OnExceed"), "add MaxCost or MaxTokens"
        )
    for field in ("MaxCost", "MaxTokens"):
        own, whole = amount(budget.get(field)), amount(workflow.get(field))
        if own is not None and whole is not None and own > whole:
            message = f"{field!r} is above that of the workflow, {workflow[field]!r}"
            yield Finding("V-BUD-04", message, node.at("Budget", field), "lower it")
    yield from _signs(budget, node.at("Budget"), workflow)


def _signs(
    budget: Mapping[str, Json], pointer: str, workflow: Mapping[str, Json] | None = None
) -> Iterator[Finding]:
    """Find amounts with a sign other than the dollar's, where no Currency is named."""
    if "Currency" in (budget if workflow is None else workflow):
        return
    for field, value in budget.items():
        foreign = type(value) is str and value[:1] not in "$0123456789"
        if field.startswith("Max") and foreign and amount(value) is not None:
            message = f"{value!r} has the sign of another currency"
            yield Finding("V-BUD-02", message, f"{pointer}/{field}", "add Currency")


BUDGET = Block(
    "Budget",
    _check,
    _check_workflow,
    lacks=(
        "MaxCostPerHour",
        "MaxCostPerDay",
        "Pool",
        "MaxFromPool",
        "ReleaseOnComplete",
        "ResetPeriod",
        "Fallback.$",
        "Alerts.$",
    ),
)
