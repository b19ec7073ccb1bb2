"""Cancelled runs leave no task, thread or process."""

import asyncio
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.agents.process import ProcessAgent

from .workflows import program

PATIENCE = 60


def all_three(**fields: Any) -> dict[str, Any]:
    """Return a workflow that calls a thread, a coroutine and a program at the same time."""
    branches = []
    for name in ("Thread", "Coroutine", "Program"):
        state = {"Type": "Task", "Agent": name, "End": True, **fields}
        states = {name: state}
        if fields:
            late = f"{name} is late"
            state["Catch"] = [{"ErrorEquals": ["States.Timeout"], "Next": late}]
            states[late] = {"Type": "Pass", "Parameters": {"late.$": "$.Error"}, "End": True}
        branches.append({"StartAt": name, "States": states})
    state = {"Type": "Parallel", "Branches": branches, "End": True}
    return {"StartAt": "All", "States": {"All": state}}


class Agents:
    """One agent of each kind, none of which ever answers."""

    def __init__(self, folder: Path) -> None:
        self.started = threading.Event()
        self.thread: threading.Thread | None = None
        self.ended: list[str] = []
        self.program: ProcessAgent = program(folder, "hang")

    def bindings(self) -> dict[str, Any]:
        return {"Thread": self.poll, "Coroutine": self.wait, "Program": self.program}

    def poll(self, parameters: Any) -> None:
        self.thread = threading.current_thread()
        self.started.set()
        try:
            while True:
                time.sleep(0.001)
        finally:
            self.ended.append("thread")

    async def wait(self, parameters: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.append("coroutine")

    def assert_gone(self) -> None:
        assert self.thread is not None
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        assert sorted(self.ended) == ["coroutine", "thread"]
        assert not self.program.alive
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)


@pytest.fixture
def agents(tmp_path: Path) -> Agents:
    return Agents(tmp_path)


def test_calls_that_time_out_leave_nothing(agents: Agents) -> None:
    """A thread that polls, a coroutine and a program end when their states time out."""
    result = asl.run(all_three(TimeoutSeconds=1), agents=agents.bindings())
    assert result.output == [{"late": "States.Timeout"}] * 3
    agents.assert_gone()


def test_an_execution_that_times_out_leaves_nothing(agents: Agents) -> None:
    """The document's own TimeoutSeconds ends everything that runs."""
    result = asl.run({**all_three(), "TimeoutSeconds": 1}, agents=agents.bindings())
    assert result.status == "TIMED_OUT"
    agents.assert_gone()


def test_a_failing_sibling_leaves_nothing(agents: Agents) -> None:
    """When one branch fails, the others are cancelled and have ended before the run returns."""
    workflow = all_three()
    branch = {
        "StartAt": "Fails",
        "States": {"Fails": {"Type": "Task", "Agent": "Fails", "End": True}},
    }
    workflow["States"]["All"]["Branches"].append(branch)

    async def fails(parameters: Any) -> None:
        while not (agents.started.is_set() and agents.program.alive):
            await asyncio.sleep(0.001)
        raise asl.StateError("Enough", "stop all")

    result = asl.run(workflow, agents={**agents.bindings(), "Fails": fails})
    assert result.error == "Enough"
    agents.assert_gone()


def test_a_cancelled_run_leaves_nothing(agents: Agents) -> None:
    """Cancelling `arun` ends what it started before the cancellation returns."""

    async def main() -> int:
        run = asyncio.create_task(asl.arun(all_three(), agents=agents.bindings()))
        while not (agents.started.is_set() and agents.program.alive):
            await asyncio.sleep(0.001)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1
    agents.assert_gone()
