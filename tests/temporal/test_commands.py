"""The commands on Temporal print what they print on a store in a file, but for times."""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

import asl
from asl.cli.main import cli
from tests.temporal.test_serve import until

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An eviction of a workflow drops its coroutines."""

SAVING: Any = {
    "StartAt": "A",
    "States": {
        "A": {"Type": "Task", "Agent": "Costly", "ResultPath": "$.a", "Next": "Save"},
        "Save": {"Type": "Checkpoint", "Name": "after-a", "Next": "B"},
        "B": {"Type": "Task", "Agent": "Flaky", "ResultPath": "$.b", "End": True},
    },
}
FIXED = {**SAVING, "States": {**SAVING["States"], "B": {"Type": "Pass", "Result": 9, "End": True}}}
ASKING = {"StartAt": "Ask", "States": {"Ask": {"Type": "Approval", "Prompt": "Go?", "End": True}}}
WAITING = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 9999, "End": True}}}
RESOURCE = "arn:aws:states:::sqs:sendMessage"
TOKEN = {"Type": "Task", "Resource": f"{RESOURCE}.waitForTaskToken", "End": True}
WITH_TOKEN = {"StartAt": "T", "States": {"T": {**TOKEN, "Parameters": {"t.$": "$$.Task.Token"}}}}
DOCUMENTS = {"saving": SAVING, "fixed": FIXED, "asking": ASKING, "waiting": WAITING}
DOCUMENTS["token"] = WITH_TOKEN
TIMES = (
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r" *\d+\.\d{3} s", " SECONDS"),
    (r'"elapsed":[\d.e-]+', '"elapsed":0'),
    (r"for \d+ m?s", "for SECONDS"),
)


class Answer(NamedTuple):
    """What a command has printed, without times."""

    code: int
    stdout: str
    stderr: str


def command(*words: str) -> Answer:
    """Run a command."""
    found = CliRunner().invoke(cli, [*words], prog_name="asl")
    texts = [found.stdout, found.stderr]
    for pattern, replacement in TIMES:
        texts = [re.sub(pattern, replacement, text) for text in texts]
    return Answer(found.exit_code, *texts)


ON_TEMPORAL = pytest.mark.parametrize("place", ["temporal"], indirect=True)
"""For commands whose tests with a file are in `tests/cli`."""


@pytest.fixture(params=["file", "temporal"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The store that the commands use, in a folder with documents and agents."""
    for name, document in DOCUMENTS.items():
        (tmp_path / f"{name}.asl.json").write_text(json.dumps(document))
    (tmp_path / "bad.yaml").write_text("Costly: {return: 1}\nFlaky: {raise: {Error: Boom}}\n")
    (tmp_path / "good.yaml").write_text("Costly: {return: 2}\nFlaky: {return: 3}\n")
    monkeypatch.chdir(tmp_path)
    found = "runs.db"
    if request.param == "temporal":
        found = request.getfixturevalue("address")
    monkeypatch.setenv("ASL_STORE", found)
    return found


def run(document: str, name: str, *words: str) -> Answer:
    return command("run", f"{document}.asl.json", "--store", "--name", name, *words)


HISTORY = """\
SECONDS  ExecutionStarted
SECONDS  TaskStateEntered        A
SECONDS  TaskScheduled           A
SECONDS  TaskSucceeded           A
SECONDS  TaskStateExited         A  ( SECONDS)
SECONDS  CheckpointStateEntered  Save
SECONDS  CheckpointCreated       Save
SECONDS  CheckpointStateExited   Save  ( SECONDS)
SECONDS  TaskStateEntered        B
SECONDS  TaskScheduled           B
SECONDS  TaskFailed              B
SECONDS  ExecutionFailed
"""


def test_commands_that_read(place: str) -> None:
    failed = run("saving", "it", "--agents", "bad.yaml")
    assert (failed.code, "workflow failed: Boom" in failed.stderr) == (1, True)
    assert "Traceback" not in failed.stderr
    until(lambda: command("ls").stdout)
    for words in ([], ["--status", "FAILED"], ["-n", "1"]):
        assert command("ls", *words).stdout == "it  FAILED     TIME  saving  Boom\n"
    assert command("ls", "--after", "it").stdout == ""
    assert command("ls", "--status", "PAUSED").stdout == ""
    assert command("ls", "--stuck").stdout == ""
    assert json.loads(command("ls", "--json").stdout)["status"] == "FAILED"
    shown = command("show", "it").stdout
    summary, _, history = shown.partition("\n\n")
    assert summary.splitlines()[0] == "it  FAILED"
    assert "error     Boom" in summary
    assert "saved     after-a  TIME" in summary
    assert re.sub("^ ", "", history, flags=re.MULTILINE) == HISTORY
    found = json.loads(command("show", "it", "--json").stdout)
    assert (found["visited"], found["error"]) == (["A", "Save", "B"], "Boom")
    events = command("show", "it", "--events", "--after", "1", "-n", "2").stdout.splitlines()
    assert [json.loads(each)["type"] for each in events] == ["TaskStateEntered", "TaskScheduled"]
    lines = command("logs", "it").stdout.splitlines()
    assert [lines[0], lines[-1]] == [
        'TIME  ExecutionStarted  {"input":{}}', 'TIME  ExecutionFailed  {"error":"Boom"}',
    ]  # fmt: skip
    assert len(command("logs", "it", "-f", "--json").stdout.splitlines()) == len(lines)
    assert command("checkpoints", "it").stdout.startswith("it  after-a  TIME  until TIME")
    (saved,) = command("checkpoints", "it", "--json").stdout.splitlines()
    assert json.loads(saved)["resumeAt"] == "B"
    assert command("costs", "it").stdout == "total        0.0000 USD          0 tokens\n"
    assert "no feedback requests" in command("feedback", "it").stderr
    unknown = command("show", "nothing")
    assert (unknown.code, "there is no execution 'nothing' in" in unknown.stderr) == (2, True)


@ON_TEMPORAL
def test_commands_that_restart(place: str) -> None:
    run("saving", "it", "--agents", "bad.yaml")
    again = command("resume", "it", "--from", "after-a", "--agents", "bad.yaml")
    assert (again.code, "Boom" in again.stderr) == (1, True)
    done = command("redrive", "it", "--document", "fixed.asl.json", "--agents", "good.yaml")
    assert (done.code, done.stdout) == (0, "9\n")
    refused = command("redrive", "it")
    assert (refused.code, "cannot be redriven" in refused.stderr) == (2, True)
    run("saving", "other", "--agents", "bad.yaml")
    done = command("resume", "other", "--from", "after-a", "--agents", "good.yaml")
    assert (done.code, json.loads(done.stdout)) == (0, {"a": 1, "b": 3})
    forked = command("fork", "other", "--at", "B", "--name", "third")
    assert (forked.code, forked.stdout) == (0, "third\n")
    done = command("resume", "third", "--agents", "good.yaml")
    assert (done.code, json.loads(done.stdout)) == (0, {"a": 1, "b": 3})


@ON_TEMPORAL
def test_commands_that_answer(place: str) -> None:
    paused = run("asking", "ask")
    assert (paused.code, "asks: Go? (approve | reject)" in paused.stderr) == (4, True)
    until(lambda: command("inbox").stdout)
    for words in ([], ["ask"]):
        assert command("inbox", *words).stdout.startswith("ask  Go?\n  approve | reject")
    assert json.loads(command("inbox", "--json").stdout)["execution"] == "ask"
    refused = command("approve", "ask", "--option", "maybe")
    assert refused.code == 2
    assert command("approve", "ask", "--option", "approve", "--as", "ann").code == 0
    done = command("resume", "ask")
    assert (done.code, json.loads(done.stdout)["approver"]) == (0, "ann")
    resources: Any = {f"{RESOURCE}.waitForTaskToken": lambda data: None}
    with asl.open_store(place, resources=resources) as store, store.runner():
        assert run("token", "tok", "--detach").stdout == "tok\n"
        task = json.loads(until(lambda: command("inbox", "tok", "--json").stdout))
        assert command("answer", task["taskToken"], "--heartbeat").code == 0
        assert command("answer", task["taskToken"], "--output", '{"a": 1}').code == 0
        until(lambda: command("show", "tok").stdout.startswith("tok  SUCCEEDED"))
    late = command("answer", task["taskToken"], "--output", "1")
    assert (late.code, "asl: Task" in late.stderr) == (2, True)


def test_a_wait_is_paused_followed_and_stopped(place: str) -> None:
    with asl.open_store(place) as store, store.runner(), ThreadPoolExecutor(1) as pool:
        assert run("waiting", "w", "--detach").code == 0
        until(lambda: command("ls", "--status", "PAUSED").stdout.startswith("w  PAUSED"))
        assert "state     W" in command("show", "w").stdout
        stopped = pool.submit(store.cancel, "w", "enough")
        lines = command("logs", "w", "-f").stdout.splitlines()
        stopped.result()
        assert lines[-1] == 'TIME  ExecutionAborted  {"cause":"enough"}'
        assert command("stop", "w").code == 2
        run("waiting", "x", "--detach")
        assert command("stop", "x").code == 0
        until(lambda: command("ls", "--status", "ABORTED").stdout.startswith("x  ABORTED"))


@ON_TEMPORAL
def test_stopped_without_a_worker(place: str) -> None:
    run("waiting", "unserved", "--detach")
    answer = command("stop", "unserved")
    assert "unserved ends when a worker runs: 'asl worker'" in answer.stderr


def test_a_cancelled_run_ends(address: str) -> None:
    """Ctrl-C does not wait for the execution."""

    async def scene() -> None:
        with asl.open_store(address) as store:
            running = asyncio.create_task(store.arun(WAITING, name="cancelled"))
            await asyncio.to_thread(until, store.executions)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    asyncio.run(scene())


def test_a_worker_with_a_version(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASL_STORE", address)
    found = command("worker", "--build", "2026.1", "--until-idle")
    assert found.code == 0, found.stderr
    queue = address.rpartition("=")[2]
    assert f"--deployment-name {queue} --build-id 2026.1" in found.stderr
    monkeypatch.setenv("ASL_STORE", "runs.db")
    assert "--build needs --store temporal://" in command("worker", "--build", "1").stderr
