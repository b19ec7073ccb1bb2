"""The commands for the life of an execution: checkpoints, redrives, logs."""

import json
import re
from pathlib import Path

import pytest

import asl as front_door

from .conftest import Asl

SAVING = {
    "StartAt": "A",
    "States": {
        "A": {"Type": "Task", "Agent": "Costly", "ResultPath": "$.a", "Next": "Save"},
        "Save": {"Type": "Checkpoint", "Name": "after-a", "Next": "B"},
        "B": {"Type": "Task", "Agent": "Flaky", "ResultPath": "$.b", "End": True},
    },
}
ASKING = {"StartAt": "Ask", "States": {"Ask": {"Type": "Approval", "Prompt": "Go?", "End": True}}}


@pytest.fixture(autouse=True)
def files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document that fails, agents with and without luck, and a store of the user."""
    (folder / "saving.asl.json").write_text(json.dumps(SAVING))
    (folder / "asking.asl.json").write_text(json.dumps(ASKING))
    (folder / "bad.yaml").write_text("Costly: {return: 1}\nFlaky: {raise: {Error: Boom}}\n")
    (folder / "good.yaml").write_text("Costly: {return: 2}\nFlaky: {return: 3}\n")
    monkeypatch.setenv("ASL_STORE", str(folder / "mine.db"))


def failed(asl: Asl, name: str = "it") -> None:
    done = asl(
        "run", "saving.asl.json", "--store", "mine.db", "--name", name, "--agents", "bad.yaml"
    )
    assert done.exit_code == 1


def test_resume_from_a_checkpoint(asl: Asl, folder: Path) -> None:
    """Listed, then resumed by its name."""
    failed(asl)
    assert "it  after-a  " in asl("checkpoints", "it").stdout
    (line,) = asl("checkpoints", "--json").stdout.splitlines()
    assert json.loads(line)["resumeAt"] == "B"
    assert json.loads(line)["visited"] == ["A", "Save"]
    done = asl("resume", "it", "--from", "after-a", "--agents", "good.yaml")
    assert (done.exit_code, json.loads(done.stdout)) == (0, {"a": 1, "b": 3})


def test_invalid_checkpoint_exits_with_2(asl: Asl, folder: Path) -> None:
    """An unknown name has a suggestion, another document needs --force, --force needs --from."""
    failed(asl)
    done = asl("resume", "it", "--from", "after-b")
    assert done.exit_code == 2
    assert "did you mean 'after-a'?" in done.stderr
    (folder / "other.asl.json").write_text(json.dumps({**SAVING, "Comment": "other"}))
    words = ("resume", "it", "--from", "after-a", "--document", "other.asl.json")
    assert "another one than when 'after-a' was saved" in asl(*words).stderr
    assert asl(*words, "--force", "--agents", "good.yaml").exit_code == 0
    assert asl("resume", "it", "--force").exit_code == 2


def test_checkpoints_without_any_prints_a_message(asl: Asl, folder: Path) -> None:
    """An empty list is no error."""
    with front_door.open_store(folder / "mine.db"):
        pass
    assert "there are no checkpoints" in asl("checkpoints").stderr


def test_redrive_continues_a_failed_execution(asl: Asl, folder: Path) -> None:
    """Also with a corrected document; a successful one is refused."""
    failed(asl)
    assert asl("redrive", "it", "--agents", "bad.yaml").exit_code == 1
    states = {
        **SAVING["States"],
        "B": {"Type": "Pass", "Result": 4, "ResultPath": "$.b", "End": True},
    }  # type: ignore[dict-item]
    (folder / "mended.asl.json").write_text(json.dumps({**SAVING, "States": states}))
    done = asl("redrive", "it", "--document", "mended.asl.json")
    assert (done.exit_code, json.loads(done.stdout)) == (0, {"a": 1, "b": 4})
    done = asl("redrive", "it")
    assert done.exit_code == 2
    assert "Execution is SUCCEEDED and cannot be redriven" in done.stderr
    assert "redriven  2 times" in asl("show", "it").stdout


def test_show_prints_active_states_requests_and_durations(asl: Asl, folder: Path) -> None:
    """And what it waits for, and how long its states have taken."""
    failed(asl)
    shown = asl("show", "it").stdout
    assert "state     B" in shown
    assert "saved     after-a" in shown
    assert re.search(r"TaskStateExited +A  \(\d\.\d{3} s\)", shown)
    asl("run", "asking.asl.json", "--store", "mine.db", "--name", "ask")
    shown = asl("show", "ask").stdout
    assert "state     Ask  for " in shown
    assert "waits for Go? (approve | reject)" in shown


def test_logs_print_a_line_or_json_for_each_event(asl: Asl, folder: Path) -> None:
    """A line for each event, or JSON."""
    failed(asl)
    lines = asl("logs", "it").stdout.splitlines()
    assert [line.split()[1] for line in lines][-2:] == ["TaskFailed", "ExecutionFailed"]
    (saved,) = (line for line in lines if "CheckpointCreated  Save" in line)
    assert '"name":"after-a"' in saved
    assert '"name":"A"' not in "".join(lines), "a place ends with the name of the state"
    last = json.loads(asl("logs", "it", "--json").stdout.splitlines()[-1])
    assert (last["type"], last["details"]) == ("ExecutionFailed", {"error": "Boom"})


def test_show_sorts_events_by_time(asl: Asl, folder: Path) -> None:
    """An answer is recorded when the execution resumes."""
    asl("run", "asking.asl.json", "--store", "mine.db", "--name", "ask")
    asl("approve", "ask", "--option", "approve")
    asl("resume", "ask")
    shown = asl("show", "ask").stdout
    assert shown.index("ExecutionResumed") < shown.index("ApprovalDecided")


def test_logs_follow_prints_until_the_end(
    asl: Asl, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another store does meanwhile is told, up to the end."""
    asl("run", "asking.asl.json", "--store", "mine.db", "--name", "ask")

    def meanwhile(seconds: float) -> None:
        with front_door.open_store(folder / "mine.db") as store:
            if pending := store.pending():
                store.answer(pending[0]["requestId"], "approve")
            else:
                store.resume("ask")

    monkeypatch.setattr("asl.cli.listings.time.sleep", meanwhile)
    lines = asl("logs", "-f", "ask").stdout.splitlines()
    assert [line.split()[1] for line in lines] == [
        "ExecutionStarted", "ApprovalStateEntered", "ApprovalRequested", "ExecutionPaused",
        "ExecutionResumed", "ApprovalDecided", "ApprovalStateExited", "ExecutionSucceeded",
    ]  # fmt: skip


def test_logs_follow_ends_if_the_store_is_deleted(
    asl: Asl, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing would ever come of it."""
    asl("run", "asking.asl.json", "--store", "mine.db", "--name", "ask")
    monkeypatch.setattr(
        "asl.cli.listings.time.sleep", lambda seconds: (folder / "mine.db").unlink()
    )
    done = asl("logs", "-f", "ask")
    assert done.exit_code == 2
    assert "mine.db has been deleted" in done.stderr


def test_paused_run_and_resume_exit_with_4(asl: Asl, folder: Path) -> None:
    """So does resuming it without an answer."""
    words = ("run", "asking.asl.json", "--store", "mine.db", "--name", "ask")
    assert asl(*words).exit_code == 4
    assert asl("resume", "ask").exit_code == 4
    assert asl("stop", "ask").exit_code == 0
    assert asl("redrive", "ask").exit_code == 4
