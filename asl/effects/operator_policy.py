"""Reading of the operator's policy: the limits of every document that runs here."""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from asl.core.diagnostics import Finding, did_you_mean, raise_for_errors
from asl.core.document import Composition, Document, read
from asl.core.errors import StateError
from asl.core.pointers import escape
from asl.core.source import Source
from asl.core.values import Json
from asl.effects.tool_registry import OperatorPolicy
from asl.expr.templates import is_dynamic
from asl.states.blocks.budget_limits import ALL_CALLS, LIMITS, fixed_limits

__all__ = ["read_policy"]

FIELDS: Final = ("Tools", "ToolCategories", "Images", "Mounts", "Budget")
CEILINGS: Final = (*LIMITS, ALL_CALLS)
"""Fields of a policy's `Budget`."""


def read_policy(policy: str | os.PathLike[str] | Mapping[str, Any]) -> OperatorPolicy:
    """Read a policy from a file or a mapping.

    Args:
        policy: Path of a JSON or YAML file, or its content: `Tools` and `ToolCategories` as in a
            document, `Images` (patterns of images) and `Mounts` (folders) for sandboxes, `Budget`
            (limits of each execution).

    Returns:
        The policy, which no document can widen.

    Raises:
        InvalidDocument: The policy is invalid; the report has the findings.
        DocumentNotFound: There is no such file.
    """
    document = read(dict(policy) if isinstance(policy, Mapping) else policy)
    value = document.value
    raise_for_errors(
        document, [*_wrong_fields(value), *_dynamic_parts(value), *_wrong_budget(value)]
    )
    _check_tools(document)
    return OperatorPolicy(
        value.get("Tools"),
        value.get("ToolCategories"),
        value.get("Images"),
        value.get("Mounts"),
        fixed_limits(value.get("Budget", {})),
    )


def _wrong_fields(value: Mapping[str, Json]) -> Iterator[Finding]:
    for name, given in value.items():
        if name not in FIELDS:
            hint = did_you_mean(name, FIELDS) or f"a policy has {', '.join(FIELDS)}"
            yield Finding("POLICY-01", f"a policy has no field {name!r}", f"/{name}", hint)
        elif name in ("Images", "Mounts") and not _are_texts(given):
            yield Finding("POLICY-01", f"{name!r} must be a list of texts", f"/{name}")


def _wrong_budget(value: Mapping[str, Json]) -> Iterator[Finding]:
    budget = value.get("Budget", {})
    if type(budget) is not dict:
        yield Finding("POLICY-01", "'Budget' must be an object", "/Budget")
        return
    for name, given in budget.items():
        pointer = f"/Budget/{escape(name)}"
        if name not in CEILINGS:
            hint = did_you_mean(name, CEILINGS) or f"it has {', '.join(CEILINGS)}"
            yield Finding("POLICY-01", f"the 'Budget' of a policy has no {name!r}", pointer, hint)
            continue
        try:
            fixed_limits({name: given})
        except StateError as error:
            yield Finding("POLICY-01", str(error.cause), pointer)


def _are_texts(value: Json) -> bool:
    return type(value) is list and all(type(each) is str for each in value)


def _dynamic_parts(value: Mapping[str, Json]) -> Iterator[Finding]:
    tools = value.get("Tools")
    if type(tools) is dict:
        if "Hooks" in tools:
            yield Finding("POLICY-01", "a policy cannot have 'Hooks'", "/Tools/Hooks")
        if "MaxCalls" in tools:
            message, hint = "a policy cannot have 'MaxCalls'", "write RateLimits"
            yield Finding("POLICY-01", message, "/Tools/MaxCalls", hint)
        if is_dynamic(tools):
            yield Finding("POLICY-01", "a policy has no input: 'Tools' must be constant", "/Tools")


def _check_tools(policy: Document) -> None:
    """Check `Tools` and `ToolCategories` by the rules for documents; raises InvalidDocument."""
    from asl.checks import check

    parts = {key: policy.value[key] for key in ("ToolCategories",) if key in policy.value}
    state = {"Type": "Task", "Agent": "Any", "End": True}
    if "Tools" in policy.value:
        state["Tools"] = policy.value["Tools"]
    workflow: dict[str, Json] = {**parts, "StartAt": "Call", "States": {"Call": state}}
    origins = {
        "/States/Call/Tools": (policy, "/Tools"),
        "/ToolCategories": (policy, "/ToolCategories"),
    }
    probe = Document(
        workflow, Source(policy.source.name), composition=Composition(workflow, {}, origins)
    )
    check(probe, strict=True).raise_for_errors()
