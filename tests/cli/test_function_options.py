"""`--functions` and `--runtime`."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Asl

TEMPLATE = """\
Resources:
  Double:
    Type: AWS::Lambda::Function
    Properties: {Runtime: python3.11, Handler: app.handler, Code: src, Timeout: 30}
  Go:
    Type: AWS::Lambda::Function
    Properties: {Runtime: go1.x, Handler: main, Code: src, FunctionName: !Ref GoName}
  Flow:
    Type: AWS::StepFunctions::StateMachine
    Properties:
      Definition:
        StartAt: A
        States: {A: {Type: Task, Resource: !GetAtt Double.Arn, End: true}}
Parameters:
  GoName: {Type: String}
"""
HANDLER = """\
import sys
def handler(event, context):
    print("doubling", event)
    return 2 * event
"""


@pytest.fixture
def template(folder: Path) -> str:
    """A template with a function and a state machine that calls it."""
    (folder / "src").mkdir()
    (folder / "src" / "app.py").write_text(HANDLER, encoding="utf-8")
    (folder / "template.yaml").write_text(TEMPLATE, encoding="utf-8")
    return "template.yaml"


def test_functions_of_the_document(asl: Asl, template: str) -> None:
    done = asl("run", template, "--functions", "--input", "4")
    assert (done.exit_code, done.stdout) == (0, "8\n")
    assert done.stderr.splitlines() == [
        "asl: function Double: src/app.handler (python3.11)",
        "asl: function Go is not bound: no command is known for the runtime go1.x: "
        "give one with --runtime go1.x=COMMAND",
        "Double: doubling 4",
    ]


def test_nothing_of_the_project_runs_without_the_option(asl: Asl, template: str) -> None:
    done = asl("run", template, "--input", "4")
    assert done.exit_code == 1
    assert "States.AgentNotFound" in done.stderr
    assert "run its code with --functions TEMPLATE" in done.stderr


def test_functions_of_another_file(asl: Asl, template: str, folder: Path) -> None:
    state = {"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:1:function:Double", "End": True}
    document = json.dumps({"StartAt": "A", "States": {"A": state}})
    (folder / "double.asl.json").write_text(document, encoding="utf-8")
    done = asl("run", "double.asl.json", "--functions", template, "-q", "--input", "4")
    assert done.stdout == "8\n"
    assert done.stderr == "Double: doubling 4\n"


def test_agents_file_wins(asl: Asl, template: str, folder: Path) -> None:
    text = 'resources:\n  "*:function:Double": {return: 1}\n'
    (folder / "own.yaml").write_text(text, encoding="utf-8")
    done = asl("run", template, "--functions", "--agents", "own.yaml", "--input", "4")
    assert done.stdout == "1\n"
    assert "asl: function Double is not bound: an agents file binds it" in done.stderr


def test_runtime_and_variables(asl: Asl, template: str) -> None:
    command = f"go1.x={sys.executable} main.py"
    given = ("--runtime", command, "--var", "GoName=go", "--input", "4")
    done = asl("run", template, "--functions", *given)
    assert "asl: function Go: src/main (go1.x)" in done.stderr


WRONG = [
    (("run", "pass.asl.json", "--functions"), "is no template with Lambda functions"),
    (("run", "pass.asl.json", "--runtime", "go1.x=a"), "--runtime needs --functions"),
    (("run", "template.yaml", "--functions", "--runtime", "go1.x"), "NAME=COMMAND"),
    (("run", "template.yaml", "--functions", "missing.yaml"), "missing.yaml"),
    (("worker", "--until-idle", "--store", "s.db", "--functions"), "needs the file of a template"),
]


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_wrong_use(asl: Asl, template: str, words: tuple[str, ...], message: str) -> None:
    done = asl(*words)
    assert done.exit_code == 2
    assert message in done.stderr


def test_stored_execution_is_redriven_with_the_functions(
    asl: Asl, template: str, folder: Path
) -> None:
    (folder / "src" / "app.py").write_text("raise ValueError('unfinished')\n", encoding="utf-8")
    given = ("--store", "s.db", "--name", "one", "--input", "4", "-q")
    assert asl("run", template, "--functions", *given).exit_code == 1
    (folder / "src" / "app.py").write_text(HANDLER, encoding="utf-8")
    done = asl("redrive", "one", "--store", "s.db", "--functions", template)
    assert done.stdout == "8\n"
