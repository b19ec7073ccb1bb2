"""Tasks as AWS runs them: resources, their patterns, tokens and credentials.

Specification 6.1; the patterns of the integrations are those that AWS documents.
"""

import re
from collections.abc import Iterator

from asl.checks import expressions, queries
from asl.checks.workflow import Workflow, text
from asl.core import aws
from asl.core.diagnostics import Finding, Wording
from asl.core.opaque import contains_opaque
from asl.states.base import Node

__all__ = ["check", "check_task"]

TOKEN = ".waitForTaskToken"
PATTERNS = (".sync:2", ".sync", TOKEN)
"""What may follow the name of an action: how long the task waits."""

WITHOUT_SYNC = frozenset(
    {
        "apigateway",
        "aws-sdk",
        "bedrock-agentcore",
        "dynamodb",
        "events",
        "lambda",
        "sns",
        "sqs",
    }
)
WITHOUT_TOKEN = frozenset(
    {
        "athena",
        "batch",
        "bedrock-agentcore",
        "codebuild",
        "databrew",
        "dynamodb",
        "elasticmapreduce",
        "emr-containers",
        "emr-serverless",
        "glue",
        "mediaconvert",
        "sagemaker",
    }
)
"""The services none of whose actions can be waited for in this way."""

_URI = r"[A-Za-z][A-Za-z0-9+.-]*:\S+"
_ACTIVITY = r"arn:[^:]+:states:[^:]*:[^:]*:activity:.+"
_JOB = r".*\.sync(:2)?"
_SERVICE = r"arn:[^:]+:states:[^:]*:[^:]*:(?P<service>[^:]+):.+"


def check(workflow: Workflow) -> Iterator[Finding]:
    """Yield tasks that never hand out their token, or look for one that they do not have."""
    for node in workflow.nodes():
        resource = text(node.value, "Resource")
        if node.value.get("Type") == "Task" and resource is not None:
            yield from _token(workflow, node, resource)


def _token(workflow: Workflow, node: Node, resource: str) -> Iterator[Finding]:
    places = [*_tokens(workflow, node)]
    if resource.endswith(TOKEN):
        sent = node.value.get("Arguments", node.value.get("Parameters"))
        if not places and not contains_opaque(sent):
            jsonata = node.query_language == "JSONata"
            yield Finding(
                "V-TASK-10",
                "the task waits for an answer but gives nobody its token",
                node.at("Resource"),
                "\"{% $states.context.Task.Token %}\" belongs into 'Arguments'"
                if jsonata
                else "'$$.Task.Token' belongs into 'Parameters'",
            )
    elif not re.fullmatch(f"{_ACTIVITY}|{_JOB}", resource):
        for place in places:
            yield Finding(
                "V-TASK-11",
                "only a task that waits for an answer has a token",
                place,
                f"the 'Resource' of such a task ends in {TOKEN!r}",
            )


def _tokens(workflow: Workflow, node: Node) -> Iterator[str]:
    """Yield the places of what is sent with the token; the whole context object has it too."""
    if node.query_language == "JSONata":
        for written in queries.queries_of(workflow, node):
            source = written.source
            if source is not None and "Token" in source and "$states.context" in source:
                yield written.pointer
        return
    for each in expressions.expressions_of(node):
        if each.text == "$$" or "$$.Task" in each.text:
            yield each.pointer


# --------------------------------------------------------------------------------------------
# What AWS refuses


def check_task(node: Node, express: bool) -> Iterator[Finding]:
    """Yield what AWS has against a task; *express* for one that an express execution runs."""
    if "Agent" in node.value:
        yield Finding(
            "V-TASK-01",
            "AWS knows no agents, only a 'Resource'",
            node.at("Agent"),
            "the profile 'default' has agents",
            at_key=True,
            aws=Wording(aws.unsupported("Agent"), at=node.pointer),
        )
    resource = text(node.value, "Resource")
    if resource is not None:
        yield from _resource(node, resource, express)
    credentials = node.value.get("Credentials")
    if type(credentials) is not dict:
        return
    place = node.at("Credentials")
    if resource is not None and re.fullmatch(_ACTIVITY, resource):
        message = "an activity takes no 'Credentials'"
        wording = Wording("The field 'Credentials' is not supported for activities")
        yield Finding("V-TASK-06", message, place, at_key=True, aws=wording)
    elif not credentials.keys() & {"RoleArn", "RoleArn.$"}:
        wording = Wording("The field 'RoleArn' is required but was missing")
        yield Finding("V-TASK-06", "'RoleArn' is missing", place, at_key=True, aws=wording)


def _resource(node: Node, resource: str, express: bool) -> Iterator[Finding]:
    for message, hint, words in _objections(resource, express):
        yield Finding("V-TASK-02", message, node.at("Resource"), hint, aws=Wording(words))


def _objections(resource: str, express: bool) -> Iterator[tuple[str, str | None, str]]:
    """Yield `(our message, hint, AWS's words)`."""
    if not re.fullmatch(_URI, resource):
        message = f"{resource!r} is no resource name such as 'arn:aws:states:::sns:publish'"
        yield message, None, aws.NO_RESOURCE
        return
    pattern = next(filter(resource.endswith, PATTERNS), None)
    if express and pattern is not None:
        words = f"Express state machine does not support '{_name(pattern)}' service integration"
        yield f"an express workflow does not support {pattern!r}", None, words
    elif express and re.fullmatch(_ACTIVITY, resource):
        words = "Express state machine does not support Activity ARN"
        yield "an express workflow has no activities", None, words
    elif pattern is not None and not _waits(resource, pattern):
        words = (
            f"The resource provided {resource} is not recognized. The value is not a valid "
            "resource ARN, or the resource is not available in this region."
        )
        hint = "a plain call waits for the answer of the function anyway"
        message = f"AWS does not offer {pattern!r} for this action"
        yield message, hint if ":lambda:" in resource else None, words


def _name(pattern: str) -> str:
    return pattern.partition(":")[0]


def _waits(resource: str, pattern: str) -> bool:
    """Whether a service can be waited for in this way, as far as is known."""
    match = re.fullmatch(_SERVICE, resource)
    service = match["service"] if match else None
    if service == "states":
        return True
    if pattern == ".sync:2":
        return False
    return service not in (WITHOUT_TOKEN if pattern == TOKEN else WITHOUT_SYNC)
