"""What the `aws` profile alone refuses (Specification 0.3)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from asl.checks.execution import BLOCKS, COMPOSITION, DOCUMENT_BLOCKS
from asl.checks.structure import known_fields
from asl.checks.workflow import Workflow, objects, text
from asl.core import aws
from asl.core.diagnostics import AwsDiagnostic, Finding, Report, Severity, Wording, parted
from asl.states import KNOWN_TYPES
from asl.states.base import Node

__all__ = ["adapted", "check", "unreadable"]

STATE_TYPES = KNOWN_TYPES[:8]
"""The types of the Amazon States Language."""

STRICTER = frozenset(
    {
        "V-TOP-08",
        "V-TOP-14",
        "V-RETRY-05",
        "V-RETRY-06",
        "V-RETRY-07",
        "V-FAIL-02",
        "V-PAR-03",
        "V-TASK-06",
    }
)
"""Rules that draw less than an error elsewhere, at least for some forms."""

AGENT_SPEC_ONLY = frozenset({"V-MAP-11", "V-TASK-08", "V-TASK-09"})
"""Advice that concerns the tools of the agent language only."""

DOCUMENT_FIELDS = (*DOCUMENT_BLOCKS, *COMPOSITION, "Metadata", "Observability")


def adapted(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings of all profiles as this one judges them."""
    for finding in findings:
        if finding.code in STRICTER:
            yield replace(finding, severity=Severity.ERROR)
        elif finding.code not in AGENT_SPEC_ONLY:
            yield finding


def unreadable(report: Report) -> Report:
    """Return the report of a text that is no document, with AWS's code for that."""
    found = tuple(replace(each, aws=AwsDiagnostic(UNREADABLE)) for each in report)
    return Report(found, report.document)


UNREADABLE = "INVALID_JSON_DESCRIPTION"


def check(workflow: Workflow) -> Iterator[Finding]:
    """Yield what belongs to the agent language only, and what AWS itself demands."""
    for field in DOCUMENT_FIELDS:
        if field in workflow.value:
            yield _unknown(field, f"/{field}")
    for node in workflow.nodes():
        kind = node.value.get("Type")
        if type(kind) is str and kind in KNOWN_TYPES and kind not in STATE_TYPES:
            message = f"{kind} is no state type of AWS"
            yield Finding("V-ST-01", message, node.at("Type"))
        else:
            yield from _fields(node)
            if kind == "Task":
                yield from _task(node, workflow.express)


def _fields(node: Node) -> Iterator[Finding]:
    kind = node.value.get("Type")
    known = known_fields(f"states:{kind}") if kind in STATE_TYPES else frozenset()
    for field in node.value:
        plain = field.removesuffix(".$")
        if plain in known and (plain in BLOCKS or (plain != field and field in known)):
            yield _unknown(field, node.at(field))
    for index, entry in objects(node.value, "Retry"):
        strategy = entry.get("JitterStrategy")
        if strategy == "DECORRELATED":
            message = "AWS knows only the strategies 'NONE' and 'FULL'"
            wording = Wording(aws.one_of(["NONE", "FULL"]))
            place = node.at("Retry", index, "JitterStrategy")
            yield Finding("V-RETRY-07", message, place, aws=wording)


def _unknown(field: str, pointer: str) -> Finding:
    message = f"AWS knows no field {field!r} here"
    wording = Wording(aws.unsupported(field), at=parted(pointer)[0])
    return Finding("V-TOP-09", message, pointer, at_key=True, aws=wording)


# --------------------------------------------------------------------------------------------
# Tasks

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


def _task(node: Node, express: bool) -> Iterator[Finding]:
    if "Agent" in node.value:
        yield Finding(
            "V-TASK-01",
            "AWS knows no agents, only a 'Resource'",
            node.at("Agent"),
            at_key=True,
            aws=Wording(aws.unsupported("Agent"), at=node.pointer),
        )
    resource = text(node.value, "Resource")
    if resource is not None and not _URI.fullmatch(resource):
        message = f"{resource!r} is no resource name such as 'arn:aws:states:::sns:publish'"
        yield Finding("V-TASK-02", message, node.at("Resource"), aws=Wording(aws.NO_RESOURCE))
    if express and resource is not None:
        yield from _express(node, resource)
    credentials = node.value.get("Credentials")
    if type(credentials) is dict and not credentials.keys() & {"RoleArn", "RoleArn.$"}:
        wording = Wording("The field 'RoleArn' is required but was missing")
        place = node.at("Credentials")
        yield Finding("V-TASK-06", "'RoleArn' is missing", place, at_key=True, aws=wording)


def _express(node: Node, resource: str) -> Iterator[Finding]:
    for suffix in (".sync", ".sync:2", ".waitForTaskToken"):
        if resource.endswith(suffix):
            message = f"an express workflow does not support {suffix!r}"
            pattern = suffix.partition(":")[0]
            wording = Wording(
                f"Express state machine does not support '{pattern}' service integration"
            )
            yield Finding("V-TASK-02", message, node.at("Resource"), aws=wording)
