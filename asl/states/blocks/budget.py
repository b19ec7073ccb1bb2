"""Budget: what a workflow, and a visit of a state, may spend (Specification 8.11).

The document becomes plain data here. The ledger of an execution counts against it
(`asl.engine.ledger`), its host lets calls wait, pause and fail (`asl.effects.meter`).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from asl.core.diagnostics import Finding, Severity
from asl.core.errors import ExpressionFault, StateError
from asl.core.values import Json, compact, excerpt, is_integer, is_number
from asl.expr.frame import Evaluate, Frame
from asl.expr.times import parse_duration
from asl.states.base import Compiler, Node
from asl.states.blocks.base import Block, given
from asl.states.numbers import AMOUNT, NO_BOUND, amount

__all__ = [
    "ALL_CALLS",
    "BUDGET",
    "CALLS_OF",
    "LIMITS",
    "TOOL_CALLS",
    "Alert",
    "Amounts",
    "CompileLimits",
    "Fallback",
    "Limits",
    "Pool",
    "Window",
    "ceiling_of",
    "compile_state",
    "compile_workflow",
    "counts_calls",
    "has_limits",
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
OWN: Final = (*LIMITS, ALL_CALLS, *WINDOWS, "Pool")
"""The fields of a workflow's budget that limit anything."""
PERIODS: Final[Mapping[str, float]] = {
    "hourly": 3600.0,
    "daily": 86400.0,
    "weekly": 604800.0,
    "monthly": 2592000.0,
}
"""The words for a ResetPeriod, in seconds; a month has thirty days."""
ACTIONS: Final = ("Fail", "PauseAndNotify", "UseFallback", "Continue", "Throttle")
CASCADED: Final = ("PauseAndNotify", "Fail", "Throttle", "Continue", "ReduceQuality")
PRIORITIES: Final = ("critical", "high", "normal", "low", "background")
Amounts: TypeAlias = Mapping[str, Decimal | int]
"""Amounts by the fields that limit them: money and whole numbers of tokens."""
DELAY: Final = 1.0
"""Seconds by which a throttled call is delayed, where nothing else is said."""


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
    most: Decimal
    length: float
    """In seconds."""


class Pool(NamedTuple):
    """The money from which several executions spend."""

    name: str
    most: Decimal | None
    """What this execution takes of it at its beginning; None: what it spends, when it does."""
    release: bool
    """Whether what is left of that goes back at the end."""


class Limits(NamedTuple):
    """What one level may spend: the workflow, or one visit of a state."""

    state: str
    """The name of the state, empty for the workflow."""
    most: Amounts
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


CompileLimits: TypeAlias = Callable[[Json, Frame], Limits]
"""`(raw input, frame) -> limits`; raises StateError for computed fields that do not fit."""


def ceiling_of(block: Mapping[str, Json]) -> Amounts:
    """Return the limits of a constant Budget block that has nothing else.

    Raises:
        StateError: An amount is none.
    """
    return {name: most for field in block for name, most in _limits(field, block[field])}


def counts_calls(limit: str) -> bool:
    """Return whether a limit counts calls, not money or tokens."""
    return limit.startswith((ALL_CALLS, TOOL_CALLS))


def has_limits(part: Mapping[str, Json], tools: str) -> bool:
    """Return whether a state or document limits anything; its tool policy is the field *tools*."""
    policy = part.get(tools)
    counted = type(policy) is dict and not policy.keys().isdisjoint((ALL_CALLS, f"{ALL_CALLS}.$"))
    return "Budget" in part or counted


# --------------------------------------------------------------------------------------------
# Compiling


def compile_state(compiler: Compiler) -> CompileLimits:
    """Compile the `Budget` of a state, with the `MaxCalls` of its `Tools`."""
    effective, block = compiler.input(), compiler.within("Budget")
    most, tools = _amounts(block), _tool_calls(compiler.within("Tools"))
    fields = _present(block, ("OnExceed", "Priority", "Category", "Tags"))
    attribution = block.template("Attribution") or block.scalar("Attribution")

    def limits_of(data: Json, frame: Any) -> Limits:
        found = fields(data, frame)
        category = found.get("Category")
        return Limits(
            compiler.name,
            {**most(data, frame), **tools(data, frame)},
            _one_of(found.get("OnExceed", "Fail"), ACTIONS, "OnExceed"),
            priority=_one_of(found.get("Priority", "normal"), PRIORITIES, "Priority"),
            category=None if category is None else _string(category),
            tags=tuple(map(_string, _listed(found.get("Tags", [])))),
            attribution=None if attribution is None else _members(attribution(data, frame)),
        )

    written_calls = compiler.within("Tools").state.get(ALL_CALLS)
    computed = f"{ALL_CALLS}.$" in compiler.within("Tools").state
    if computed or _is_computed(written_calls) or _is_computed(block.state):
        return lambda raw, frame: limits_of(effective(raw, frame), frame)
    written = cache(lambda: limits_of(None, None))
    return lambda raw, frame: written()


def _is_computed(value: Json) -> bool:
    """Whether something in a block has its value only when the state runs."""
    if type(value) is dict:
        return any(key.endswith(".$") or _is_computed(each) for key, each in value.items())
    if type(value) is list:
        return any(map(_is_computed, value))
    return type(value) is str and value.startswith("{%")


def compile_workflow(compiler: Compiler) -> CompileLimits:
    """Compile the `Budget` of a workflow, with the `MaxCalls` of its `DefaultTools`.

    Their expressions see the execution input.
    """
    block, tools = compiler.within("Budget"), _tool_calls(compiler.within("DefaultTools"))
    most, windows = _amounts(block), _amounts(block, tuple(WINDOWS))
    names = ("OnExceed", "Currency", "ThrottleDelay", "Notify", "TrackBy", "ResetPeriod")
    fields, pool = _present(block, names), _pool(block)
    fallbacks, alerts = _fallbacks(block), _alerts(block)

    def limits(data: Json, frame: Frame) -> Limits:
        found = fields(data, frame)
        track_by, reset = found.get("TrackBy"), found.get("ResetPeriod")
        return Limits(
            "",
            {**most(data, frame), **tools(data, frame)},
            _one_of(found.get("OnExceed", "Fail"), ACTIONS, "OnExceed"),
            _string(found.get("Currency", "USD")),
            fallbacks(data, frame),
            alerts(data, frame),
            _seconds(found.get("ThrottleDelay", DELAY), "ThrottleDelay"),
            found.get("Notify"),
            None if track_by is None else tuple(map(_string, _listed(track_by))),
            windows=tuple(
                Window(field, Decimal(each), WINDOWS[field])
                for field, each in windows(data, frame).items()
            ),
            pool=pool(data, frame),
            reset=None if reset is None else _period(reset),
        )

    return limits


def _listed(value: Json) -> list[Json]:
    return value if type(value) is list else [value]


def _string(value: Json) -> str:
    return value if type(value) is str else compact(value)


def _present(block: Compiler, names: tuple[str, ...]) -> Callable[[Json, Any], dict[str, Json]]:
    """Compile fields of which one that is computed to null is as good as absent."""
    fields = given(block, names)
    return lambda data, frame: {
        field: value for field, value in fields(data, frame).items() if value is not None
    }


def _amounts(
    block: Compiler, names: tuple[str, ...] = (*LIMITS, ALL_CALLS)
) -> Callable[[Json, Any], Amounts]:
    """Compile the limits that are there; one that is computed to null is no limit that holds."""
    fields = given(block, names)
    return lambda data, frame: {
        name: most
        for field, value in fields(data, frame).items()
        for name, most in _limits(field, value)
    }


def _tool_calls(policy: Compiler) -> Callable[[Json, Any], Amounts]:
    """Compile the `MaxCalls` of a tool policy."""
    fields = given(policy, (ALL_CALLS,))

    def calls(data: Json, frame: Any) -> Amounts:
        found = fields(data, frame).get(ALL_CALLS)
        if found is None:
            return {}
        if type(found) is not dict:
            cause = f"{TOOL_CALLS[:-1]} is an object of numbers by tools, not {excerpt(found, 200)}"
            raise StateError("States.Runtime", cause)
        return {
            f"{TOOL_CALLS}{tool}": _tokens(most, f"{TOOL_CALLS}{tool}", "")
            for tool, most in found.items()
        }

    return calls


def _limits(field: str, value: Json) -> Iterator[tuple[str, Decimal | int]]:
    """Yield the limits that a field gives, by their names."""
    if "Cost" in field:
        yield field, _money(value, field)
    elif field == ALL_CALLS and type(value) is dict:
        for name, most in value.items():
            yield f"{CALLS_OF}{name}", _tokens(most, f"{field}.{name}")
    else:
        yield field, _tokens(value, field)


def _money(value: Json, field: str) -> Decimal:
    found = amount(value)
    if found is None:
        cause = f"Budget.{field} is no amount of money: {excerpt(value, 200)}"
        raise StateError("States.Runtime", cause)
    return found


def _tokens(value: Json, field: str, block: str = "Budget.") -> int:
    if not is_integer(value) or value < 0:
        cause = f"{block}{field} is a whole number from 0, not {excerpt(value, 200)}"
        raise StateError("States.Runtime", cause)
    return min(int(value), NO_BOUND)


def _one_of(value: Json, allowed: tuple[str, ...], field: str) -> str:
    if value not in allowed:
        cause = f"Budget.{field} is one of {', '.join(allowed)}, not {excerpt(value, 200)}"
        raise StateError("States.Runtime", cause)
    return str(value)


def _members(value: Json) -> Mapping[str, Json] | None:
    if value is not None and type(value) is not dict:
        raise StateError("States.Runtime", "Budget.Attribution is an object")
    return value


def _seconds(value: Json, field: str) -> float:
    try:
        return parse_duration(value)
    except ExpressionFault as fault:
        raise StateError("States.InvalidTTL", f"Budget.{field}: {fault}") from None


def _period(value: Json) -> float:
    named = PERIODS.get(value) if type(value) is str else None
    seconds = _seconds(value, "ResetPeriod") if named is None else named
    if seconds <= 0:
        raise StateError("States.InvalidTTL", "Budget.ResetPeriod: counts start again after 0 s")
    return seconds


def _pool(block: Compiler) -> Callable[[Json, Frame], Pool | None]:
    fields = given(block, ("Pool", "MaxFromPool", "ReleaseOnComplete"))

    def pool(data: Json, frame: Frame) -> Pool | None:
        found = fields(data, frame)
        if "Pool" not in found:
            return None
        name, release = found["Pool"], found.get("ReleaseOnComplete")
        if type(name) is not str or not name:
            cause = f"Budget.Pool is the name of a pool, not {excerpt(name, 200)}"
            raise StateError("States.Runtime", cause)
        if release is not None and type(release) is not bool:
            cause = f"Budget.ReleaseOnComplete is true or false, not {excerpt(release, 200)}"
            raise StateError("States.Runtime", cause)
        most = _money(found["MaxFromPool"], "MaxFromPool") if "MaxFromPool" in found else None
        return Pool(name, most, release is True)

    return pool


def _fallbacks(block: Compiler) -> Callable[[Json, Frame], tuple[Fallback, ...]]:
    """Compile the entries, the highest threshold first; the order of the document breaks ties."""
    computed = _computed(block, "Fallback")
    if computed is not None:
        return lambda data, frame: _sorted(_entries(computed(data, frame), "Cascade"))
    whole = block.within("Fallback")
    entries = [whole.within("Cascade", i) for i in range(len(whole.state.get("Cascade", ())))]
    fields = ("When", "UseModel", "Agent", "Action", "Notify")
    made = [given(entry, fields) for entry in (*entries, whole)]
    return lambda data, frame: _sorted([entry(data, frame) for entry in made])


def _computed(block: Compiler, field: str) -> Evaluate | None:
    """Compile a part of the budget that is known only when the execution begins."""
    if f"{field}.$" in block.state or type(block.state.get(field)) is str:
        return block.scalar(field)
    return None


def _entries(value: Json, field: str) -> list[Json]:
    """Return a computed fallback as its entries: those of its cascade, and itself."""
    cascade = value.get(field, []) if type(value) is dict else None
    if type(cascade) is not list or not all(type(each) is dict for each in cascade):
        raise StateError("States.Runtime", f"Budget.Fallback is no fallback: {excerpt(value, 200)}")
    return [*cascade, value]


def _sorted(written: list[Json]) -> tuple[Fallback, ...]:
    found = [_fallback(each) for each in written if _USES & each.keys()]
    return tuple(sorted(found, key=lambda entry: -entry.percent))


_USES: Final = {"UseModel", "Agent", "Action"}
_WHEN: Final = "(Budget|Tokens)At([1-9][0-9]?|100)Percent"
_SHARED: Final = {"Budget": "MaxCost", "Tokens": "MaxTokens"}
"""By the beginning of a threshold: the limit that it is a share of."""


def _fallback(written: Mapping[str, Json]) -> Fallback:
    when = written.get("When", "Always")
    form = re.fullmatch(_WHEN, when) if type(when) is str else None
    if form is None and when != "Always":
        raise StateError("States.Runtime", f"Budget.Fallback.When is no threshold: {when!r}")
    for field in ("UseModel", "Agent"):
        name = written.get(field)
        if name is not None and (type(name) is not str or not name):
            raise StateError("States.Runtime", f"Budget.Fallback.{field} is no name: {name!r}")
    action = written.get("Action")
    return Fallback(
        when,
        "" if form is None else _SHARED[form[1]],
        0 if form is None else int(form[2]),
        written.get("UseModel"),
        written.get("Agent"),
        None if action is None else _one_of(action, CASCADED, "Fallback.Action"),
        written.get("Notify"),
    )


TOLD: Final = ("At", "Notify", "Channel", "Priority")
"""The fields of an alert, besides its message, which tells of the moment at which it is emitted."""


def _alerts(block: Compiler) -> Callable[[Json, Frame], tuple[Alert, ...]]:
    """Compile the alerts, the lowest share first."""
    computed = _computed(block, "Alerts")
    if computed is not None:
        return lambda data, frame: _in_order(
            [_alert(each, None) for each in _listed(computed(data, frame))]
        )
    count = range(len(block.state.get("Alerts", ())))
    entries = [block.within("Alerts", index) for index in count]
    made = [(given(each, TOLD), each.text("Message")) for each in entries]
    return lambda data, frame: _in_order(
        [_alert(fields(data, frame), message) for fields, message in made]
    )


def _in_order(alerts: list[Alert]) -> tuple[Alert, ...]:
    return tuple(sorted(alerts, key=lambda alert: alert.percent))


def _alert(written: Json, message: Evaluate | None) -> Alert:
    at = written.get("At") if type(written) is dict else None
    share = re.fullmatch(AMOUNT, str(at).removesuffix("%"))
    if share is None or not 0 <= Decimal(share[1]) <= 100:
        raise StateError("States.Runtime", f"Budget.Alerts.At is no percentage: {at!r}")
    details = {
        name.lower(): written[name] for name in ("Notify", "Channel", "Priority") if name in written
    }
    if message is None and "Message" in written:
        details["message"] = written["Message"]
    return Alert(Decimal(share[1]), message, details)


# --------------------------------------------------------------------------------------------
# Checking


NEEDED: Final[Mapping[str, tuple[tuple[str, ...], str, str]]] = {
    "OnExceed": (OWN, "a limit", "add MaxCost or MaxTokens"),
    "Alerts": (("MaxCost", "MaxTokens"), "a limit to have shares of", "add MaxCost or MaxTokens"),
    "MaxFromPool": (("Pool",), "a pool to take from", "add Pool, or write MaxCost"),
    "ReleaseOnComplete": (("MaxFromPool",), "something taken of a pool", "add MaxFromPool"),
}
"""By field of a workflow's budget: of which others it needs one, in words, and what to do."""


def _check_workflow(budget: Mapping[str, Json]) -> Iterator[Finding]:
    """Yield what is wrong with the `Budget` of a workflow and no schema can say."""
    names = {field.removesuffix(".$") for field in budget}
    at = "/Budget"
    for field, (needs, what, hint) in NEEDED.items():
        if field in names and names.isdisjoint(needs):
            place = field if field in budget else f"{field}.$"
            message = f"{field!r} has no effect without {what}"
            yield Finding("V-BUD-06", message, f"{at}/{place}", hint)
    fallback = budget.get("Fallback")
    yield from _unusable(budget, budget, at)
    if budget.get("OnExceed") == "Fail" and not _may_fall_back(budget):
        message = "calls of agents fail abruptly once the limit is exceeded"
        yield Finding(
            "V-BUD-07", message, f"{at}/OnExceed", "add a Fallback", severity=Severity.INFO
        )
    yield from _signs(budget, at)
    yield from _fractions(budget, at)
    if type(fallback) is dict:
        yield from _idle(fallback, names, f"{at}/Fallback")


def _unusable(
    budget: Mapping[str, Json], workflow: Mapping[str, Json], at: str
) -> Iterator[Finding]:
    """Find what is to use the Fallback of a workflow that has none."""
    if budget.get("OnExceed") == "UseFallback" and not _may_fall_back(workflow):
        whose = "" if budget is workflow else " in the Budget of the document"
        message = f"'UseFallback' has no Fallback to use{whose}: calls fail beyond the limit"
        hint = f"add Fallback with UseModel or Agent{whose}"
        yield Finding("V-BUD-06", message, f"{at}/OnExceed", hint)


def _may_fall_back(workflow: Mapping[str, Json]) -> bool:
    fallback = workflow.get("Fallback")
    if type(fallback) is dict:
        return not _FALLS_BACK.isdisjoint(field.removesuffix(".$") for field in fallback)
    return "Fallback.$" in workflow or type(fallback) is str


_FALLS_BACK: Final = frozenset(("UseModel", "Agent", "Cascade"))


def _fractions(budget: Mapping[str, Json], at: str) -> Iterator[Finding]:
    """Find the shares that are written as if 1 was the whole."""
    alerts = budget.get("Alerts")
    for index, alert in enumerate(alerts if type(alerts) is list else ()):
        share: Json = alert.get("At") if type(alert) is dict else None
        if is_number(share) and 0 < share < 1:
            message = f"{share} stands for {share}%, less than a hundredth"
            place, hint = f"{at}/Alerts/{index}/At", f'write "{share * 100:g}%", if that is meant'
            yield Finding("V-BUD-05", message, place, hint, severity=Severity.WARNING)


def _idle(fallback: Mapping[str, Json], names: set[str], at: str) -> Iterator[Finding]:
    """Find fallbacks from a share of a limit on that is not there."""
    cascade = fallback.get("Cascade")
    entries = [(fallback, at)]
    if type(cascade) is list:
        entries = [(each, f"{at}/Cascade/{index}") for index, each in enumerate(cascade)]
    for entry, place in entries:
        when = entry.get("When") if type(entry) is dict else None
        form = re.fullmatch(_WHEN, when) if type(when) is str else None
        limit = form and _SHARED[form[1]]
        if limit and limit not in names:
            message = f"{when!r} is never reached, as there is no {limit}"
            yield Finding("V-BUD-06", message, f"{place}/When", f"add {limit}")


def _check(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    """Yield what is wrong with the `Budget` of a state, beside that of its workflow."""
    budget = node.value["Budget"]
    names = {field.removesuffix(".$") for field in budget}
    if "OnExceed" in names and names.isdisjoint((*LIMITS, ALL_CALLS)):
        message = "'OnExceed' has no effect without a limit"
        yield Finding(
            "V-BUD-06", message, node.at("Budget", "OnExceed"), "add MaxCost or MaxTokens"
        )
    for field in ("MaxCost", "MaxTokens"):
        own, whole = amount(budget.get(field)), amount(workflow.get(field))
        if own is not None and whole is not None and own > whole:
            message = f"{field!r} is above that of the workflow, {workflow[field]!r}"
            yield Finding("V-BUD-04", message, node.at("Budget", field), "lower it")
    yield from _unusable(budget, workflow, node.at("Budget"))
    yield from _signs(budget, node.at("Budget"), workflow)


def _signs(
    budget: Mapping[str, Json], pointer: str, workflow: Mapping[str, Json] | None = None
) -> Iterator[Finding]:
    """Find amounts with a sign other than the dollar's, where no Currency is named."""
    if not {"Currency", "Currency.$"}.isdisjoint(budget if workflow is None else workflow):
        return
    for field, value in budget.items():
        foreign = type(value) is str and value[:1] not in "$0123456789"
        if field.startswith("Max") and foreign and amount(value) is not None:
            message = f"{value!r} has the sign of another currency"
            yield Finding("V-BUD-02", message, f"{pointer}/{field}", "add Currency")


BUDGET = Block("Budget", _check, _check_workflow, of_documents=True)
