"""Definitions beyond the quotas of AWS: V-TOP-15."""

from collections.abc import Iterator, Mapping

from asl.checks.workflow import Workflow
from asl.core.diagnostics import Finding, Severity
from asl.core.document import Document
from asl.core.values import Json, compact, is_number
from asl.states.base import Node

__all__ = ["check_duration", "check_size", "check_timeout"]


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
            hint = f"without blanks between its parts it has {compacted:,} characters"
        message = f"the definition has {length:,} characters, AWS takes {most:,}"
        yield Finding("V-TOP-15", message, "", hint)


def check_timeout(workflow: Workflow) -> Iterator[Finding]:
    """Yield a time limit of the workflow that comes after that of AWS."""
    yield from _too_long(workflow, workflow.value, "TimeoutSeconds", "", workflow.express)


def check_duration(workflow: Workflow, node: Node, express: bool) -> Iterator[Finding]:
    """Yield durations of a state that no execution lasts for."""
    kind = node.value.get("Type")
    if kind == "Wait":
        yield from _too_long(workflow, node.value, "Seconds", node.pointer, express)
    elif kind == "Task":
        yield from _too_long(workflow, node.value, "TimeoutSeconds", node.pointer, express)


def _too_long(
    workflow: Workflow, holder: Mapping[str, Json], field: str, pointer: str, express: bool
) -> Iterator[Finding]:
    quotas = workflow.profile.quotas
    most = quotas.express_seconds if express else quotas.standard_seconds
    seconds: Json = holder.get(field)
    if most is not None and is_number(seconds) and seconds > most:
        kind = "an express" if express else "a standard"
        message = f"AWS ends {kind} execution after {most:,} seconds"
        place = f"{pointer}/{field}"
        yield Finding("V-TOP-15", message, place, severity=Severity.WARNING)
