"""Workers that are killed: nothing is lost, nothing recorded is done again, nobody works twice."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import asl

Json = Any

AGENT = '''
import asyncio, os
from pathlib import Path

async def work(data, call):
    """Write down the beginning and the end of a call."""
    key = f"{call.execution_id.rpartition(':')[2]} {call.state_name}"
    write(f"{os.getpid()} begins {key}")
    await asyncio.sleep(0.02)
    write(f"{os.getpid()} ends {key}")
    return data + 1

def write(line):
    file = os.open(Path(__file__).with_name("calls.log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{line}\\n".encode())
    os.close(file)
'''
STEPS = 4
STATES: dict[str, Json] = {
    f"S{i}": {"Type": "Task", "Agent": "W", "Next": f"S{i + 1}"} for i in range(STEPS)
}
STATES["S2"] = {"Type": "Wait", "Seconds": 1, "Next": "S3"}
STATES[f"S{STEPS - 1}"] = {"Type": "Task", "Agent": "W", "End": True}
DOCUMENT = {"StartAt": "S0", "States": STATES}


class Workers:
    """Two workers of a store, one of which is killed now and then and started anew."""

    def __init__(self, folder: Path, store: Path) -> None:
        self.command = [
            *(sys.executable, "-m", "asl", "worker", "--store", str(store)),
            *("--agent", "W=agent:work"),
        ]
        self.folder = folder
        self.output = (folder / "workers.log").open("ab")
        self.running = [self.begun(), self.begun()]
        self.killed: set[str] = set()

    def begun(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self.command, cwd=self.folder, stdout=self.output, stderr=self.output
        )

    def kill(self, which: int) -> None:
        self.killed.add(str(self.running[which].pid))
        self.running[which].send_signal(signal.SIGKILL)
        self.running[which].wait()
        self.running[which] = self.begun()

    def replace(self, which: int) -> int:
        """Start a new worker, stop an old one with SIGTERM, and return its exit code."""
        old, self.running[which] = self.running[which], self.begun()
        old.send_signal(signal.SIGTERM)
        return old.wait(60)

    def end(self) -> None:
        for process in self.running:
            process.terminate()
        for process in self.running:
            process.wait()
        self.output.close()


@contextmanager
def workers(folder: Path, store: Path) -> Iterator[Workers]:
    running = Workers(folder, store)
    try:
        yield running
    finally:
        running.end()


def check_calls(lines: list[str], killed: set[str]) -> None:
    """No call is made again unless its worker was killed, and none by two at the same time."""
    holders: dict[str, str] = {}
    for line in lines:
        pid, what, key = line.split(" ", 2)
        holder = holders.get(key)
        if what == "begins":
            assert holder is None or (holder != pid and holder in killed), line
            holders[key] = pid
        else:
            assert holder == pid, line


@pytest.mark.parametrize("kills", [6, pytest.param(1000, marks=pytest.mark.full)])
def test_workers_are_killed_at_random(tmp_path: Path, kills: int) -> None:
    """All executions come to their ends, each step of each is recorded once."""
    (tmp_path / "agent.py").write_text(AGENT)
    path, executions = tmp_path / "runs.db", 10 + 2 * kills
    chance = random.Random(kills)
    with asl.open_store(path) as store, workers(tmp_path, path) as running:
        handles = []
        for number in range(kills):
            handles += [store.start(DOCUMENT, 0) for _ in range(2)]
            time.sleep(chance.uniform(0.1, 0.6))
            running.kill(number % 2)
        handles += [store.start(DOCUMENT, 0) for _ in range(executions - len(handles))]
        for handle in handles:
            assert handle.result(timeout=120).raise_for_status().output == STEPS - 1
            entered = [e.details["name"] for e in store.events(handle.name) if "Entered" in e.type]
            assert entered == [f"S{i}" for i in range(STEPS)]
        assert [*store.faults()] == []
    check_calls((tmp_path / "calls.log").read_text().splitlines(), running.killed)
    assert os.stat(path).st_mode & 0o077 == 0


@pytest.mark.parametrize("restarts", [4, pytest.param(60, marks=pytest.mark.full)])
def test_a_rolling_restart_loses_and_repeats_no_call(tmp_path: Path, restarts: int) -> None:
    """Each worker ends with exit code 0 when its calls have ended; others continue."""
    slow = AGENT.replace("sleep(0.02)", "sleep(0.3)")
    (tmp_path / "agent.py").write_text(slow)
    path, chance = tmp_path / "runs.db", random.Random(restarts)
    with asl.open_store(path) as store, workers(tmp_path, path) as running:
        handles = []
        for number in range(restarts):
            handles += [store.start(DOCUMENT, 0) for _ in range(4)]
            while len(store.workers()) < 2:  # an earlier signal would interrupt the start
                time.sleep(0.05)
            time.sleep(chance.uniform(0.3, 1.2))
            assert running.replace(number % 2) == 0
        for handle in handles:
            assert handle.result(timeout=120).raise_for_status().output == STEPS - 1
        assert [*store.faults()] == []
    lines = (tmp_path / "calls.log").read_text().splitlines()
    begun = [line.split(" ", 1)[1] for line in lines]
    assert len(begun) == len(set(begun)) == 2 * len(handles) * (STEPS - 1)
    check_calls(lines, set())
