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


def test_a_failed_expression_is_shown_where_it_stands(asl: Asl, folder: Path) -> None:
    """Line and column are those of the expression, not of its state."""
    (folder / "flow.json").write_text(json.dumps(FLOW, indent=1))
    done = asl("run", "flow.json", "-i", '{"name": "Ann"}', "--agents", "agents.yaml")
    assert done.exit_code == 1
    assert "'$missing' specified for the field 'Output/list[1]' returned nothing" in done.stderr
    assert "in End at flow.json:21:6" in done.stderr


def test_a_trace_in_jsonata_shows_the_arguments(asl: Asl, folder: Path) -> None:
    """No field stands between the input and the arguments, so nothing else is shown."""
    (folder / "flow.json").write_text(json.dumps(FLOW, indent=1))
    done = asl("run", "flow.json", "-i", '{"name": "Ann"}', "--agents", "agents.yaml", "--trace")
    assert 'arguments        {"who":"Ann"}' in done.stderr
    assert "effective input" not in done.stderr
