"""`asl test-state`."""

import json
from pathlib import Path

from .conftest import Asl


def test_a_state_of_a_document_is_tested(asl: Asl) -> None:
    """The answer is that of AWS's TestState, as one object."""
    words = ("hello.asl.json", "--state", "Ask", "-i", '{"name": "Ann"}', "--profile", "default")
    done = asl("test-state", *words, "--mock-result", '"hi"', "--level", "DEBUG")
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert told["output"] == {"name": "Ann", "greeting": "hi"}
    assert told["inspectionData"]["afterParameters"] == {"who": "Ann"}


def test_agents_answer_where_there_is_no_mock(asl: Asl) -> None:
    """An agents file binds them, as for a run."""
    words = ("hello.asl.json", "-s", "Ask", "-i", '{"name": "Ann"}', "--profile", "default")
    done = asl("test-state", *words, "--agents", "agents.yaml")
    assert json.loads(done.stdout)["output"]["greeting"] == {"text": "hello"}


def test_the_status_decides_about_the_exit_code(asl: Asl, folder: Path) -> None:
    """A state that would be retried or caught is none that has failed."""
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


def test_values_may_come_from_files(asl: Asl, folder: Path) -> None:
    """Context and variables are objects."""
    state = {"Type": "Pass", "QueryLanguage": "JSONata", "Output": "{% $a %}", "End": True}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "variables.json").write_text('{"a": 5}')
    done = asl("test-state", "state.json", "--variables", "@variables.json")
    assert json.loads(done.stdout)["output"] == 5
    done = asl("test-state", "state.json", "--variables", "[]")
    assert done.exit_code == 2
    assert "an object is wanted" in done.stderr


def test_what_aws_refuses_is_wrong_usage(asl: Asl) -> None:
    """It is said in AWS's words."""
    done = asl("test-state", "pass.asl.json", "--state", "A", "--mock-result", "1")
    assert done.exit_code == 2
    assert "State type 'Pass' is not supported when a mock is specified" in done.stderr


def test_a_mocked_result_is_one_of_the_service(asl: Asl, folder: Path) -> None:
    """Unless it is asked to look less close."""
    state = {"Type": "Task", "Resource": "arn:aws:states:::sns:publish", "End": True}
    (folder / "state.json").write_text(json.dumps(state))
    words = ("test-state", "state.json", "--mock-result", '{"MessageId": 1}')
    done = asl(*words)
    assert done.exit_code == 2
    assert "Field 'MessageId' must be a string" in done.stderr
    assert asl(*words, "--field-validation", "NONE").exit_code == 0
