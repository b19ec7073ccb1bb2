"""`asl test-state`."""

import json
from pathlib import Path

from .conftest import Asl


def test_output_is_the_response_of_test_state(asl: Asl) -> None:
    """The answer is that of AWS's TestState, as one object."""
    words = ("hello.asl.json", "--state", "Ask", "-i", '{"name": "Ann"}', "--profile", "default")
    done = asl("test-state", *words, "--mock-result", '"hi"', "--level", "DEBUG")
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert told["output"] == {"name": "Ann", "greeting": "hi"}
    assert told["inspectionData"]["afterParameters"] == {"who": "Ann"}


def test_agents_option_binds_agents(asl: Asl) -> None:
    """An agents file binds them, as for a run."""
    words = ("hello.asl.json", "-s", "Ask", "-i", '{"name": "Ann"}', "--profile", "default")
    done = asl("test-state", *words, "--agents", "agents.yaml")
    assert json.loads(done.stdout)["output"]["greeting"] == {"text": "hello"}


def test_exit_code_is_1_for_status_failed(asl: Asl, folder: Path) -> None:
    """A state that would be retried or caught exits with 0."""
    state = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sns:publish",
        "Retry": [{"ErrorEquals": ["Busy"], "MaxAttempts": 1}],
        "End": True,
    }
    (folder / "state.json").write_text(json.dumps(state))
    words = ("test-state", "state.json", "--mock-error", '{"error": "Busy"}')
    done = asl(*words)
    assert (done.exit_code, json.loads(done.stdout)["status"]) == (0, "RETRIABLE")
    done = asl(*words, "--retries", "1")
    assert (done.exit_code, json.loads(done.stdout)["status"]) == (1, "FAILED")


def test_context_and_variables_are_objects(asl: Asl, folder: Path) -> None:
    """Context and variables are objects."""
    state = {"Type": "Pass", "QueryLanguage": "JSONata", "Output": "{% $a %}", "End": True}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "variables.json").write_text('{"a": 5}')
    done = asl("test-state", "state.json", "--variables", "@variables.json")
    assert json.loads(done.stdout)["output"] == 5
    done = asl("test-state", "state.json", "--variables", "[]")
    assert done.exit_code == 2
    assert "the value must be an object" in done.stderr


def test_refusals_of_aws_exit_with_2(asl: Asl) -> None:
    """It is said in AWS's words."""
    done = asl("test-state", "pass.asl.json", "--state", "A", "--mock-result", "1")
    assert done.exit_code == 2
    assert "State type 'Pass' is not supported when a mock is specified" in done.stderr


def test_field_validation_option(asl: Asl, folder: Path) -> None:
    """Unless it is asked to look less close."""
    state = {"Type": "Task", "Resource": "arn:aws:states:::sns:publish", "End": True}
    (folder / "state.json").write_text(json.dumps(state))
    words = ("test-state", "state.json", "--mock-result", '{"MessageId": 1}')
    done = asl(*words)
    assert done.exit_code == 2
    assert "Field 'MessageId' must be a string" in done.stderr
    assert asl(*words, "--field-validation", "NONE").exit_code == 0
