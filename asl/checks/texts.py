"""Interpolated texts: V-TXT-01 (Specification 3.8)."""

import re
from collections.abc import Iterator
from typing import TypeAlias

from asl.checks.workflow import Workflow
from asl.core.diagnostics import Finding, escape
from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.expr import interpolation

__all__ = ["check"]

Place: TypeAlias = tuple[str, ...]

_FIELDS: dict[str, tuple[Place, ...]] = {
    "Approval": (("Prompt",), ("Escalation", "Message")),
    "Debate": (("Topic",),),
    "Checkpoint": (("Name",),),
    "Task": (("Memory", "Namespace"), ("Memory", "Read", "Namespace"), ("Feedback", "Question")),
    "Pass": (("Memory", "Namespace"), ("Memory", "Read", "Namespace")),
}
"""Where braces insert values, by state type. Everywhere else they are plain text."""

_PARAMETER = re.compile(r"\{\{\s*[^\W\d]\w*\s*(\|[^{}]*)?\}\}")


def check(workflow: Workflow) -> Iterator[Finding]:
    """Yield what is wrong with the texts into which values are inserted."""
    for node in workflow.nodes():
        kind = node.value.get("Type")
        for steps in _FIELDS.get(kind, ()) if type(kind) is str else ():
            yield from _texts(workflow, _at(node.value, steps), node.at(*steps))
    alerts = _at(workflow.value, ("Budget", "Alerts"))
    for index, alert in enumerate(alerts if type(alerts) is list else ()):
        yield from _texts(workflow, _at(alert, ("Message",)), f"/Budget/Alerts/{index}/Message")


def _at(value: Json, steps: Place) -> Json:
    for step in steps:
        value = value.get(step) if type(value) is dict else None
    return value


def _texts(workflow: Workflow, value: Json, pointer: str) -> Iterator[Finding]:
    """Check a text, or every text within a structured value that is not itself computed."""
    if type(value) is dict:
        for key, part in value.items():
            if not key.endswith(".$"):
                yield from _texts(workflow, part, f"{pointer}/{escape(key)}")
    elif type(value) is list:
        for index, part in enumerate(value):
            yield from _texts(workflow, part, f"{pointer}/{index}")
    elif type(value) is str:
        # Parameters of a template are filled in before the text is read.
        text = _PARAMETER.sub("", value) if workflow.template else value
        try:
            interpolation.check(text)
        except ExpressionFault as fault:
            yield Finding(fault.code, fault.message, pointer, fault.hint)
