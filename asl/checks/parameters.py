"""Parameters of tasks that call a service: names that the action takes, and those that it needs.

On AWS a task with another name, or without a required parameter, does not work.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from asl.checks.service_catalog import (
    Action,
    Integration,
    action_of,
    model_of,
    optimized_integrations,
)
from asl.checks.workflow import CheckedWorkflow, text
from asl.core import aws_messages
from asl.core.diagnostics import Finding, Severity, Wording
from asl.states.base import Node

__all__ = ["check"]


class _Request(NamedTuple):
    """The parameters of an action."""

    fields: Collection[str]
    required: Collection[str]
    alternatives: Mapping[str, str]
    """Required parameter -> the parameter that may be given instead."""


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield parameters that an action does not take, and actions without one that they need."""
    for node in workflow.nodes():
        resource = text(node.value, "Resource")
        action = None if resource is None else action_of(resource)
        if resource is not None and action is not None and node.value.get("Type") == "Task":
            yield from _given(workflow, node, action, resource.rpartition(":::")[2])


def _given(workflow: CheckedWorkflow, node: Node, action: Action, label: str) -> Iterator[Finding]:
    field = "Arguments" if node.query_language == "JSONata" else "Parameters"
    given = node.value.get(field)
    request = _request(action)
    if request is None or type(given) is not dict:
        return
    known = {each.lower(): each for each in request.fields}
    names = {key.removesuffix(".$"): key for key in given}
    for name, key in names.items():
        # Within a name the letters are as large as the integration wants them, not as the model.
        if name.lower() in known and name[:1].isupper():
            continue
        same = known.get(name.lower())
        hint = f"write {same!r}" if same else workflow.suggestions.near(name, [*known.values()])
        message = f"{label} has no parameter {name!r}"
        yield Finding("V-TASK-12", message, node.at(field, key), hint, at_key=True)
    # AWS looks for what its own integrations need when a definition is deployed; the SDK, when it
    # is called.
    refused = workflow.profile.aws and action.integration is not None
    severity = Severity.ERROR if refused else None
    there = {name.lower() for name in names}
    for name in request.required:
        other = request.alternatives.get(name)
        if not there & {name.lower(), (other or name).lower()}:
            hint = f"or {other!r}" if other else None
            message = f"{label} needs the parameter {name!r}"
            wording = (
                Wording(aws_messages.missing_field(name), code=aws_messages.SCHEMA)
                if refused
                else None
            )
            yield Finding(
                "V-TASK-12", message, node.at(field), hint, severity=severity, aws=wording
            )


def _request(action: Action) -> _Request | None:
    """Return the parameters of an action, None where they are not known."""
    own = Integration()
    if action.integration is not None:
        own = optimized_integrations().get(action.integration, {}).get(action.name, own)
    model = model_of(action.service)["requests"].get(action.name)
    if model is None:
        known = bool(own.required)  # an integration without an API behind it
        return (
            _Request((*own.required, *own.fields), own.required, own.alternatives)
            if known
            else None
        )
    fields, required = (*model["fields"], *own.fields), model.get("required", ())
    return _Request(fields, required, own.alternatives)
