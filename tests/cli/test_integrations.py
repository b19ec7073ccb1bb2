"""`asl run` with mock files and with workflows to start."""

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import PASS, Asl

SEND = "arn:aws:states:::sqs:sendMessage"


def task(resource: str = SEND, **fields: Any) -> dict[str, Any]:
    state = {"Type": "Task", "Resource": resource, "End": True, **fields}
    return {"StartAt": "T", "States": {"T": state}}


@pytest.fixture
def mocked(folder: Path) -> Path:
    """The folder with a document and a mock file for it."""
    (folder / "send.asl.json").write_text(json.dumps(task()))
    responses = {"Sent": {"0": {"Return": {"MessageId": "1"}}}}
    cases = {"Good": {"T": "Sent"}, "Bad": {"U": "Sent"}}
    (folder / "mocks.json").write_text(
        json.dumps({"StateMachines": {"M": {"TestCases": cases}}, "MockedResponses": responses})
    )
    return folder


@pytest.mark.usefixtures("mocked")
@pytest.mark.parametrize("case", ["Good", "M/Good"])
def test_mock_case_answers_without_a_warning(asl: Asl, case: str) -> None:
    """No warning about a resource that nobody serves: the state has a mock."""
    done = asl("run", "send.asl.json", "--mock", f"mocks.json#{case}")
    assert (done.exit_code, done.stdout, done.stderr) == (0, '{"MessageId":"1"}\n', "")


@pytest.mark.usefixtures("mocked")
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mocks.json", "'mocks.json' does not have the form FILE#CASE"),
        ("#Good", "does not have the form FILE#CASE"),
        ("mocks.json#", "does not have the form FILE#CASE"),
        ("none.json#Good", "cannot read 'none.json'"),
        ("mocks.json#God", "did you mean 'Good'?"),
        ("mocks.json#Bad", "the document has no state 'U'"),
        ("send.asl.json#Good", "unknown key 'StartAt'"),
    ],
)
def test_invalid_mock_option_exits_with_2(asl: Asl, spec: str, message: str) -> None:
    """Nothing is run, and the message says what was meant."""
    done = asl("run", "send.asl.json", "--mock", spec)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.usefixtures("mocked")
def test_unbound_resource_is_a_warning(asl: Asl) -> None:
    """The failure prints how to bind it."""
    done = asl("run", "send.asl.json")
    assert done.exit_code == 1
    assert "V-TASK-03" in done.stderr
    assert "--mock FILE#CASE" in done.stderr


def starting(folder: Path, form: str = ".sync:2") -> None:
    machine = "arn:aws:states:us-east-1:123456789012:stateMachine:Child"
    document = task(
        f"arn:aws:states:::states:startExecution{form}",
        Parameters={"StateMachineArn": machine, "Input.$": "$"},
        OutputPath="$.Output",
    )
    (folder / "parent.asl.json").write_text(json.dumps(document))
    (folder / "child.asl.json").write_text(json.dumps(PASS))


def test_workflow_option_takes_a_name_or_an_arn(asl: Asl, folder: Path) -> None:
    """Its name is that of the state machine, or its ARN."""
    starting(folder)
    arn = "arn:aws:states:us-east-1:123456789012:stateMachine:Child"
    for name in ("Child", arn):
        words = ("--workflow", f"{name}=child.asl.json", "--input", '{"a": 1}')
        done = asl("run", "parent.asl.json", *words)
        assert (done.exit_code, done.stdout, done.stderr) == (0, '{"a":1}\n', "")


@pytest.mark.parametrize(
    ("pair", "code", "message"),
    [
        ("child.asl.json", 2, "does not have the form NAME=FILE"),
        ("=child.asl.json", 2, "does not have the form NAME=FILE"),
        ("Child=", 2, "does not have the form NAME=FILE"),
        ("Child=none.asl.json", 2, "cannot read 'none.asl.json'"),
        ("Child=broken.asl.json", 3, "broken.asl.json:1:"),
    ],
)
def test_invalid_workflow_option_exits_with_2(
    asl: Asl, folder: Path, pair: str, code: int, message: str
) -> None:
    """Before the run."""
    starting(folder)
    (folder / "broken.asl.json").write_text('{"StartAt": "X", "States": {}}')
    done = asl("run", "parent.asl.json", "--workflow", pair)
    assert (done.exit_code, done.stdout) == (code, "")
    assert message in done.stderr


TRACED = [
    (
        "arn:aws:lambda:us-east-1:123456789012:function:F",
        "resources",
        ["parameters       {}", "result           7"],
    ),
    (
        "arn:aws:states:us-east-1:123456789012:activity:A",
        "resources",
        ["parameters       {}", "result           7"],
    ),
    (f"{SEND}.waitForTaskToken", "mocks", ["parameters       {}", "result           7"]),
]


@pytest.mark.parametrize("profile", ["default", "aws"])
@pytest.mark.parametrize(("resource", "section", "lines"), TRACED)
def test_trace_prints_every_kind_of_task(
    asl: Asl, folder: Path, profile: str, resource: str, section: str, lines: list[str]
) -> None:
    """What goes in and out is shown whatever history calls it."""
    (folder / "task.asl.json").write_text(json.dumps(task(resource)))
    bound = {section: {"*" if section == "resources" else "T": {"return": 7}}}
    (folder / "bound.json").write_text(json.dumps(bound))
    words = ("--agents", "bound.json", "--profile", profile, "--trace")
    done = asl("run", "task.asl.json", *words)
    assert done.exit_code == 0
    for line in lines:
        assert f"  {line}\n" in done.stderr


def test_trace_prints_the_output_of_a_token_handler(asl: Asl, folder: Path) -> None:
    """It is not the result of the task."""
    document = task(f"{SEND}.waitForTaskToken", TimeoutSeconds=5)
    (folder / "task.asl.json").write_text(json.dumps(document))
    (folder / "bound.json").write_text(json.dumps({"resources": {"*": {"return": {"Id": 1}}}}))
    words = ("--agents", "bound.json", "--virtual-time", "--trace")
    done = asl("run", "task.asl.json", *words)
    assert done.exit_code == 1
    assert '  submitted        {"Id":1}\n' in done.stderr
    assert "  error            States.Timeout" in done.stderr
