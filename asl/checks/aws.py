"""What the `aws` profile alone refuses (Specification 0.3)."""

from collections.abc import Iterable, Iterator, Mapping

from asl.checks import integrations
from asl.checks.query_languages import other_language
from asl.checks.workflow import CheckedWorkflow, MachineScope, below, objects
from asl.core import aws_messages
from asl.core.diagnostics import AwsDiagnostic, Finding, Report, Severity, Wording
from asl.core.document import Document
from asl.core.json_messages import parser_message
from asl.core.pointers import split_pointer
from asl.core.values import Json, compact, is_number
from asl.states import UNKNOWN, type_of
from asl.states.base import Node
from asl.states.blocks import DOCUMENT_BLOCKS
from asl.states.fields import FieldIndex, Reading
from asl.states.schemas import known_fields, native_fields

__all__ = ["adapt_findings", "check", "check_duration", "check_size", "check_timeout", "unreadable"]

STRICTER = frozenset(
    {
        "V-TOP-08",
        "V-TOP-14",
        "V-RETRY-05",
        "V-RETRY-07",
        "V-FAIL-02",
        "V-PAR-03",
        "V-TASK-06",
    }
)
"""Rules that draw less than an error elsewhere, at least for some forms."""

AGENT_SPEC_ONLY = frozenset({"V-MAP-11", "V-TASK-08", "V-TASK-09"})
"""Advice that concerns the tools of the agent language only."""

COMPOSITION = ("Imports", "Parameters", "Module", "Exports", "_lock")
DOCUMENT_FIELDS = (*DOCUMENT_BLOCKS, *COMPOSITION, "Metadata", "Observability")


def adapt_findings(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings of all profiles as this one judges them."""
    for finding in findings:
        if finding.code in STRICTER:
            yield finding._replace(severity=Severity.ERROR)
        elif finding.code not in AGENT_SPEC_ONLY:
            yield finding


def unreadable(report: Report) -> Report:
    """Return the report of a text that is no document, with AWS's code for that."""
    source = report.document.source.text if report.document else None
    said = None if source is None else parser_message(source)
    if source is not None and not source.strip():
        words = AwsDiagnostic(aws_messages.SCHEMA, "Definition must be a valid JSON object")
    elif said is not None:
        message = f"{said.text}\n at {said.place}"
        words = AwsDiagnostic(UNREADABLE, message, said.place)
    else:
        words = AwsDiagnostic(UNREADABLE)
    found = tuple(each._replace(aws=words) for each in report)
    return Report(found, report.document)


UNREADABLE = "INVALID_JSON_DESCRIPTION"


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield what belongs to the agent language only, and what AWS itself demands."""
    for field in DOCUMENT_FIELDS:
        if field in workflow.value:
            yield _unknown(field, f"/{field}")
    yield from check_timeout(workflow)
    for scope in workflow.scopes:
        express = workflow.express or _express_child(scope)
        if "QueryLanguage" in scope.value and split_pointer(scope.pointer)[1] in ITERATED:
            yield _unknown("QueryLanguage", f"{scope.pointer}/QueryLanguage")
        for node in scope.nodes:
            yield from _state(workflow, node, express)


def _express_child(scope: MachineScope | None) -> bool:
    """Whether a machine runs in express executions that a distributed Map starts."""
    while scope is not None:
        if scope.isolated:
            return below(scope.value, "ProcessorConfig").get("ExecutionType") == "EXPRESS"
        scope = scope.outer
    return False


def _state(workflow: CheckedWorkflow, node: Node, express: bool) -> Iterator[Finding]:
    kind = node.value.get("Type")
    if type_of(node.value) is not UNKNOWN and not type_of(node.value).aws:
        message = f"{kind} is no state type of AWS"
        yield Finding("V-ST-01", message, node.at("Type"))
        return
    yield from _fields(node)
    yield from check_duration(workflow, node, express)
    if kind == "Task":
        yield from integrations.check_task(workflow, node, express)
    elif kind == "Map":
        yield from _map(node, express)
    elif kind == "Pass" and "Result" in node.value and node.query_language == "JSONata":
        yield other_language("Result", node, node.at("Result"))


def _map(node: Node, express: bool) -> Iterator[Finding]:
    for field in ITERATED:
        mode = below(node.value, field, "ProcessorConfig").get("Mode")
        if express and mode == "DISTRIBUTED":
            message = "an express workflow has no distributed Maps"
            wording = Wording(
                "The field 'Mode' with value 'DISTRIBUTED' is not supported inside 'EXPRESS' state "
                "machines"
            )
            place = node.at(field, "ProcessorConfig", "Mode")
            yield Finding("V-MAP-07", message, place, aws=wording)
    for _, steps, path in _NUMBERS.of(node.value):
        if type(path) is str and path.startswith("$$"):
            message = "AWS reads this from the input or a variable only"
            yield Finding(
                "V-MAP-05", message, node.at(*steps), aws=Wording(aws_messages.NO_REFERENCE)
            )


ITERATED = ("ItemProcessor", "Iterator")

_NUMBERS = FieldIndex(
    lambda field: field.jsonpath is Reading.REFERENCE and field.rule in ("V-MAP-05", "V-MAP-10")
)
"""The fields of a Map that hold the path of a number."""


def _fields(node: Node) -> Iterator[Finding]:
    kind = node.value.get("Type")
    schema = f"states:{kind}"
    is_aws = type_of(node.value).aws
    known = known_fields(schema) if is_aws else frozenset()
    native = native_fields(schema) if is_aws else frozenset()
    for field in node.value:
        plain = field.removesuffix(".$")
        if plain in native or (plain != field and {plain, field} <= known):
            yield _unknown(field, node.at(field))
    for index, entry in objects(node.value, "Retry"):
        strategy = entry.get("JitterStrategy")
        if strategy == "DECORRELATED":
            message = "AWS has only the strategies 'NONE' and 'FULL'"
            wording = Wording(aws_messages.one_of(["NONE", "FULL"]))
            place = node.at("Retry", index, "JitterStrategy")
            yield Finding("V-RETRY-07", message, place, aws=wording)


def _unknown(field: str, pointer: str) -> Finding:
    message = f"AWS has no field {field!r} here"
    wording = Wording(aws_messages.unknown_field(field), at=split_pointer(pointer)[0])
    return Finding("V-TOP-09", message, pointer, at_key=True, aws=wording)


def check_size(document: Document, most: int | None) -> Iterator[Finding]:
    """Yield a definition that is too long, as it is written in JSON."""
    if most is None:
        return
    source = document.source
    text = source.text or ""
    written = text.lstrip().startswith("{") and document.dialect == "asl"
    if written and len(text) <= most:  # then its value is short enough, too
        return
    compacted = len(compact(document.value))
    length = len(text) if written else compacted
    if length > most:
        hint = "lift it: --quota definition_characters=none; or split it into several workflows"
        if compacted <= most:
            hint = f"without whitespace it has {compacted:,} characters"
        message = f"the definition has {length:,} characters, AWS takes {most:,}"
        yield Finding("V-TOP-15", message, "", hint)


def check_timeout(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield a time limit of the workflow that comes after that of AWS."""
    yield from _too_long(workflow, workflow.value, "TimeoutSeconds", "", workflow.express)


def check_duration(workflow: CheckedWorkflow, node: Node, express: bool) -> Iterator[Finding]:
    """Yield durations of a state that no execution lasts for."""
    kind = node.value.get("Type")
    if kind == "Wait":
        yield from _too_long(workflow, node.value, "Seconds", node.pointer, express)
    elif kind == "Task":
        yield from _too_long(workflow, node.value, "TimeoutSeconds", node.pointer, express)


def _too_long(
    workflow: CheckedWorkflow, holder: Mapping[str, Json], field: str, pointer: str, express: bool
) -> Iterator[Finding]:
    quotas = workflow.profile.quotas
    most = quotas.express_seconds if express else quotas.standard_seconds
    seconds: Json = holder.get(field)
    if most is not None and is_number(seconds) and seconds > most:
        kind = "an express" if express else "a standard"
        message = f"AWS ends {kind} execution after {most:,} seconds"
        place = f"{pointer}/{field}"
        yield Finding("V-TOP-15", message, place, severity=Severity.WARNING)
