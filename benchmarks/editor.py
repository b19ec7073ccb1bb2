"""Workloads of the language server: the time from a keystroke to the completion."""

import json
import time

from lsprotocol.types import TextDocumentContentChangePartial

from asl.core.values import Json
from asl.dialects.yaml_writer import to_yaml
from asl.editor.completion import completion_items
from asl.editor.edited import EditedDocument
from asl.editor.project import ProjectNames
from benchmarks.workloads import Sides, Workload

LINES = 5_000
BUDGET = 100.0
"""Milliseconds in which an editor has to answer."""


def document(is_yaml: bool) -> str:
    """Return a document of 5,000 lines."""
    states: dict[str, Json] = {}
    for number in range(LINES // (11 if is_yaml else 21)):
        states[f"State {number}"] = {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": {"FunctionName": "f", "Payload": {"a.$": "$.a", "number": number}},
            "ResultPath": f"$.r{number}",
            "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 3}],
            "Next": f"State {number + 1}",
        }
    states[f"State {len(states)}"] = {"Type": "Succeed"}
    value: Json = {"StartAt": "State 0", "States": states}
    text = to_yaml(value) if is_yaml else json.dumps(value, indent=2)
    assert LINES * 0.95 < text.count("\n") < LINES * 1.05
    return text


def keystroke(is_yaml: bool) -> Sides:
    """Type one character of a target at the end, and complete it."""
    text = document(is_yaml)
    name = f"file:///a.asl.{'yaml' if is_yaml else 'json'}"
    edited = EditedDocument(name, None, text, 0)
    field = "Next: " if is_yaml else '"Next": "'
    at = text.rindex(field) + len(field)

    def typed() -> float:
        begun = time.perf_counter()
        change = TextDocumentContentChangePartial(edited.current.index.range(at, at), "S")
        edited.change([change], 1)
        assert completion_items(edited, at + 1, ProjectNames())
        return (time.perf_counter() - begun) * 1000

    return lambda: BUDGET, lambda: min(typed() for _ in range(5)), 1


WORKLOADS = (
    Workload(
        "keystroke",
        "completion in 5,000 lines of JSON after a keystroke",
        1.0,
        lambda: keystroke(False),
        gives="ms",
    ),
    Workload(
        "keystroke-yaml",
        "the same in YAML",
        1.0,
        lambda: keystroke(True),
        gives="ms",
    ),
)
