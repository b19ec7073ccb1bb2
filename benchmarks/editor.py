"""Workloads of the language server: the time from a keystroke to the completion."""

import json
import time

from lsprotocol.types import TextDocumentContentChangePartial

from asl.core.values import Json
from asl.editor.completion import completion_items
from asl.editor.edited import EditedDocument
from asl.editor.project import ProjectNames
from benchmarks.workloads import Sides, Workload

STATES = 235
BUDGET = 100.0
"""Milliseconds in which an editor has to answer."""


def document() -> str:
    """Return a document of 5,000 lines."""
    states: dict[str, Json] = {"Last": {"Type": "Succeed"}}
    for number in range(STATES):
        states[f"State {number}"] = {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": {"FunctionName": "f", "Payload": {"a.$": "$.a", "number": number}},
            "ResultPath": f"$.r{number}",
            "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 3}],
            "Next": f"State {number + 1}" if number + 1 < STATES else "Last",
        }
    return json.dumps({"StartAt": "State 0", "States": states}, indent=2)


def keystroke() -> Sides:
    """Type one character of a target at the end, and complete it."""
    text = document()
    edited = EditedDocument("file:///a.asl.json", None, text, 0)
    at = text.rindex('"Next": "') + len('"Next": "')

    def typed() -> float:
        begun = time.perf_counter()
        change = TextDocumentContentChangePartial(edited.current.index.range(at, at), "S")
        edited.change([change], 1)
        found = completion_items(edited, at + 1, ProjectNames())
        assert len(found) == STATES
        return (time.perf_counter() - begun) * 1000

    return lambda: BUDGET, lambda: min(typed() for _ in range(5)), 1


WORKLOADS = (
    Workload(
        "keystroke", "completion in 5,000 lines after a keystroke", 1.0, keystroke, gives="ms"
    ),
)
