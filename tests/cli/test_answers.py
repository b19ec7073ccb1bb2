"""The commands for task tokens and activities, and for executions that nobody is at work on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Asl

SIGN = "arn:aws:states:us-east-1:123456789012:activity:Sign"
DOCUMENT = {
    "StartAt": "Ask",
    "States": {
        "Ask": {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
            "Parameters": {"token.$": "$$.Task.Token"},
            "TimeoutSeconds": 600,
            "Next": "Sign",
        },
        "Sign": {"Type": "Task", "Resource": SIGN, "End": True},
    },
}


@pytest.fixture(autouse=True)
def files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "ask.asl.json").write_text(json.dumps(DOCUMENT))
    (folder / "sqs.yaml").write_text('resources: {"arn:aws:states:::sqs:*": {return: {}}}\n')
    monkeypatch.setenv("ASL_STORE", str(folder / "mine.db"))


def test_answer_completes_a_task_token(asl: Asl) -> None:
    """The inbox lists a token; 'asl answer' sends a heartbeat and a result."""
    words = ("--name", "it", "--store", "mine.db", "--synchronous", "normal")
    done = asl("run", "ask.asl.json", *words, "--agents", "sqs.yaml")
    assert done.exit_code == 4
    assert "Ask waits for an answer: 'asl answer " in done.stderr
    token = json.loads(asl("inbox", "--json").stdout)["taskToken"]
    assert token in asl("inbox").stdout
    assert f"the answer to the task token {token} (Ask)" in asl("show", "it").stdout
    assert asl("answer", token, "--heartbeat").exit_code == 0
    assert (
        "'asl resume it --agents sqs.yaml' continues it"
        in asl("answer", token, "--output", '{"ok": 1}').stderr
    )
    again = asl("answer", token, "--output", "2")
    assert (again.exit_code, "TaskTimedOut" in again.stderr) == (2, True)
    assert asl("resume", "--due", "--agents", "sqs.yaml").stdout == "it  PAUSED\n"
    taken = json.loads(asl("activity", SIGN, "--worker", "bob").stdout)
    assert taken["input"] == '{"ok":1}'
    assert json.loads(asl("activity", SIGN).stdout) == {"taskToken": None, "input": None}
    asl("answer", taken["taskToken"], "--error", "Ink", "--cause", "none left")
    done = asl("resume", "it", "--agents", "sqs.yaml")
    assert (done.exit_code, "it FAILED Ink: none left" in done.stderr) == (1, True)


def test_inbox_names_child_and_parent_of_a_task_token(asl: Asl, folder: Path) -> None:
    """The inbox names the child execution and the execution that started it."""
    parameters = {
        "StateMachineArn": "arn:aws:states:us-east-1:123456789012:stateMachine:Child",
        "Name": "kid",
        "Input": {"token.$": "$$.Task.Token"},
    }
    start = {"Type": "Task", "Resource": "arn:aws:states:::states:startExecution.sync:2"}
    start |= {"Parameters": parameters, "End": True}
    parent = {"StartAt": "Start", "States": {"Start": start}}
    child = {"StartAt": "Ask", "States": {"Ask": {"Type": "Approval", "Prompt": "Go?"}}}
    child["States"]["Ask"]["End"] = True
    for name, document in (("parent", parent), ("child", child)):
        (folder / f"{name}.asl.json").write_text(json.dumps(document))
    words = ("--name", "top", "--store", "mine.db", "--workflow", "Child=child.asl.json")
    assert asl("run", "parent.asl.json", *words).exit_code == 4
    listed = asl("inbox").stdout
    assert "kid (started by top)  Go?" in listed
    assert "top  Start" in listed
    shown = [json.loads(line) for line in asl("inbox", "--json").stdout.splitlines()]
    assert [each["execution"] for each in shown] == ["kid", "top"]
    assert asl("approve", "kid").exit_code == 0
    assert asl("inbox", "kid").stdout == ""


def test_answer_output_that_is_not_json_exits_with_2(asl: Asl) -> None:
    """The message has the position of the fault."""
    asl("run", "ask.asl.json", "--agents", "sqs.yaml", "--store", "mine.db")
    done = asl("answer", "t", "--store", "mine.db", "--output", "{1}")
    assert (done.exit_code, "--output:1:2: error READ-01" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "words", [(), ("--output", "1", "--heartbeat"), ("--error", "E", "--output", "1")]
)
def test_answer_takes_one_of_output_error_and_heartbeat(asl: Asl, words: tuple[str, ...]) -> None:
    """Other combinations are wrong usage."""
    done = asl("answer", "0" * 64, *words)
    assert (done.exit_code, "--heartbeat" in done.stderr) == (2, True)


def test_store_option_without_a_file_is_the_default_store(
    asl: Asl, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--store` without a value."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    monkeypatch.delenv("ASL_STORE")
    assert asl("run", "pass.asl.json", "--name", "it", "--store").exit_code == 0
    assert asl("ls").stdout.startswith("it  SUCCEEDED")
    refused = asl("run", "pass.asl.json", "--synchronous", "full")
    assert (refused.exit_code, "--synchronous needs --store" in refused.stderr) == (2, True)


DIES = """
import os, asl
document = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "Die", "End": True}}}
store = asl.open_store("mine.db", agents={"Die": lambda data: os._exit(9)})
store.run(document, {}, name="it")
"""


def test_logs_follow_exits_with_1_if_the_process_has_ended(asl: Asl, folder: Path) -> None:
    """The message names the command to resume, and `--due` finds the execution."""
    done = subprocess.run([sys.executable, "-c", DIES], env=os.environ, check=False, timeout=60)
    assert done.returncode == 9
    logs = asl("logs", "-f", "it")
    assert (logs.exit_code, "TaskScheduled" in logs.stdout) == (1, True)
    assert "the process of it has ended: 'asl resume it' continues it" in logs.stderr
    (folder / "agents.yaml").write_text("Die: {return: alive}\n")
    assert asl("resume", "--due", "--agents", "agents.yaml").stdout == "it  SUCCEEDED\n"
    assert asl("logs", "-f", "it").exit_code == 0
