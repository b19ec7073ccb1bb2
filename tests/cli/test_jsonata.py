"""What a person sees of a document in JSONata."""

import json
from pathlib import Path

from .conftest import Asl

FLOW = {
    "QueryLanguage": "JSONata",
    "StartAt": "Ask",
    "States": {
        "Ask": {
            "Type": "Task",
            "Agent": "Greeter",
            "Arguments": {"who": "{% $states.input.name %}"},
            "Output": {"greeting": "{% $states.result %}"},
            "Next": "End",
        },
        "End": {"Type": "Pass", "Output": {"list": ["{% 1 %}", "{% $missing %}"]}, "End": True},
    },
}


def test_failed_expression_has_its_position(asl: Asl, folder: Path) -> None:
    """Line and column of the expression, not of the state."""
    (folder / "flow.json").write_text(json.dumps(FLOW, indent=1))
    done = asl("run", "flow.json", "-i", '{"name": "Ann"}', "--agents", "agents.yaml")
    assert done.exit_code == 1
    assert "'$missing' specified for the field 'Output/list[1]' returned nothing" in done.stderr
    assert "in End at flow.json:21:6" in done.stderr


def test_trace_of_jsonata_prints_arguments(asl: Asl, folder: Path) -> None:
    """JSONata has no effective input."""
    (folder / "flow.json").write_text(json.dumps(FLOW, indent=1))
    done = asl("run", "flow.json", "-i", '{"name": "Ann"}', "--agents", "agents.yaml", "--trace")
    assert 'arguments        {"who":"Ann"}' in done.stderr
    assert "effective input" not in done.stderr
