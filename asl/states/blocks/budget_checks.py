"""Checks of a `Budget` beyond its schema: V-BUD-*."""

from collections.abc import Iterator, Mapping
from typing import Final

from asl.core.diagnostics import Finding, Severity
from asl.core.values import Json, is_number
from asl.states.base import Node
from asl.states.blocks.budget_limits import ALL_CALLS, LIMITS, WINDOWS, parse_threshold
from asl.states.numbers import parse_amount

__all__ = ["check_budget", "check_workflow_budget"]

OWN: Final = (*LIMITS, ALL_CALLS, *WINDOWS, "Pool")
"""The fields of a workflow's budget that set a limit."""
NEEDED: Final[Mapping[str, tuple[tuple[str, ...], str, str]]] = {
    "OnExceed": (OWN, "a limit", "add MaxCost or MaxTokens"),
    "Alerts": (("MaxCost", "MaxTokens"), "a limit", "add MaxCost or MaxTokens"),
    "MaxFromPool": (("Pool",), "a pool", "add Pool, or write MaxCost"),
    "ReleaseOnComplete": (("MaxFromPool",), "'MaxFromPool'", "add MaxFromPool"),
}
"""By field of a workflow's budget: other fields it needs one of, in words, and what to do."""


def check_workflow_budget(budget: Mapping[str, Json]) -> Iterator[Finding]:
    """Yield the findings on the `Budget` of a workflow beyond its schema."""
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
        message = "calls of agents fail after the limit is exceeded"
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
    """Find a `UseFallback` without a Fallback in the workflow."""
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
    """Find shares written as fractions of 1 instead of percentages."""
    alerts = budget.get("Alerts")
    for index, alert in enumerate(alerts if type(alerts) is list else ()):
        share: Json = alert.get("At") if type(alert) is dict else None
        if is_number(share) and 0 < share < 1:
            message = f"{share} means {share}%, less than a hundredth"
            place, hint = (
                f"{at}/Alerts/{index}/At",
                f'write "{share * 100:g}%", if this is intended',
            )
            yield Finding("V-BUD-05", message, place, hint, severity=Severity.WARNING)


def _idle(fallback: Mapping[str, Json], names: set[str], at: str) -> Iterator[Finding]:
    """Find fallbacks with the threshold of a missing limit."""
    cascade = fallback.get("Cascade")
    entries = [(fallback, at)]
    if type(cascade) is list:
        entries = [(each, f"{at}/Cascade/{index}") for index, each in enumerate(cascade)]
    for entry, place in entries:
        when = entry.get("When") if type(entry) is dict else None
        threshold = parse_threshold(when)
        if threshold is not None and threshold[0] not in names:
            limit = threshold[0]
            message = f"{when!r} is never reached, as there is no {limit}"
            yield Finding("V-BUD-06", message, f"{place}/When", f"add {limit}")


def check_budget(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    """Yield the findings on the `Budget` of a state, given that of its workflow."""
    budget = node.value["Budget"]
    names = {field.removesuffix(".$") for field in budget}
    if "OnExceed" in names and names.isdisjoint((*LIMITS, ALL_CALLS)):
        message = "'OnExceed' has no effect without a limit"
        yield Finding(
            "V-BUD-06", message, node.at("Budget", "OnExceed"), "add MaxCost or MaxTokens"
        )
    for field in ("MaxCost", "MaxTokens"):
        own, whole = parse_amount(budget.get(field)), parse_amount(workflow.get(field))
        if own is not None and whole is not None and own > whole:
            message = f"{field!r} is above that of the workflow, {workflow[field]!r}"
            yield Finding("V-BUD-04", message, node.at("Budget", field), "lower it")
    yield from _unusable(budget, workflow, node.at("Budget"))
    yield from _signs(budget, node.at("Budget"), workflow)


def _signs(
    budget: Mapping[str, Json], pointer: str, workflow: Mapping[str, Json] | None = None
) -> Iterator[Finding]:
    """Find amounts with another sign than the dollar's, without a Currency."""
    if not {"Currency", "Currency.$"}.isdisjoint(budget if workflow is None else workflow):
        return
    for field, value in budget.items():
        foreign = type(value) is str and value[:1] not in "$0123456789"
        if field.startswith("Max") and foreign and parse_amount(value) is not None:
            message = f"{value!r} has the sign of another currency"
            yield Finding("V-BUD-02", message, f"{pointer}/{field}", "add Currency")
