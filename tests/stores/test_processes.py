"""Several processes at one store."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import asl

DOCUMENT = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "Work", "End": True}}}
HOLDING = """
import sys
import asl

def work(data):
    print("at work", flush=True)
    return sys.stdin.readline().strip()

document = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "Work", "End": True}}}
with asl.open_store(sys.argv[1], agents={"Work": work}) as store:
    print(store.start(document, {}, name="held").output)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def holding(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process, which is at work on the execution `held`."""
    command = [sys.executable, "-c", HOLDING, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        yield process
        process.kill()


def test_processes_exclude_each_other_per_execution(
    path: Path, holding: "subprocess.Popen[str]"
) -> None:
    """Nobody touches an execution while another process is at work on it; all others are free."""
    with asl.open_store(path, agents={"Work": lambda data: "mine"}) as store:
        for touch in (store.resume, store.stop, lambda name: store.start(DOCUMENT, {}, name=name)):
            with pytest.raises(asl.ExecutionBusy, match="'held'"):
                touch("held")
        assert store.start(DOCUMENT, {}, name="free").output == "mine"
        assert store.result("held").status == "RUNNING"
        assert holding.communicate("theirs\n")[0] == "theirs\n"
        assert store.resume("held").output == "theirs"


def test_a_lock_ends_with_its_process(path: Path, holding: "subprocess.Popen[str]") -> None:
    """Whoever comes after a process that was killed goes on at once."""
    holding.send_signal(signal.SIGKILL)
    holding.wait()
    with asl.open_store(path, agents={"Work": lambda data: "mine"}) as store:
        assert store.resume("held").output == "mine"
