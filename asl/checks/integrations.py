"""Tasks as AWS runs them: resources, tokens and credentials (Specification 6.1)."""

import re
from collections.abc import Iterator

from asl.checks import path_expressions, registrations, resource_names
from asl.checks.jsonata_expressions import state_strings
from asl.checks.resource_names import ACTIVITY, TOKEN
from asl.checks.workflow import CheckedWorkflow, text
from asl.core import aws_messages
from asl.core.diagnostics import Finding, Severity, Wording
from asl.core.opaque import contains_opaque
from asl.states.base import Node

__all__ = ["check", "check_task"]

_JOB = r".*\.sync(:2)?"


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield tasks without use of their token or without a token, and unknown integrations."""
    for node in workflow.nodes():
        resource = text(node.value, "Resource")
        if node.value.get("Type") == "Task" and resource is not None:
            yield from _token(workflow, node, resource)
            if not workflow.profile.aws and not registrations.serves(workflow, node, resource):
                yield from _unknown(workflow, node, resource)


def _unknown(workflow: CheckedWorkflow, node: Node, resource: str) -> Iterator[Finding]:
    """Yield a warning for an integration that AWS does not have."""
    for fault in resource_names.resource_faults(resource, workflow.suggestions):
        if fault.integration:
            place = node.at("Resource")
            severity = Severity.WARNING
            yield Finding("V-TASK-02", fault.message, place, fault.hint, severity=severity)


def _token(workflow: CheckedWorkflow, node: Node, resource: str) -> Iterator[Finding]:
    places = [*_tokens(workflow, node)]
    if resource.endswith(TOKEN):
        sent = node.value.get("Arguments", node.value.get("Parameters"))
        if not places and not contains_opaque(sent):
            jsonata = node.query_language == "JSONata"
            yield Finding(
                "V-TASK-10",
                "the task waits for an answer but does not pass on its task token",
                node.at("Resource"),
                "pass \"{% $states.context.Task.Token %}\" in 'Arguments'"
                if jsonata
                else "pass '$$.Task.Token' in 'Parameters'",
            )
    elif not re.fullmatch(f"{ACTIVITY}|{_JOB}", resource):
        for place, is_token in places:
            if is_token:
                yield Finding(
                    "V-TASK-11",
                    "only a task that waits for an answer has a token",
                    place,
                    f"the 'Resource' of such a task ends in {TOKEN!r}",
                )


def _tokens(workflow: CheckedWorkflow, node: Node) -> Iterator[tuple[str, bool]]:
    """Yield the places of what is sent with the token, and whether it is the token by itself.

    The whole context object has a token, too, but it may be sent for the sake of the rest.
    """
    if node.query_language == "JSONata":
        for written in state_strings(workflow, node):
            source = written.source
            if source is not None and "Token" in source and "$states.context" in source:
                yield written.pointer, True
        return
    for each in path_expressions.expressions_of(node):
        if each.text == "$$" or "$$.Task" in each.text:
            yield each.pointer, "$$.Task.Token" in each.text


# --------------------------------------------------------------------------------------------
# What AWS refuses


def check_task(workflow: CheckedWorkflow, node: Node, express: bool) -> Iterator[Finding]:
    """Yield what AWS has against a task; *express* for one that an express execution runs."""
    if "Agent" in node.value:
        yield Finding(
            "V-TASK-01",
            "AWS has no agents, only a 'Resource'",
            node.at("Agent"),
            "the profile 'default' has agents",
            at_key=True,
            aws=Wording(aws_messages.unknown_field("Agent"), at=node.pointer),
        )
    resource = text(node.value, "Resource")
    if resource is not None:
        yield from _resource(workflow, node, resource, express)
    credentials = node.value.get("Credentials")
    if type(credentials) is not dict:
        return
    place = node.at("Credentials")
    if resource is not None and re.fullmatch(ACTIVITY, resource):
        message = "an activity takes no 'Credentials'"
        wording = Wording("The field 'Credentials' is not supported for activities")
        yield Finding("V-TASK-06", message, place, at_key=True, aws=wording)
    elif not credentials.keys() & {"RoleArn", "RoleArn.$"}:
        wording = Wording(aws_messages.missing_field("RoleArn"))
        yield Finding("V-TASK-06", "'RoleArn' is missing", place, at_key=True, aws=wording)


def _resource(
    workflow: CheckedWorkflow, node: Node, resource: str, express: bool
) -> Iterator[Finding]:
    for fault in resource_names.resource_faults(resource, workflow.suggestions, express):
        place = node.at("Resource")
        yield Finding("V-TASK-02", fault.message, place, fault.hint, aws=Wording(fault.words))
