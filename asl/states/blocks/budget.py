"""Budget: the limits of a workflow and of a visit of a state (Specification 8.11).

This module compiles blocks to plain data. The ledger of an execution counts against it
(`asl.engine.ledger`); the budget gate lets calls wait, pause and fail (`asl.effects.budget_gate`).
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any, Final

from asl.core.errors import ExpressionFault, StateError
from asl.core.values import Json, compact, excerpt
from asl.expr.frame import Evaluate, ExpressionFrame
from asl.expr.times import parse_duration
from asl.states.base import Compiler
from asl.states.blocks.base import Block, compile_fields
from asl.states.blocks.budget_checks import check_budget, check_workflow_budget
from asl.states.blocks.budget_limits import (
    ALL_CALLS,
    DELAY,
    LIMITS,
    TOOL_CALLS,
    WINDOWS,
    Alert,
    Amounts,
    BudgetLimits,
    CompileLimits,
    Fallback,
    Pool,
    Window,
    parse_limits,
    parse_money,
    parse_threshold,
    parse_whole_number,
)
from asl.states.numbers import AMOUNT

__all__ = ["BUDGET", "compile_state_budget", "compile_workflow_budget"]

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


def compile_state_budget(compiler: Compiler) -> CompileLimits:
    """Compile the `Budget` of a state, with the `MaxCalls` of its `Tools`."""
    effective, block = compiler.input(), compiler.compiler_at("Budget")
    most, tools = _amounts(block), _tool_calls(compiler.compiler_at("Tools"))
    fields = _present(block, ("OnExceed", "Priority", "Category", "Tags"))
    attribution = block.template("Attribution") or block.scalar("Attribution")

    def limits_of(data: Json, frame: Any) -> BudgetLimits:
        found = fields(data, frame)
        category = found.get("Category")
        return BudgetLimits(
            compiler.name,
            {**most(data, frame), **tools(data, frame)},
            _one_of(found.get("OnExceed", "Fail"), ACTIONS, "OnExceed"),
            priority=_one_of(found.get("Priority", "normal"), PRIORITIES, "Priority"),
            category=None if category is None else _string(category),
            tags=tuple(map(_string, _listed(found.get("Tags", [])))),
            attribution=None if attribution is None else _members(attribution(data, frame)),
        )

    written_calls = compiler.compiler_at("Tools").state.get(ALL_CALLS)
    computed = f"{ALL_CALLS}.$" in compiler.compiler_at("Tools").state
    if computed or _is_computed(written_calls) or _is_computed(block.state):
        return lambda raw, frame: limits_of(effective(raw, frame), frame)
    written = cache(lambda: limits_of(None, None))
    return lambda raw, frame: written()


def _is_computed(value: Json) -> bool:
    """Return whether a part of a block is computed when the state runs."""
    if type(value) is dict:
        return any(key.endswith(".$") or _is_computed(each) for key, each in value.items())
    if type(value) is list:
        return any(map(_is_computed, value))
    return type(value) is str and value.startswith("{%")


def compile_workflow_budget(compiler: Compiler) -> CompileLimits:
    """Compile the `Budget` of a workflow, with the `MaxCalls` of its `DefaultTools`.

    Their expressions see the execution input.
    """
    block, tools = compiler.compiler_at("Budget"), _tool_calls(compiler.compiler_at("DefaultTools"))
    most, windows = _amounts(block), _amounts(block, tuple(WINDOWS))
    names = ("OnExceed", "Currency", "ThrottleDelay", "Notify", "TrackBy", "ResetPeriod")
    fields, pool = _present(block, names), _pool(block)
    fallbacks, alerts = _fallbacks(block), _alerts(block)

    def limits(data: Json, frame: ExpressionFrame) -> BudgetLimits:
        found = fields(data, frame)
        track_by, reset = found.get("TrackBy"), found.get("ResetPeriod")
        return BudgetLimits(
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
    """Compile fields; one that is computed to null is absent."""
    fields = compile_fields(block, names)
    return lambda data, frame: {
        field: value for field, value in fields(data, frame).items() if value is not None
    }


def _amounts(
    block: Compiler, names: tuple[str, ...] = (*LIMITS, ALL_CALLS)
) -> Callable[[Json, Any], Amounts]:
    """Compile the existing limits; one that is computed to null is absent."""
    fields = compile_fields(block, names)
    return lambda data, frame: {
        name: most
        for field, value in fields(data, frame).items()
        for name, most in parse_limits(field, value)
    }


def _tool_calls(policy: Compiler) -> Callable[[Json, Any], Amounts]:
    """Compile the `MaxCalls` of a tool policy."""
    fields = compile_fields(policy, (ALL_CALLS,))

    def calls(data: Json, frame: Any) -> Amounts:
        found = fields(data, frame).get(ALL_CALLS)
        if found is None:
            return {}
        if type(found) is not dict:
            shown = excerpt(found, 200)
            cause = f"{TOOL_CALLS[:-1]} must be an object of numbers by tools, not {shown}"
            raise StateError("States.Runtime", cause)
        return {
            f"{TOOL_CALLS}{tool}": parse_whole_number(most, f"{TOOL_CALLS}{tool}", "")
            for tool, most in found.items()
        }

    return calls


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
        raise StateError("States.InvalidTTL", "Budget.ResetPeriod must be above 0 seconds")
    return seconds


def _pool(block: Compiler) -> Callable[[Json, ExpressionFrame], Pool | None]:
    fields = compile_fields(block, ("Pool", "MaxFromPool", "ReleaseOnComplete"))

    def pool(data: Json, frame: ExpressionFrame) -> Pool | None:
        found = fields(data, frame)
        if "Pool" not in found:
            return None
        name, release = found["Pool"], found.get("ReleaseOnComplete")
        if type(name) is not str or not name:
            cause = f"Budget.Pool must be the name of a pool, not {excerpt(name, 200)}"
            raise StateError("States.Runtime", cause)
        if release is not None and type(release) is not bool:
            cause = f"Budget.ReleaseOnComplete must be true or false, not {excerpt(release, 200)}"
            raise StateError("States.Runtime", cause)
        most = parse_money(found["MaxFromPool"], "MaxFromPool") if "MaxFromPool" in found else None
        return Pool(name, most, release is True)

    return pool


def _fallbacks(block: Compiler) -> Callable[[Json, ExpressionFrame], tuple[Fallback, ...]]:
    """Compile the entries by descending threshold; ties keep the order of the document."""
    computed = _computed(block, "Fallback")
    if computed is not None:
        return lambda data, frame: _sorted(_entries(computed(data, frame), "Cascade"))
    whole = block.compiler_at("Fallback")
    entries = [whole.compiler_at("Cascade", i) for i in range(len(whole.state.get("Cascade", ())))]
    fields = ("When", "UseModel", "Agent", "Action", "Notify")
    made = [compile_fields(entry, fields) for entry in (*entries, whole)]
    return lambda data, frame: _sorted([entry(data, frame) for entry in made])


def _computed(block: Compiler, field: str) -> Evaluate | None:
    """Compile a part of the budget that is computed when the execution begins."""
    if f"{field}.$" in block.state or type(block.state.get(field)) is str:
        return block.scalar(field)
    return None


def _entries(value: Json, field: str) -> list[Json]:
    """Return the entries of a computed fallback: its cascade, then itself."""
    cascade = value.get(field, []) if type(value) is dict else None
    if type(cascade) is not list or not all(type(each) is dict for each in cascade):
        raise StateError(
            "States.Runtime",
            f"Budget.Fallback must be an object with a list 'Cascade', got {excerpt(value, 200)}",
        )
    return [*cascade, value]


def _sorted(written: list[Json]) -> tuple[Fallback, ...]:
    found = [_fallback(each) for each in written if _USES & each.keys()]
    return tuple(sorted(found, key=lambda entry: -entry.percent))


_USES: Final = {"UseModel", "Agent", "Action"}


def _fallback(written: Mapping[str, Json]) -> Fallback:
    when = written.get("When", "Always")
    threshold = parse_threshold(when)
    if threshold is None and when != "Always":
        raise StateError("States.Runtime", f"Budget.Fallback.When is no threshold: {when!r}")
    for field in ("UseModel", "Agent"):
        name = written.get(field)
        if name is not None and (type(name) is not str or not name):
            raise StateError("States.Runtime", f"Budget.Fallback.{field} is no name: {name!r}")
    action = written.get("Action")
    return Fallback(
        when,
        *(threshold or ("", 0)),
        written.get("UseModel"),
        written.get("Agent"),
        None if action is None else _one_of(action, CASCADED, "Fallback.Action"),
        written.get("Notify"),
    )


ALERT_FIELDS: Final = ("At", "Notify", "Channel", "Priority")
"""The fields of an alert except its message, which is evaluated when it is emitted."""


def _alerts(block: Compiler) -> Callable[[Json, ExpressionFrame], tuple[Alert, ...]]:
    """Compile the alerts by ascending share."""
    computed = _computed(block, "Alerts")
    if computed is not None:
        return lambda data, frame: _in_order(
            [_alert(each, None) for each in _listed(computed(data, frame))]
        )
    count = range(len(block.state.get("Alerts", ())))
    entries = [block.compiler_at("Alerts", index) for index in count]
    made = [(compile_fields(each, ALERT_FIELDS), each.text("Message")) for each in entries]
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


BUDGET = Block("Budget", check_budget, check_workflow_budget)
